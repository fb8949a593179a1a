import itertools

import numpy as np
import pytest
import torch
from aeon.testing.estimator_checking import check_estimator

from estimator_contract import ClassifierContract, problem, rich, with_gaps
from seq2tens import estimators
from seq2tens.data import load_dataset
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor
from seq2tens.estimators.random import ridge
from seq2tens.estimators.random.explanation import decisive_steps


class TestRandomLS2TClassifier(ClassifierContract):
    def make(self, **changes):
        return RandomLS2TClassifier(**{"random_state": 0, "n_blocks": 4, **changes})

    def thorough(self):
        return self.make()

    def test_threads_change_nothing(self, fitted):
        X, y = problem()
        parallel = self.make(n_jobs=2).fit(X, y)
        np.testing.assert_allclose(parallel.predict_proba(X), fitted.predict_proba(X), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(parallel.predict(X), fitted.predict(X))

    def test_more_sequences_than_the_sample(self, monkeypatch):
        X, y = problem(n=60)
        new, labels = problem(n=60, seed=9)
        monkeypatch.setattr(ridge, "SAMPLE", 40)
        monkeypatch.setattr(ridge, "BATCH", 25)
        assert self.make().fit(X, y).score(new, labels) > 0.9

    def test_probabilities_are_as_sure_as_the_model_is_right(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], 100)
        noisy = rng.normal(y[:, None, None] * 0.3, 1, size=(200, 1, 20))
        clear = rng.normal(y[:, None, None] * 9.0, 1, size=(200, 1, 20))
        sure = [self.make().fit(X, y).predict_proba(X).max(axis=1).mean() for X in (noisy, clear)]
        assert 0.5 < sure[0] < 0.95 < sure[1]

    def test_balanced_classes(self):
        rng = np.random.default_rng(0)
        y = (np.arange(200) % 20 == 0).astype(int)
        X = rng.normal(y[:, None, None] * 0.7, 1, size=(200, 1, 10))
        plain, balanced = (
            self.make(class_weight=weight, penalties=(100.0,)).fit(X, y).predict(X).mean()
            for weight in (None, "balanced")
        )
        assert plain < 0.05 < balanced

    def test_japanese_vowels(self):
        train, test = load_dataset("JapaneseVowels")
        model = RandomLS2TClassifier(random_state=0).fit(train.sequences, train.labels)
        assert model.score(test.sequences, test.labels) > 0.97


class TestExplain:
    def fitted(self):
        """Channel 1 of 3 tells the class: a bump, and in class 1 another one four steps later."""
        rng = np.random.default_rng(0)
        y = np.arange(60) % 2
        X = rng.normal(size=(60, 3, 40)) * 0.1
        starts = rng.integers(8, 26, size=60)
        for i, start in enumerate(starts):
            X[i, 1, start] += 5
            X[i, 1, start + 4] += 5 * y[i]
        return RandomLS2TClassifier(random_state=0, scaling=None).fit(X, y), X

    def test_it_finds_channel_and_steps(self):
        model, X = self.fitted()
        rows = model.explain(X, top=20)
        assert len(rows) == 20
        sizes = [np.abs(row.coefficients).max() for row in rows]
        assert sizes == sorted(sizes, reverse=True)
        channels = [filter.strongest[0] for row in rows for filter in row.filters]
        assert channels.count("1") > 0.6 * len(channels)
        assert {row.level for row in rows} <= {1, 2, 3}
        for row in rows:
            assert row.steps.shape == (60, row.level)
            assert (np.diff(row.steps, axis=1) > 0).all()
            assert (row.memory is None) == (row.level == 1)
            assert f"of level {row.level}: channel " in str(row)
            for filter in row.filters:
                assert filter.weights.shape == (len(filter.lags), len(filter.channels))

    def test_without_sequences(self):
        model, _ = self.fitted()
        assert all(row.steps is None for row in model.explain(top=3))
        with pytest.raises(ValueError, match="`top` must be at least 1, got 0"):
            model.explain(top=0)

    def test_columns_are_those_of_the_table(self):
        """The peak of a level is the value of its path at the last of the steps, or larger parts of it."""
        model, X = self.fitted()
        table = model.features_.transform(X)
        for row in model.explain(X, top=200):
            if row.level == 1 and row.pool == "peak":
                x = X[:, :, :]
                filter, found = row.filters[0], []
                source = np.diff(x, axis=2, prepend=x[:, :, :1]) if filter.increments else x
                if filter.increments:
                    source = source / model.features_.increments_.scale_[None, :, None]
                    source = (
                        source
                        - (model.features_.increments_.mean_ / model.features_.increments_.scale_)[
                            None, :, None
                        ]
                    )
                for i, (step,) in enumerate(row.steps):
                    terms = [
                        weight * source[i, int(channel), step + lag]
                        for lag, weights in zip(filter.lags, filter.weights, strict=True)
                        for channel, weight in zip(filter.channels, weights, strict=True)
                        if 0 <= step + lag < 40
                    ]
                    found.append(sum(terms))
                np.testing.assert_allclose(found, table[:, row.column], rtol=1e-3, atol=1e-3)

    def test_names_of_further_channels(self):
        sequences, y = rich()
        model = RandomLS2TClassifier(random_state=0, n_blocks=8).fit(sequences, y)
        names = {c for row in model.explain(top=500) for f in row.filters for c in f.channels}
        assert names == {"0", "1", "observed 0", "observed 1", "time", "static 0", "static 1"}

    def test_decisive_steps_by_brute_force(self):
        rng = np.random.default_rng(0)
        for level, memory in ((1, None), (2, 3.0), (3, 8.0)):
            values = rng.normal(size=(9, level))
            found = decisive_steps(torch.from_numpy(values), memory)
            if memory is None:
                assert found == [int(values[:, 0].argmax())]
                continue

            def part(steps, end, values=values, memory=memory, level=level):
                return np.prod([values[i, k] * np.exp(-(end - i) / memory) for k, i in enumerate(steps)])

            chains = list(itertools.combinations(range(9), level))
            path = [sum(part(c, end) for c in chains if c[-1] <= end) for end in range(9)]
            end = int(np.argmax(path))
            best = max((c for c in chains if c[-1] <= end), key=lambda c: part(c, end))
            assert tuple(found) == best

    def test_too_short_for_a_level(self):
        model, X = self.fitted()
        short = X[:2, :, :1]
        steps = {row.level: row.steps for row in model.explain(short, top=300)}
        assert (steps[3] == -1).all()


class TestRandomLS2TRegressor:
    def make(self, **changes):
        return RandomLS2TRegressor(**{"random_state": 0, "n_blocks": 4, **changes})

    def problem(self, n=80, seed=0):
        rng = np.random.default_rng(seed)
        y = rng.uniform(10, 20, size=n)
        return [np.cumsum(rng.normal(v, 2, size=(2, rng.integers(8, 20))), axis=1) for v in y], y

    def test_conventions_of_aeon(self):
        results = check_estimator(RandomLS2TRegressor, raise_exceptions=True)
        assert len(results) > 20
        assert set(results.values()) == {"PASSED"}

    def test_it_learns(self):
        X, y = self.problem()
        new, values = self.problem(seed=1)
        model = self.make().fit(X, y)
        assert model.score(new, values) > 0.8
        assert self.make().fit(with_gaps(X), y).score(with_gaps(new), values) > 0.5

    def test_order_company_and_padding_change_nothing(self):
        X, y = self.problem()
        model = self.make().fit(X, y)
        expected = model.predict(X)
        alone = np.concatenate([model.predict([x]) for x in X[:6]])
        np.testing.assert_allclose(alone, expected[:6], rtol=1e-4)
        np.testing.assert_allclose(model.predict(X[::-1]), expected[::-1], rtol=1e-4)

    def test_save_and_load(self, tmp_path):
        X, y = self.problem()
        model = self.make().fit(X, y)
        model.save(tmp_path / "model")
        again = estimators.load(tmp_path / "model")
        assert isinstance(again, RandomLS2TRegressor)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_shift_and_scale_of_the_target(self):
        X, y = self.problem()
        plain, moved = self.make().fit(X, y), self.make().fit(X, 1e5 + 1e3 * y)
        np.testing.assert_allclose(moved.predict(X), 1e5 + 1e3 * plain.predict(X), rtol=1e-5)

    def test_a_target_whose_spread_overflows(self):
        X, y = self.problem()
        with pytest.raises(ValueError, match="`y` must have a finite standard deviation, got values up to"):
            self.make().fit(X, 1e300 * y)

    def test_an_almost_constant_target(self):
        X, y = self.problem()
        almost = 3 + 1e-9 * y  # aeon takes a constant for a class
        np.testing.assert_allclose(self.make().fit(X, almost).predict(X), 3.0, rtol=1e-6)

    def test_explain(self):
        X, y = self.problem()
        rows = self.make().fit(X, y).explain(X, top=5)
        assert [row.coefficients.shape for row in rows] == [(1,)] * 5
