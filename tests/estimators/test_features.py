import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_contract import EstimatorContract, problem, with_gaps
from seq2tens import functional as F
from seq2tens.algebra import seq2tens, signature
from seq2tens.data import from_aeon, load_dataset
from seq2tens.estimators import LS2TFeatures, Seq2TensFeatures


class FeaturesContract(EstimatorContract):
    def output(self, fitted, X):
        table = fitted.transform(X)
        assert table.shape == (len(X), fitted.n_features_)
        assert table.dtype == np.float64
        return table

    def test_pipeline_search_and_cross_validation(self):
        X, y = problem(n=60)
        model = make_pipeline(self.make(), StandardScaler(), RidgeClassifierCV())
        assert cross_val_score(model, X, y, cv=3).mean() > 0.9
        name = type(self.make()).__name__.lower()
        search = GridSearchCV(model, {f"{name}__order": [1, 2]}, cv=2).fit(with_gaps(X), y)
        assert search.score(X, y) > 0.8

    def test_statistics_are_those_of_training(self):
        X, y = problem()
        fitted = self.make().fit(X, y)
        shifted = [x + 3 for x in X]
        assert not np.allclose(fitted.transform(shifted), fitted.transform(X))
        by_itself = self.make(scaling="sequence").fit(X, y)
        np.testing.assert_allclose(by_itself.transform(shifted), by_itself.transform(X), atol=1e-4)

    def test_labels_are_not_looked_at(self):
        X, y = problem()
        np.testing.assert_array_equal(self.make().fit_transform(X), self.make().fit(X, y).transform(X, y))

    def test_many_blocks(self, monkeypatch):
        X, _ = problem(longest=40)
        fitted = self.make().fit(X)
        expected = fitted.transform(X)
        monkeypatch.setattr("seq2tens.estimators.features.BLOCK_NUMBERS", 300)
        assert fitted._block_steps() < 40
        np.testing.assert_allclose(fitted.transform(X), expected, rtol=1e-10, atol=1e-12)


class TestLS2TFeatures(FeaturesContract):
    def make(self, **changes):
        return LS2TFeatures(**{"random_state": 0, "width": 16, "order": 2, **changes})

    @pytest.mark.parametrize("weights", ["recursive", "independent"])
    def test_they_are_end_points_of_the_layer(self, weights):
        X, _ = problem(n=2, shortest=6, longest=6)
        options = {"order": 3, "weights": weights, "lift_order": 2, "decay": 0.9, "normalization": 1.0}
        fitted = self.make(scaling=None, **options).fit(X)
        path = torch.tensor(np.stack(X)).float().double().mT
        path = F.difference(F.time_embedding(path))
        end = F.ls2t(
            path,
            fitted.functionals_,
            order=3,
            weights=weights,
            lift_order=2,
            decay=path.new_full((16,), 0.9),
            return_sequences=False,
        )
        terms = torch.tensor([math.comb(6, m) for m in (1, 2, 3)])
        np.testing.assert_allclose(fitted.transform(X), (end / terms[:, None]).flatten(1), rtol=1e-10)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"width": 0}, "`width` must be at least 1, got 0"),
            ({"order": 0}, "`order` must be at least 1, got 0"),
            (
                {"weights": "loose"},
                "`weights` must be one of 'recursive', 'independent', 'symmetric', got 'loose'",
            ),
            ({"decay": 1.5}, r"`decay` must lie in \(0, 1\], got 1.5"),
            ({"scaling": "auto"}, "`scaling` must be one of"),
        ],
    )
    def test_wrong_arguments(self, change, message):
        with pytest.raises(ValueError, match=message):
            self.make(**change).fit_transform(problem()[0])

    def test_real_data(self):
        train, test = load_dataset("JapaneseVowels")
        model = make_pipeline(LS2TFeatures(random_state=0), StandardScaler(), RidgeClassifierCV())
        assert model.fit(train.sequences, train.labels).score(test.sequences, test.labels) > 0.9


class TestSeq2TensFeatures(FeaturesContract):
    def make(self, random_state=None, **changes):
        return Seq2TensFeatures(**changes)

    def test_they_are_the_coordinates_of_the_map(self):
        X, _ = problem(n=2, shortest=6, longest=6)
        plain = {"scaling": None, "time": False, "difference": False}
        table = self.make(order=3, **plain).fit_transform(X)
        path = torch.tensor(np.stack(X)).float().double().mT
        np.testing.assert_allclose(table, seq2tens(path, 3).flatten(scalar=False), rtol=1e-10)

    def test_signature(self):
        X, _ = problem(n=2, shortest=6, longest=6)
        table = self.make(order=3, lift="exp", scaling=None, time=False).fit_transform(X)
        path = torch.tensor(np.stack(X)).float().double().mT
        expected = signature(F.basepoint(path), 3).flatten(scalar=False)
        np.testing.assert_allclose(table, expected, rtol=1e-10, atol=1e-12)

    def test_time_and_gaps_are_channels(self):
        X, _ = problem()
        assert self.make(order=2).fit(X).n_features_ == 3 + 9
        assert self.make(order=2).fit(with_gaps(X)).n_features_ == 5 + 25

    def test_too_many_features(self):
        X, _ = problem(n=2, channels=20)
        message = (
            r"`order` must give at most 100000 features \(`max_features`\), got 4288305 for order 5 and 21"
        )
        with pytest.raises(ValueError, match=message):
            self.make(order=5).fit(X)
        assert self.make(order=2, max_features=462).fit(X).n_features_ == 462

    @pytest.mark.parametrize(
        ("change", "message"),
        [({"order": 0}, "`order` must be at least 1"), ({"lift": "log"}, "`lift` must be one of")],
    )
    def test_wrong_arguments(self, change, message):
        with pytest.raises(ValueError, match=message):
            self.make(**change).fit(from_aeon(problem()[0]))
