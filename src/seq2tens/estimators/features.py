"""Untrained feature maps, for any classifier or regressor of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from aeon.transformations.collection.base import BaseCollectionTransformer
from jaxtyping import Float, Int, Shaped
from sklearn.base import TransformerMixin
from torch import Tensor
from typing_extensions import Self

from seq2tens import _checks as check
from seq2tens import algebra
from seq2tens import functional as F
from seq2tens._storage import Tensors
from seq2tens.data import Preparation, Sequences, length_blocks
from seq2tens.estimators.base import SequenceEstimator
from seq2tens.estimators.saving import Storable
from seq2tens.estimators.seeds import RandomState, seed_of
from seq2tens.training import SequenceSource

# Number of elements of the largest tensor when a block of sequences is transformed.
BLOCK_NUMBERS = 2**23

Values = Float[Tensor, "rows time channels"]
Lengths = Int[Tensor, " rows"]


class SequenceTransformer(TransformerMixin, SequenceEstimator, Storable):
    """Base class of transformers of sequences; labels are ignored.

    A subclass implements `_fit(X)` and `_transform(X)`, in which `X` is a `Sequences`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        **BaseCollectionTransformer.get_class_tags(),
        **SequenceEstimator._tags,
        "removes_missing_values": True,
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer to sequences; a previous fit is discarded."""
        self.reset()
        self._fit(self._preprocess_collection(X))
        self.is_fitted = True
        return self

    def transform(self, X: Any, y: Any = None) -> Any:
        """Transform the sequences."""
        return self._transform(self._as_in_fit(X))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit the transformer, then transform the same collection."""
        return self.fit(X, y).transform(X)


BaseCollectionTransformer.register(SequenceTransformer)


class TableTransformer(SequenceTransformer):
    """Base class of transformers that map sequences of any length to a table with one row each.

    After `set_output(transform="pandas")` it is a data frame with the columns `get_feature_names_out()`.
    """

    _tags: ClassVar[dict[str, Any]] = {"output_data_type": "Tabular", "removes_unequal_length": True}

    def transform(self, X: Any, y: Any = None) -> Float[np.ndarray, "rows features"]:
        """Compute the features of each sequence; `y` is ignored."""
        sequences = self._as_in_fit(X)
        # scikit-learn copies the index of X to the resulting frame, but such an index is one of steps, not of
        # sequences; called with `Sequences`, which have no index, it copies none
        return self._transform(sequences) if isinstance(X, Sequences) else self.transform(sequences)

    def get_feature_names_out(self, input_features: Any = None) -> Shaped[np.ndarray, " features"]:
        """Return the names of the columns; `input_features` is ignored."""
        self._check_is_fitted()
        return np.array(self._feature_names(), dtype=object)

    @property
    def n_features_(self) -> int:
        """Number of columns of the result."""
        raise NotImplementedError

    def _feature_names(self) -> list[str]:
        return [f"{type(self).__name__.lower()}{i}" for i in range(self.n_features_)]


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceFeatures(TableTransformer):
    """Base class of `LS2TFeatures` and `Seq2TensFeatures`.

    Args:
        scaling: standardise each channel with the statistics of the training data (`"channel"`) or of each
            sequence by itself (`"sequence"`), or not at all (None).
        time: prepend a time coordinate, from 0 to 1, to the channels.
        difference: take increments; the first one is from 0.
        normalization: divide level m by this power of its number of terms, C(length, m).
    """

    scaling: Literal["channel", "sequence"] | None = "channel"
    time: bool = True
    difference: bool = True
    normalization: float = 0.5

    def _fit(self, X: Sequences) -> None:
        self.preparation_ = Preparation(self.scaling).fit(X)
        self._start(self.preparation_.n_outputs + bool(self.time))

    @torch.inference_mode()
    def _transform(self, X: Sequences) -> Float[np.ndarray, "rows features"]:
        source = SequenceSource(self.preparation_.transform(X))
        table = torch.empty(len(source), self.n_features_, dtype=torch.float64)
        for block in map(torch.from_numpy, length_blocks(X.lengths, self._block_steps())):
            values = source.batch(block).values.double()
            table[block] = self._map(*self._embed(values, source.lengths[block]))
        return table.numpy()

    def _embed(self, x: Values, lengths: Lengths) -> tuple[Values, Lengths]:
        if self.time:
            x = F.time_embedding(x, lengths=lengths)
        return (F.difference(x, lengths=lengths) if self.difference else x), lengths

    def _scale(self, order: int, lengths: Lengths) -> Float[Tensor, "rows order 1"]:
        """Return the factors that normalise the levels."""
        ones = torch.ones(len(lengths), order, 1, dtype=torch.float64)
        return F.normalize_levels(ones, ones.new_full((order,), self.normalization), lengths)

    def _input_names(self) -> list[str]:
        """Return the names of the map's input channels."""
        names = self.metadata_.get("columns") or [f"x{c}" for c in range(self.n_channels_)]
        by_kind = {kind: [f"{kind} {name}" for name in names] for kind in ("observed", "since")} | {
            "value": names
        }
        channels = [
            by_kind[kind][number] if kind in by_kind else kind if kind == "time" else f"{kind} {number}"
            for kind, number in self.preparation_.columns
        ]
        return ["position", *channels] if self.time else channels

    def _start(self, n_inputs: int) -> None:
        """Prepare the map for `n_inputs` channels."""
        raise NotImplementedError

    def _map(self, x: Values, lengths: Lengths) -> Float[Tensor, "rows features"]:
        raise NotImplementedError

    def _block_steps(self) -> int:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class LS2TFeatures(SequenceFeatures):
    """Random low-rank functionals of all levels of the Seq2Tens map of a sequence.

    The vectors z are drawn once, from a normal distribution with variance 1 / channels, and never trained.

    Args:
        width: number of functionals per level; the table has order · width columns.
        order: highest level.
        weights: as in `functional.ls2t`.
        lift_order: as in `functional.ls2t`.
        decay: as in `functional.ls2t`, one number for all functionals.
        random_state: an integer, a numpy `RandomState` or None.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import RidgeClassifierCV
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from seq2tens.estimators import LS2TFeatures
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(20) % 2
        >>> X = [rng.normal(scale=1 + 3 * label, size=(2, rng.integers(5, 9))) for label in y]
        >>> model = make_pipeline(LS2TFeatures(random_state=0), StandardScaler(), RidgeClassifierCV())
        >>> model.fit(X, y).predict(X[:3]).shape
        (3,)
    """

    width: int = 256
    order: int = 3
    weights: F.Weights = "independent"
    lift_order: int = 1
    decay: float | None = None
    random_state: RandomState = None

    _test_params: ClassVar[dict[str, Any]] = {"width": 4, "order": 2, "random_state": 0}

    def _start(self, n_inputs: int) -> None:
        check.positive_int("width", self.width)
        check.positive_int("order", self.order)
        generator = torch.Generator().manual_seed(seed_of(self.random_state))
        check.choice("weights", self.weights, get_args(F.Weights))
        components = F.make_chains(self.order, self.weights, False).components
        drawn = torch.randn(components, n_inputs, self.width, generator=generator, dtype=torch.float64)
        self.functionals_ = drawn / n_inputs**0.5

    @property
    def n_features_(self) -> int:
        """Number of columns of the result."""
        return self.order * self.width

    def _feature_names(self) -> list[str]:
        return [f"level{m}_{k}" for m in range(1, self.order + 1) for k in range(self.width)]

    def _map(self, x: Values, lengths: Lengths) -> Float[Tensor, "rows features"]:
        levels = F.ls2t(
            x,
            self.functionals_,
            order=self.order,
            weights=self.weights,
            lift_order=self.lift_order,
            decay=None if self.decay is None else x.new_full((self.width,), self.decay),
            lengths=lengths,
            return_sequences=False,
        )
        assert isinstance(levels, Tensor)
        return (levels * self._scale(self.order, lengths)).flatten(1)

    def _block_steps(self) -> int:
        return max(1, BLOCK_NUMBERS // (len(self.functionals_) * self.width))

    def _tensors(self) -> Tensors:
        return {"functionals": self.functionals_}

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.functionals_ = tensors["functionals"]


@dataclass(kw_only=True, eq=False, repr=False)
class Seq2TensFeatures(SequenceFeatures):
    """All coordinates of the Seq2Tens map up to an order: d + d² + … for d channels.

    With the lift `"exp"` and increments they are the signature of the path through 0 and the values. By
    default, levels are not normalised.

    Args:
        order: highest level.
        lift: `"linear"` or `"exp"`, as in `seq2tens.seq2tens`.
        max_features: largest number of columns allowed; with more, use `LS2TFeatures`.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import Seq2TensFeatures
        >>> X = [np.ones((2, 5)), np.ones((2, 7))]
        >>> Seq2TensFeatures(order=3, time=False).fit_transform(X).shape
        (2, 14)
    """

    order: int = 2
    lift: Literal["linear", "exp"] = "linear"
    max_features: int = 100_000
    normalization: float = 0.0

    _test_params: ClassVar[dict[str, Any]] = {"order": 2}

    def _start(self, n_inputs: int) -> None:
        check.positive_int("order", self.order)
        check.choice("lift", self.lift, ("linear", "exp"))
        check.require(
            self.n_features_ <= self.max_features,
            f"`order` must give at most {self.max_features} features (`max_features`), got "
            f"{self.n_features_} for order {self.order} and {n_inputs} channels, including time",
        )

    @property
    def n_features_(self) -> int:
        """Number of columns of the result."""
        channels = self.preparation_.n_outputs + bool(self.time)
        return sum(channels**m for m in range(1, self.order + 1))

    def _feature_names(self) -> list[str]:
        """Return the words of the channels; in `a*b`, b comes after a."""
        letters = self._input_names()
        return ["*".join(word) for m in range(1, self.order + 1) for word in product(letters, repeat=m)]

    def _map(self, x: Values, lengths: Lengths) -> Float[Tensor, "rows features"]:
        levels = algebra.seq2tens(x, self.order, self.lift, lengths=lengths).levels[1:]
        factors = self._scale(self.order, lengths)
        return torch.cat([level.flatten(1) * factors[:, m] for m, level in enumerate(levels)], dim=1)

    def _block_steps(self) -> int:
        return max(1, BLOCK_NUMBERS // self.n_features_)

    def _tensors(self) -> Tensors:
        return {}
