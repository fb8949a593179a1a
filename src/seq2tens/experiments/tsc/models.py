"""The models of the classification experiment by name; estimators are imported when they are created."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

# Arguments: seed, recipe, threads.
Factory = Callable[[int, str, int], Any]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the experiment.

    Args:
        name: its name in the results table.
        label: its name in figures and on pages.
        make: creates an estimator from a seed, a recipe and a number of threads.
        published: its name in the paper's table; None if the paper does not have it.
        trained: whether it is trained in epochs, by a recipe.
        seeded: whether the seed matters.
        compiled: whether code is compiled at first use, which is not included in the times.
        equal_lengths: whether it needs equal lengths; series are padded with zeros at the end.
        shortest: the minimum length; shorter series are padded likewise.
    """

    name: str
    label: str
    make: Factory
    published: str | None = None
    trained: bool = False
    seeded: bool = True
    compiled: bool = False
    equal_lengths: bool = False
    shortest: int = 1


def _make(path: str, options: dict[str, Any], seed: int, recipe: str, threads: int) -> Any:
    """Create the estimator with this import path; it gets those arguments that it accepts."""
    home, _, name = path.rpartition(".")
    estimator = getattr(importlib.import_module(home), name)
    arguments = {"random_state": seed, "recipe": recipe, "n_jobs": threads}
    known = inspect.signature(estimator).parameters
    return estimator(**{name: value for name, value in arguments.items() if name in known}, **options)


def _network(name: str, label: str, published: str, path: str, **sizes: Any) -> Model:
    make = partial(_make, path, sizes)
    return Model(name=name, label=label, make=make, published=published, trained=True, compiled=True)


def _fcn_ls2t(filters: int) -> Model:
    name, path = f"FCN{filters}-LS2T64", "seq2tens.estimators.FCNLS2TClassifier"
    sizes = {"fcn_width": filters, "width": 64, "depth": 3}
    return _network(f"{name.lower()}-3", f"{name}³", f"{name}-3", path, **sizes)


def _compiled(name: str, label: str, path: str, options: Any = None, **more: Any) -> Model:
    return Model(name=name, label=label, make=partial(_make, path, options or {}), compiled=True, **more)


def _baseline(label: str, kind: str) -> Model:
    """A baseline that we implement, with its name in the paper."""
    make = partial(_make, f"seq2tens.experiments.baselines.{kind}", {})
    return Model(name=label.lower(), label=label, make=make, published=label)


_LIST = (
    _network("ls2t64-3", "LS2T64³", "LS2T64-3", "seq2tens.estimators.DeepLS2TClassifier", width=64, depth=3),
    _fcn_ls2t(64),
    _fcn_ls2t(128),
    _network("fcn128", "FCN128", "FCN128", "seq2tens.estimators.FCNClassifier", width=128),
    _network("resnet", "ResNet", "ResNet", "seq2tens.estimators.ResNetClassifier"),
    _compiled("random-ls2t", "RandomLS2T", "seq2tens.estimators.RandomLS2TClassifier"),
    _compiled(
        "dtw",
        "1-NN DTW",
        "aeon.classification.distance_based.KNeighborsTimeSeriesClassifier",
        {"distance": "dtw", "n_neighbors": 1},
        published="DTW",
        seeded=False,
    ),
    _compiled(
        "muse", "MUSE", "aeon.classification.dictionary_based.MUSE", published="MUSE", equal_lengths=True
    ),
    _network("mlstm-fcn", "MLSTM-FCN", "MLSTMFCN", "seq2tens.experiments.baselines.MLSTMFCNClassifier"),
    _compiled(
        "multirocket-hydra",
        "MultiRocketHydra",
        "aeon.classification.convolution_based.MultiRocketHydraClassifier",
        equal_lengths=True,
        shortest=10,
    ),
    _baseline("gRSF", "GRSFClassifier"),
    _baseline("ARKernel", "ARKernelClassifier"),
    _baseline("SMTS", "SMTSClassifier"),
    _baseline("LPS", "LPSClassifier"),
    _baseline("mvARF", "MVARFClassifier"),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}
