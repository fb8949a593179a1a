"""Finished cells of the mortality experiment as the runner writes them, made up."""

from seq2tens.experiments.mortality.table import MortalityRow

VERSIONS = "python 3.11.7; torch 2.13.0; aeon 1.6.0; seq2tens 0.1.0"


def row(cell, **others):
    """What is not said is made up, always in the same way."""
    final = cell.purpose == "final"
    made_up = {
        "key": cell.key,
        "model": cell.model,
        "settings": cell.settings,
        "seed": cell.seed,
        "purpose": cell.purpose,
        "epoch_limit": cell.epoch_limit,
        "recipe": cell.recipe,
        "split": cell.split,
        "validation_accuracy": 0.8,
        "validation_auprc": 0.5,
        "validation_auroc": 0.85,
        "test_accuracy": 0.81 if final else None,
        "test_auprc": 0.53 if final else None,
        "test_auroc": 0.86 if final else None,
        "threshold": 0.6,
        "test_accuracy_at_threshold": 0.86 if final else None,
        "epochs": min(cell.epoch_limit, 71),
        "best_epoch": min(cell.epoch_limit, 21),
        "stopped": "patience" if cell.epoch_limit > 71 else "epochs",
        "parameters": 1_420_610,
        "prepare_seconds": 9.5,
        "fit_seconds": 3600.0,
        "epoch_seconds": 50.0,
        "predict_seconds": 8.0 if final else None,
        "peak_mib": 2500.0,
        "threads": 1,
        "n_train": 7671,
        "n_validation": 1917,
        "n_test": 2400 if final else None,
        "versions": VERSIONS,
        "commit": "0d29f27",
        "finished": "2026-01-01T12:00:00+00:00",
    }
    return MortalityRow(**{**made_up, **others})
