"""Base class of the imputers that are variational autoencoders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from seq2tens import _checks as check
from seq2tens.data import Scaler, Sequences, length_blocks
from seq2tens.estimators.imputers.base import Draws
from seq2tens.estimators.imputers.formats import Values
from seq2tens.estimators.imputers.network import NetworkImputer, constants
from seq2tens.estimators.saving import plain
from seq2tens.estimators.seeds import RandomState, repeatable_seed
from seq2tens.models.gpvae import GPVAE, Likelihood, NegativeElbo, Posterior, RaggedSource
from seq2tens.training import Checkpoints, OneCycle, ProgressStyle, seeded_initialization

# Number of elements of the largest tensor for a block of sequences.
BLOCK_NUMBERS = 2**24
# Number of filters of the convolutions over an image.
IMAGE_FILTERS = 256


@dataclass(kw_only=True, eq=False, repr=False)
class LatentImputer(NetworkImputer):
    """Base class of the imputers that are variational autoencoders; see `models.gpvae.GPVAE`.

    Args:
        latent: number of latent dimensions.
        encoder_sizes: width of the convolution over time, then those of the dense layers.
        decoder_sizes: widths of the decoder's layers.
        window: kernel size of the convolution, in steps.
        beta: weight of the Kullback-Leibler divergence.
        likelihood: `"gaussian"`, with a learned variance for each channel, or `"bernoulli"` for values from 0
            to 1.
        image_shape: `(height, width, colours)` if the channels of a step are the pixels of an image, colours
            last.
        scaling: standardise each channel by its training statistics (`"channel"`) or not at all (None); never
            with the Bernoulli likelihood.
        hide: in training, up to this fraction of the observed entries of a sequence is hidden from the
            encoder; the decoder still has to predict them.
        epochs: by default enough for about 600 steps, between 10 and 200.
        batch_size: sequences per training step.
        learning_rate: maximum of the one-cycle schedule.
        n_draws: number of draws for an interval; they are the same at every call.
        checkpoint: a folder; an interrupted fit resumes when called again with the same arguments.
        progress: `"silent"` or False, `"auto"` or True, `"bar"` or `"lines"`.
        random_state: an integer, a numpy `RandomState` or None.
        device: name of a Fabric accelerator; `"auto"` takes the fastest available.

    A missing entry is filled with the decoder's mean at the mean of the latent path; steps are treated as
    evenly spaced, whatever their times. A channel that was constant in training is filled with that constant,
    and one that was never observed with 0; the network sees neither. Attributes after `fit`: `network_`,
    `history_` with a row per epoch, and `interrupted_`: Ctrl-C after the first epoch ends a fit with a
    warning and keeps the weights of the last epoch.
    """

    latent: int = 16
    encoder_sizes: tuple[int, ...] = (64, 64)
    decoder_sizes: tuple[int, ...] = (64, 64)
    window: int = 9
    beta: float = 0.3
    likelihood: Likelihood = "gaussian"
    image_shape: tuple[int, int, int] | None = None
    scaling: Literal["channel"] | None = "channel"
    hide: float = 0.5
    epochs: int | None = None
    batch_size: int = 8
    learning_rate: float = 1e-2
    n_draws: int = 200
    checkpoint: str | Path | Checkpoints | None = None
    progress: ProgressStyle = "silent"
    random_state: RandomState = None
    device: str = "auto"

    _steps, _epoch_limits = 600, (10, 200)
    _recipe_options: ClassVar[dict[str, Any]] = {
        "schedule": OneCycle(),
        "clip_norm": 1e4,
        "keep_best": False,
    }
    _test_params: ClassVar[dict[str, Any]] = {
        "latent": 2,
        "encoder_sizes": (4,),
        "decoder_sizes": (4,),
        "n_draws": 10,
        "epochs": 2,
        "batch_size": 4,
        "random_state": 0,
        "device": "cpu",
    }

    @property
    def _channels_known(self) -> bool:
        return self.image_shape is not None

    def _learn(self, X: Sequences) -> None:
        check.choice("scaling", self.scaling, ("channel", None))
        check.require(0 <= self.hide < 1, f"`hide` must lie in [0, 1), got {self.hide}")
        check.positive_int("n_draws", plain.python(self.n_draws))
        self._check_range(X)
        seed = repeatable_seed(self.random_state, self.checkpoint)
        self.constants_ = constants(X)
        self.network_ = self._network(seed)
        self._train(NegativeElbo(self.hide), RaggedSource(self._network_input(X)), seed)

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the network that define a subclass."""
        raise NotImplementedError

    def _network(self, seed: int) -> GPVAE:
        names = ("latent", "encoder_sizes", "decoder_sizes", "window", "beta", "likelihood", "image_shape")
        common = {name: plain.python(getattr(self, name)) for name in names}
        with seeded_initialization(seed):
            network = GPVAE(self.n_channels_, **common, variance="learn", **self._settings())
        # Checkpoints use such attributes to tell runs apart.
        vars(network)["trained_as"] = f"{network.prior}, hide={self.hide}"
        return network

    def _check_shape(self, X: Sequences) -> None:
        super()._check_shape(X)
        self._check_range(X)

    def _check_range(self, X: Sequences) -> None:
        if self.likelihood == "bernoulli":
            out_of_range = X.values[(X.values < 0) | (X.values > 1)]
            check.require(
                len(out_of_range) == 0,
                f"`X` must lie in 0..1 for the Bernoulli likelihood, got {out_of_range[:1].sum()}",
            )

    @property
    def _scaler(self) -> Scaler | None:
        """The scaler of the network's inputs and outputs; None without scaling."""
        return None if self.scaling is None or self.likelihood == "bernoulli" else self.scaler_

    def _network_input(self, X: Sequences) -> Sequences:
        """Return the scaled input of the network in float32, with constant channels masked."""
        masked = self._without_constants(X)
        if self._scaler is not None:
            return self._scaler.transform(masked)
        return Sequences(masked.values.astype(np.float32), X.offsets)

    def _network_output(self, values: Float[np.ndarray, "*draws steps channels"]) -> np.ndarray:
        """Convert the output of the network to the units of the data, and fill in constant channels."""
        scaler = self._scaler
        values = values.astype(np.float64)
        if scaler is not None:
            values = values * scaler.scale_ + scaler.mean_
        check.require(
            bool(np.isfinite(values).all()),
            "`X` must have values of the size of those in training, but the network's output is not finite",
        )
        return self._with_constants(values)

    @torch.inference_mode()
    def _fill(self, X: Sequences) -> Values:
        decoder, filled = self.network_.decoder, np.empty(X.values.shape, dtype=np.float32)
        for rows, posterior in self._posteriors(X):
            expected = decoder.mean(decoder(posterior.mean)).cpu().numpy()
            for row, values in zip(rows, expected, strict=True):
                filled[X.offsets[row] : X.offsets[row + 1]] = values[: X.lengths[row]]
        return self._network_output(filled)

    def _intervals(self, X: Sequences, coverage: float) -> tuple[Values, Values]:
        bounds = np.empty((2, *X.values.shape))
        levels = ((1 - coverage) / 2, (1 + coverage) / 2)
        # The same noise for every sequence, so that an interval does not depend on the other sequences.
        for row, draws in self._sequence_draws(X, plain.python(self.n_draws), [0] * len(X)):
            bounds[:, X.offsets[row] : X.offsets[row + 1]] = np.quantile(draws, levels, axis=0)
        low, high = self._network_output(bounds)
        return low, high

    def _draws(self, X: Sequences, n: int, seed: int) -> Draws:
        seeds = [
            int(np.random.SeedSequence([seed, row]).generate_state(1, np.uint64)[0]) for row in range(len(X))
        ]
        draws = np.empty((n, *X.values.shape), dtype=np.float32)
        for row, values in self._sequence_draws(X, n, seeds):
            draws[:, X.offsets[row] : X.offsets[row + 1]] = values
        return self._network_output(draws)

    @torch.inference_mode()
    def _sequence_draws(
        self, X: Sequences, n: int, seeds: list[int]
    ) -> Iterator[tuple[int, Float[np.ndarray, "draws time channels"]]]:
        """Yield draws of all entries of each sequence, each from a generator of its own."""
        decoder, latent = self.network_.decoder, self.network_.latent
        for rows, posterior in self._posteriors(X):
            device = posterior.mean.device
            for i, row in enumerate(rows.tolist()):
                generator = torch.Generator(device).manual_seed(seeds[row])
                noise = torch.randn((n, 1, X.lengths[row], latent), generator=generator, device=device)
                path = _of_row(posterior, i, X.lengths[row]).sample(noise)
                yield row, decoder.draw(decoder(path), generator)[:, 0].cpu().numpy()

    def _posteriors(self, X: Sequences) -> Iterator[tuple[Int[np.ndarray, " rows"], Posterior]]:
        """Yield the posteriors of blocks of sequences of similar length, in bounded memory."""
        source, network = RaggedSource(self._network_input(X)), self.network_
        device = next(network.parameters()).device
        widest = max(*self.encoder_sizes, *self.decoder_sizes, 8 * self.encoder_sizes[0], self.n_channels_)
        numbers = widest if self.image_shape is None else max(widest, IMAGE_FILTERS * self.n_channels_)
        for rows in length_blocks(X.lengths, max(1, BLOCK_NUMBERS // numbers)):
            batch = source.batch(torch.from_numpy(rows))
            lengths = None if batch.lengths is None else batch.lengths.to(device)
            yield rows, network.encode(batch.values.to(device), batch.observed.to(device), lengths)


def _of_row(posterior: Posterior, i: int, length: int) -> Posterior:
    one = slice(i, i + 1)
    return Posterior(
        posterior.mean[one, :length],
        posterior.diagonal[one, :length],
        posterior.off_diagonal[one, : length - 1],
    )
