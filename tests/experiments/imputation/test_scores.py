"""What is counted of imputed entries."""

import numpy as np
import pytest
import torch

from seq2tens.experiments.imputation.scores import DRAWS, Filled, Tally, by_forward, by_network
from seq2tens.models.gpvae import GPVAE, IncompleteBatch, Prior


def batch(truth, share=0.5, seed=0):
    """Random gaps in a tensor."""
    observed = torch.rand(truth.shape, generator=torch.Generator().manual_seed(seed)) >= share
    return IncompleteBatch(torch.where(observed, truth, 0.0), observed, None, truth, ~observed)


def random_values(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_intervals_of_a_right_prediction_hold_what_they_say():
    given = batch(random_values(50, 20, 10))
    tally = Tally(binary=False, keep=False)
    tally.add(given, Filled(torch.zeros_like(given.truth), given.truth, torch.special.ndtr(given.truth)))
    scores = tally.scores()
    assert scores["coverage"] == pytest.approx(0.9, abs=0.01)
    assert scores["mse"] == pytest.approx(1, abs=0.05)
    assert scores["mse_probability"] is None
    points = tally.calibration()
    assert [level for level, _, _ in points] == pytest.approx(np.arange(1, 21) / 20)
    assert all(found == pytest.approx(level, abs=0.02) for level, found, _ in points)
    assert points[-1][1] == 1
    assert {entries for _, _, entries in points} == {int(given.hidden.sum())}


def test_intervals_that_are_too_wide_hold_more():
    given = batch(random_values(50, 20, 10))
    tally = Tally(binary=False, keep=False)
    tally.add(given, Filled(torch.zeros_like(given.truth), given.truth, torch.special.ndtr(given.truth / 3)))
    assert tally.scores()["coverage"] > 0.99
    assert all(found > level for level, found, _ in tally.calibration()[:-1])


def test_frequencies_of_right_probabilities():
    chance = torch.rand(50, 20, 10, generator=torch.Generator().manual_seed(2))
    given = batch(torch.bernoulli(chance, generator=torch.Generator().manual_seed(3)))
    tally = Tally(binary=True, keep=True)
    for half in (slice(0, 30), slice(30, 50)):
        part = IncompleteBatch(*(None if t is None else t[half] for t in given))
        tally.add(part, Filled(chance[half], part.truth, chance[half]))
    scores = tally.scores()
    hidden, truth = given.hidden.numpy(), given.truth.numpy()
    rounded = np.square(chance.numpy().round() - truth)[hidden].mean()
    assert scores["mse"] == pytest.approx(rounded, abs=1e-6)
    assert scores["mse_probability"] == pytest.approx(
        np.square(chance.numpy() - truth)[hidden].mean(), abs=1e-6
    )
    # Both values are in the set unless one has less than a tenth, which happens a twentieth of the time then.
    assert scores["coverage"] == pytest.approx(0.99, abs=0.005)
    points = tally.calibration()
    assert sum(entries for _, _, entries in points) == hidden.sum()
    assert all(found == pytest.approx(predicted, abs=0.1) for predicted, found, _ in points)
    kept = tally.sequences()
    assert kept.dtype == np.uint8
    expected = np.where(given.observed.numpy(), truth, chance.numpy().round())
    assert np.array_equal(kept, expected.reshape(50, -1))


def test_without_hidden_entries_nothing_is_scored():
    complete = batch(random_values(3, 4, 2), share=0.0)
    tally = Tally(binary=False, keep=True)
    network = GPVAE(2, 2, encoder_sizes=(4,), decoder_sizes=(4,))
    tally.add(complete, by_network(network, 0)(complete))
    assert set(tally.scores().values()) == {None}
    assert tally.calibration() == []
    assert np.array_equal(tally.sequences(), complete.truth.flatten(1).numpy())


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("variance", [0.5, "learn"])
def test_places_are_those_among_draws_of_the_model(likelihood, variance):
    """The share of draws of a value that are at most the truth, or that are 1."""
    torch.manual_seed(4)
    network = GPVAE(
        3,
        2,
        encoder_sizes=(4,),
        decoder_sizes=(4,),
        prior=Prior("independent"),
        likelihood=likelihood,
        variance=variance,
    )
    truth = random_values(4, 5, 3)
    given = batch((truth > 0).float() if likelihood == "bernoulli" else truth)
    filled = by_network(network, 5)(given)
    draws = network.sample(
        given.values, given.observed, n_samples=4000, generator=torch.Generator().manual_seed(6)
    )
    share = draws.mean(0) if likelihood == "bernoulli" else (draws <= given.truth).float().mean(0)
    spread = 0.5 / DRAWS**0.5
    assert (filled.place - share).abs().max() < 3 * spread
    assert (filled.place - share).abs().mean() < 0.5 * spread
    again = by_network(network, 5)(given)
    assert torch.equal(filled.nll, again.nll)
    assert torch.equal(filled.expected, network.reconstruct(given.values, given.observed))


def test_forward_begins_with_zero():
    given = IncompleteBatch(torch.tensor([[[0.0], [2.0], [0.0]]]), torch.tensor([[[False], [True], [False]]]))
    assert by_forward(given).expected.flatten().tolist() == [0, 2, 2]
