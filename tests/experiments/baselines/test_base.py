import numpy as np

from seq2tens.experiments.baselines.base import balanced_sample, differences


def test_differences():
    np.testing.assert_array_equal(differences(np.array([[1.0], [4.0], [2.0]])), [[0], [3], [-2]])
    np.testing.assert_array_equal(differences(np.array([[1.0]])), [[0]])


def test_a_sample_has_every_class_alike():
    labels = np.repeat([0, 1, 2], [100, 3, 40])
    rows = balanced_sample(labels, 23, seed=0)
    assert (np.diff(rows) > 0).all()
    assert np.bincount(labels[rows]).tolist() == [10, 3, 10]
    assert not np.array_equal(balanced_sample(labels, 23, seed=1), rows)
    np.testing.assert_array_equal(balanced_sample(labels, 1000, seed=0), np.arange(143))
