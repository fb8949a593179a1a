"""The networks of PyPOTS with their main settings; see `PyPOTSImputer` for what they have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from seq2tens import _checks as check
from seq2tens.data import Sequences
from seq2tens.estimators.imputers.base import Draws
from seq2tens.estimators.imputers.formats import Values
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


@dataclass(kw_only=True, eq=False, repr=False)
class SAITSImputer(PyPOTSImputer):
    """SAITS of PyPOTS: two blocks of self-attention over time.

    Du et al., "SAITS: Self-attention-based imputation for time series" (2023). See `PyPOTSImputer` for the
    other arguments.

    Args:
        depth: layers of each block.
        width: size of the representation of a step, a multiple of `heads`.
        heads: number of attention heads.
        feed_forward: width within a layer.
        dropout: dropout rate.
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


@dataclass(kw_only=True, eq=False, repr=False)
class TimesNetImputer(PyPOTSImputer):
    """TimesNet of PyPOTS: 2D convolutions over series that are folded at their strongest periods.

    Wu et al., "TimesNet: Temporal 2D-variation modeling for general time series analysis" (2023). See
    `PyPOTSImputer` for the other arguments.

    Args:
        depth: number of blocks.
        width: size of the representation of a step.
        feed_forward: width within a block.
        periods: number of the strongest periods to use.
        kernels: number of kernel sizes in a block.
        dropout: dropout rate.
    """

    depth: int = 2
    width: int = 64
    feed_forward: int = 64
    periods: int = 3
    kernels: int = 5
    dropout: float = 0.1

    _test_params: ClassVar[dict[str, Any]] = {
        "depth": 1,
        "width": 4,
        "feed_forward": 4,
        "kernels": 1,
        "epochs": 2,
        "random_state": 0,
    }

    def _network(self, pypots: Any, **common: Any) -> Any:
        return pypots.imputation.TimesNet(
            n_layers=self.depth,
            # A short series has fewer frequencies.
            top_k=min(self.periods, self.n_steps_ // 2),
            d_model=self.width,
            d_ffn=self.feed_forward,
            n_kernels=self.kernels,
            dropout=self.dropout,
            **common,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ImputeFormerImputer(PyPOTSImputer):
    """ImputeFormer of PyPOTS: low-rank attention over time, and attention over channels with learned
    embeddings.

    Nie et al., "ImputeFormer: Low rankness-induced transformers for generalizable spatiotemporal imputation"
    (2024). See `PyPOTSImputer` for the other arguments.

    Args:
        depth: number of layers.
        width: size of the representation of an entry, a multiple of `heads`.
        embedding: size of the learned embedding of each channel, less than `width`.
        projection: rank of the attention over time.
        heads: number of heads of the attention over time.
        feed_forward: width within a layer.
        dropout: dropout rate.
    """

    depth: int = 3
    width: int = 128
    embedding: int = 96
    projection: int = 10
    heads: int = 4
    feed_forward: int = 256
    dropout: float = 0.1

    _test_params: ClassVar[dict[str, Any]] = {
        "depth": 1,
        "width": 8,
        "embedding": 4,
        "projection": 2,
        "heads": 2,
        "feed_forward": 8,
        "epochs": 2,
        "random_state": 0,
    }

    def _network(self, pypots: Any, **common: Any) -> Any:
        return pypots.imputation.ImputeFormer(
            n_layers=self.depth,
            d_input_embed=self.width - self.embedding,
            d_learnable_embed=self.embedding,
            d_proj=self.projection,
            d_ffn=self.feed_forward,
            n_temporal_heads=self.heads,
            dropout=self.dropout,
            **common,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        check.require(
            self.embedding < self.width,
            f"`embedding` must be less than `width` = {self.width}, got {self.embedding}",
        )


@dataclass(kw_only=True, eq=False, repr=False)
class HELIXImputer(PyPOTSImputer):
    """HELIX of PyPOTS: attention over time and over channels, with a learned embedding of each channel.

    Zhang et al., "HELIX: Hybrid encoding with learnable identity and cross-dimensional synthesis for time
    series imputation" (2026). See `PyPOTSImputer` for the other arguments.

    Args:
        depth: number of layers.
        width: size of the representation of an entry, a multiple of `heads`.
        heads: number of attention heads.
        positions: size of the encoding of time.
        embedding: size of the learned embedding of each channel.
        dropout: dropout rate.
    """

    depth: int = 2
    width: int = 256
    heads: int = 8
    positions: int = 16
    embedding: int = 1
    dropout: float = 0.1

    _test_params: ClassVar[dict[str, Any]] = {
        "depth": 1,
        "width": 8,
        "heads": 2,
        "positions": 4,
        "epochs": 2,
        "random_state": 0,
    }

    def _network(self, pypots: Any, **common: Any) -> Any:
        return pypots.imputation.HELIX(
            n_layers=self.depth,
            d_model=self.width,
            n_heads=self.heads,
            d_pe=self.positions,
            d_feature_embed=self.embedding,
            dropout=self.dropout,
            **common,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class CSDIImputer(PyPOTSImputer):
    """CSDI of PyPOTS: a diffusion model of the missing entries, given the observed ones.

    Tashiro et al., "CSDI: Conditional score-based diffusion models for probabilistic time series imputation"
    (2021). See `PyPOTSImputer` for the other arguments. A missing entry is filled with the median of draws,
    and intervals come from them. The draws for a sequence depend on the other sequences. Epochs are compared
    on the first 32 sequences only, since this takes a pass for each diffusion step.

    Args:
        depth: number of layers.
        width: size of the representation of an entry, a multiple of `heads`.
        heads: number of attention heads.
        time_embedding: size of the encoding of time.
        channel_embedding: size of the learned embedding of each channel.
        step_embedding: size of the encoding of the diffusion step.
        diffusion_steps: number of diffusion steps.
        n_draws: number of draws for filled values and intervals; they are the same at every call.
    """

    depth: int = 4
    width: int = 64
    heads: int = 8
    time_embedding: int = 128
    channel_embedding: int = 16
    step_embedding: int = 128
    diffusion_steps: int = 50
    n_draws: int = 20

    _test_params: ClassVar[dict[str, Any]] = {
        "depth": 1,
        "width": 4,
        "heads": 2,
        "time_embedding": 4,
        "channel_embedding": 2,
        "step_embedding": 4,
        "diffusion_steps": 3,
        "n_draws": 4,
        "epochs": 2,
        "random_state": 0,
    }
    _n_validation: ClassVar[int | None] = 32

    def _network(self, pypots: Any, **common: Any) -> Any:
        return pypots.imputation.CSDI(
            n_layers=self.depth,
            n_channels=self.width,
            n_heads=self.heads,
            d_time_embedding=self.time_embedding,
            d_feature_embedding=self.channel_embedding,
            d_diffusion_embedding=self.step_embedding,
            n_diffusion_steps=self.diffusion_steps,
            **common,
        )

    def _fill(self, X: Sequences) -> Values:
        return np.median(self._draws(X, self.n_draws, 0), axis=0)

    def _intervals(self, X: Sequences, coverage: float) -> tuple[Values, Values]:
        low, high = np.quantile(
            self._draws(X, self.n_draws, 0), [(1 - coverage) / 2, (1 + coverage) / 2], axis=0
        )
        return low, high

    def _draws(self, X: Sequences, n: int, seed: int) -> Draws:
        return self._predict(X, seed, n_sampling_times=n)

    def _errors(self, X: Sequences) -> Values:
        """Return no errors: intervals come from draws."""
        return np.full(X.values.shape, np.nan)
