"""A call to a compiled kernel: numbers and addresses of tensors, in one record."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from seq2tens.ops._threads import launch


def run_kernel(
    entry: Any, at: Mapping[str, int], numbers: dict[str, int], tensors: dict[str, Tensor]
) -> None:
    """Run a C function of one record on torch's threads; `at` tells where in it each field stands.

    Tensors must be contiguous. The numbers tell how many tasks there are, and the scratch of a thread.
    """
    record = array("q", [0] * len(at))
    for name, number in numbers.items():
        record[at[name]] = int(number)
    for name, tensor in tensors.items():
        record[at[name]] = tensor.data_ptr()
    launch(entry.address, record, dict(at), numbers["tasks"])
