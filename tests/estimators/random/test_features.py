from dataclasses import replace

import numpy as np
import pytest
import torch

from estimator_contract import EstimatorContract, problem
from kernels import with_threads
from seq2tens.data import load_dataset
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TFeatures, load
from seq2tens.estimators.random import features
from seq2tens.estimators.random.blocks import (
    DESIGNS,
    KERNELS,
    Block,
    calibrate_levels,
    pools,
    relative,
    stack,
)
from seq2tens.ops.pooling import functionals, pool_blocks


class TestRandomLS2TFeatures(EstimatorContract):
    def make(self, **changes):
        return RandomLS2TFeatures(**{"random_state": 0, "n_blocks": 4, **changes})

    def output(self, fitted, X):
        table = fitted.transform(X)
        assert table.shape == (len(X), fitted.n_features_)
        assert table.dtype == np.float32
        return table

    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_orders(self, order):
        X, _ = problem()
        table = self.make(order=order).fit_transform(X)
        assert table.shape == (len(X), 4 * KERNELS * (5 + 2 * (order - 1)))
        assert np.isfinite(table).all()

    def test_threads_and_chunks_change_nothing(self, fitted, monkeypatch):
        X, _ = problem(n=20, longest=40, seed=1)
        expected = fitted.transform(X)
        np.testing.assert_array_equal(self.make(n_jobs=2).fit(*problem()).transform(X), expected)
        monkeypatch.setattr(features, "CHUNK_STEPS", 50)
        np.testing.assert_array_equal(fitted.transform(X), expected)

    def test_the_threads_of_torch_are_left_alone(self, fitted):
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            fitted.transform(problem()[0])
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(before)

    @pytest.mark.parametrize(("n_jobs", "expected"), [(1, 2), (3, 3)])
    def test_one_job_means_the_threads_of_torch(self, n_jobs, expected, monkeypatch):
        X, y = problem()
        used = set()

        def pool(*arguments):
            used.add(torch.get_num_threads())
            return pool_blocks(*arguments)

        monkeypatch.setattr(features, "pool_blocks", pool)
        with with_threads(2):
            RandomLS2TClassifier(n_blocks=2, random_state=0, n_jobs=n_jobs).fit(X, y).predict(X)
        assert used == {expected}

    def test_more_blocks_begin_with_the_same(self, fitted):
        X, y = problem()
        more = self.make(n_blocks=6).fit(X, y).transform(X)
        np.testing.assert_array_equal(more[:, : fitted.n_features_], fitted.transform(X))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_sequence_has_the_same_bits_alone_and_in_a_batch(self, n_jobs):
        X = load_dataset("JapaneseVowels").train.sequences[np.arange(60)]
        model = self.make(n_jobs=n_jobs, n_blocks=40).fit(X)
        alone = [model.transform(X[np.array([row])]) for row in range(len(X))]
        np.testing.assert_array_equal(np.concatenate(alone), model.transform(X))

    @pytest.mark.parametrize("number", sorted(DESIGNS.keys() - {1}))  # models of the first are on file
    def test_a_saved_model_keeps_its_design(self, number, monkeypatch, tmp_path):
        X, y = problem()
        monkeypatch.setattr(features, "NEWEST", number)
        classifier = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(X, y)
        classifier.save(tmp_path / "model")
        monkeypatch.undo()
        again = load(tmp_path / "model")
        assert again.features_.n_features_ == 2 * DESIGNS[number].n_features(3)
        np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))

    def test_values_far_beyond_those_of_training(self, fitted):
        X, _ = problem()
        X[3] = X[3] * 1e38
        with (
            np.errstate(over="ignore"),
            pytest.raises(ValueError, match=r"overflow; got values up to \d.*e\+38"),
        ):
            fitted.transform(X)

    @pytest.mark.parametrize("name", ["n_blocks", "order"])
    def test_sizes(self, name):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got 0"):
            self.make(**{name: 0}).fit(*problem())


class TestBlock:
    def test_convolutions_by_hand(self):
        block = Block.draw(3, 1, n_channels=3, length=30, order=1)
        x = torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(0))
        lengths = torch.tensor([20, 12])
        x[1, 12:] = 0
        found = block.convolve(x, lengths, torch.ones(KERNELS))
        reach = block.dilation * (len(block.taps) - 1)
        for row, step in ((0, 0), (0, 9), (1, 11)):
            total = torch.zeros(KERNELS)
            for tap, weight in enumerate(block.taps):
                at = step + tap * block.dilation - (reach - reach // 2)
                if 0 <= at < 20:
                    total += x[row, at, block.channels] @ weight
            torch.testing.assert_close(found[row, step], total)
        assert (found[1, 12:] == 0).all()

    def test_centred_blocks_do_not_see_the_level(self):
        block = Block.draw(0, 1, n_channels=2, length=40, order=1)
        x = torch.ones(1, 200, 2)
        inside = block.convolve(x, torch.tensor([200]), torch.ones(KERNELS))[:, 60:140]
        torch.testing.assert_close(inside, torch.zeros_like(inside), atol=1e-4, rtol=0)

    def test_energy_by_hand(self):
        levels = torch.randn(2, 9, 2 * KERNELS, generator=torch.Generator().manual_seed(0))
        responses, lengths = levels[..., :KERNELS].contiguous(), torch.tensor([9, 4])
        design = DESIGNS[3]._replace(convolutions=(), levels=("energy",))
        paths = (responses, lengths, torch.zeros(KERNELS), levels.unflatten(2, (2, KERNELS)))
        found = pools(*paths, design)
        for row, length in enumerate(lengths.tolist()):
            path = levels[row, :length, KERNELS:]
            torch.testing.assert_close(found[row], (path.square().mean(dim=0) + 1e-4).log())

    def test_crossings_by_hand(self):
        waves = torch.tensor([[-1.0, 1, 1, -1, 1, -1], [-1, 1, -1, -1, -1, -1]])
        responses = waves[..., None].expand(2, 6, KERNELS).contiguous()
        design = DESIGNS[4]._replace(convolutions=("crossings",))
        found = pools(responses, torch.tensor([6, 4]), torch.zeros(KERNELS), responses[:, :, None], design)
        torch.testing.assert_close(found, torch.tensor([[4.0], [2.0]]).expand(2, KERNELS))

    def test_calibrated_paths_have_size_one(self):
        block = Block.draw(0, 0, n_channels=2, length=50, order=3)
        x, lengths = (
            torch.randn(40, 50, 2, generator=torch.Generator().manual_seed(0)) * 9,
            torch.full((40,), 50),
        )
        calibration = block.calibrate(x, lengths)
        scales = calibrate_levels(x[None], lengths, stack([block], [calibration]))[0]
        responses = block.convolve(x, lengths, calibration.scale)
        levels = functionals(responses, block.picks, 1 / relative(scales), block.decay)
        for path in (responses, levels):
            size = path.square().mean(dim=(0, 1)).sqrt()
            torch.testing.assert_close(size, torch.ones_like(size))

    def test_a_threshold_at_the_last_step(self):
        block = Block.draw(0, 0, n_channels=1, length=5, order=1)
        last = replace(block, step=torch.ones(KERNELS))  # what random numbers just below 1 are rounded to
        x, lengths = torch.randn(2, 5, 1, generator=torch.Generator().manual_seed(0)), torch.tensor([5, 5])
        found = last.calibrate(x, lengths)
        responses = block.convolve(x, lengths, torch.ones(KERNELS))
        torch.testing.assert_close(found.threshold * found.scale, responses[1, 4])

    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    @pytest.mark.parametrize("number", sorted(DESIGNS))
    def test_every_design_by_its_paths(self, number, order):
        """The features of all blocks together, and those of each from its paths."""
        X, _ = problem(n=12, longest=60)
        features = RandomLS2TFeatures(n_blocks=4, order=order, random_state=0).fit(X)
        features.design_ = number
        features.blocks_ = features._draw()
        table = torch.from_numpy(features.transform(X))
        x = features.preparation_.transform(features._as_in_fit(X))
        paths = features._paths(x)
        columns = [
            b.features(*paths[b.difference], c)
            for b, c in zip(features.blocks_, features.calibrations_, strict=True)
        ]
        torch.testing.assert_close(table, torch.cat(columns, dim=1), rtol=1e-4, atol=2e-4)

    @pytest.mark.parametrize("channels", [1, 2, 16, 500])
    @pytest.mark.parametrize("length", [1, 2, 8, 3000])
    def test_any_size(self, channels, length):
        for number in range(4):
            block = Block.draw(0, number, channels, length, order=2)
            assert 1 <= len(block.channels) <= min(channels, 16)
            assert block.dilation * (len(block.taps) - 1) < max(2, length)
            assert (block.taps.abs().sum(dim=(0, 1)) > 0).all() or length == 1
            assert (block.memory >= 2).all()
