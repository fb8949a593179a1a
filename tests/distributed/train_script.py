"""A script as a user writes it, for several processes: python train_script.py FOLDER PROCESSES."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch

from seq2tens.estimators import FCNLS2TClassifier
from seq2tens.training import Checkpoints

EPOCHS = 20


def data():
    rng = np.random.default_rng(0)
    y = np.arange(27) % 3
    return [rng.normal(size=(2, rng.integers(10, 20))) + label for label in y], y


def make(folder, devices):
    return FCNLS2TClassifier(
        width=4,
        fcn_width=4,
        depth=2,
        epochs=EPOCHS,
        batch_size=8,
        random_state=0,
        device="cpu",
        devices=devices,
        checkpoint=Checkpoints(folder / "checkpoint", seconds=0),
        progress="lines",
    )


def main(folder, devices):
    torch.set_num_threads(1)
    rank = os.environ["LOCAL_RANK"]
    (folder / f"process-{rank}").write_text(str(os.getpid()))
    X, y = data()
    model = make(folder, devices).fit(X, y)
    model.save(folder / "model")
    weights = {name: tensor.tolist() for name, tensor in model.network_.state_dict().items()}
    found = {"weights": weights, "predicted": model.predict(X).tolist(), "history": len(model.history_)}
    (folder / f"result-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
