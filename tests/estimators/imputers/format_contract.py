"""What every imputer must satisfy: the kind of collection given comes back."""

import numpy as np
import pandas as pd
import pytest

from estimator_contract import SAME, problem, rich, with_gaps
from seq2tens.data import Sequences, from_aeon


def gaps(seed=0, **sizes):
    """Sequences as a list of arrays `(channels, time)`, a quarter of the entries missing."""
    return with_gaps(problem(seed=seed, **sizes)[0], seed=seed + 1)


def flat(X):
    return np.concatenate([np.asarray(x).ravel() for x in X])


class FormatContract:
    """Collections, their types and what belongs to them."""

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
