"""Several processes that train on one batch: the result is that of one process."""

import pytest
import torch

from distributed.fits import RECIPES, different_data, norm_errors, train, trained_together
from distributed.processes import together
from seq2tens.estimators import FCNLS2TClassifier

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("ranks", [2, 4])
def test_statistics_are_those_of_all_rows(ranks):
    for errors in together(norm_errors, ranks):
        assert {key: error for key, error in errors.items() if error > 1e-9} == {}


@pytest.mark.parametrize("ranks", [2, 3])
def test_training_is_that_of_one_process(ranks, tmp_path):
    results = together(trained_together, ranks, tmp_path)
    for name in RECIPES:
        expected, expected_rows = train(name)
        for result in results:
            weights, rows = result[name]
            assert rows == results[0][name][1]
            assert len(rows) == len(expected_rows)
            for row, wanted in zip(rows, expected_rows, strict=True):
                assert row == pytest.approx(wanted, rel=1e-9), name
            for key, tensor in expected.items():
                torch.testing.assert_close(
                    torch.from_numpy(weights[key]),
                    tensor,
                    rtol=0,
                    atol=1e-8,
                    msg=lambda text, place=(name, key): f"{place}: {text}",
                )
    # patience has ended that run, on all processes in the same epoch
    assert len(train("average and patience")[1]) < RECIPES["average and patience"]["epochs"]


def test_processes_with_different_data_are_told():
    for message in together(different_data, 2):
        assert message == (
            "all processes must be given the same data and arguments, but process 1 is not: "
            "its n_train is 20, that of process 0 is 21"
        )


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ({"devices": 0}, {}, "`devices` must be at least 1, got 0"),
        ({"num_nodes": 0}, {}, "`num_nodes` must be at least 1, got 0"),
        ({"devices": 2}, {}, r"start the script with `torchrun --nproc-per-node 2 SCRIPT`, got a single"),
        ({"devices": 2, "num_nodes": 3}, {}, "torchrun --nnodes 3 .*--nproc-per-node 2 SCRIPT"),
        (
            {"devices": 2},
            {"LOCAL_RANK": "0", "WORLD_SIZE": "3"},
            "must be the number of processes, 3, got 2 · 1 = 2",
        ),
    ],
)
def test_processes_must_have_been_started(options, environment, message, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    X, y = torch.randn(4, 1, 5).numpy(), [0, 1, 0, 1]
    with pytest.raises(ValueError, match=message):
        FCNLS2TClassifier(**options).fit(X, y)
