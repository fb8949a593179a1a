"""Convolution over time, axes `(batch, time, channels)`."""

from __future__ import annotations

from seq2tens.ops.convolution import convolve
from seq2tens.ops.convolution import prepare as prepare_convolution

__all__ = ["convolve", "prepare_convolution", "reach"]


def reach(kernel: int) -> tuple[int, int]:
    """Return how many steps a centred kernel covers before and after a step; an even one, one more after."""
    return (kernel - 1) // 2, kernel // 2
