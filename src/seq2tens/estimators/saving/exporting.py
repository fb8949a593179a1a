"""Export of fitted estimators to ONNX files."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2tens.data import Preparation
from seq2tens.exporting import PreparationModule, to_onnx

# Sizes of the example that the exporter traces.
SEQUENCES, STEPS = 3, 7


class Exportable:
    """Base class of estimators that can be exported to an ONNX file.

    A subclass implements `_output_module`, the module that maps prepared values and lengths to the output.
    """

    preparation_: Preparation
    metadata_: dict[str, Any]
    _onnx_output: ClassVar[str] = "probabilities"

    def to_onnx(self, path: str | Path) -> None:
        """Export `predict_proba`, or `predict` of a regressor, to an ONNX file.

        Scaling and the filling of missing values are included. Needs `pip install 'seq2tens[onnx]'`.

        The inputs are `values` `(batch, time, channels)` in float64, sequences padded on the right to any
        length, NaN where an entry is missing; `lengths` `(batch,)` in int64, of at least 1; and, if the
        estimator was fitted with them, `times` `(batch, time)` and `static` `(batch, features)` in float64.
        The output is `probabilities` `(batch, classes)`, or `prediction` `(batch,)`, in float64. The file
        carries the classes and the names of the channels as JSON in its metadata.

        Args:
            path: path of the file.
        """
        self._check_is_fitted()  # type: ignore[attr-defined]
        module = Prepared(PreparationModule(self.preparation_), self._output_module()).eval()
        to_onnx(module, path, self._example(), outputs=[self._onnx_output], metadata=self._onnx_metadata())

    def _output_module(self) -> nn.Module:
        raise NotImplementedError(f"{type(self).__name__} cannot be exported to an ONNX file")

    def _example(self) -> dict[str, Tensor]:
        """Return example inputs for the exporter."""
        preparation = self.preparation_
        zeros = torch.zeros(SEQUENCES, STEPS, preparation.n_channels, dtype=torch.float64)
        inputs = {"values": zeros, "lengths": torch.full((SEQUENCES,), STEPS)}
        if preparation.clock is not None:
            inputs["times"] = torch.arange(STEPS, dtype=torch.float64).repeat(SEQUENCES, 1)
        if preparation.static is not None:
            assert preparation.static.mean_ is not None
            inputs["static"] = zeros.new_zeros(SEQUENCES, len(preparation.static.mean_))
        return inputs

    def _onnx_metadata(self) -> dict[str, str]:
        classes = getattr(self, "classes_", None)
        facts = {
            "model": type(self).__name__,
            "seq2tens": importlib.metadata.version("seq2tens"),
            "classes": None if classes is None else classes.tolist(),
            "channels": self.metadata_.get("columns"),
        }
        return {name: json.dumps(fact) for name, fact in facts.items() if fact is not None}


class Prepared(nn.Module):
    """A model preceded by its preparation, for raw values."""

    def __init__(self, preparation: PreparationModule, model: nn.Module) -> None:
        super().__init__()
        self.preparation, self.model = preparation, model

    def forward(
        self,
        values: Float[Tensor, "batch time channels"],
        lengths: Int[Tensor, " batch"],
        times: Float[Tensor, "batch time"] | None = None,
        static: Float[Tensor, "batch features"] | None = None,
    ) -> Tensor:
        """Return the model's output."""
        prepared = self.preparation(values, lengths, times, static)
        return self.model(prepared.values, lengths)


class Probabilities(nn.Module):
    """The softmax of a model's scores."""

    def __init__(self, scores: nn.Module, inverse_temperature: float = 1.0) -> None:
        super().__init__()
        self.scores, self.inverse_temperature = scores, inverse_temperature

    def forward(self, values: Tensor, lengths: Tensor) -> Float[Tensor, "batch classes"]:
        """Return probabilities in float64, as `predict_proba` does."""
        return (self.scores(values, lengths).double() * self.inverse_temperature).softmax(dim=1)
