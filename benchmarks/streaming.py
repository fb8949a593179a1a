"""The cost of one step of a stream, also after many steps.

python -m benchmarks run streaming
python -m benchmarks.streaming          # 100 000 steps, one at a time: latency and memory at both ends
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.registry import Case, Prepare, Work, suite
from benchmarks.run import status
from seq2tens.nn import FCN, FCNLS2T, DeepLS2T, ResNet

CHANNELS, PREFIX, WIDTH = 3, 100, 128
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "FCN64-LS2T64³": lambda: FCNLS2T(CHANNELS, time_embedding=False),
    "LS2T64³": lambda: DeepLS2T(CHANNELS),
    "FCN128": lambda: FCN(CHANNELS),
    "ResNet": lambda: ResNet(CHANNELS),
}


def build(name: str) -> nn.Module:
    torch.manual_seed(0)
    return NETWORKS[name]().eval()


def draw(steps: int) -> Tensor:
    return torch.randn(1, steps, CHANNELS, generator=torch.Generator().manual_seed(0))


def stream(name: str) -> Prepare:
    """One step after a hundred others."""

    def prepare() -> Work:
        opened, x = build(name).stream(), draw(1)  # type: ignore[operator]
        opened.push(draw(PREFIX))
        return lambda: opened.push(x)

    return prepare


def again(name: str) -> Prepare:
    """Without a stream: the whole network on all steps so far."""

    def prepare() -> Work:
        network, x = build(name), draw(PREFIX)

        def work() -> object:
            with torch.inference_mode():
                return network(x)

        return work

    return prepare


def lstm_cells() -> Work:
    """Another recurrent network: three layers as wide as the features of FCN64-LS2T64³."""
    torch.manual_seed(0)
    cells = [nn.LSTMCell(CHANNELS, WIDTH), nn.LSTMCell(WIDTH, WIDTH), nn.LSTMCell(WIDTH, WIDTH)]
    states = [(torch.zeros(1, WIDTH), torch.zeros(1, WIDTH)) for _ in cells]
    x = draw(1)[:, 0]

    def work() -> object:
        with torch.inference_mode():
            y = x
            for i, cell in enumerate(cells):
                states[i] = cell(y, states[i])
                y = states[i][0]
            return y

    return work


@suite
def streaming() -> Iterator[Case]:
    """One step of one stream, against the network on 100 steps and against three LSTM cells."""
    for name in NETWORKS:
        contenders = {
            "stream": stream(name),
            f"{PREFIX} steps again": again(name),
            "LSTMCell × 3": lstm_cells,
        }
        yield Case("streaming", name, "stream", contenders, latency=True)


def endure(name: str, steps: int, part: int) -> Iterator[str]:
    """Push one step at a time, and yield a line of text for every part."""
    opened, x = build(name).stream(), draw(steps)  # type: ignore[operator]
    opened.push(x[:, :PREFIX])
    for start in range(0, steps, part):
        times = []
        for step in x[:, start : start + part].split(1, dim=1):
            begin = time.perf_counter()
            opened.push(step)
            times.append(time.perf_counter() - begin)
        middle, high = np.quantile(times, [0.5, 0.99]) * 1e3
        yield (
            f"{name}: steps {start + 1} to {start + part}   p50 {middle:.3f} ms   p99 {high:.3f} ms   "
            f"memory {status('VmRSS') / 2**20:.1f} MiB"
        )


if __name__ == "__main__":
    for line in endure("FCN64-LS2T64³", steps=100_000, part=20_000):
        print(line, flush=True)
