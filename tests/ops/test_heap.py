"""Free memory goes back to the operating system."""

import platform
import sys
from pathlib import Path

import pytest

from seq2tens.ops.heap import trim_heap


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
