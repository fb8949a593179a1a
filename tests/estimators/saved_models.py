"""Small models of every kind, and what they say; those in `fixtures` must be loadable by every later version.

`python tests/estimators/saved_models.py NAME` trains them and writes `fixtures/NAME`, a folder for each kind
and `expected.json` with what it says of `inputs()`. It is run once for each format of saved models, by the
version that brought it; what was written is never changed.
"""

import json
import sys
from pathlib import Path

import numpy as np

from estimator_contract import problem, with_gaps
from seq2tens import estimators
from seq2tens.training import OneCycle, Recipe

FIXTURES = Path(__file__).parent / "fixtures"
NETWORK = {"epochs": 2, "random_state": 0, "device": "cpu"}
LATENT = {**NETWORK, "latent": 2, "encoder_sizes": (4, 4), "decoder_sizes": (4, 4), "window": 3}
MODELS = {
    "DeepLS2TClassifier": {"width": 3, "depth": 2, **NETWORK},
    "FCNLS2TClassifier": {"width": 3, "fcn_width": 4, "depth": 1, **NETWORK},
    "FCNClassifier": {"width": 3, **NETWORK, "recipe": Recipe(epochs=2, batch_size=4, schedule=OneCycle())},
    "ResNetClassifier": {"widths": (3, 2), **NETWORK, "class_weight": {"up": 2.0, "down": 1.0}},
    "RandomLS2TClassifier": {"n_blocks": 1, "order": 2, "random_state": 0},
    "RandomLS2TRegressor": {"n_blocks": 1, "order": 2, "random_state": 0},
    "RandomLS2TFeatures": {"n_blocks": 1, "order": 2, "random_state": 0},
    "LS2TFeatures": {"width": 3, "order": 2, "random_state": 0},
    "Seq2TensFeatures": {"order": 2},
    "MeanImputer": {},
    "ForwardImputer": {},
    "LinearImputer": {},
    "VAEImputer": LATENT,
    "HIVAEImputer": LATENT,
    "GPVAEImputer": LATENT,
}


def inputs():
    """Sequences that no model was trained on."""
    return with_gaps(problem(n=4, seed=7)[0], seed=8)


def fitted(name):
    """A small model."""
    X, y = problem(n=12)
    labels = np.linspace(-1, 1, len(y)) if name.endswith("Regressor") else y
    return getattr(estimators, name)(**MODELS[name]).fit(with_gaps(X), labels)


def said(model):
    """What a model says of the sequences, as one row of numbers."""
    if hasattr(model, "predict_proba"):
        answer = model.predict_proba(inputs())
    elif hasattr(model, "transform"):
        answer = model.transform(inputs())
    else:
        answer = model.predict(inputs())
    return np.concatenate([np.ravel(part) for part in answer])


def write(folder):
    """Train and save all."""
    expected = {}
    for name in MODELS:
        model = fitted(name)
        model.save(folder / name, notes={"kind": name})
        expected[name] = said(model).tolist()
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    write(FIXTURES / sys.argv[1])
