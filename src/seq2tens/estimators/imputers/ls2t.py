"""An imputer that uses the past and the future of each gap, trained to predict hidden entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from seq2tens import _checks as check
from seq2tens._moved import moved_attributes
from seq2tens._storage import Tensors
from seq2tens.data import Scaler, Sequences, forward_fill, length_blocks, single_steps, times_of, usual_step
from seq2tens.estimators.imputers.base import Draws
from seq2tens.estimators.imputers.calibration import (
    FEWEST_OF_CHANNEL,
    Calibration,
    Knots,
    Sample,
    correlated,
    correlation_age,
    pairs,
    quantile_at,
    scales,
    usual_size,
)
from seq2tens.estimators.imputers.formats import Values
from seq2tens.estimators.imputers.interpolation import LinearImputer
from seq2tens.estimators.imputers.live import ImputerStream
from seq2tens.estimators.imputers.network import NetworkImputer, constants
from seq2tens.estimators.imputers.splitting import Split, split
from seq2tens.estimators.saving import plain
from seq2tens.estimators.seeds import RandomState, repeatable_seed
from seq2tens.models.imputation import (
    LEVELS,
    MEDIAN,
    GapFiller,
    GapSource,
    Hide,
    PinballLoss,
    TwoStreamFiller,
    check_hide,
)
from seq2tens.training import Checkpoints, OneCycle, ProgressStyle, seeded_initialization

# Networks of saved models.
FILLERS: dict[str, type[GapFiller | TwoStreamFiller]] = {
    filler.__name__: filler for filler in (GapFiller, TwoStreamFiller)
}
# Number of elements of the largest tensor for a block of sequences, and of entries predicted at once.
BLOCK_NUMBERS, BLOCK_ENTRIES = 2**24, 2**16


@dataclass(kw_only=True, eq=False, repr=False)
class LS2TImputer(NetworkImputer):
    """Imputation by a network of LS2T layers in both directions of time; see `models.imputation`.

    At each step the network sees, for every channel, the value or the linear interpolation, relative to the
    level of the channel around it; how far a value is from the interpolation of its neighbours; and the times
    to the values before and after; then static features. A missing entry is filled with the level, a learned
    fraction of the way from there to the linear interpolation, and a correction, so that the same course at
    another level, as in a later season, is filled in the same way. The model uses the actual times, without a
    grid; sequences may have any length. In training, random observed entries are hidden, different ones in
    each batch, and their quantiles are learned.

    A tenth of the sequences is held out, of fewer than 200 up to a fifth (with fewer than ten, a tenth of the
    entries): they select the best weights and calibrate the intervals. As the entries of a sequence depend on
    each other, intervals are stretched until they cover held-out sequences that did not calibrate them:
    entries hidden as in training, and those that another sequence lacks. The intervals of a sequence are
    scaled by the errors at its observed entries, each hidden once, relative to those of held-out sequences.

    Args:
        hide: what to hide in training: `"points"`, `"blocks"` of time, whole `"channels"`, `"mixed"`, or a
            list of channels, in which points are hidden.
        width: width of the hidden state.
        functionals: number of functionals of each LS2T layer, in each direction of time.
        depth: number of blocks.
        kernel: kernel size of the convolution in a block.
        dropout: dropout rate.
        epochs: by default enough for about 1200 steps, between 10 and 300.
        batch_size: sequences per training step.
        learning_rate: maximum of the one-cycle schedule.
        checkpoint: a folder; an interrupted fit resumes when called again with the same arguments.
        progress: `"silent"` or False, `"auto"` or True, `"bar"` or `"lines"`.
        random_state: an integer, a numpy `RandomState` or None.
        device: name of a Fabric accelerator; `"auto"` takes the fastest available.

    Sequences of more than 256 steps are cut into pieces for training, and filled as a whole. A channel that
    was constant in training is filled with that constant, and one that was never observed with 0; the network
    sees neither. Draws have the distribution of the intervals; their errors are correlated in time as on the
    held-out data, and independent between channels. Attributes after `fit`: `network_`, `history_` with a row
    per epoch, and `interrupted_`: Ctrl-C after the first epoch ends a fit with a warning and keeps the best
    weights so far. `held_out_errors_` has the mean absolute error on the held-out entries, in standard
    deviations of their channel, and that of linear interpolation.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import LS2TImputer
        >>> X = np.sin(np.arange(40.0) + np.arange(20)[:, None, None])  # (n, channels, time)
        >>> X[:, :, ::5] = np.nan
        >>> model = LS2TImputer(width=8, functionals=4, epochs=2, random_state=0).fit(X)
        >>> model.transform(X).shape, model.sample(X, 3).shape
        ((20, 1, 40), (3, 20, 1, 40))
    """

    hide: Hide = "mixed"
    width: int = 64
    functionals: int = 32
    depth: int = 2
    kernel: int = 3
    dropout: float = 0.1
    epochs: int | None = None
    batch_size: int = 32
    learning_rate: float = 3e-3
    checkpoint: str | Path | Checkpoints | None = None
    progress: ProgressStyle = "silent"
    random_state: RandomState = None
    device: str = "auto"

    _steps, _epoch_limits = 1200, (10, 300)
    _recipe_options: ClassVar[dict[str, Any]] = {
        "optimizer": "adamw",
        "weight_decay": 0.01,
        "schedule": OneCycle(warmup=0.2),
        "monitor": "validation_loss",
        "clip_norm": 1.0,
        "average": 0.995,
    }
    _test_params: ClassVar[dict[str, Any]] = {
        "width": 4,
        "functionals": 2,
        "depth": 1,
        "epochs": 2,
        "random_state": 0,
        "device": "cpu",
    }

    def stream(self, *, static: Any = None) -> ImputerStream:
        """Open a stream that imputes step by step, from the current and earlier steps, with the causal half.

        Args:
            static: the static features of the sequence, if the model was fitted with some; NaN where unknown.
        """
        self._check_is_fitted()
        return ImputerStream(self, static)

    def _learn(self, X: Sequences) -> None:
        check_hide(self.hide, self.n_channels_)
        seed = repeatable_seed(self.random_state, self.checkpoint)
        self.constants_, self.step_ = constants(X), usual_step(X)
        self.static_ = None if X.static is None else Scaler().fit(single_steps(X.static))
        self._filler: type[GapFiller | TwoStreamFiller] = GapFiller
        self.network_ = self._network(seed)
        parts = split(self._network_input(X), self.hide, seed)
        self._train(
            PinballLoss(self.hide), GapSource(parts.train), seed, GapSource(parts.validation, parts.hidden)
        )
        self.calibration_, self.held_out_errors_ = self._calibrate(parts)

    def _network(self, seed: int) -> GapFiller | TwoStreamFiller:
        sizes = {
            name: plain.python(getattr(self, name)) for name in ("width", "functionals", "depth", "kernel")
        }
        for name, size in sizes.items():
            check.positive_int(name, size)
        check.require(0 <= self.dropout < 1, f"`dropout` must lie in [0, 1), got {self.dropout}")
        n_static = 0 if self.static_ is None else len(self.static_.mean_)  # type: ignore[arg-type]
        with seeded_initialization(seed):
            network = self._filler(self.n_channels_, n_static, **sizes, dropout=self.dropout)
        # Checkpoints use such attributes to tell runs apart.
        vars(network)["trained_as"] = f"hide={self.hide}"
        return network

    def _network_input(self, X: Sequences) -> Sequences:
        """Return the input of the network: scaled, constant channels masked, times in typical steps."""
        times = None if X.times is None else X.times / self.step_
        return Sequences(
            self.scaler_.transform(self._without_constants(X)).values, X.offsets, times, self._static_input(X)
        )

    def _static_input(self, X: Sequences) -> Float[np.ndarray, "sequences features"] | None:
        """Return the scaled static features, 0 where unknown."""
        if self.static_ is None:
            return None
        n_features = len(self.static_.mean_)  # type: ignore[arg-type]
        if X.static is None:
            return np.zeros((len(X), n_features))
        check.require(
            X.static.shape[1] == n_features,
            f"`X.static` must have {n_features} features as in `fit`, got {X.static.shape[1]}",
        )
        return forward_fill(self.static_.transform(single_steps(X.static))).values

    @torch.inference_mode()
    def _knots(self, X: Sequences, requested: np.ndarray) -> Knots:
        """Predict the quantiles of the requested entries, in the units of the network; 0 for all others."""
        network, source = self.network_, GapSource(X, requested)
        device = next(network.parameters()).device
        knots = np.zeros((*requested.shape, len(LEVELS)), dtype=np.float32)
        numbers = max(16 * self.n_channels_, 4 * self.width)
        for rows in length_blocks(X.lengths, max(1, BLOCK_NUMBERS // numbers)):
            batch = source.batch(torch.from_numpy(rows))
            assert batch.hidden is not None
            encoded = network.encode(batch.masked(batch.hidden).to(device))
            for part in batch.hidden.nonzero().split(BLOCK_ENTRIES):
                if len(part):
                    row, step, channel = part.unbind(1)
                    place = X.offsets[rows[row.numpy()]] + step.numpy()
                    entries = (row.to(device), step.to(device), channel.to(device))
                    knots[place, channel.numpy()] = network.predict(encoded, entries).cpu().numpy()
        return knots

    def _calibrate(self, parts: Split) -> tuple[Calibration, dict[str, float]]:
        """Calibrate on entries that were held out, and return the mean absolute errors there."""
        X, hidden = parts.validation, parts.hidden
        visible, truth = X.with_values(np.where(hidden, np.nan, X.values)), X.values[hidden]
        usual = usual_size(self._knots, visible)
        masks = [hidden]
        if parts.missing_elsewhere.sum() >= FEWEST_OF_CHANNEL:
            masks.append(parts.missing_elsewhere)
        scores, channels, sequences, kinds = Sample.of(self._knots, X, masks, usual)
        calibration = Calibration.of(scores, channels, self.n_channels_, parts.piece[sequences], kinds)
        normal = np.full(hidden.shape, np.nan)
        normal[hidden] = calibration.normalized(scores, channels)[kinds == 0]
        lines = LinearImputer().fit(parts.train).transform(visible)
        fills = {"ls2t": self._knots(X, hidden)[hidden][:, MEDIAN], "linear": lines.values[hidden]}
        errors = {name: float(np.abs(fill - truth).mean()) for name, fill in fills.items() if len(truth)}
        age = correlation_age(*pairs(X, normal))
        return replace(calibration, age=age, usual_size=usual), errors

    def _scales(self, X: Sequences) -> Float[np.ndarray, " sequences"]:
        """Return the scale of the errors in each sequence; see `calibration.scales`."""
        return scales(self._knots, self._network_input(X), self.calibration_.usual_size)

    def _fill(self, X: Sequences) -> Values:
        return self._network_output(self._quantiles(X)[..., MEDIAN])

    def _intervals(self, X: Sequences, coverage: float) -> tuple[Values, Values]:
        knots = self._quantiles(X).astype(np.float64)
        scale = np.repeat(self._scales(X), X.lengths)
        bounds = (self.calibration_.scores(level) for level in ((1 - coverage) / 2, (1 + coverage) / 2))
        low, high = (quantile_at(np.outer(scale, end), knots) for end in bounds)
        return self._network_output(low), self._network_output(high)

    def _draws(self, X: Sequences, n: int, seed: int) -> Draws:
        knots = self._quantiles(X).astype(np.float64)
        draws = np.empty((n, *X.values.shape))
        times, scale = times_of(X) / self.step_, self._scales(X)
        for row, (start, stop) in enumerate(zip(X.offsets[:-1], X.offsets[1:], strict=True)):
            generator = np.random.default_rng([seed, row])
            normal = correlated(generator, n, times[start:stop], self.n_channels_, self.calibration_.age)
            scores = scale[row] * self.calibration_.corrected(normal)
            for copy in range(n):
                draws[copy, start:stop] = quantile_at(scores[copy], knots[start:stop])
        return self._network_output(draws)

    def _quantiles(self, X: Sequences) -> Knots:
        """Predict the quantiles of missing entries; those of observed ones are arbitrary but increasing."""
        missing = np.isnan(X.values)
        knots = self._knots(self._network_input(X), missing)
        check.require(
            bool(np.isfinite(knots).all()),
            "`X` must have values of the size of those in training, but the network's output is not finite",
        )
        knots[~missing] = np.arange(len(LEVELS))
        return knots

    def _network_output(self, values: Float[np.ndarray, "*draws steps channels"]) -> np.ndarray:
        """Convert the output of the network to the units of the data, and fill in constant channels."""
        return self._with_constants(values.astype(np.float64) * self.scaler_.scale_ + self.scaler_.mean_)

    def _tensors(self) -> Tensors:
        return {**super()._tensors(), "calibration": torch.from_numpy(self.calibration_.table)}

    def _facts(self) -> dict[str, Any]:
        return {
            **super()._facts(),
            "network": self._filler.__name__,
            "step": self.step_,
            "age": self.calibration_.age,
            "usual_size": self.calibration_.usual_size,
            "kept_errors": self.held_out_errors_,
            "static": None if self.static_ is None else self.static_.state(),
        }

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        self.step_, self.held_out_errors_ = facts["step"], facts["kept_errors"]
        # Scores of earlier models have no scale.
        self.calibration_ = Calibration(tensors["calibration"].numpy(), facts["age"], facts.get("usual_size"))
        self.static_ = None if facts["static"] is None else Scaler.from_state(facts["static"])
        # Earlier models do not name their network.
        self._filler = FILLERS[facts.get("network", TwoStreamFiller.__name__)]
        super()._restore(tensors, facts)  # makes the network, which depends on the static features

    __getattr__ = moved_attributes({"kept_errors_": "held_out_errors_"})
