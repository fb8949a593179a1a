import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from aeon.testing.estimator_checking import check_estimator
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_contract import SAME, problem, rich, with_gaps, without_channel
from seq2tens import estimators
from seq2tens.data import Sequences, from_aeon, held_out
from seq2tens.estimators import (
    IMPUTERS,
    ForwardImputer,
    GPVAEImputer,
    HIVAEImputer,
    LinearImputer,
    LS2TFeatures,
    MeanImputer,
    VAEImputer,
)


def gaps(seed=0, **sizes):
    """Sequences as a list of arrays `(channels, time)`, a quarter of the entries missing."""
    return with_gaps(problem(seed=seed, **sizes)[0], seed=seed + 1)


def flat(X):
    return np.concatenate([np.asarray(x).ravel() for x in X])


class ImputerContract:
    """What every imputer must satisfy."""

    def make(self, **changes):
        """A small and quick one."""
        raise NotImplementedError

    @pytest.fixture
    def fitted(self):
        """Fitted once for each class."""
        kind = type(self)
        if "_fitted" not in vars(kind):
            kind._fitted = self.make().fit(gaps())
        return kind._fitted

    def test_conventions_of_aeon(self):
        results = check_estimator(type(self.make()), raise_exceptions=True)
        assert len(results) > 20
        assert set(results.values()) == {"PASSED"}

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_what_was_observed_stays_to_the_last_bit(self, fitted, dtype):
        X = np.stack([x[:, :3] for x in gaps()]).astype(dtype)
        X[0, 0] = [-0.0, np.finfo(dtype).smallest_subnormal, np.nan]
        before = X.tobytes()
        results = [fitted.transform(X), *fitted.predict_interval(X), *fitted.sample(X, 2, random_state=0)]
        assert X.tobytes() == before
        for result in results:
            assert result.dtype == dtype
            assert result.shape == X.shape
            assert np.isfinite(result).all()
            seen = ~np.isnan(X)
            assert result[seen].tobytes() == X[seen].tobytes()

    def test_the_kind_of_collection_stays(self, fitted):
        X = [x[:, :3] for x in gaps()]
        expected = np.stack(fitted.transform(X))
        cube = np.stack(X)
        np.testing.assert_array_equal(fitted.transform(cube), expected)
        as_dict = fitted.transform({"X": cube.transpose(0, 2, 1), "y": "kept"})
        assert as_dict["y"] == "kept"
        np.testing.assert_array_equal(as_dict["X"].transpose(0, 2, 1), expected)
        as_dict["X"][0, 0, 0] = 7.0  # the result can be written to
        sequences = fitted.transform(from_aeon(X))
        assert isinstance(sequences, Sequences)
        np.testing.assert_array_equal(sequences.values, np.concatenate(expected.transpose(0, 2, 1)))
        parts = fitted.transform([from_aeon(X[:5]), from_aeon(X[5:])])
        assert [len(part) for part in parts] == [5, len(X) - 5]
        frames = fitted.transform([pd.DataFrame(x.T) for x in X])
        assert isinstance(frames[0], pd.DataFrame)
        np.testing.assert_array_equal(np.stack([frame.to_numpy().T for frame in frames]), expected)

    def test_frames_keep_index_columns_and_types(self, fitted):
        X = gaps()
        frames = [pd.DataFrame({"warmth": x[0], "pressure": x[1].astype(np.float32)}) for x in X]
        expected = fitted.transform(X)
        filled = fitted.transform(frames)
        for found, given, array in zip(filled, frames, expected, strict=True):
            np.testing.assert_allclose(found.to_numpy().T, array, **SAME)
            assert found.columns.tolist() == ["warmth", "pressure"]
            assert found.dtypes.tolist() == given.dtypes.tolist()
            pd.testing.assert_index_equal(found.index, given.index)
        long = pd.concat(frames, keys=[f"case {i}" for i in range(len(X))])
        whole = fitted.transform(long)
        pd.testing.assert_index_equal(whole.index, long.index)
        pd.testing.assert_frame_equal(whole, pd.concat(filled, keys=long.index.levels[0]), check_names=False)
        assert not long.isna().equals(whole.isna())

    def test_one_channel_without_an_axis_for_it(self):
        X = np.stack([x[0, :3] for x in gaps()])
        model = self.make().fit(X)
        assert model.transform(X).shape == X.shape
        assert model.sample(X, 2, random_state=0).shape == (2, *X.shape)
        assert all(x.shape == (3,) for x in model.transform(list(X)))

    def test_a_list_keeps_the_types_of_its_arrays(self, fitted):
        X = gaps()
        X[1] = X[1].astype(np.float32)
        filled = fitted.transform(X)
        assert [x.dtype for x in filled] == [x.dtype for x in X]
        seen = ~np.isnan(X[1])
        assert filled[1][seen].tobytes() == X[1][seen].tobytes()

    def test_kinds_of_samples_and_intervals(self, fitted):
        X = gaps()
        drawn = fitted.sample(X, 3, random_state=0)
        assert len(drawn) == 3
        assert [x.shape for x in drawn[2]] == [x.shape for x in X]
        low, high = fitted.predict_interval(from_aeon(X))
        assert isinstance(low, Sequences)
        assert (low.values <= high.values).all()
        dicts = fitted.sample({"X": X[0].T[None]}, 2, random_state=0)
        assert [d["X"].shape for d in dicts] == [(1, *X[0].T.shape)] * 2

    def test_times_and_static_features_are_kept_and_not_asked_for(self, fitted):
        sequences, _ = rich()
        filled = fitted.transform(sequences)
        np.testing.assert_array_equal(filled.times, sequences.times)
        np.testing.assert_array_equal(filled.static, sequences.static)
        assert np.isfinite(self.make().fit(sequences).transform(from_aeon(gaps())).values).all()

    def test_order_company_and_padding_change_nothing(self, fitted):
        X = gaps(n=10, seed=1)
        order = np.random.default_rng(0).permutation(len(X))
        long = gaps(n=2, shortest=40, longest=60, seed=2)
        for output in (fitted.transform, lambda X: fitted.predict_interval(X)[0]):
            expected = output(X)
            alone = [output([x])[0] for x in X]
            np.testing.assert_allclose(flat(alone), flat(expected), **SAME)
            moved = output([X[i] for i in order])
            np.testing.assert_allclose(flat(moved), flat([expected[i] for i in order]), **SAME)
            np.testing.assert_allclose(flat(output([*long, *X])[2:]), flat(expected), **SAME)

    def test_draws_follow_the_random_state_and_not_the_company(self, fitted):
        X = gaps(n=10, seed=1)
        first = fitted.sample(X, 4, random_state=0)
        for a, b in zip(first, fitted.sample(X, 4, random_state=0), strict=True):
            np.testing.assert_array_equal(flat(a), flat(b))
        short = fitted.sample(X[:3], 4, random_state=0)
        np.testing.assert_allclose(flat(short[3]), flat(first[3][:3]), **SAME)
        assert not np.array_equal(flat(first[0]), flat(first[1]))
        assert not np.array_equal(flat(first[0]), flat(fitted.sample(X, 4, random_state=1)[0]))
        twins = fitted.sample([X[0], X[0]], 1, random_state=0)[0]
        assert not np.array_equal(twins[0], twins[1])

    def test_draws_and_intervals_agree(self, fitted):
        X = gaps(n=4)
        missing = np.isnan(flat(X))
        drawn = np.stack([flat(copy)[missing] for copy in fitted.sample(X, 400, random_state=0)])
        low, high = (flat(end)[missing] for end in fitted.predict_interval(X, 0.8))
        inside = ((drawn >= low) & (drawn <= high)).mean()
        assert 0.72 < inside < 0.88

    def test_wider_intervals_cover_more(self, fitted):
        X = gaps()
        missing = np.isnan(flat(X))
        narrow, wide = fitted.predict_interval(X, 0.5), fitted.predict_interval(X, 0.95)
        low, high = (flat(b)[missing] - flat(a)[missing] for a, b in zip(narrow, wide, strict=True))
        assert (low < 0).all()
        assert (high > 0).all()

    def test_the_same_random_state_gives_the_same(self, fitted):
        X = gaps()
        np.testing.assert_array_equal(flat(self.make().fit(X).transform(X)), flat(fitted.transform(X)))

    def test_global_generators_are_left_alone(self):
        X = gaps()
        ours, theirs = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        model = self.make().fit(X)
        model.sample(X, 2)
        model.predict_interval(X)
        model.score(X)
        after = np.random.get_state()  # noqa: NPY002
        assert all(np.array_equal(a, b) for a, b in zip(ours, after, strict=True))
        assert torch.equal(theirs, torch.get_rng_state())

    def test_nothing_missing(self, fitted):
        X, _ = problem()
        whole = self.make().fit(X)
        for model in (whole, fitted):
            np.testing.assert_array_equal(flat(model.transform(X)), flat(X))
            np.testing.assert_array_equal(flat(model.sample(X, 1)[0]), flat(X))
            np.testing.assert_array_equal(flat(model.predict_interval(X)[1]), flat(X))
        assert np.isfinite(flat(whole.transform(gaps()))).all()

    def test_a_channel_never_observed_in_training(self, fitted):
        X = without_channel(gaps())
        model = self.make().fit(X)
        low, high = model.predict_interval(X)
        for result in (model.transform(X), model.sample(X, 1, random_state=0)[0], low, high):
            assert all((x[1] == 0).all() for x in result)
            assert np.isfinite(flat(result)).all()
        later = model.transform(gaps())
        assert np.isfinite(flat(later)).all()

    def test_a_sequence_without_a_channel_and_one_without_anything(self, fitted):
        X = gaps(seed=3)
        X[0][1], X[1][:] = np.nan, np.nan
        for model in (fitted, self.make().fit(X)):
            for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
                assert np.isfinite(flat(result)).all()

    def test_nothing_observed_at_all(self):
        X = np.full((4, 2, 5), np.nan)
        model = self.make().fit(X)
        for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
            assert (result == 0).all()

    def test_sequences_of_one_step(self, fitted):
        X = gaps(shortest=1, longest=1)
        for model in (fitted, self.make().fit(from_aeon(X))):
            for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
                assert np.isfinite(flat(result)).all()

    def test_a_constant_channel_is_filled_with_the_constant(self):
        X = gaps()
        for x in X:
            x[1, ~np.isnan(x[1])] = 0.1
        model = self.make().fit(X)
        for result in (model.transform(X), *model.sample(X, 2), *model.predict_interval(X)):
            assert np.isfinite(flat(result)).all()
            np.testing.assert_allclose(np.concatenate([x[1] for x in result]), 0.1, rtol=1e-12)

    def test_score_is_the_error_in_units_of_training(self, fitted):
        truth, _ = problem(seed=4)
        X = with_gaps(truth)
        scale = fitted.scaler_.scale_[:, None]
        filled = fitted.transform(X)
        errors = flat([(f - t) / scale for f, t in zip(filled, truth, strict=True)])
        assert fitted.score(X, truth) == pytest.approx(-np.mean(errors[np.isnan(flat(X))] ** 2))
        assert fitted.score(from_aeon(X), from_aeon(truth)) == pytest.approx(fitted.score(X, truth))

    def test_score_hides_entries_itself(self, fitted):
        sequences = from_aeon(gaps(seed=4))
        values, _ = held_out(sequences.values, 0.2, np.random.default_rng(5))
        hidden = Sequences(values, sequences.offsets)
        expected = fitted.score(hidden, sequences)
        assert fitted.score(sequences, fraction=0.2, random_state=5) == pytest.approx(expected)
        assert fitted.score(sequences) == fitted.score(sequences) < 0

    def test_units_of_the_data_do_not_matter(self, fitted):
        X = gaps()
        units = np.array([[1e3], [1e-3]])
        moved = [x * units + 5 for x in X]
        model = self.make().fit(moved)
        back = [(x - 5) / units for x in model.transform(moved)]
        np.testing.assert_allclose(flat(back), flat(fitted.transform(X)), rtol=1e-3, atol=1e-3)
        assert model.score(moved) == pytest.approx(fitted.score(X), rel=1e-3)

    def test_pipeline_and_cross_validation(self):
        X, y = problem(n=16)
        X = with_gaps(X)
        model = make_pipeline(self.make(), LS2TFeatures(width=8, random_state=0), StandardScaler())
        assert np.isfinite(model.fit_transform(X, y)).all()
        scores = cross_val_score(self.make(), X, cv=2)
        np.testing.assert_allclose(cross_val_score(self.make(), from_aeon(X), cv=2), scores)
        assert np.isfinite(scores).all()

    def test_save_and_load(self, fitted, tmp_path):
        X = gaps(seed=5)
        fitted.save(tmp_path / "model", {"note": 1})
        for load in (estimators.load, type(fitted).load):
            again = load(tmp_path / "model")
            assert type(again) is type(fitted)
            assert again.get_params() == fitted.get_params()
            assert again.notes_ == {"note": 1}
            self.assert_same(again, fitted, X)

    def test_pickle(self, fitted):
        self.assert_same(pickle.loads(pickle.dumps(fitted)), fitted, gaps(seed=5))

    def assert_same(self, one, other, X):
        np.testing.assert_array_equal(flat(one.transform(X)), flat(other.transform(X)))
        for a, b in zip(one.predict_interval(X), other.predict_interval(X), strict=True):
            np.testing.assert_array_equal(flat(a), flat(b))
        drawn = (model.sample(X, 1, random_state=3)[0] for model in (one, other))
        np.testing.assert_array_equal(*map(flat, drawn))

    def test_clone(self, fitted):
        copy = clone(fitted)
        assert copy.get_params() == fitted.get_params()
        X = gaps()
        for call in (copy.transform, copy.sample, copy.predict_interval, copy.score):
            with pytest.raises(NotFittedError, match="has not been fitted"):
                call(X)
        np.testing.assert_array_equal(flat(copy.fit(X).transform(X)), flat(fitted.transform(X)))

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda m, X: m.transform(gaps(channels=3)), "`X` must have 2 channels as in `fit`, got 3"),
            (lambda m, X: m.transform([]), "`X` must hold at least one sequence, got an empty list"),
            (lambda m, X: m.transform({"values": X}), r'must have the key "X", got \[\'values\'\]'),
            (lambda m, X: m.sample(X, 0), "`n` must be at least 1, got 0"),
            (lambda m, X: m.predict_interval(X, 1.0), r"`coverage` must lie in \(0, 1\), got 1.0"),
            (lambda m, X: m.score(X, X[:3]), "`truth` must have the sequences, steps and channels of `X`"),
            (lambda m, X: m.score(X, X), "`score` needs at least one entry to compare, got none"),
        ],
    )
    def test_wrong_arguments(self, fitted, call, message):
        with pytest.raises(ValueError, match=message):
            call(fitted, gaps())

    def test_infinite_values_are_located(self, fitted):
        X = gaps()
        X[4][1, 2] = -np.inf
        message = "must be finite, or NaN where missing, got -inf at sequence 4, step 2, channel 1"
        for call in (fitted.transform, self.make().fit):
            with pytest.raises(ValueError, match=message):
                call(X)


class TestMean(ImputerContract):
    def make(self, **changes):
        return MeanImputer(**changes)

    def test_means_of_training(self):
        train, later = np.array([[[1.0, 2.0, np.nan, 6.0]]]), np.array([[[np.nan, 7.0]]])
        np.testing.assert_array_equal(MeanImputer().fit(train).transform(later), [[[3, 7]]])

    def test_intervals_are_quantiles_of_training(self):
        values = np.random.default_rng(0).exponential(size=(1, 1, 1000))
        low, high = MeanImputer().fit(values).predict_interval(np.array([[[np.nan]]]), 0.8)
        expected = np.quantile(values, [0.1, 0.9])
        np.testing.assert_allclose([low[0, 0, 0], high[0, 0, 0]], expected, rtol=1e-6)


class TestMeanOfTheSequence(ImputerContract):
    def make(self, **changes):
        return MeanImputer(over="sequence", **changes)

    test_conventions_of_aeon = None  # of the class, which was checked above

    def test_means_of_each_sequence(self):
        X = np.array([[[1.0, 3.0, np.nan]], [[np.nan, 8.0, np.nan]], [[np.nan] * 3]])
        filled = MeanImputer(over="sequence").fit_transform(X)
        np.testing.assert_array_equal(filled[:, 0], [[1, 3, 2], [8, 8, 8], [4, 4, 4]])

    def test_errors_are_those_of_the_mean_of_the_others(self):
        X = np.array([[[1.0, 3.0, 8.0]]])
        errors = MeanImputer(over="sequence").fit(X).errors_
        np.testing.assert_allclose(errors[[0, 500, 1000], 0], [-4.5, -1.5, 6])

    def test_unknown_kind_of_mean(self):
        with pytest.raises(ValueError, match="`over` must be one of 'data', 'sequence', got 'time'"):
            MeanImputer(over="time").fit(gaps())

    def test_search(self):
        search = GridSearchCV(MeanImputer(), {"over": ["data", "sequence"]}, cv=2)
        levels = np.random.default_rng(0).normal(scale=10, size=(12, 1, 1))
        X = levels + np.random.default_rng(1).normal(size=(12, 1, 20))
        assert search.fit(X).best_params_ == {"over": "sequence"}


class TestForward(ImputerContract):
    def make(self, **changes):
        return ForwardImputer(**changes)

    def test_values_are_carried_within_a_sequence(self):
        X = [np.array([[1.0, np.nan, np.nan]]), np.array([[np.nan, 5.0, np.nan, 6.0, np.nan]])]
        first, second = ForwardImputer().fit_transform(X)
        np.testing.assert_array_equal(first, [[1, 1, 1]])
        np.testing.assert_array_equal(second, [[4, 5, 5, 6, 6]])

    def test_errors_are_increments(self):
        X = np.array([[[1.0, 2.0, np.nan, 5.0]]])
        np.testing.assert_allclose(ForwardImputer().fit(X).errors_[[0, 500, 1000], 0], [1 - 8 / 3, 1, 3])


class TestLinear(ImputerContract):
    def make(self, **changes):
        return LinearImputer(**changes)

    def test_lines_in_steps_and_ends_carried(self):
        X = [np.array([[np.nan, 1.0, np.nan, np.nan, 4.0, np.nan]]), np.array([[np.nan, 7.0]])]
        first, second = LinearImputer().fit_transform(X)
        np.testing.assert_allclose(first, [[1, 1, 2, 3, 4, 4]])
        np.testing.assert_array_equal(second, [[7, 7]])

    def test_lines_in_time(self):
        values = np.array([[0.0], [np.nan], [10.0], [np.nan], [20.0]])
        times = np.array([0.0, 9.0, 10.0, 10.0, 10.0])
        filled = LinearImputer().fit_transform(Sequences(values, np.array([0, 5]), times))
        np.testing.assert_allclose(filled.values[:, 0], [0, 9, 10, 15, 20])

    def test_lines_run_down_the_rows_of_frames(self):
        frame = pd.DataFrame(
            {
                "warmth": [20.0, np.nan, 22.0, 23.0],
                "pressure": [1000.0, 1001.0, np.nan, 1003.0],
                "n": [1, 2, 3, 4],
            }
        )
        (filled,) = LinearImputer().fit_transform([frame])
        assert filled["warmth"].tolist() == [20, 21, 22, 23]
        assert filled["pressure"].tolist() == [1000, 1001, 1002, 1003]
        assert filled.dtypes.tolist() == frame.dtypes.tolist()
        timed = frame.set_index(pd.Index([0.0, 3.0, 4.0, 5.0], name="hour"))
        (filled,) = LinearImputer().fit_transform([timed])
        assert filled["warmth"].tolist() == [20, 21.5, 22, 23]
        assert filled.index.name == "hour"
        assert filled.index.tolist() == [0, 3, 4, 5]

    def test_a_straight_line_has_no_error_inside(self):
        X = np.arange(10.0)[None, None]
        errors = LinearImputer().fit(X).errors_
        np.testing.assert_allclose(errors[[0, 500, 1000], 0], [-1, 0, 1])


SMALL = {"latent": 3, "encoder_sizes": (8,), "decoder_sizes": (8,), "epochs": 3, "batch_size": 8}


class TestGPVAE(ImputerContract):
    def make(self, **changes):
        return GPVAEImputer(**{**SMALL, "encoder": "bls2t", "random_state": 0, "device": "cpu", **changes})


class TestGPVAEWithConvolutions(ImputerContract):
    def make(self, **changes):
        return GPVAEImputer(**{**SMALL, "encoder": "conv", "random_state": 0, "device": "cpu", **changes})

    test_conventions_of_aeon = None  # of the class, which was checked above


class TestHIVAE(ImputerContract):
    def make(self, **changes):
        return HIVAEImputer(**{**SMALL, "random_state": 0, "device": "cpu", **changes})


class TestVAE(ImputerContract):
    def make(self, **changes):
        return VAEImputer(**{**SMALL, "random_state": 0, "device": "cpu", **changes})


def test_every_imputer_of_the_shell_is_tested():
    tested = {type(kind().make()) for kind in ImputerContract.__subclasses__()}
    own = {"gp-vae", "hi-vae", "vae", "mean", "forward", "linear"}
    assert {IMPUTERS[name] for name in own} == tested
