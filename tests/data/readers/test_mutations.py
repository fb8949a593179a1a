"""Broken files: the data that was there or one sentence that names the file, and nothing else."""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from data.datasets.stays import NAMES, pack
from data.readers.mutations import mutations
from data.readers.test_binary import ARRAYS, MTS
from seq2tens.data import Labelled, ReadError, Split, physionet2012, read

TABLE = pd.DataFrame(
    {"id": [1, 1, 2, 2], "time": [0, 1, 0, 1], "x": [0.5, np.nan, 2, 3], "label": ["a", "a", "b", "b"]}
)
TS = "@problemName x\n@classLabel true a b\n@data\n1,2,3:4,5,?:a\n1,2:3,4:b\n"
ARFF = "@relation x\n@attribute t0 real\n@attribute t1 real\n@attribute c {a,b}\n@data\n1,2,a\n3,?,b\n"


def written(save):
    file = io.BytesIO()
    save(file)
    return file.getvalue()


CHECKED = {
    ".npz": written(lambda file: np.savez_compressed(file, **ARRAYS)),
    ".mat": written(lambda file: savemat(file, {"mts": MTS}, do_compression=True)),
    ".csv.gz": gzip.compress(TABLE.to_csv(index=False).encode(), mtime=0),
}
UNCHECKED = {
    ".mat": written(lambda file: savemat(file, {"mts": MTS})),
    ".parquet": written(TABLE.to_parquet),
    ".csv": TABLE.to_csv(index=False).encode(),
    ".ts": TS.encode(),
    ".arff": ARFF.encode(),
}


def outcome(path, content, load=read):
    """What is read of these bytes, or the error that refuses them."""
    path.write_bytes(content)
    try:
        return load(path)
    except ReadError as error:
        return error


def outcomes(path, content, n=240, load=read):
    """What becomes of broken copies: what is read, and that all others are refused by name."""
    found = [outcome(path, broken, load) for broken in mutations(content, n)]
    refused = [one for one in found if isinstance(one, ReadError)]
    assert len(refused) > n / 6
    assert all(str(error).startswith(str(path)) for error in refused)
    return [one for one in found if not isinstance(one, ReadError)]


def contents(found):
    """Values, offsets and labels."""
    halves = found if isinstance(found, Split) else [found]
    return [
        str(part) for half in halves for part in (half.sequences.values, half.sequences.offsets, half.labels)
    ]


@pytest.mark.parametrize("suffix", CHECKED)
def test_files_with_checksums_give_the_same_or_are_refused(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    whole = contents(outcome(path, CHECKED[suffix]))
    found = outcomes(path, CHECKED[suffix])
    assert found
    assert all(contents(one) == whole for one in found)


@pytest.mark.filterwarnings("ignore:column `x` is read as a channel")
@pytest.mark.parametrize("suffix", UNCHECKED)
def test_other_files_are_read_or_refused(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    assert isinstance(outcome(path, UNCHECKED[suffix]), Labelled | Split)
    assert all(isinstance(one, Labelled | Split) for one in outcomes(path, UNCHECKED[suffix]))


def test_packed_stays_are_the_same_or_refused(tmp_path):
    rows = [
        (7, 0, "Age", 60.0),
        (7, 5, "HR", 61.0),
        (7, 9, "Temp", 37.5),
        (8, 0, "Age", 50.0),
        (8, 1, "HR", 90.0),
    ]
    pack(tmp_path, "a", rows, {7: 0, 8: 1})
    path = tmp_path / "physionet_a.npz"

    def load(_):
        return physionet2012.load_set("a", tmp_path).stays

    whole = contents(load(path))
    assert all(contents(one) == whole for one in outcomes(path, path.read_bytes(), load=load))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"param": [-1, 0]}, f"`param` must lie in 0..{len(NAMES) - 1} (physionet_params.txt), got -1"),
        ({"minute": [0, -5]}, "`minute` must lie in 0..999999, got -5"),
        ({"minute": [0, 10**6]}, "`minute` must lie in 0..999999, got 1000000"),
        ({"minute": [0.5, 1]}, "`minute` must be integers, got dtype float64"),
        ({"minute": [0]}, "`minute` must have shape (entries,) = (2,), got (1,)"),
        ({"value": ["a", "b"]}, "`value` must hold real numbers, got dtype <U1"),
        ({"outcomes": [[7, 0]]}, "`outcomes` must have 6 columns, got shape (1, 2)"),
        ({"outcomes": [[7, 6, 1, 5, -1, -1]]}, "`outcomes` must lie in 0..1, got -1"),
    ],
)
def test_packed_stays_with_numbers_that_cannot_be(tmp_path, change, reason):
    pack(tmp_path, "a", [(7, 0, "Age", 60.0), (7, 5, "HR", 61.0)], {7: 0})
    path = tmp_path / "physionet_a.npz"
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, **change})
    with pytest.raises(ReadError) as raised:
        physionet2012.load_set("a", tmp_path)
    assert str(raised.value) == f"{path}: {reason}"


def member(path, name, content):
    """Put other bytes in place of an array of a packed file."""
    np.savez(path, **{key: array for key, array in ARRAYS.items() if key != name})
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        for part in content:
            file.write(part)


def header(shape):
    return written(
        lambda file: np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
    )


def test_a_header_of_more_than_there_is(tmp_path):
    path = tmp_path / "x.npz"
    member(path, "X", [header((2**40, 2))])
    with pytest.raises(ReadError, match=r"an array of shape \(1099511627776, 2\) .* must not have 0 bytes"):
        read(path)


def test_a_small_file_of_very_many_zeros(tmp_path):
    path = tmp_path / "x.npz"
    zeros = bytes(2**20)
    member(path, "X", [header((2**23, 2)), *[zeros] * 128])
    assert path.stat().st_size < 2**19
    with pytest.raises(ReadError, match="must not claim more than 200 times its size, got 1342"):
        read(path)


def test_what_is_not_asked_for_is_not_unpacked(tmp_path):
    path = tmp_path / "x.npz"
    member(path, "more", [b"no array at all"])
    assert isinstance(read(path), Split)


def test_a_small_mat_of_very_many_zeros(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"zeros": np.zeros(2**24)}, do_compression=True)
    with pytest.raises(ReadError, match="must be a MATLAB 5–7 file: it unpacks to implausibly many bytes"):
        read(path)


def test_a_small_parquet_of_very_many_rows(tmp_path):
    path = tmp_path / "x.parquet"
    n = 3 * 10**6
    columns = {"id": np.zeros(n, np.int8), "time": np.zeros(n, np.int8), "x": np.zeros(n, np.int8)}
    pd.DataFrame({**columns, "label": np.zeros(n, np.int8)}).to_parquet(path)
    with pytest.raises(ReadError, match="must not claim more than 200 times its size, got 96000000 bytes"):
        read(path)
