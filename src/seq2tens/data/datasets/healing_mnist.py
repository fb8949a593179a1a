"""Healing MNIST: digits that turn at random, with pixels missing not at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, UInt8

from seq2tens._checks import positive_int, require
from seq2tens.data import _packed
from seq2tens.data.datasets import mnist
from seq2tens.data.incomplete import Incomplete
from seq2tens.data.sequences import Rows

__all__ = ["ANGLE", "FRAMES", "MISSING", "HealingMNIST", "TurningDigits", "load"]

FRAMES = 10
ANGLE = 23.0
MISSING = 0.45
HALF_INTENSITY = 127.5
VALIDATION_SHARE = 6  # the last 10,000 of 60,000
TRAIN, TEST = 0, 1  # which of the two files a random stream belongs to
BLOCK = 500  # sequences made at a time: about 100 MB at work


@dataclass(frozen=True, eq=False)
class TurningDigits:
    """A part of the data set; `part[rows]` gives the chosen sequences as `Incomplete`.

    Pixels are kept as single bits: all 70,000 sequences in float32 would take 2 GB, twice.

    Attributes:
        labels: the digits.
        image: height, width and the one colour.
    """

    labels: Int[np.ndarray, " n"]
    image: tuple[int, int, int]
    _white: UInt8[np.ndarray, "n time bytes"]
    _observed: UInt8[np.ndarray, "n time bytes"]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Rows) -> Incomplete:
        index = _packed.row_numbers(rows, len(self))
        white, observed = (self._bits(packed[index]) for packed in (self._white, self._observed))
        return Incomplete(white.astype(np.float32), observed, self.labels[index], image=self.image)

    def _bits(self, packed: UInt8[np.ndarray, "n time bytes"]) -> Bool[np.ndarray, "n time pixels"]:
        return np.unpackbits(packed, axis=2, count=int(np.prod(self.image))).view(bool)


@dataclass(frozen=True, eq=False)
class HealingMNIST:
    """The three parts of the data set."""

    train: TurningDigits
    validation: TurningDigits
    test: TurningDigits


def load(
    folder: str | Path | None = None,
    *,
    seed: int = 0,
    angle: float = ANGLE,
    missing: float = MISSING,
    limit: int | None = None,
) -> HealingMNIST:
    """Make the data set from the files of MNIST.

    Each of ten frames is the digit, turned against the frame before it (the first one: against the digit as
    it was written) by a normal random angle, and binarised at half intensity. In each frame white pixels are
    twice as likely to be missing as black ones. The last sixth of MNIST's training digits is the validation
    part. A sequence depends on the seed and on its place in the file, on nothing else.

    Args:
        folder: where the files are, or where a folder `mnist` with them is (default: the environment variable
            SEQ2TENS_DATA).
        seed: number of the random streams, at least 0.
        angle: standard deviation of the angles, in degrees. The default is calibrated, as the file of
            the published experiments is not at hand: on every fifth training sequence imputation by
            `mean_imputation` and `forward_imputation` has a mean squared error of 0.173 and 0.177 (published:
            0.168 and 0.177), on the test part 0.173 and 0.177, and 0.231 for zeros (published: 0.232).
        missing: expected share of missing pixels in every frame, at most 1/2.
        limit: make only so many sequences, the first ones, of each part.
    """
    require(seed >= 0, f"`seed` must be at least 0, got {seed}")
    require(
        0 <= missing <= 0.5, f"`missing` must lie in 0..0.5 (white pixels get twice as much), got {missing}"
    )
    if limit is not None:
        positive_int("limit", limit)
    digits = mnist.load(folder)
    n = len(digits.train_images)
    first = n - n // VALIDATION_SHARE
    make = _Maker(seed, angle, missing)
    train, validation, test = (
        range(start, stop)[:limit] for start, stop in ((0, first), (first, n), (0, len(digits.test_images)))
    )
    return HealingMNIST(
        make.part(digits.train_images, digits.train_labels, TRAIN, train),
        make.part(digits.train_images, digits.train_labels, TRAIN, validation),
        make.part(digits.test_images, digits.test_labels, TEST, test),
    )


@dataclass(frozen=True)
class _Maker:
    seed: int
    angle: float
    missing: float

    def part(self, images: np.ndarray, labels: np.ndarray, stream: int, numbers: range) -> TurningDigits:
        height, width = images.shape[1:]
        made = [self._block(images, stream, block) for block in _blocks(numbers)]
        size = (height * width + 7) // 8
        nothing = np.zeros((0, FRAMES, size), dtype=np.uint8)
        white, observed = (np.concatenate([nothing, *(pair[i] for pair in made)]) for i in (0, 1))
        chosen = labels[numbers.start : numbers.stop].astype(np.int64)
        return TurningDigits(chosen, (height, width, 1), white, observed)

    def _block(self, images: np.ndarray, stream: int, numbers: range) -> tuple[np.ndarray, np.ndarray]:
        """Frames and masks of a few sequences, as bits."""
        pixels = images.shape[1] * images.shape[2]
        steps, chances = _draws([(self.seed, stream, number) for number in numbers], pixels)
        chosen = images[numbers.start : numbers.stop]
        angles = np.deg2rad(self.angle * steps).cumsum(axis=1)
        white = (_turned(chosen, angles) > HALF_INTENSITY).reshape(*angles.shape, pixels)
        observed = chances >= _chance_to_miss(white, self.missing)
        return np.packbits(white, axis=2), np.packbits(observed, axis=2)


def _blocks(numbers: range) -> Iterator[range]:
    for start in range(0, len(numbers), BLOCK):
        yield numbers[start : start + BLOCK]


def _draws(
    streams: list[tuple[int, int, int]], pixels: int
) -> tuple[Float[np.ndarray, "n frames"], Float32[np.ndarray, "n frames pixels"]]:
    """Standard normal steps and uniform chances; every sequence has a stream of its own."""
    steps = np.empty((len(streams), FRAMES))
    chances = np.empty((len(streams), FRAMES, pixels), dtype=np.float32)
    for i, stream in enumerate(streams):
        generator = np.random.default_rng(stream)
        generator.standard_normal(out=steps[i])
        generator.random(dtype=np.float32, out=chances[i])
    return steps, chances


def _turned(
    images: UInt8[np.ndarray, "n height width"], angles: Float[np.ndarray, "n frames"]
) -> Float32[np.ndarray, "turned height width"]:
    """Each image turned about its centre by each of its angles (radians, counter-clockwise), bilinearly.

    The digit itself is turned by the sum of angles so far: turning a turned picture would blur it more and
    more.
    """
    cos, sin = (
        torch.from_numpy(np.cos(angles)).float().flatten(),
        torch.from_numpy(np.sin(angles)).float().flatten(),
    )
    still = torch.zeros_like(cos)
    rotations = torch.stack([cos, -sin, still, sin, cos, still], dim=1).view(-1, 2, 3)
    pictures = torch.from_numpy(images.astype(np.float32)).repeat_interleave(angles.shape[1], dim=0)[:, None]
    grid = torch.nn.functional.affine_grid(rotations, list(pictures.shape), align_corners=True)
    return torch.nn.functional.grid_sample(pictures, grid, align_corners=True)[:, 0].numpy()


def _chance_to_miss(
    white: Bool[np.ndarray, "n frames pixels"], missing: float
) -> Float32[np.ndarray, "n frames pixels"]:
    """Twice as large for white pixels, with mean `missing` in every frame."""
    black = (missing / (1 + white.mean(axis=2, keepdims=True))).astype(np.float32)
    return np.where(white, 2 * black, black)
