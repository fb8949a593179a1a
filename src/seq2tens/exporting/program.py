"""Export of modules as programs of `torch.export`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from seq2tens._checks import require
from seq2tens.exporting.recursion import DECOMPOSITIONS

# The axes of variable size of each argument that modules take.
AXES = {
    "x": ("batch", "time"),
    "values": ("batch", "time"),
    "mask": ("batch", "time"),
    "times": ("batch", "time"),
    "lengths": ("batch",),
    "static": ("batch",),
}


def export(module: nn.Module, inputs: Mapping[str, Tensor], *, portable: bool = True) -> ExportedProgram:
    """Export a module in evaluation mode as a program for any number of sequences and steps.

    Args:
        module: a layer, a network, or a module made of them.
        inputs: an example of each argument by its name (`x`, `lengths`, `mask`, …), with at least 2 sequences
            of 2 steps.
        portable: use torch's own operations only. Otherwise the recursion is the operation `seq2tens::ls2t`,
            which is faster but needs this package to be imported.

    Examples:
        >>> import torch
        >>> from seq2tens.exporting import export
        >>> from seq2tens.nn import DeepLS2T
        >>> network = DeepLS2T(3, 8).eval()
        >>> program = export(network, {"x": torch.zeros(2, 5, 3), "lengths": torch.tensor([5, 4])})
        >>> program.module()(x=torch.zeros(7, 11, 3), lengths=torch.full((7,), 11)).shape
        torch.Size([7, 16])
    """
    _check(module, inputs)
    with torch.no_grad(), warnings_of_torch_ignored():
        program = torch.export.export(module, (), dict(inputs), dynamic_shapes=dynamic_shapes(inputs))
        return program.run_decompositions(DECOMPOSITIONS) if portable else program


def dynamic_shapes(inputs: Iterable[str]) -> dict[str, dict[int, Dim]]:
    """Return the axes of variable size of each input, in the format of `torch.export`."""
    sizes = {name: Dim(name) for name in ("batch", "time")}
    return {name: {axis: sizes[size] for axis, size in enumerate(AXES[name])} for name in inputs}


@contextmanager
def warnings_of_torch_ignored() -> Iterator[None]:
    """Ignore warnings, because torch's exporter warns about torch's own code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _check(module: nn.Module, inputs: Mapping[str, Tensor]) -> None:
    require(not module.training, "`module` must be in evaluation mode, call `module.eval()` first")
    require(len(inputs) > 0, "`inputs` must have an example of each argument of `module`, got none")
    for name, tensor in inputs.items():
        require(name in AXES, f"`inputs` must be among {', '.join(AXES)}, got {name}")
        small = [size for size, _ in zip(tensor.shape, AXES[name], strict=False) if size < 2]
        require(
            not small,
            f"`{name}` must have at least 2 sequences of 2 steps, so that these sizes are not treated as "
            f"constants, got {tuple(tensor.shape)}",
        )
