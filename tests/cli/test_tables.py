"""People's tables in the shell: other separators, words, dates, folders."""

import numpy as np
import pandas as pd
import pytest

from cli.shell import done, refused, run

MODEL = ("--model", "random-ls2t", "--set", "n_blocks=2", "--progress", "silent")
WORDS = ("--category-columns", "gait", "--time-unit", "min")


def walks(n=12, steps=5):
    rng = np.random.default_rng(0)
    label = np.repeat(np.where(np.arange(n) % 2, "old", "young"), steps)
    return pd.DataFrame(
        {
            "ID": np.repeat(np.arange(n), steps),
            "Time": pd.Timestamp("2024-05-01") + pd.to_timedelta(np.tile(np.arange(steps), n), unit="min"),
            "speed": rng.normal(np.where(label == "old", 3.0, 6.0)).round(3),
            "gait": rng.choice(["walk", "run"], size=n * steps),
            "age": np.where(label == "old", 70, 30) + np.repeat(np.arange(n), steps),
            "Label": label,
        }
    )


def test_a_table_of_another_country(tmp_path):
    """The model finds columns and categories again; the shell tells what was guessed."""
    train, test = tmp_path / "train.csv", tmp_path / "test.csv.gz"
    walks().to_csv(train, sep=";", decimal=",", index=False)
    walks().assign(gait="swim").drop(columns="Label").to_csv(test, index=False)
    told = run("fit", train, "--out", tmp_path / "model", *MODEL, *WORDS, "--static-columns", "age").stderr
    assert "seq2tens: cells are separated by ';', and decimals written with commas\n" in told
    assert "seq2tens: channels are speed, gait=run, gait=walk;" in told
    done("predict", tmp_path / "model", test, "--out", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 12
    shown = done("info", train, "--separator", ";", "--decimal", ",", *WORDS, "--static-columns", "age")
    assert "3 (speed, gait=run, gait=walk)" in shown


def test_words_cannot_be_streamed(tmp_path):
    path = tmp_path / "x.csv"
    walks().to_csv(path, index=False)
    network = ("--model", "fcn", "--epochs", "1", "--scaling", "channel", "--progress", "silent")
    done("fit", path, "--out", tmp_path / "model", *network, *WORDS, "--channel-columns", "speed,gait")
    assert refused("stream", tmp_path / "model") == (
        "the model was trained on the categorical column `gait`, which a stream cannot read"
    )


def test_the_shell_is_the_library(tmp_path):
    from seq2tens.data import Columns, read
    from seq2tens.estimators import RandomLS2TClassifier

    path = tmp_path / "x.csv"
    walks().to_csv(path, index=False)
    done("fit", path, "--out", tmp_path / "model", *MODEL, *WORDS, "--channel-columns", "speed,gait")
    done("predict", tmp_path / "model", path, "--out", tmp_path / "p.csv")
    columns = Columns(channels=("speed", "gait"), categories=("gait",), unit="min")
    table = read(path, columns)
    expected = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(table).predict_proba(table)
    found = pd.read_csv(tmp_path / "p.csv", float_precision="round_trip")[
        ["probability_old", "probability_young"]
    ].to_numpy()
    np.testing.assert_array_equal(found, expected)


def test_a_folder_of_tables(tmp_path):
    for key, part in walks().groupby("ID"):
        folder = tmp_path / "walks" / part["Label"].iloc[0]
        folder.mkdir(parents=True, exist_ok=True)
        part[["Time", "speed"]].to_csv(folder / f"{key}.csv", index=False)
    shown = done("info", tmp_path / "walks")
    assert "12" in shown
    assert "old (6), young (6)" in shown
    done("fit", tmp_path / "walks", "--out", tmp_path / "model", *MODEL)
    done("predict", tmp_path / "model", tmp_path / "walks", "--out", tmp_path / "p.csv")
    assert sorted(pd.read_csv(tmp_path / "p.csv")["id"]) == list(range(12))
    assert "RandomLS2TClassifier" in done("info", tmp_path / "model")


def test_rows_are_steps_without_a_time(tmp_path):
    path = tmp_path / "x.csv"
    walks()[["ID", "speed", "Label"]].to_csv(path, index=False)
    told = run("info", path).stderr.splitlines()
    assert told[0] == "seq2tens: there is no column `time`, so the steps are in the order of the rows"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            (),
            "line 2: column `gait` must be a number (`--category-columns` names columns of strings), "
            "got 'run'",
        ),
        (
            ("--time-unit", "week"),
            "`--time-unit` must be one of 'ns', 'us', 'ms', 's', 'min', 'h', 'd', got 'week'",
        ),
        (("--separator", "ab"), "`--separator` must be one character, such as ',', ';' or '\\t', got 'ab'"),
        (("--decimal", ","), "`--decimal` must differ from `--separator`, got ',' for both"),
        (
            ("--id-column", "who"),
            "must have a column `who`, found ID, Time, speed, gait, age, Label; `--id-column` names another",
        ),
        (
            ("--category-columns", "shoe"),
            "must have a channel or static feature `shoe` to read as categories, found none",
        ),
        (
            (*WORDS, "--static-columns", "speed"),
            "line 3: column `speed` must be constant within an id to be static, got another value",
        ),
    ],
)
def test_refusals(tmp_path, arguments, sentence):
    path = tmp_path / "x.csv"
    walks().assign(gait="run").to_csv(path, index=False)
    assert refused("info", path, *arguments).endswith(sentence)


def test_sheets_are_refused_with_a_hint(tmp_path):
    path = tmp_path / "x.xlsx"
    path.write_bytes(b"PK")
    assert refused("info", path).endswith(f"got the file '{path}'; save the sheet as .csv")
    assert refused("info", "UnitTest", "--separator", ";") == (
        "options of tables are for .csv, .csv.gz, .parquet files only, got UnitTest"
    )
