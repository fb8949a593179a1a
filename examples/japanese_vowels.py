"""Who is speaking? Train a classifier on recordings of nine speakers and compare it with published results.

The recordings are included in aeon, so nothing is downloaded.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from seq2tens import plots
from seq2tens.data import load_dataset
from seq2tens.estimators import FCNLS2TClassifier

# Accuracies on the same test set from the paper (Toth, Bonnier, Oberhauser, ICLR 2021); those of FCN, ResNet
# and LS2T are means of five runs.
PUBLISHED = {
    "MLSTM-FCN": 1.000,
    "FCN128-LS2T64-3": 0.994,
    "FCN64-LS2T64-3": 0.991,
    "FCN128": 0.990,
    "ResNet": 0.989,
    "LS2T64-3": 0.984,
    "AR kernel": 0.984,
    "MUSE": 0.976,
    "SMTS": 0.969,
    "1-NN DTW": 0.962,
    "mvARF": 0.959,
    "LPS": 0.951,
    "gRSF": 0.800,
}


def results(accuracy: float, seconds: float) -> Table:
    """A table of this run and the published results, best first."""
    table = Table("model", "accuracy", "", title="JapaneseVowels, 370 test recordings")
    ours = "FCN64-LS2T64-3, this run"
    rows = sorted({**PUBLISHED, ours: accuracy}.items(), key=lambda row: -row[1])
    for name, value in rows:
        source, style = (f"fit in {seconds:.0f} s", "bold") if name == ours else ("published", "")
        table.add_row(name, f"{value:.3f}", source, style=style)
    return table


def main(folder: str | Path = "demo", **settings: Any) -> float:
    """Train, print the table and write two figures to the folder; `settings` are those of the classifier."""
    train, test = load_dataset("JapaneseVowels")
    model = FCNLS2TClassifier(**{"random_state": 0, "progress": "auto", **settings})
    begin = time.perf_counter()
    model.fit(train.sequences, train.labels)
    seconds = time.perf_counter() - begin
    predicted = model.predict(test.sequences)
    accuracy = float((predicted == test.labels).mean())
    Console().print(results(accuracy, seconds))
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    plots.save(plots.learning_curves(model.history_), folder / "learning_curves.png")
    plots.save(
        plots.confusion_matrix(test.labels, predicted, model.classes_), folder / "confusion_matrix.png"
    )
    print(f"Figures: {folder / 'learning_curves.png'}, {folder / 'confusion_matrix.png'}")
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
