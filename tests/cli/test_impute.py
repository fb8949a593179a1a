"""`seq2tens impute`."""

import csv
import sys

import numpy as np
import pytest

from cli.shell import done, refused, run, table
from seq2tens.data import Columns, held_out, load_dataset, read
from seq2tens.estimators import GPVAEImputer, LinearImputer, LS2TImputer, imputation_report

SIZES = {"latent": 2, "encoder_sizes": (4, 4), "decoder_sizes": (4,), "n_draws": 10}
QUICK = [
    "--epochs",
    2,
    "--progress",
    "silent",
    *(part for name, value in SIZES.items() for part in ("--set", f"{name}={value}")),
]


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A long table with labels and missing cells."""
    return table(tmp_path_factory.mktemp("data") / "x.csv")


def test_missing_cells_are_filled_and_all_others_written_as_read(data, tmp_path):
    out = tmp_path / "filled.csv"
    shown = done("impute", data, "--model", "linear", "--out", out)
    given, filled = read(data), read(out)
    missing = np.isnan(given.sequences.values)
    assert (
        f"12 sequences of 1 to 8 steps, 2 channels, {missing.sum()} of {missing.size} values missing\n"
        in shown
    )
    assert shown.endswith(f"saved {out}\n")
    assert rows(out)[0] == rows(data)[0] == ["id", "time", "x", "y", "label"]
    assert (given.sequences.values[~missing] == filled.sequences.values[~missing]).all()
    assert (given.sequences.times == filled.sequences.times).all()
    assert given.ids.tolist() == filled.ids.tolist()
    assert given.labels.tolist() == filled.labels.tolist()
    expected = LinearImputer().fit(given.sequences).transform(given.sequences)
    assert np.array_equal(filled.sequences.values, expected.values)


def test_the_shell_does_what_python_does(data, tmp_path):
    sequences = read(data).sequences
    model = GPVAEImputer(**SIZES, encoder="conv", epochs=2, random_state=3).fit(sequences)
    command = ["impute", data, "--model", "gp-vae", "--encoder", "conv", "--seed", 3, *QUICK]
    done(*command, "--out", tmp_path / "filled.csv")
    assert np.array_equal(read(tmp_path / "filled.csv").sequences.values, model.transform(sequences).values)
    done(*command, "--interval", 0.8, "--out", tmp_path / "interval.csv")
    header, *body = rows(tmp_path / "interval.csv")
    assert header == ["id", "time", "x", "y", "x_low", "x_high", "y_low", "y_high", "label"]
    low, high = model.predict_interval(sequences, 0.8)
    found = np.array([row[4:8] for row in body], dtype=float)
    assert np.array_equal(found[:, [0, 2]], low.values)
    assert np.array_equal(found[:, [1, 3]], high.values)
    done(*command, "--samples", 2, "--out", tmp_path / "samples.csv")
    header, *body = rows(tmp_path / "samples.csv")
    assert header == ["id", "time", "sample", "x", "y", "label"]
    assert [row[2] for row in body] == ["0"] * len(sequences.values) + ["1"] * len(sequences.values)
    draws = np.array([row[3:5] for row in body], dtype=float)
    copies = model.sample(sequences, 2, random_state=3)
    assert np.array_equal(draws, np.concatenate([copy.values for copy in copies]))


def test_what_errs_less_is_chosen(tmp_path):
    steps, lines = np.arange(30), ["id,time,x"]
    for i in range(24):
        values = np.sin(0.5 * steps + i)
        cells = ["" if (i + s) % 5 == 0 else repr(float(value)) for s, value in enumerate(values)]
        lines += [f"{i},{s},{cell}" for s, cell in enumerate(cells)]
    data, out = tmp_path / "waves.csv", tmp_path / "filled.csv"
    data.write_text("\n".join(lines) + "\n")
    X = read(data, Columns(label=None)).sequences
    small = {"width": 8, "functionals": 4, "depth": 1, "hide": "points"}
    chosen = []
    for epochs in (1, 60):  # too few for a network to learn, and enough
        quick = ["--epochs", epochs, "--progress", "silent", *(f"--set={k}={v}" for k, v in small.items())]
        shown = run("impute", data, "--out", out, "--force", *quick)
        told = next(line for line in shown.stderr.splitlines() if "is used" in line)
        model = LS2TImputer(**small, epochs=epochs, random_state=0).fit(X)
        errors = model.held_out_errors_
        assert f": ls2t {errors['ls2t']:.3f}, linear {errors['linear']:.3f}" in told
        chosen.append(told.split()[1])
        model = model if chosen[-1] == "ls2t" else LinearImputer().fit(X)
        assert np.array_equal(read(out, Columns(label=None)).sequences.values, model.transform(X).values)
    assert chosen == ["linear", "ls2t"]


def test_nothing_to_compare_on(tmp_path):
    (tmp_path / "x.csv").write_text("id,time,x\na,0,\na,1,\n")
    shown = run("impute", tmp_path / "x.csv", "--out", tmp_path / "filled.csv", "--epochs", 1)
    assert "no value could be hidden to compare models; linear is used" in shown.stderr


def test_a_picture_and_a_report(data, tmp_path):
    out, picture, report = (tmp_path / name for name in ("filled.csv", "filled.svg", "errors.csv"))
    done("impute", data, "--model", "linear", "--out", out, "--picture", picture, "--report", report)
    assert picture.read_text().startswith("<?xml")
    truth = read(data)
    given = truth.sequences.with_values(held_out(truth.sequences.values, 0.1, np.random.default_rng(0))[0])
    expected = imputation_report(LinearImputer().fit(given), given, truth.sequences, channels=truth.channels)
    header, *body = rows(report)
    assert header == list(expected.columns)
    assert [row[0] for row in body] == expected.columns["channel"].tolist()
    np.testing.assert_array_equal([float(row[4]) for row in body], expected.columns["scaled_error"])
    told = refused("impute", data, "--out", out, "--force", "--picture", tmp_path / "x.txt")
    assert told.startswith("`--picture` must end in .png or .svg or .pdf")


def test_parquet_holds_the_same_as_csv(data, tmp_path):
    pytest.importorskip("pyarrow")
    for suffix in ("csv", "parquet"):
        done("impute", data, "--model", "mean", "--out", tmp_path / f"filled.{suffix}")
    csv_file, parquet = read(tmp_path / "filled.csv"), read(tmp_path / "filled.parquet")
    assert np.array_equal(csv_file.sequences.values, parquet.sequences.values)
    assert csv_file.labels.tolist() == parquet.labels.tolist()
    done("impute", tmp_path / "filled.parquet", "--model", "mean", "--out", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "filled.csv").read_bytes()


def test_files_without_names_and_times(tmp_path):
    (tmp_path / "x.ts").write_text("@classLabel true A b\n@data\n1,?,0:3,4,1:A\n2,0:4,?:b\n")
    done("impute", tmp_path / "x.ts", "--model", "forward", "--out", tmp_path / "filled.csv")
    header, *body = rows(tmp_path / "filled.csv")
    assert header == ["id", "time", "channel_0", "channel_1", "label"]
    assert body[:2] == [["0", "0", "1.0", "3.0", "A"], ["0", "1", "1.0", "4.0", "A"]]
    assert body[4] == ["1", "1", "0.0", "4.0", "b"]


def test_columns_keep_the_names_they_have(data, tmp_path):
    text = data.read_text().replace("id,time,x,y,label", "who,when,x,y,class")
    (tmp_path / "x.csv").write_text(text)
    names = ["--id-column", "who", "--time-column", "when", "--label-column", "class"]
    done("impute", tmp_path / "x.csv", "--model", "mean", "--out", tmp_path / "filled.csv", *names)
    assert rows(tmp_path / "filled.csv")[0] == ["who", "when", "x", "y", "class"]
    (tmp_path / "y.csv").write_text("id,time,x\na,0,1\na,1,\n")
    done("impute", tmp_path / "y.csv", "--model", "mean", "--out", tmp_path / "filled.csv", "--force")
    assert rows(tmp_path / "filled.csv") == [["id", "time", "x"], ["a", "0.0", "1.0"], ["a", "1.0", "1.0"]]


def test_the_test_half_is_filled_by_what_the_training_half_taught(tmp_path):
    command = ["impute", "JapaneseVowels", "--model", "mean", "--split", "test"]
    shown = done(*command, "--out", tmp_path / "filled.csv")
    train, test = load_dataset("JapaneseVowels")
    assert f"training on {len(train)} sequences" in shown
    found = read(tmp_path / "filled.csv", Columns()).sequences
    assert np.array_equal(found.values, test.sequences.values)


def test_refusals_leave_an_old_table_alone(data, tmp_path):
    out = tmp_path / "filled.csv"
    out.write_text("old")

    def sentence(*arguments, file=data):
        told = refused("impute", file, "--out", out, "--force", *arguments)
        assert out.read_text() == "old"
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
        return told

    assert sentence("--model", "magic").startswith("`--model` must be one of auto, ls2t, gp-vae, hi-vae,")
    assert sentence("--model", "mean", "--encoder", "conv") == (
        "`--encoder` is not an option of the model mean, but of gp-vae"
    )
    assert sentence("--model", "gp-vae", "--encoder", "x", *QUICK).startswith("`--encoder` must be one of")
    assert sentence("--samples", 0) == "`--samples` must be at least 1, got 0"
    assert sentence("--interval", 1) == "`--interval` must lie in (0, 1), got 1.0"
    assert "only one of `--samples` and `--interval`" in sentence("--interval", 0.5, "--samples", 2)
    assert "`--split`" in sentence("--split", "test", "--model", "mean")
    assert "x.txt" in sentence("--model", "mean", file=tmp_path / "x.txt")
    (tmp_path / "twice.csv").write_text("id,time,x,x_low\na,0,1,2\na,1,,2\n")
    told = sentence("--model", "mean", "--interval", 0.5, file=tmp_path / "twice.csv")
    assert told == "the table would have two columns 'x_low'; rename the column of DATA"
    told = refused("impute", data, "--model", "mean", "--out", tmp_path / "filled.txt")
    assert told == f"`--out` must end in .csv or .parquet, got {tmp_path / 'filled.txt'}"


def test_an_extra_that_is_not_there_is_named(data, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "pypots"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pypots", None)
    told = refused("impute", data, "--model", "brits", "--out", tmp_path / "filled.csv")
    assert told == "BRITSImputer needs PyPOTS: pip install 'seq2tens[baselines]'"
