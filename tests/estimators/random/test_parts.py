"""Fits to parts: one after the other, in workers, on a cluster, and all the same."""

import copy
import subprocess
import sys
import weakref
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

from estimators.random.test_conformal import noisy_classes
from estimators.random.test_learning import assert_same, classifier, regressor, three_classes
from seq2tens.data import Sequences, from_aeon, read_parquet
from seq2tens.estimators.random.ridge import FOLDS, neighbors


def split(X, y, parts=4):
    """Pairs `(X, y)`."""
    return [([X[i] for i in rows], y[rows]) for rows in np.array_split(np.arange(len(y)), parts)]


def write_npz(path, X, y):
    sequences, classes = from_aeon(X), np.unique(y)
    np.savez(
        path,
        X=sequences.values,
        offsets=sequences.offsets,
        y=np.searchsorted(classes, y),
        classes=classes,
        n_train=len(y) - 5,
    )


def write_parquet(path, X, y):
    rows = [
        {"id": f"{path.stem} {i}", "time": t, "a": step[0], "b": step[1], "label": label}
        for i, (x, label) in enumerate(zip(X, y, strict=True))
        for t, step in enumerate(x.T)
    ]
    pd.DataFrame(rows).to_parquet(path)


def test_parts_are_the_whole():
    X, y = three_classes(200)
    parts = split(X, y)
    model = classifier().fit_parts(parts)
    begun = classifier().calibrate(*parts[0])
    assert_same(model, copy.deepcopy(begun).partial_fit(X, y))
    assert model.score(X, y) > 0.6
    assert_same(model.forget(*parts[1]), copy.deepcopy(begun).fit_parts([parts[0], parts[2], parts[3]]))


def test_scores_are_of_the_model_of_all_parts():
    """Each fold of the first part is predicted by what all others have taught."""
    parts = [noisy_classes(60, seed) for seed in range(12)]
    model = classifier(n_blocks=2).fit_parts(parts)
    X, y = parts[0]
    codes = np.searchsorted(model.classes_, y)
    expected = np.empty(60)
    for fold in range(FOLDS):
        rows = np.flatnonzero(neighbors(codes) == fold)
        without = copy.deepcopy(model).forget(X[rows], y[rows])
        expected[rows] = 1 - without.predict_proba(X[rows])[np.arange(len(rows)), codes[rows]]
    np.testing.assert_allclose(model.scores_[:, 0], np.sort(expected), atol=1e-6)
    new, labels = noisy_classes(1000, 99)
    covered = model.predict_set(new, 0.8)[np.arange(1000), np.searchsorted(model.classes_, labels)].mean()
    assert abs(covered - 0.8) < 0.1


def test_one_part_at_a_time_is_in_memory():
    alive = []

    def parts():
        for X, y in split(*three_classes(200), parts=8):
            sequences = from_aeon(X)
            part = Sequences(sequences.values, sequences.offsets)
            alive.append(weakref.ref(part))
            assert sum(reference() is not None for reference in alive) <= 3
            yield part, y
            del part, sequences

    classifier().fit_parts(parts())
    assert len(alive) == 8


def test_a_folder_of_packed_files(tmp_path):
    X, y = three_classes(120)
    pairs = split(X, y)
    for number, pair in enumerate(pairs):
        write_npz(tmp_path / f"part-{number}.npz", *pair)
    (tmp_path / "notes.txt").write_text("not a part")
    training_halves = [(series[:-5], labels[:-5]) for series, labels in pairs]
    assert_same(classifier().fit_parts(tmp_path), classifier().fit_parts(training_halves))
    assert_same(classifier().fit_parts(str(tmp_path)), classifier().fit_parts(sorted(tmp_path.glob("part*"))))


def test_values_of_a_regression_from_tables(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.uniform(10, 20, size=80)
    X = [np.cumsum(rng.normal(v, 2, size=(2, rng.integers(8, 20))), axis=1) for v in y]
    files = [tmp_path / f"{number}.parquet" for number in range(4)]
    for file, pair in zip(files, split(X, y), strict=True):
        write_parquet(file, *pair)
    model = regressor().fit_parts(tmp_path)
    read = [read_parquet(file) for file in files]
    assert_same(model, regressor().fit_parts([(part.sequences, part.labels) for part in read]))
    assert model.score(Sequences.concatenate([part.sequences for part in read]), y) > 0.8


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_of_joblib(backend):
    X, y = three_classes(200)
    parts = split(X, y)
    parts[2] = (parts[2][0], np.where(parts[2][1] == "up", "far up", parts[2][1]))  # known to one worker
    with joblib.parallel_config(backend, n_jobs=2):
        model = classifier().fit_parts(parts, on="joblib")
    expected = classifier().fit_parts(parts)
    assert model.classes_.tolist() == expected.classes_.tolist() == ["down", "far up", "level", "up"]
    assert_same(model, expected)


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_node():
    pytest.importorskip("ray")
    script = Path(__file__).with_name("ray_fit.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    apart, nodes, again = done.stdout.split()[-3:]
    assert float(apart) < 1e-6
    assert int(nodes) == 2
    assert int(again) >= 1  # what the lost node had


def test_without_a_connection_to_ray():
    ray = pytest.importorskip("ray")
    assert not ray.is_initialized()
    with pytest.raises(ValueError, match=r"`on='ray'` needs a connection, got none; call `ray\.init` first"):
        classifier().fit_parts(split(*three_classes(40)), on="ray")


def test_without_ray_the_line_that_installs_it_is_printed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"needs ray: pip install 'seq2tens\[ray\]'"):
        classifier().fit_parts(split(*three_classes(40)), on="ray")


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="`parts` must hold at least one part, got none"):
        classifier().fit_parts([])
    with pytest.raises(ValueError, match="`parts` must be a folder or an iterable of parts, got nowhere"):
        classifier().fit_parts("nowhere")
    with pytest.raises(ValueError, match=r"`parts` must be a folder of .npz or .parquet files, got "):
        classifier().fit_parts(tmp_path)
    with pytest.raises(ValueError, match="`on` must be 'here', 'joblib' or 'ray', got 'there'"):
        classifier().fit_parts([three_classes()], on="there")
