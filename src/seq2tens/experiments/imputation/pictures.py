"""Frames of a few test sequences: with missing entries, imputed, and original."""

from __future__ import annotations

import io

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2tens.experiments.imputation.scores import Fill, complete
from seq2tens.models.gpvae import IncompleteBatch, IncompleteSource, Part

# The number of sequences in a picture, spread over the test part; the same ones for every model.
SHOWN = 3
# The maximum width of frames side by side in pixels, so that files stay small.
WIDTH = 300
GAP = 2
MISSING = np.array([0.35, 0.45, 0.6], dtype=np.float32)

Frames = Float[np.ndarray, "frames height width 3"]


def picture(part: Part, image: tuple[int, int, int], fill: Fill) -> bytes:
    """Create a PNG file with three rows of frames for each sequence: missing, imputed, original."""
    from matplotlib.image import imsave

    rows = torch.arange(SHOWN) * (len(part) // SHOWN)
    batch = IncompleteSource(part, scored=True).batch(rows)
    assert batch.truth is not None
    original = torch.where(batch.observed, batch.values, batch.truth)
    imputed = complete(batch, fill(batch))
    lines = [
        _line(frames)
        for i in range(len(rows))
        for frames in (_with_gaps(batch, i, image), _frames(imputed[i], image), _frames(original[i], image))
    ]
    file = io.BytesIO()
    imsave(file, np.concatenate(lines), format="png")
    return file.getvalue()


def _frames(steps: Float[Tensor, "time channels"], image: tuple[int, int, int]) -> Frames:
    """Some evenly spaced steps as images."""
    shown = np.arange(0, len(steps), -(-len(steps) * (image[1] + GAP) // WIDTH))
    pixels = steps[shown].reshape(-1, *image).clamp(0, 1).numpy()
    return np.broadcast_to(pixels, (*pixels.shape[:3], 3))


def _with_gaps(batch: IncompleteBatch, row: int, image: tuple[int, int, int]) -> Frames:
    """The frames with missing entries in a separate colour."""
    observed = _frames(batch.observed[row].float(), image)
    return np.where(observed > 0, _frames(batch.values[row], image), MISSING)


def _line(frames: Frames) -> Float[np.ndarray, "height width 3"]:
    """Put frames side by side, with white space between them and below."""
    padded = np.pad(frames, ((0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=1.0)
    return np.concatenate(list(padded), axis=1)
