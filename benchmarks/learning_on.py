"""Time and memory of `RandomLS2TClassifier` for learning from parts and for forgetting one series.

python -m benchmarks.learning_on                      # 100 000 series of 100 steps, 3 channels, in parts
python -m benchmarks.learning_on --series 1000000     # hours
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

from seq2tens.estimators import RandomLS2TClassifier

CHANNELS, STEPS = 3, 100


def draw(series: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with an early or a late bump."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((series, CHANNELS, STEPS), dtype=np.float32)
    y = np.arange(series) % 2
    X[y == 0, 0, STEPS // 4] += 4
    X[y == 1, 0, 3 * STEPS // 4] += 4
    return X, y


def parts(series: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Generate the parts one by one and print the progress."""
    begin = now()
    for number in range(series // size):
        yield draw(size, number)
        print_usage(f"{(number + 1) * size:>8} series summed", begin)


def now() -> tuple[float, float]:
    """The wall-clock time and the time of all cores, which hardly depends on other load."""
    return time.perf_counter(), time.process_time()


def print_usage(stage: str, begin: tuple[float, float]) -> None:
    seconds, of_cores = (after - before for after, before in zip(now(), begin, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{stage:<24} {seconds:8.1f} s {of_cores:8.1f} core-s   peak {peak:5.1f} GiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning_on", description=__doc__)
    parser.add_argument("--series", type=int, default=100_000)
    parser.add_argument("--part", type=int, default=10_000)
    parser.add_argument("--blocks", type=int, default=40)
    options = parser.parse_args()
    model = RandomLS2TClassifier(n_blocks=options.blocks, n_jobs=-1, random_state=0)
    begin = now()
    model.fit_parts(parts(options.series, options.part))
    print_usage("fitted", begin)
    X, y = draw(options.part, 1)
    for row in range(3):
        begin = now()
        model.forget(X[row : row + 1], y[row : row + 1])
        print_usage("one series forgotten", begin)
    new, labels = draw(500, options.series)
    print(f"accuracy on new series {model.score(new, labels):.3f}")


if __name__ == "__main__":
    main()
