"""The networks of PyPOTS, with the settings that matter; `PyPOTSImputer` says what they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from seq2tens import _checks as check
from seq2tens.estimators.imputers.pypots import PyPOTSImputer


@dataclass(kw_only=True, eq=False, repr=False)
class BRITSImputer(PyPOTSImputer):
    """BRITS of PyPOTS: recurrent networks in both directions of time.

    Cao et al., "BRITS: Bidirectional recurrent imputation for time series" (2018). See `PyPOTSImputer` for
    the other arguments.

    Args:
        width: size of the recurrent state.
    """

    width: int = 64

    _test_params: ClassVar[dict[str, Any]] = {"width": 4, "epochs": 2, "random_state": 0}

    def _network(self, pypots: Any, **common: Any) -> Any:
        return pypots.imputation.BRITS(rnn_hidden_size=self.width, **common)

    def _check_settings(self) -> None:
        super()._check_settings()
        check.positive_int("width", self.width)


@dataclass(kw_only=True, eq=False, repr=False)
class SAITSImputer(PyPOTSImputer):
    """SAITS of PyPOTS: two blocks of self-attention over time.

    Du et al., "SAITS: Self-attention-based imputation for time series" (2023). See `PyPOTSImputer` for the
    other arguments.

    Args:
        depth: layers of each block.
        width: size of the representation of a step, a multiple of `heads`.
        heads: of the attention.
        feed_forward: width within a layer.
        dropout: part of the units left out in training.
    """

    depth: int = 2
    width: int = 128
    heads: int = 4
    feed_forward: int = 128
    dropout: float = 0.1

    _test_params: ClassVar[dict[str, Any]] = {
        "depth": 1,
        "width": 8,
        "heads": 2,
        "feed_forward": 8,
        "epochs": 2,
        "random_state": 0,
    }

    def _network(self, pypots: Any, **common: Any) -> Any:
        size = self.width // self.heads
        return pypots.imputation.SAITS(
            n_layers=self.depth,
            d_model=self.width,
            n_heads=self.heads,
            d_k=size,
            d_v=size,
            d_ffn=self.feed_forward,
            dropout=self.dropout,
            **common,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("depth", "width", "heads", "feed_forward"):
            check.positive_int(name, getattr(self, name))
        check.require(
            self.width % self.heads == 0,
            f"`width` must be a multiple of `heads` = {self.heads}, got {self.width}",
        )
        check.require(0 <= self.dropout < 1, f"`dropout` must lie in [0, 1), got {self.dropout}")
