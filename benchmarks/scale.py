"""The time of `RandomLS2TClassifier` for growing numbers and lengths of series.

python -m benchmarks.scale            # doubling each, from 1000 series of 100 steps, 3 channels
python -m benchmarks.scale --large    # 100 000 series of 100 steps: minutes, and gigabytes
python -m benchmarks.scale --features # `RandomLS2TFeatures` alone, with one thread and with all
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import torch

from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TFeatures

CHANNELS = 3
# Series, steps and channels.
SHAPES = ((200, 150, 1), (270, 29, 12), (100, 1000, 3), (500, 24, 1))
REPEATS = 7


def draw(series: int, length: int, channels: int = CHANNELS) -> tuple[np.ndarray, np.ndarray]:
    """Noise with an early or a late bump."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((series, channels, length), dtype=np.float32)
    y = np.arange(series) % 2
    X[y == 0, 0, length // 4] += 4
    X[y == 1, 0, 3 * length // 4] += 4
    return X, y


def fit_seconds(series: int, length: int) -> float:
    """Seconds of one fit on all cores."""
    X, y = draw(series, length)
    begin = time.perf_counter()
    RandomLS2TClassifier(n_jobs=-1, random_state=0).fit(X, y)
    return time.perf_counter() - begin


def print_features() -> None:
    """Print the shortest times of several fits and transforms."""
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        for series, length, channels in SHAPES:
            X, _ = draw(series, length, channels)
            features, fits, transforms = RandomLS2TFeatures(random_state=0), [], []
            for _ in range(REPEATS):
                begin = time.perf_counter()
                features.fit(X)
                fits.append(time.perf_counter() - begin)
                features.transform(X)
                transforms.append(time.perf_counter() - begin - fits[-1])
            print(
                f"{series:>5} series × {length:>4} steps × {channels:>2} channels, threads: {threads}   "
                f"calibration {1e3 * min(fits):7.1f} ms   features {1e3 * min(transforms):7.1f} ms"
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--features", action="store_true")
    options = parser.parse_args()
    if options.features:
        print_features()
        return
    fit_seconds(100, 20)  # loads libraries
    sizes = [(1000, 100), (2000, 100), (4000, 100), (8000, 100), (1000, 200), (1000, 400), (1000, 800)]
    if options.large:
        sizes = [(100_000, 100)]
    for series, length in sizes:
        seconds = fit_seconds(series, length)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{series:>7} series × {length:>4} steps   fit {seconds:7.1f} s   peak so far {peak:5.1f} GiB")


if __name__ == "__main__":
    main()
