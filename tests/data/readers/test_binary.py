"""The readers of `.npz`, `.mat` and `.parquet`, and what `read` does with a path."""

import pickle
import sys

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.sparse import coo_array

from seq2tens.data import Columns, ReadError, Split, read, read_mat, read_npz, read_parquet
from seq2tens.data.readers import _mat5

ARRAYS = {
    "X": np.arange(10, dtype=np.float32).reshape(5, 2),
    "offsets": np.array([0, 2, 3, 5]),
    "y": np.array([1, 0, 1]),
    "classes": np.array(["a", "b"]),
    "n_train": np.array(2),
}


def lists(labelled):
    return [sequence.tolist() for sequence in labelled.sequences]


def message(call):
    with pytest.raises(ReadError) as raised:
        call()
    return str(raised.value)


def test_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, **ARRAYS)
    split = read(path)
    assert isinstance(split, Split)
    assert lists(split.train) == [[[0, 1], [2, 3]], [[4, 5]]]
    assert lists(split.test) == [[[6, 7], [8, 9]]]
    assert split.train.labels.tolist() == ["b", "a"]
    assert split.train.sequences.values.dtype == np.float32


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"y": np.array([0, 2, 1])}, "`y` must lie in 0..1 (`classes`), got 2 at index 1"),
        ({"y": np.array([0, 1])}, "`labels` must have shape (sequences,) = (3,), got (2,)"),
        ({"y": np.array([0.5, 1, 1])}, "`y` must be integers, got dtype float64"),
        ({"n_train": np.array(4)}, "`n_train` must be an integer in 0..3, got 4"),
        ({"offsets": np.array([0, 3, 2, 5])}, "`offsets` must not decrease, got 2 after 3 at index 2"),
        (
            {"X": np.full((5, 2), np.inf)},
            "`values` must be finite, or NaN where missing, got inf at sequence 0, step 0, channel 0",
        ),
        ({"X": np.zeros((5, 2), int)}, "`values` must have a floating-point dtype, got int64"),
        (
            {"classes": np.array(["a", 1], dtype=object)},
            "must hold plain arrays only: Object arrays cannot be loaded when allow_pickle=False",
        ),
    ],
)
def test_malformed_npz(tmp_path, change, reason):
    path = tmp_path / "x.npz"
    np.savez(path, **{**ARRAYS, **change})
    assert message(lambda: read_npz(path)) == f"{path}: {reason}"


def test_npz_that_is_something_else(tmp_path):
    path = tmp_path / "x.npz"
    for content in (b"", pickle.dumps([1, 2]), b"\x93NUMPY"):
        path.write_bytes(content)
        assert (
            message(lambda: read_npz(path)) == f"{path}: must be a zip of arrays as `numpy.savez` writes it"
        )
    np.savez(path, X=ARRAYS["X"], offsets=ARRAYS["offsets"])
    expected = f"{path}: must hold the arrays X, offsets, y, classes, n_train, found X, offsets"
    assert message(lambda: read_npz(path)) == expected


def cells(*matrices):
    column = np.empty((len(matrices), 1), dtype=object)
    for i, matrix in enumerate(matrices):
        column[i, 0] = np.array(matrix)
    return column


MTS = {
    "train": cells([[1.0, 2, 3]], [[4.0]]).T,
    "trainlabels": np.array([[1.0], [2.0]]),
    "test": cells([[5.0, 6]]),
    "testlabels": np.array([[2]], dtype=np.uint8),
}


@pytest.mark.parametrize("compressed", [False, True])
def test_mat(tmp_path, compressed):
    path = tmp_path / "x.mat"
    savemat(path, {"mts": MTS}, do_compression=compressed)
    split = read(path)
    assert lists(split.train) == [[[1], [2], [3]], [[4]]]
    assert lists(split.test) == [[[5], [6]]]
    assert split.train.labels.tolist() == [1, 2]
    assert split.test.labels.dtype == np.int64


def test_mat_has_channels_before_time(tmp_path):
    path = tmp_path / "x.mat"
    matrix = np.arange(6.0).reshape(2, 3)
    savemat(path, {"mts": {**MTS, "train": cells(matrix, matrix), "test": cells(matrix)}})
    np.testing.assert_array_equal(next(iter(read_mat(path).train.sequences)), matrix.T)


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (
            {"a": np.zeros(2), "b": {"train": 1}},
            "must hold one struct with the fields train, trainlabels, test, testlabels; "
            "found a float64; b ('train',)",
        ),
        (
            {"mts": {**MTS, "train": np.zeros((2, 3))}},
            "`train` must be a cell of matrices, got float64 of shape (2, 3)",
        ),
        ({"mts": {**MTS, "test": cells("abc")}}, "`test` must hold matrices of numbers, got <U3 at cell 0"),
        ({"mts": {**MTS, "testlabels": [[0.5]]}}, "`testlabels` must hold integers, got float64 [0.5]"),
        (
            {"mts": {**MTS, "trainlabels": [[1, 2, 3]]}},
            "`labels` must have shape (sequences,) = (2,), got (3,)",
        ),
        (
            {"mts": {**MTS, "test": cells([[1.0], [2.0]])}},
            "`test` must have the 1 channels of `train`, got 2",
        ),
    ],
)
def test_malformed_mat(tmp_path, contents, reason):
    path = tmp_path / "x.mat"
    savemat(path, contents)
    assert message(lambda: read_mat(path)) == f"{path}: {reason}"


def test_mat_that_is_something_else(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"mts": MTS})
    whole = path.read_bytes()
    for content in (b"", b"MATLAB", b"x" * 400, whole[:200]):
        path.write_bytes(content)
        assert message(lambda: read_mat(path)).startswith(f"{path}: must be a MATLAB 5–7 file: ")
    # Bytes 124–125 are the version; 0x0200 is what MATLAB 7.3 writes before its HDF5 content.
    path.write_bytes(whole[:124] + b"\x00\x02" + whole[126:])
    expected = f"{path}: is a MATLAB 7.3 file (HDF5), which is not supported; save it with `-v7`"
    assert message(lambda: read_mat(path)) == expected


def test_parquet_without_pyarrow_tells_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError) as raised:
        read(tmp_path / "x.parquet")
    assert str(raised.value) == "reading .parquet files needs pyarrow: pip install pyarrow"


def write_parquet(path, **columns):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), path)
    return path


def test_parquet(tmp_path):
    path = write_parquet(
        tmp_path / "x.parquet",
        id=[7, 3, 7],
        time=[2, 0, 1],
        x=[1.0, None, 3.0],
        n=[1, 2, None],
        label=[5, 6, 5],
    )
    found = read(path)
    assert found.labels.tolist() == [5, 6]
    assert found.ids.tolist() == [7, 3]
    assert found.channels == ("x", "n")
    assert read(path, Columns(label="?", channels=("n",), label_optional=True)).labels is None
    assert found.sequences.times.tolist() == [1, 2, 0]
    np.testing.assert_array_equal(found.sequences.values, [[3, np.nan], [1, 1], [np.nan, 2]])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": [], "time": [], "x": [], "label": []}, "must have rows, got none"),
        (
            {"x": ["1", "b"]},
            "column `x` holds the number '1' as text; make it a column of numbers, or name it in "
            "`categories` "
            "if it is categorical",
        ),
        ({"time": [0.0, None]}, "row 1: column `time` must not be empty"),
        ({"id": [None, 1]}, "row 0: column `id` must not be empty"),
        (
            {"label": ["u", "v"]},
            "row 1: column `label` must be constant within an id, got 'v' after 'u' for id 1",
        ),
        (
            {"x": [1.0, float("inf")]},
            "`values` must be finite, or NaN where missing, got inf at sequence 0, step 1, channel 0",
        ),
    ],
)
def test_malformed_parquet(tmp_path, change, reason):
    columns = {"id": [1, 1], "time": [0, 1], "x": [1.0, 2.0], "label": ["u", "u"], **change}
    path = write_parquet(tmp_path / "x.parquet", **columns)
    assert message(lambda: read_parquet(path)) == f"{path}: {reason}"


def test_parquet_that_is_something_else(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no parquet at all")
    assert message(lambda: read_parquet(path)).startswith(f"{path}: must be a Parquet file: ")


def test_read_knows_the_suffix():
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        read("x.xlsx")
    assert str(raised.value) == (
        "`path` must end with one of .ts, .arff, .mat, .npz, .csv, .csv.gz, .parquet, got 'x.xlsx'; "
        "save the sheet as .csv, or pass `pandas.read_excel(…)` to `Sequences.from_frame`"
    )
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        read("x.ts", Columns())
    assert str(raised.value) == "`columns` is for .csv, .csv.gz, .parquet files only, got it with 'x.ts'"


@pytest.mark.parametrize("name", ["x.ts", "x.arff", "x.mat", "x.npz", "x.csv"])
def test_missing_files(tmp_path, name):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / name)


def test_mat_beside_scipy(tmp_path):
    path = tmp_path / "x.mat"
    rng = np.random.default_rng(0)
    numbers = {
        f"n_{dtype}": rng.integers(0, 100, size=(2, 3, 2)).astype(dtype)
        for dtype in ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "bool")
    }
    others = {"empty": np.zeros((0, 3)), "one": 7.0, "text": "abc", "none": "", "cell": cells([1], [[2, 3]])}
    unused = {"sparse": coo_array(np.eye(3)), "complex": np.array([1j])}
    savemat(path, {"mts": MTS, **numbers, **others, **unused}, do_compression=True)
    found, expected = _mat5.parse(path.read_bytes(), 2**20), loadmat(path)
    for name in (*numbers, "empty", "one"):
        assert found[name].dtype == (bool if name == "n_bool" else expected[name].dtype)
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    assert found["text"] == "abc"
    assert [matrix.tolist() for matrix in found["cell"].ravel()] == [[[1]], [[2, 3]]]
    assert [found[name].size for name in unused] == [0, 0]
    assert isinstance(read(path), Split)
