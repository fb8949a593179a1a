"""Measure the throughput of the service: `python load_test.py http://127.0.0.1:8000 --channels 12`."""

import argparse
import asyncio
import time

import httpx
import numpy as np


async def load_test(url: str, channels: int, requests: int, concurrency: int) -> dict[str, float]:
    """Send requests with one sequence of 10 to 30 steps each; return throughput and seconds per request."""
    rng = np.random.default_rng(0)
    bodies = [
        {"sequences": [rng.normal(size=(length, channels)).tolist()]}
        for length in rng.integers(10, 31, size=requests)
    ]
    seconds: list[float] = []

    async def send(client: httpx.AsyncClient, waiting: list[dict]) -> None:
        while waiting:
            body, started = waiting.pop(), time.perf_counter()
            (await client.post(f"{url}/predict", json=body)).raise_for_status()
            seconds.append(time.perf_counter() - started)

    started = time.perf_counter()
    async with httpx.AsyncClient(timeout=60) as client:
        await asyncio.gather(*(send(client, bodies) for _ in range(concurrency)))
    whole = time.perf_counter() - started
    middle, slow = np.percentile(seconds, [50, 99])
    return {"answered": len(seconds), "per_second": len(seconds) / whole, "median": middle, "p99": slow}


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--channels", type=int, required=True)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=8)
    figures = asyncio.run(load_test(**vars(parser.parse_args())))
    print(
        f"{figures['answered']:.0f} requests answered, {figures['per_second']:.0f} per second; "
        f"median {figures['median'] * 1e3:.1f} ms, 99 % within {figures['p99'] * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    main()
