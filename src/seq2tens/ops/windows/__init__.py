"""The functionals of all windows of a sequence."""

from __future__ import annotations

from torch import Tensor

from seq2tens.ops import dispatch
from seq2tens.ops.ls2t import Functionals
from seq2tens.ops.windows import cpu, reference

dispatch.register("windows", "cpu", cpu.slide, dispatch.forward_unsupported)
dispatch.register("windows", "reference", reference.slide, dispatch.always_supported)


def slide(functionals: Functionals, x: Tensor, mask: Tensor | None, window: int, stride: int) -> Tensor:
    """Return the levels of the windows that begin at steps 0, stride, …, `(batch, windows, levels, width)`.

    Windows have a kernel of their own on CPUs. Any other backend requested by name runs the scans of the
    reference implementation.
    """
    backend = None if functionals.backend in (None, "auto", "cpu") else "reference"
    levels: Tensor = dispatch.run("windows", backend, functionals, x, mask, window, stride)
    return levels
