import numpy as np
from sklearn.tree import DecisionTreeRegressor

from seq2tens.experiments.baselines.leaves import bag, series_forest


def test_bag_by_brute_force():
    rng = np.random.default_rng(0)
    rows, lengths = rng.normal(size=(30, 3)).astype(np.float32), np.array([5, 1, 14, 10])
    tree = DecisionTreeRegressor(max_leaf_nodes=6, random_state=0).fit(rows, rng.normal(size=30))
    nodes = tree.apply(rows)
    leaves = np.unique(nodes)
    found = bag(tree, rows, lengths)
    assert found.shape == (4, 6)
    for i, part in enumerate(np.split(nodes, np.cumsum(lengths)[:-1])):
        np.testing.assert_allclose(found[i], [(part == leaf).mean() for leaf in leaves], rtol=1e-6)


def test_a_tree_that_is_one_leaf():
    rows = np.zeros((4, 2), dtype=np.float32)
    tree = DecisionTreeRegressor().fit(rows, np.zeros(4))
    np.testing.assert_array_equal(bag(tree, rows, np.array([1, 3])), [[1], [1]])


def test_the_forest_knows_its_error_on_what_it_has_not_seen():
    rng = np.random.default_rng(0)
    noise = series_forest(100, 1, 0).fit(rng.normal(size=(60, 3)), np.arange(60) % 2)
    assert noise.oob_score_ < 0.75
