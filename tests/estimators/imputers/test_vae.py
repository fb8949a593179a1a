"""What variational autoencoders as imputers add to the contract of all imputers."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score

from seq2tens.data import from_aeon, held_out
from seq2tens.estimators import GPVAEImputer, HIVAEImputer, MeanImputer, VAEImputer, load
from seq2tens.estimators.imputers import autoencoder
from seq2tens.models.gpvae import GPVAE

SMALL = {"latent": 3, "encoder_sizes": (8,), "decoder_sizes": (8,), "epochs": 3, "batch_size": 8}
FIXED = {**SMALL, "random_state": 0, "device": "cpu"}


def waves(n=32, steps=24, seed=0):
    """Two channels that are one wave with a lag, of any phase, and a little noise: `(n, 2, steps)`."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1, 1)) + np.array([[[0.0], [1.0]]])
    return np.sin(phase + 0.6 * np.arange(steps)) + 0.05 * rng.normal(size=(n, 2, steps))


@pytest.fixture(scope="module")
def trained():
    """A GP-VAE that has seen complete waves, those to fill, and their truth."""
    model = GPVAEImputer(
        latent=4, encoder_sizes=(32, 32), decoder_sizes=(32,), epochs=30, random_state=0, device="cpu"
    )
    truth = waves(seed=1)
    X, _ = held_out(truth, 0.4, np.random.default_rng(2))
    return model.fit(waves()), X, truth


def test_it_learns_and_knows_what_it_does_not_know(trained):
    model, X, truth = trained
    assert model.score(X, truth) > -0.25
    assert MeanImputer().fit(waves()).score(X, truth) < -0.9
    hidden = np.isnan(X)
    low, high = model.predict_interval(X, 0.9)
    covered = ((truth >= low) & (truth <= high))[hidden].mean()
    assert 0.8 < covered <= 1
    assert (high - low)[hidden].mean() < 0.8 * 3.3 * truth.std()  # less than without looking at the sequence


def test_the_fill_is_near_the_mean_of_the_draws(trained):
    model, X, _ = trained
    drawn = model.sample(X, 100, random_state=0)
    assert drawn.shape == (100, *X.shape)
    hidden = np.isnan(X)
    assert np.abs(drawn.mean(axis=0) - model.transform(X))[hidden].mean() < 0.1


def test_training_is_told(trained):
    model, _, _ = trained
    assert len(model.history_) == 30
    assert model.history_[-1]["train_loss"] < model.history_[0]["train_loss"]
    assert model.scaler_.scale_.shape == (2,)


def test_the_bound_when_the_encoder_sees_a_part():
    torch.manual_seed(0)
    network = GPVAE(2, 3, encoder_sizes=(8,), decoder_sizes=(8,), beta=0.5).double()
    values, noise = torch.randn(4, 6, 2, dtype=torch.float64), torch.randn(1, 4, 6, 3, dtype=torch.float64)
    observed, part = torch.rand(4, 6, 2) < 0.7, torch.rand(4, 6, 2) < 0.5
    seen = observed & part
    bound = network(values, observed, visible=seen, noise=noise)
    posterior = network.encode(values, seen)
    divergence = posterior.kl(network.prior.at(6, dtype=torch.float64)).sum(1)
    density = network.decoder.log_density(network.decoder(posterior.sample(noise)), values)[0]
    expected = torch.where(observed, density, 0.0).sum((1, 2)) - 0.5 * divergence
    torch.testing.assert_close(bound.value, expected)


def test_hidden_parts_come_from_the_seed():
    X = waves(n=16)
    models = [GPVAEImputer(**{**FIXED, "hide": hide}).fit(X) for hide in (0.0, 0.0, 0.5)]
    losses = [model.history_[-1]["train_loss"] for model in models]
    assert losses[0] == losses[1] != losses[2]


def test_settings_make_the_model():
    X = waves(n=8)
    kinds = {kind: kind(**FIXED).fit(X).network_ for kind in (GPVAEImputer, HIVAEImputer, VAEImputer)}
    assert [network.prior.kernel for network in kinds.values()] == ["cauchy", "independent", "independent"]
    assert [network.masked for network in kinds.values()] == [True, True, False]
    assert kinds[GPVAEImputer].encoder.kind == "conv"
    assert GPVAEImputer(**FIXED, encoder="bls2t").fit(X).network_.encoder.kind == "bls2t"
    assert kinds[VAEImputer].encoder.covariance == "diagonal"


@pytest.mark.parametrize("kind", [GPVAEImputer, HIVAEImputer])
def test_images_and_the_bernoulli_likelihood(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = (rng.random((6, 4, 4 * 3 * 2)) < 0.5).astype(np.float32).transpose(0, 2, 1)  # (n, pixels, time)
    X = np.where(rng.random(X.shape) < 0.3, np.float32(np.nan), X)
    model = kind(**FIXED, likelihood="bernoulli", image_shape=(4, 3, 2)).fit(X)
    filled = model.transform(X)
    assert ((filled >= 0) & (filled <= 1)).all()
    assert np.isin(model.sample(X, 2, random_state=0), (0, 1)).all()
    assert model.network_.encoder.image is not None
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(X), filled)


def test_values_outside_of_the_bernoulli_likelihood():
    X = np.clip(waves(n=4), 0, 1)
    model = GPVAEImputer(**FIXED, likelihood="bernoulli")
    with pytest.raises(ValueError, match=r"`X` must lie in 0..1 for the Bernoulli likelihood, got 1.5"):
        model.fit(np.where(X > 0.5, 1.5, X))
    model.fit(X)
    with pytest.raises(ValueError, match=r"`X` must lie in 0..1 for the Bernoulli likelihood, got -2.0"):
        model.transform(np.full((1, 2, 3), -2.0))


def test_scaling_can_be_left_out():
    X = waves(n=8)
    plain, moved = (HIVAEImputer(**FIXED, scaling=None).fit(values) for values in (X, X + 100))
    assert moved.history_[0]["train_loss"] > 100 * plain.history_[0]["train_loss"]
    plain, moved = (HIVAEImputer(**FIXED).fit(values) for values in (X, X + 100))
    assert moved.history_[0]["train_loss"] == pytest.approx(plain.history_[0]["train_loss"], rel=1e-4)


def test_many_blocks(trained, monkeypatch):
    model, X, _ = trained
    expected = model.transform(X), model.predict_interval(X)[0]
    monkeypatch.setattr(autoencoder, "BLOCK_NUMBERS", 1)
    np.testing.assert_allclose(model.transform(X), expected[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.predict_interval(X)[0], expected[1], rtol=1e-4, atol=1e-4)


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    X = waves(n=8)
    first = GPVAEImputer(**FIXED, checkpoint=tmp_path / "run").fit(X)
    again = GPVAEImputer(**FIXED, checkpoint=tmp_path / "run").fit(X)
    assert again.history_ == first.history_  # with its seconds: nothing was trained again
    np.testing.assert_array_equal(again.transform(X), first.transform(X))
    with pytest.raises(ValueError, match="`checkpoint` must belong to the same run"):
        GPVAEImputer(**FIXED, hide=0.1, checkpoint=tmp_path / "run").fit(X)
    with pytest.raises(ValueError, match="`checkpoint` must belong to the same run"):
        GPVAEImputer(**FIXED, length_scale=3.0, checkpoint=tmp_path / "run").fit(X)
    with pytest.raises(ValueError, match="`random_state` must be an integer if there is a `checkpoint`"):
        GPVAEImputer(**{**FIXED, "random_state": None}, checkpoint=tmp_path / "run").fit(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "rnn"}, "`encoder` must be one of 'conv', 'bls2t', got 'rnn'"),
        ({"kernel": "linear"}, "`kernel` must be one of 'cauchy'"),
        ({"hide": 1.0}, r"`hide` must lie in \[0, 1\), got 1.0"),
        ({"n_draws": 0}, "`n_draws` must be at least 1, got 0"),
        ({"epochs": 0}, "`epochs` must be at least 1, got 0"),
        ({"batch_size": 0}, "`batch_size` must be at least 1, got 0"),
        ({"scaling": "sequence"}, "`scaling` must be one of 'channel', None, got 'sequence'"),
        ({"image_shape": (2, 2, 1)}, r"`image_shape` must be \(height, width, colours\) with 2 values"),
    ],
)
def test_wrong_arguments(change, message):
    with pytest.raises(ValueError, match=message):
        GPVAEImputer(**{**FIXED, **change}).fit(waves(n=4))


def test_scores_against_a_truth_in_cross_validation():
    truth = waves(n=12)
    X, hidden = held_out(truth, 0.3, np.random.default_rng(0))
    scores = cross_val_score(MeanImputer(), list(X), list(truth), cv=2)
    halves = [np.arange(6), np.arange(6, 12)]
    expected = [MeanImputer().fit(X[b]).score(X[a], truth[a]) for a, b in (halves, halves[::-1])]
    np.testing.assert_allclose(scores, expected)
    as_sequences = cross_val_score(MeanImputer(), from_aeon(X), from_aeon(truth), cv=2)
    np.testing.assert_allclose(as_sequences, expected)
    assert hidden.any()
