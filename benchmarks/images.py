"""The image preprocessor of a GP-VAE on binary frames: a lookup table against two convolutions."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.models.gpvae.layers import ImagePreprocessor

SHAPE, SEQUENCES, FRAMES = (28, 28, 1), 16, 10


def step(by_table: bool) -> Prepare:
    """A forward and backward pass of a batch with the size of Healing MNIST."""

    def prepare() -> Work:
        torch.manual_seed(0)
        layer = ImagePreprocessor(SHAPE)
        frames = (torch.rand(SEQUENCES, FRAMES, SHAPE[0] * SHAPE[1]) < 0.2).float()
        weights = torch.randn_like(frames)
        # The table does not support derivatives with respect to the frames.
        frames.requires_grad_(not by_table)
        parameters = list(layer.parameters())
        return lambda: torch.autograd.grad((layer(frames) * weights).sum(), parameters)

    return prepare


@suite
def images() -> Iterator[Case]:
    """A training step of the layer, without derivatives with respect to the frames."""
    contenders = {"table": step(by_table=True), "convolutions": step(by_table=False)}
    height, width, _ = SHAPE
    yield Case("images", f"{SEQUENCES * FRAMES} frames of {height} x {width}", "table", contenders)
