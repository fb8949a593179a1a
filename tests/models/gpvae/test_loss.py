import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from data.ragged import collections
from seq2tens.data import Incomplete, Sequences, collate
from seq2tens.models.gpvae import GPVAE, HELD_OUT_METRICS, IncompleteSource, NegativeElbo, RaggedSource
from seq2tens.training import Callback, Checkpoints, Recipe, fit
from seq2tens.training.rng import seeded_initialization


def incomplete(n=12, time=5, channels=3, seed=0):
    generator = np.random.default_rng(seed)
    truth = generator.standard_normal((n, time, channels)).astype(np.float32)
    truth[0, 0, 0] = np.nan  # known to nobody
    observed = (generator.random(truth.shape) < 0.6) & ~np.isnan(truth)
    return Incomplete(truth, observed)


def small(seed=0, likelihood="gaussian"):
    with seeded_initialization(seed):
        return GPVAE(3, 2, encoder_sizes=(4, 4), decoder_sizes=(4,), likelihood=likelihood)


@given(collections(min_size=1, min_length=1, extras=False), st.integers(0, 2**31))
def test_ragged_batches_are_those_of_collate(sequences, seed):
    source = RaggedSource(sequences)
    rows = np.random.default_rng(seed).permutation(len(sequences))[: 1 + seed % len(sequences)]
    batch, expected = source.batch(torch.tensor(rows)), collate(sequences, rows)
    lengths = torch.tensor(sequences.lengths[rows])
    inside = torch.arange(batch.values.shape[1]) < lengths[:, None]
    everything = inside[..., None].expand_as(batch.values)
    assert_close(batch.values, expected.values.nan_to_num().float())
    assert torch.equal(batch.observed, everything if expected.observed is None else expected.observed)
    assert batch.lengths is None or torch.equal(batch.lengths, lengths)
    assert (batch.lengths is None) == (len(lengths.unique()) == 1 and lengths.min() > 0)


def test_digests_tell_a_missing_entry_from_a_zero():
    zero = Sequences.from_list([np.zeros((3, 2))])
    missing = np.zeros((3, 2))
    missing[1, 1] = np.nan
    assert RaggedSource(zero).digest != RaggedSource(Sequences.from_list([missing])).digest


def test_a_batch_to_train_on_knows_nothing_of_what_is_hidden():
    part = incomplete()
    batch = IncompleteSource(part).batch(torch.tensor([3, 1]))
    assert batch.truth is None
    assert batch.hidden is None
    assert np.array_equal(batch.values.numpy(), part.values[[3, 1]])
    assert not batch.values[~batch.observed].any()


def test_scores_are_those_of_the_hidden_entries_alone():
    part, model = incomplete(), small().eval()
    batch = IncompleteSource(part, scored=True).batch(torch.arange(len(part)))
    torch.manual_seed(3)
    with torch.no_grad():
        outputs = NegativeElbo()(model, batch)[2]
        expected = model.reconstruct(batch.values, batch.observed).numpy()
    error = (expected - part.truth)[part.hidden].astype(float) ** 2
    rounded = (expected.round() - part.truth)[part.hidden].astype(float) ** 2
    assert outputs[3].tolist() == part.hidden.sum((1, 2)).tolist()
    assert HELD_OUT_METRICS["mse"](*outputs) == pytest.approx(error.mean(), rel=1e-5)
    assert HELD_OUT_METRICS["rounded_mse"](*outputs) == pytest.approx(rounded.mean(), rel=1e-5)
    # a Gaussian of variance 1: above half the squared error of any prediction by a constant
    assert HELD_OUT_METRICS["nll"](*outputs) > 0.5 * math.log(2 * math.pi)


def test_likelihood_of_hidden_entries_agrees_with_the_model():
    part, model = incomplete(), small().eval()
    batch = IncompleteSource(part, scored=True).batch(torch.arange(len(part)))
    shape = (len(part), 5, 2)
    with torch.no_grad():
        torch.manual_seed(1)
        torch.randn(1, *shape)  # the bound's draw comes first
        noise = torch.randn(shape)
        torch.manual_seed(1)
        nll = NegativeElbo()(model, batch)[2][0]
        expected = model.log_likelihood(batch.values, batch.observed, batch.truth, batch.hidden, noise=noise)
    assert_close(nll, -expected)


class Stop(Callback):
    """Stops the process, as far as the loop can tell, after an epoch."""

    def epoch(self, row, model):
        if row["epoch"] == 2:
            raise KeyboardInterrupt


def test_training_is_the_same_again_and_after_a_stop(tmp_path):
    part, recipe = incomplete(), Recipe(epochs=4, batch_size=5, keep_best=False)
    scored = IncompleteSource(part, scored=True)

    def train(model, **more):
        how = {"validation": scored, "metrics": HELD_OUT_METRICS, "seed": 0, "progress": "silent", **more}
        result = fit(model, NegativeElbo(), IncompleteSource(part), recipe=recipe, **how)
        return model.state_dict(), [
            {k: v for k, v in row.items() if k != "seconds"} for row in result.history
        ]

    checkpoint = Checkpoints(tmp_path, seconds=0)
    with pytest.raises(KeyboardInterrupt):
        train(small(), checkpoint=checkpoint, callbacks=[Stop()])
    weights, history = train(small())
    assert history[-1]["train_loss"] < history[0]["train_loss"]
    for other, rows in (train(small()), train(small(), checkpoint=checkpoint)):
        assert rows == history
        for name, tensor in weights.items():
            assert torch.equal(tensor, other[name])
