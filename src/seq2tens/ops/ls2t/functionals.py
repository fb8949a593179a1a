"""The parameters of the recursion as one value."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from seq2tens.ops.chains import Chains
from seq2tens.ops.ls2t import Backend, ls2t


class Functionals(NamedTuple):
    """What the recursion computes, whatever the sequence; see `ops.ls2t`."""

    weight: Tensor
    bias: Tensor | None
    coefficients: Tensor | None
    decay: Tensor | None
    chains: Chains
    reverse: bool
    backend: Backend | None

    def run(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None = None, return_sequences: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Levels and final state of some sequences."""
        return ls2t(
            x,
            self.weight,
            self.bias,
            self.coefficients,
            self.decay,
            mask,
            state,
            chains=self.chains,
            reverse=self.reverse,
            return_sequences=return_sequences,
            backend=self.backend,
        )
