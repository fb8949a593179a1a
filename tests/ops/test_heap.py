"""Large results ask for huge pages, and free memory goes back to the operating system."""

import platform
import sys
from pathlib import Path

import pytest
import torch

from seq2tens.functional import ls2t
from seq2tens.ops.heap import LARGE, trim_heap, use_huge_pages


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_it_can_be_called_anywhere():
    assert trim_heap() is None


@pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_gaps_between_small_blocks_are_returned():
    """Of blocks of 16 KiB, too small to be mapped on their own, one in 64 stays."""
    blocks = [bytearray(1 << 14) for _ in range(1 << 12)]
    kept = blocks[::64]
    before = resident_bytes()
    del blocks
    trim_heap()
    assert before - resident_bytes() > 1 << 25
    assert len(kept) == 64


def flags_at(address):
    """The flags of the mapping that contains an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = line.split()[0].split("-")
        if len(bounds) == 2 and not line.startswith("VmFlags"):
            inside = int(bounds[0], 16) <= address < int(bounds[1], 16)
        elif inside and line.startswith("VmFlags"):
            return line.split()[1:]
    return []


needs_huge_pages = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="this system has no huge pages"
)


@needs_huge_pages
def test_large_tensors_ask_for_huge_pages():
    tensor = torch.empty(LARGE, dtype=torch.uint8)
    use_huge_pages(tensor)
    assert "hg" in flags_at(tensor.data_ptr() + LARGE // 2)
    assert bool((tensor.fill_(7) == 7).all())


@needs_huge_pages
def test_small_tensors_are_left_alone():
    tensor = torch.empty(LARGE // 2, dtype=torch.uint8)
    before = flags_at(tensor.data_ptr() + LARGE // 4)
    use_huge_pages(tensor)
    assert flags_at(tensor.data_ptr() + LARGE // 4) == before


@needs_huge_pages
def test_levels_and_gradients_of_long_sequences_are_in_huge_pages():
    x = torch.randn(1, 40_000, 256, requires_grad=True)
    y = ls2t(x, torch.randn(2, 256, 128) / 16, order=2, backend="cpu")
    assert "hg" in flags_at(y.data_ptr() + LARGE // 2)
    y.square().sum().backward()
    assert "hg" in flags_at(x.grad.data_ptr() + LARGE // 2)
