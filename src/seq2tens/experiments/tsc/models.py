"""The models of the classification experiment by name; what is heavy is imported when one is made."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from seq2tens._checks import ArgumentError

NO_SHAPELETS = "the model grsf cannot be run: wildboar, which has it, needs an old scikit-learn (< 1.6)"
# Arguments: seed, recipe, threads.
Make = Callable[[int, str, int], Any]


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a name stands for.

    Args:
        name: as in the results table.
        label: as in figures and on pages.
        make: gives a new estimator for a seed, a recipe and a number of threads.
        published: its name in the paper's table, None where the paper does not have it.
        trained: whether it is trained in epochs, by a recipe.
        seeded: whether the seed matters.
        compiled: whether something is compiled when it is first used, which is not to be counted.
        equal_lengths: whether it takes equal lengths only: series get zeros at their ends.
        shortest: the length that it needs; shorter series get zeros likewise.
        obstacle: why it cannot be run; such a model is there for its published numbers.
    """

    name: str
    label: str
    make: Make
    published: str | None = None
    trained: bool = False
    seeded: bool = True
    compiled: bool = False
    equal_lengths: bool = False
    shortest: int = 1
    obstacle: str | None = None


def _network(home: str, kind: str, sizes: dict[str, Any], seed: int, recipe: str, threads: int) -> Any:
    """A network; torch was told the number of threads already."""
    return _find(home, kind)(recipe=recipe, random_state=seed, **sizes)


def _threaded(home: str, kind: str, options: dict[str, Any], seed: int, recipe: str, threads: int) -> Any:
    return _find(home, kind)(random_state=seed, n_jobs=threads, **options)


def _baseline(kind: str, seed: int, recipe: str, threads: int) -> Any:
    """A baseline of ours, with those of the two arguments that it has."""
    found = _find("seq2tens.experiments.baselines", kind)
    given = {"random_state": seed, "n_jobs": threads}
    return found(
        **{name: value for name, value in given.items() if name in inspect.signature(found).parameters}
    )


def _nearest_neighbour(seed: int, recipe: str, threads: int) -> Any:
    kind = _find("aeon.classification.distance_based", "KNeighborsTimeSeriesClassifier")
    return kind(distance="dtw", n_neighbors=1, n_jobs=threads)


def _shapelet_forest(seed: int, recipe: str, threads: int) -> Any:
    raise ArgumentError(NO_SHAPELETS)


def _find(home: str, name: str) -> Any:
    return getattr(importlib.import_module(home), name)


def _ours(kind: str, **sizes: Any) -> Make:
    return partial(_network, "seq2tens.estimators", kind, sizes)


_LIST = (
    Model(
        name="ls2t64-3",
        label="LS2T64³",
        make=_ours("DeepLS2TClassifier", width=64, depth=3),
        published="LS2T64-3",
        trained=True,
        compiled=True,
    ),
    Model(
        name="fcn64-ls2t64-3",
        label="FCN64-LS2T64³",
        make=_ours("FCNLS2TClassifier", fcn_width=64, width=64, depth=3),
        published="FCN64-LS2T64-3",
        trained=True,
        compiled=True,
    ),
    Model(
        name="fcn128-ls2t64-3",
        label="FCN128-LS2T64³",
        make=_ours("FCNLS2TClassifier", fcn_width=128, width=64, depth=3),
        published="FCN128-LS2T64-3",
        trained=True,
        compiled=True,
    ),
    Model(
        name="fcn128",
        label="FCN128",
        make=_ours("FCNClassifier", width=128),
        published="FCN128",
        trained=True,
        compiled=True,
    ),
    Model(
        name="resnet",
        label="ResNet",
        make=_ours("ResNetClassifier"),
        published="ResNet",
        trained=True,
        compiled=True,
    ),
    Model(
        name="random-ls2t",
        label="RandomLS2T",
        make=partial(_threaded, "seq2tens.estimators", "RandomLS2TClassifier", {}),
        compiled=True,
    ),
    Model(
        name="dtw",
        label="1-NN DTW",
        make=_nearest_neighbour,
        published="DTW",
        seeded=False,
        compiled=True,
    ),
    Model(
        name="muse",
        label="MUSE",
        make=partial(_threaded, "aeon.classification.dictionary_based", "MUSE", {}),
        published="MUSE",
        compiled=True,
        equal_lengths=True,
    ),
    Model(
        name="mlstm-fcn",
        label="MLSTM-FCN",
        make=partial(_network, "seq2tens.experiments.baselines", "MLSTMFCNClassifier", {}),
        published="MLSTMFCN",
        trained=True,
        compiled=True,
    ),
    Model(
        name="multirocket-hydra",
        label="MultiRocketHydra",
        make=partial(_threaded, "aeon.classification.convolution_based", "MultiRocketHydraClassifier", {}),
        compiled=True,
        equal_lengths=True,
        shortest=10,
    ),
    Model(
        name="grsf",
        label="gRSF",
        make=_shapelet_forest,
        published="gRSF",
        obstacle=NO_SHAPELETS,
    ),
    Model(
        name="arkernel",
        label="ARKernel",
        make=partial(_baseline, "ARKernelClassifier"),
        published="ARKernel",
    ),
    Model(name="smts", label="SMTS", make=partial(_baseline, "SMTSClassifier"), published="SMTS"),
    Model(name="lps", label="LPS", make=partial(_baseline, "LPSClassifier"), published="LPS"),
    Model(name="mvarf", label="mvARF", make=partial(_baseline, "MVARFClassifier"), published="mvARF"),
)
MODELS: dict[str, Model] = {model.name: model for model in _LIST}
