"""Sprites: animated characters of a video game, with entries missing at random."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt8

from seq2tens._checks import positive_int, require
from seq2tens.data import _packed
from seq2tens.data.datasets._folders import dataset_folder, existing_file
from seq2tens.data.incomplete import Incomplete
from seq2tens.data.readers._text import malformed
from seq2tens.data.readers._zip import parse_npy
from seq2tens.data.sequences import Rows

__all__ = ["MISSING", "N_TRAIN", "Figures", "Sprites", "load"]

MISSING = 0.6
N_TRAIN = 1000
PICTURES = "sprites_pal_9x1296x8x64x64.npy.xz"
PALETTE = "palette_rgb.npy"
AXES = "(actions, characters, frames, height, width)"


@dataclass(frozen=True, eq=False)
class Figures:
    """A part of the data set; `part[rows]` returns the chosen sequences as `Incomplete`.

    Row `action * n_characters + character` is one character in one action. Pictures are stored as palette
    indices: in float32, the data set would take 4.6 GB, and its mask 1.1 GB.
    """

    _indices: UInt8[np.ndarray, "actions characters frames height width"]
    _colors: Float32[np.ndarray, "palette 3"]
    _seed: int
    _missing: float
    _first: int

    def __len__(self) -> int:
        return self._indices.shape[0] * self._indices.shape[1]

    @property
    def image(self) -> tuple[int, int, int]:
        """Height, width and number of colours, 3."""
        _, _, _, height, width = self._indices.shape
        return height, width, 3

    def __getitem__(self, rows: Rows) -> Incomplete:
        actions, characters = np.divmod(_packed.row_numbers(rows, len(self)), self._indices.shape[1])
        truth = self._colors[self._indices[actions, characters]]
        truth = truth.reshape(*truth.shape[:2], int(np.prod(self.image)))
        observed = np.empty(truth.shape, dtype=bool)
        for row, action, character in zip(observed, actions, characters, strict=True):
            row[...] = self._mask(int(action), self._first + int(character), row.shape)
        return Incomplete(truth, observed, image=self.image)

    def _mask(self, action: int, character: int, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the mask of one sequence from its own random stream, so that it is the same every time."""
        generator = np.random.default_rng((self._seed, action, character))
        return generator.random(shape, dtype=np.float32) >= self._missing


@dataclass(frozen=True, eq=False)
class Sprites:
    """The two parts of the data set, which have different characters."""

    train: Figures
    test: Figures


def load(
    folder: str | Path | None = None, *, seed: int = 0, missing: float = MISSING, n_train: int = N_TRAIN
) -> Sprites:
    """Read the pictures; the first `n_train` characters, in all their actions, are the training part.

    Args:
        folder: folder with the files, or with a folder `sprites` that holds them (default: the environment
            variable SEQ2TENS_DATA).
        seed: seed of the random streams for missing entries, at least 0. The mask of a sequence depends only
            on the seed and on the sequence.
        missing: probability that an entry (a colour of a pixel of a frame) is missing.
        n_train: number of characters in the training part.
    """
    require(seed >= 0, f"`seed` must be at least 0, got {seed}")
    require(0 <= missing <= 1, f"`missing` must lie in 0..1, got {missing}")
    positive_int("n_train", n_train)
    files = dataset_folder(folder, "sprites")
    colors = _colors(existing_file(files / PALETTE))
    indices = _indices(existing_file(files / PICTURES), len(colors))
    characters = indices.shape[1]
    require(n_train < characters, f"`n_train` must be less than the {characters} characters, got {n_train}")
    return Sprites(
        Figures(indices[:, :n_train], colors, seed, missing, 0),
        Figures(indices[:, n_train:], colors, seed, missing, n_train),
    )


def _colors(path: Path) -> Float32[np.ndarray, "palette 3"]:
    """Read the palette, with colours in [0, 1)."""
    try:
        palette = parse_npy(path.read_bytes())
    except (ValueError, EOFError) as error:
        raise malformed(path, f"must be an array as `numpy.save` writes it: {error}") from error
    if palette.dtype != np.uint8 or palette.ndim != 2 or palette.shape[1] != 3:
        raise malformed(path, f"must hold bytes (colours, 3), got {palette.dtype} of shape {palette.shape}")
    return palette.astype(np.float32) / 256


def _indices(path: Path, n_colors: int) -> UInt8[np.ndarray, "actions characters frames height width"]:
    try:
        with lzma.open(path) as file:
            indices = np.lib.format.read_array(file, allow_pickle=False)
            complete = file.read(1) == b""  # reading to the end verifies the checksum
    except (ValueError, EOFError, MemoryError, lzma.LZMAError) as error:
        raise malformed(path, f"must be an array as `numpy.save` writes it, in xz: {error}") from error
    if not complete:
        raise malformed(path, "must end after the array, but has more bytes")
    if indices.dtype != np.uint8 or indices.ndim != 5:
        raise malformed(path, f"must hold bytes {AXES}, got {indices.dtype} of shape {indices.shape}")
    if (largest := int(indices.max(initial=0))) >= n_colors:
        raise malformed(path, f"must hold numbers of the {n_colors} colours in {PALETTE}, got {largest}")
    return indices
