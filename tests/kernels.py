"""Circumstances that must not change what a kernel computes."""

from contextlib import contextmanager

import torch


@contextmanager
def with_threads(count):
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def shifted(tensor):
    """The same numbers, one place further in memory than an array begins by itself."""
    room = tensor.new_empty(tensor.numel() + 1)
    return room[1:].view(tensor.shape).copy_(tensor)
