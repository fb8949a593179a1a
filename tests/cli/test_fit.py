"""`seq2tens fit`, and what it leaves behind."""

import json
import signal

import numpy as np
import pytest

from cli.shell import QUICK, done, refused, start, table
from seq2tens.data import load_dataset, read
from seq2tens.estimators import DeepLS2TClassifier, FCNLS2TClassifier, load


def predictions(path):
    """Ids, labels and probabilities of a written table."""
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return (
        [row[0] for row in rows],
        [row[1] for row in rows],
        np.array([row[2:] for row in rows], dtype=float),
    )


def test_the_shell_does_what_three_lines_of_python_do(tmp_path):
    options = ["--epochs", 2, "--set", "width=4", "--set", "fcn_width=8", "--seed", 3, "--progress", "silent"]
    done("fit", "JapaneseVowels", "--out", tmp_path / "model", *options)
    done("predict", tmp_path / "model", "JapaneseVowels", "--out", tmp_path / "p.csv")

    train, test = load_dataset("JapaneseVowels")
    model = FCNLS2TClassifier(epochs=2, width=4, fcn_width=8, random_state=3).fit(
        train.sequences, train.labels
    )
    expected = model.predict_proba(test.sequences)

    ids, labels, probabilities = predictions(tmp_path / "p.csv")
    np.testing.assert_array_equal(probabilities, expected)
    assert labels == model.predict(test.sequences).tolist()
    assert ids == [str(i) for i in range(len(test))]


def test_a_table_with_gaps_and_names(train, model):
    classifier = load(model)
    assert classifier.classes_.tolist() == ["fast, waves", "slow"]
    assert classifier.notes_["columns"]["channels"] == ["x", "y"]
    expected = FCNLS2TClassifier(epochs=2, width=4, fcn_width=4, depth=1, random_state=0)
    data = read(train)
    expected.fit(data.sequences, data.labels)
    np.testing.assert_array_equal(
        classifier.predict_proba(data.sequences), expected.predict_proba(data.sequences)
    )


def test_options_reach_the_classifier(train, tmp_path):
    out = tmp_path / "deep" / "er"
    shown = done(
        *["fit", train, "--model", "ls2t", "--out", out, "--epochs", 3, "--batch-size", 5],
        *["--learning-rate", 0.01, "--class-weight", "none", "--scaling", "none"],
        *["--validation-fraction", 0.25, "--set", "width=3", "--set", "weights=independent"],
        *["--set", "spatial_dropout=0", "--seed", 7, "--device", "cpu", "--progress", "silent"],
        *["--curves", tmp_path / "curves.svg"],
    )
    model = load(out)
    assert isinstance(model, DeepLS2TClassifier)
    found = model.get_params()
    expected = {
        "epochs": 3,
        "batch_size": 5,
        "learning_rate": 0.01,
        "class_weight": None,
        "scaling": None,
        "validation_fraction": 0.25,
        "width": 3,
        "weights": "independent",
        "spatial_dropout": 0.0,
        "random_state": 7,
        "device": "cpu",
        "recipe": "fast",
    }
    assert {name: found[name] for name in expected} == expected
    assert "validation_loss" in model.history_[0]
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    assert "training on 12 sequences of 1 to " in shown
    assert f"saved {out}\n" in shown


def test_a_model_without_epochs(train, tmp_path):
    done("fit", train, "--model", "random-ls2t", "--set", "n_blocks=2", "--out", tmp_path / "model")
    assert load(tmp_path / "model").n_blocks == 2
    assert "random-ls2t" in refused(
        "fit", train, "--model", "random-ls2t", "--epochs", 3, "--out", tmp_path / "other"
    )


def test_tuples_can_be_set(train, tmp_path):
    quick = ["--epochs", 1, "--progress", "silent"]
    done("fit", train, "--model", "resnet", "--out", tmp_path / "m", "--set", "widths=4,4", *quick)
    assert load(tmp_path / "m").widths == (4, 4)


def test_a_saved_model_is_replaced_only_if_so_asked(train, tmp_path):
    out = tmp_path / "model"
    done("fit", train, "--out", out, *QUICK)
    before = (out / "model.json").read_bytes()
    sentence = f"`--out` must be new, but {out} holds a model; `--force` replaces it"
    assert refused("fit", train, "--out", out, *QUICK) == sentence
    assert refused("fit", "nothing.csv", "--out", out, "--force").startswith("No such file")
    assert refused("fit", train, "--out", out, "--force", "--epochs", 0).startswith("`--epochs` must")
    assert (out / "model.json").read_bytes() == before
    for seed, option in ((1, "--force"), (2, "--overwrite")):  # the second is its older name
        done("fit", train, "--out", out, option, "--seed", seed, *QUICK)
        assert load(out).random_state == seed
    other = tmp_path / "papers"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    sentence = f"`--out` must be new, empty or a saved model, but {other} holds other files"
    assert refused("fit", train, "--out", other, "--force", *QUICK) == sentence
    assert (other / "thesis.txt").exists()


REFUSALS = {
    "`--model` must be one of fcn-ls2t, ls2t, fcn, resnet, random-ls2t, got 'lstm'; did you mean 'ls2t'?": [
        "--model",
        "lstm",
    ],
    "`--recipe` must be one of 'fast', 'paper', got 'slow'": ["--recipe", "slow"],
    "`--epochs` must be at least 1, got 0": ["--epochs", 0],
    "`--batch-size` must be at least 1, got -2": ["--batch-size", -2],
    "`--learning-rate` must lie in (0, inf), got -1.0": ["--learning-rate", -1],
    "`--validation-fraction` must lie in (0, 1), got 1.5": ["--validation-fraction", 1.5],
    "`--scaling` must be one of 'auto', 'channel', 'sequence', none, got 'big'": ["--scaling", "big"],
    "`--seed` must be at least 0, got -1": ["--seed", -1],
    "`--progress` must be one of 'auto', 'bar', 'lines', 'silent', got 'loud'": ["--progress", "loud"],
    "`--set width` must be at least 1, got 0": ["--set", "width=0"],
    "`--set width` must be of the type of its default 64, got 'wide'": ["--set", "width=wide"],
    "`--set weights` must be one of 'recursive', 'independent', 'symmetric', got 'odd'": [
        "--set",
        "weights=odd",
    ],
    "`--set` must be NAME=VALUE with a setting of fcn-ls2t (since_observed, devices, num_nodes, fcn_width, "
    "width, depth, order, weights, time_embedding, dropout, spatial_dropout), got 'epochs=3'; `--epochs` is "
    "an option of its own": ["--set", "epochs=3"],
    "`--set` must be NAME=VALUE with a setting of fcn-ls2t (since_observed, devices, num_nodes, fcn_width, "
    "width, depth, order, weights, time_embedding, dropout, spatial_dropout), got 'width'": [
        "--set",
        "width",
    ],
    "`--curves` must end in .png or .svg or .pdf, got c.bmp": ["--curves", "c.bmp"],
    "`--curves` must be in an existing folder, got no/where.png": ["--curves", "no/where.png"],
    "options of tables are for .csv, .csv.gz, .parquet files only, got UnitTest": ["--id-column", "who"],
    "`--split` must be one of 'train', 'test', got 'half'": ["--split", "half"],
}


@pytest.mark.parametrize(("sentence", "options"), REFUSALS.items(), ids=lambda value: str(value)[:30])
def test_options_out_of_range(sentence, options, tmp_path):
    assert refused("fit", "UnitTest", "--out", tmp_path / "m", *options) == sentence
    assert list(tmp_path.iterdir()) == []


def test_devices_that_are_not_there(train, tmp_path):
    sentence = refused("fit", train, "--out", tmp_path / "m", "--device", "abacus")
    assert sentence.startswith("`--device` 'abacus' cannot be used here: ")


def test_data_that_cannot_be_learned_from(train, tmp_path):
    def sentence(text, *options):
        path = tmp_path / "x.csv"
        path.write_text(text)
        return refused("fit", path, "--out", tmp_path / "m", *options).replace(f"{path}", "FILE")

    head = "id,time,x,label\n"
    assert sentence(head + "1,0,1,a\n2,0,1,a\n") == (
        "FILE must have at least two classes, got only 'a'; `--label-column` names another column of a table"
    )
    assert sentence("id,time,x\n1,0,1\n") == (
        "FILE: must have a column `label`, found id, time, x; `--label-column` names another"
    )
    assert sentence(head + "1,0,1,a\n", "--label-column", "who") == (
        "FILE: must have a column `who`, found id, time, x, label; `--label-column` names another"
    )
    assert sentence(head + "1,0,inf,a\n2,0,1,b\n") == "FILE, line 2: column `x` must be a number, got 'inf'"
    assert sentence(head + "1,0,1,a\n2,0\n") == "FILE, line 3: must have 4 cells like the header, got 2"
    assert sentence(head + "1,0,1,a\n2,0,1,b\n", "--split", "train") == (
        "`--split` is for data with a training and a test set, but FILE has one part"
    )
    target = tmp_path / "x.ts"
    target.write_text("@targetLabel true\n@data\n1,2:0.5\n1,2:1.5\n")
    assert refused("fit", target, "--out", tmp_path / "m", "--task", "classification") == (
        f"{target} must hold class labels, got continuous values such as 0.5; `--task regression` "
        "predicts numbers"
    )
    rows = "".join(f"{i},{step},1,a,{i * 0.37}\n" for i in range(30) for step in range(2))
    columns = ["--label-column", "target", "--channel-columns", "x", "--task", "classification"]
    assert sentence("id,time,x,label,target\n" + rows, *columns).startswith(
        "FILE must hold class labels, got continuous values such as 0.37"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused("fit", empty, "--out", tmp_path / "m").endswith(f"got the folder '{empty}'")
    assert refused("fit", tmp_path / "none.csv", "--out", tmp_path / "m") == (
        f"No such file or directory: {tmp_path / 'none.csv'}"
    )


def test_places_that_cannot_be_used_are_refused_before_training(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert refused("fit", "UnitTest", "--out", file) == f"`--out` must be a folder, got the file {file}"
    assert refused("fit", "UnitTest", "--out", file / "m").endswith(f": {file}")
    sentence = refused("fit", "UnitTest", "--out", tmp_path / "m", "--checkpoint", file)
    assert sentence == f"`--checkpoint` must be a folder, got the file {file}"


def test_a_checkpoint_of_another_run(train, tmp_path):
    run = ["fit", train, "--checkpoint", tmp_path / "state", *QUICK]
    done(*run, "--out", tmp_path / "a")
    sentence = refused(*run, "--out", tmp_path / "b", "--seed", 1)
    assert sentence.startswith(
        "`--checkpoint` must belong to the same run, but its seed is 0, this run's is 1"
    )
    assert not (tmp_path / "b").exists()
    done(*run, "--out", tmp_path / "b")
    one, other = (json.loads((tmp_path / name / "model.json").read_text()) for name in ("a", "b"))
    assert one["digest"]["model.safetensors"] == other["digest"]["model.safetensors"]


def interrupt(process, number=signal.SIGINT):
    """Send a signal as soon as an epoch is told of; the exit code, and what the process says last."""
    lines = iter(process.stderr.readline, "")
    assert any(line.startswith("epoch ") for line in lines)  # which channels were taken is told before
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr.splitlines()[-1]


SMALL = ["--set", "width=4", "--set", "fcn_width=4", "--set", "depth=1", "--progress", "lines"]


@pytest.mark.slow
def test_a_signal_saves_and_the_same_command_goes_on_to_the_same_model(tmp_path):
    data, state = table(tmp_path / "x.csv", n=40), tmp_path / "state"
    command = ["fit", data, "--epochs", 400, "--validation-fraction", 0.25, *SMALL]
    done_epochs = 0
    for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = start(*command, "--out", tmp_path / "cut", "--checkpoint", state)
        code, sentence = interrupt(process, number)
        assert code == expected
        newest = max(int(path.stem.removeprefix("epoch-")) for path in state.glob("epoch-*"))
        assert sentence == (
            f"seq2tens: interrupted; the same command resumes after epoch {newest}, which is saved in {state}"
        )
        assert done_epochs < newest < 400
        done_epochs = newest
        assert not (tmp_path / "cut").exists()
    silent = ["--progress", "silent"]
    done(*command, *silent, "--out", tmp_path / "cut", "--checkpoint", state)
    done(*command, *silent, "--out", tmp_path / "whole")
    cut, whole = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("cut", "whole"))
    assert cut == whole


@pytest.mark.slow
def test_ctrl_c_without_anything_saved(tmp_path):
    data = table(tmp_path / "x.csv", n=40)
    endless = ["--epochs", 10**6, "--progress", "lines"]
    assert interrupt(start("fit", data, "--out", tmp_path / "m", *endless)) == (
        130,
        "seq2tens: interrupted; nothing is saved (with `--checkpoint DIR` a fit can be resumed)",
    )
    assert not (tmp_path / "m").exists()
    assert interrupt(start("impute", data, "--out", tmp_path / "f.csv", *endless), signal.SIGTERM) == (
        143,
        "seq2tens: interrupted; nothing is written",
    )
    assert not (tmp_path / "f.csv").exists()
