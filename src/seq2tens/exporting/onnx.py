"""Export of modules as ONNX files."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from seq2tens.exporting.program import dynamic_shapes, export, warnings_of_torch_ignored

# This logger reports on every call that torchvision is missing.
_LOGGER = "torch.onnx._internal.exporter._registration"


def to_onnx(
    module: nn.Module,
    path: str | Path,
    inputs: Mapping[str, Tensor],
    *,
    outputs: Sequence[str] = ("output",),
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a module in evaluation mode to an ONNX file, for any number of sequences and steps.

    Args:
        module: a layer, a network, or a module made of them.
        path: path of the file.
        inputs: an example of each argument, as for `export`; their names become the names of the inputs.
        outputs: names of the outputs of the module.
        metadata: texts to store in the file.
    """
    _require_packages()
    program = export(module, inputs)
    with torch.no_grad(), warnings_of_torch_ignored(), _quiet():
        onnx_program = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=dynamic_shapes(inputs),
        )
    assert onnx_program is not None
    onnx_program.model.metadata_props.update(metadata or {})
    onnx_program.save(str(path))


def _require_packages() -> None:
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise ImportError(f"`to_onnx` needs {package}: pip install 'seq2tens[onnx]'")


@contextmanager
def _quiet() -> Iterator[None]:
    logger = logging.getLogger(_LOGGER)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
