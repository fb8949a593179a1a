"""Draws that depend on the seed and the epoch only."""

import pytest
import torch

from seq2tens.training.rng import derive, isolated, seed_noise, seeded_initialization, shuffling_generator

CPU = torch.device("cpu")


def test_seeds_differ_by_epoch_purpose_and_process():
    seeds = [
        derive(seed, epoch, purpose, rank)
        for seed in (0, 1)
        for epoch in (0, 1)
        for purpose in ("order", "noise")
        for rank in (0, 1)
    ]
    assert len(set(seeds)) == len(seeds)
    assert derive(3, 4, "noise") == derive(3, 4, "noise")


def test_an_epoch_draws_the_same_again():
    first, again = (torch.rand(3, generator=shuffling_generator(0, 5)) for _ in range(2))
    assert torch.equal(first, again)
    with isolated(CPU):
        seed_noise(0, 5, 0, CPU)
        noise = torch.rand(3)
        seed_noise(0, 5, 0, CPU)
        assert torch.equal(torch.rand(3), noise)
        seed_noise(0, 5, 1, CPU)
        assert not torch.equal(torch.rand(3), noise)


@pytest.mark.parametrize("context", [lambda: isolated(CPU), lambda: seeded_initialization(0)])
def test_the_global_generator_is_put_back(context):
    before = torch.get_rng_state()
    with context():
        torch.rand(5)
    assert torch.equal(torch.get_rng_state(), before)


def test_modules_draw_their_first_weights_from_the_seed():
    weights = []
    for seed in (0, 0, 1):
        with seeded_initialization(seed):
            weights.append(torch.nn.Linear(2, 2).weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
