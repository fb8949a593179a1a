"""The paper's networks as classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from seq2tens import nn
from seq2tens.estimators.networks import NetworkClassifier
from seq2tens.functional import Weights

TEST_PARAMS = {"epochs": 2, "batch_size": 4, "random_state": 0, "device": "cpu"}


@dataclass(kw_only=True, eq=False, repr=False)
class FCNLS2TClassifier(NetworkClassifier):
    """FCN-LS2T: convolutions for local patterns, then low-rank Seq2Tens layers for long-range order.

    The arguments are those of `nn.FCNLS2T` and of every `NetworkClassifier`.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import FCNLS2TClassifier
        >>> rng = np.random.default_rng(0)
        >>> y = np.array(["calm", "wild"] * 10)
        >>> X = [rng.normal(scale=1 + 3 * (label == "wild"), size=(2, rng.integers(5, 9))) for label in y]
        >>> model = FCNLS2TClassifier(epochs=2, width=8, fcn_width=8, scaling="channel", random_state=0)
        >>> model.fit(X, y).predict_proba(X[:3]).shape
        (3, 2)
    """

    fcn_width: int = 64
    width: int = 64
    depth: int = 3
    order: int = 2
    weights: Weights = "recursive"
    time_embedding: bool = True
    dropout: float = 0.0
    spatial_dropout: float = 0.0

    _features = nn.FCNLS2T
    _test_params: ClassVar[dict[str, Any]] = {**TEST_PARAMS, "fcn_width": 4, "width": 4, "depth": 1}


@dataclass(kw_only=True, eq=False, repr=False)
class DeepLS2TClassifier(NetworkClassifier):
    """LS2T: stacked low-rank Seq2Tens layers.

    Args:
        weights: `"recursive"` or `"independent"`.
        spatial_dropout: rate at which channels are dropped after each LS2T layer.

    The other arguments are those of `nn.DeepLS2T` and of every `NetworkClassifier`.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import DeepLS2TClassifier
        >>> X, y = np.random.default_rng(0).normal(size=(12, 3, 20)), np.arange(12) % 2
        >>> DeepLS2TClassifier(epochs=2, width=8, random_state=0).fit(X, y).predict(X).shape
        (12,)
    """

    width: int = 64
    depth: int = 3
    order: int = 2
    weights: Weights = "recursive"
    spatial_dropout: float = 0.0

    _features = nn.DeepLS2T
    _test_params: ClassVar[dict[str, Any]] = {**TEST_PARAMS, "width": 4, "depth": 2}


@dataclass(kw_only=True, eq=False, repr=False)
class FCNClassifier(NetworkClassifier):
    """FCN, a baseline of the paper: three convolutions, then the mean over time.

    The arguments are those of `nn.FCN` and of every `NetworkClassifier`.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import FCNClassifier
        >>> X, y = np.random.default_rng(0).normal(size=(12, 3, 20)), np.arange(12) % 2
        >>> FCNClassifier(epochs=2, width=8, random_state=0).fit(X, y).predict(X).shape
        (12,)
    """

    width: int = 128
    dropout: float = 0.0
    spatial_dropout: float = 0.0

    _features = nn.FCN
    _test_params: ClassVar[dict[str, Any]] = {**TEST_PARAMS, "width": 4}


@dataclass(kw_only=True, eq=False, repr=False)
class ResNetClassifier(NetworkClassifier):
    """ResNet, a baseline of the paper: residual blocks of convolutions, then the mean over time.

    The arguments are those of `nn.ResNet` and of every `NetworkClassifier`.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import ResNetClassifier
        >>> X, y = np.random.default_rng(0).normal(size=(12, 3, 20)), np.arange(12) % 2
        >>> ResNetClassifier(epochs=2, widths=(4, 4), random_state=0).fit(X, y).predict(X).shape
        (12,)
    """

    widths: tuple[int, ...] = (64, 128, 128)

    _features = nn.ResNet
    _test_params: ClassVar[dict[str, Any]] = {**TEST_PARAMS, "widths": (4, 4)}
    _paper_model = "resnet"
