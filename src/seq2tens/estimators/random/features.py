"""Random features of sequences, for linear models."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2tens import _checks as check
from seq2tens._storage import Tensors
from seq2tens.data import Preparation, Scaler, Sequences, collate, length_blocks
from seq2tens.estimators.features import TableTransformer
from seq2tens.estimators.random.blocks import (
    DESIGNS,
    GROUP,
    KERNELS,
    NEWEST,
    Block,
    BlockStatistics,
    calibrate_levels,
    select,
    stack,
)
from seq2tens.estimators.random.ridge import threads, torch_threads
from seq2tens.estimators.seeds import RandomState, seed_of
from seq2tens.ops.pooling import Blocks, pool_blocks

# Number of padded steps that are prepared at a time.
CHUNK_STEPS = 2**14
# Number of training sequences for the calibration of the blocks.
CALIBRATION = 64

# Values and increments, padded, each with the lengths.
Paths = tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(kw_only=True, eq=False, repr=False)
class RandomLS2TFeatures(TableTransformer):
    """Random convolutions, and random functionals of the Seq2Tens map on top of them, pooled over time.

    Nothing is trained. A block has 32 dilated convolutions of the values or of their increments, and as many
    functionals with exponential decay of each level from 2 to `order`: level 2 is high if one convolution is
    high and another one soon after. Features are the fraction of steps above a threshold and, for levels from
    2 on, the energy, the logarithm of the mean square; for convolutions also the longest stretch above the
    threshold and the number of crossings, and a competition in groups of 8: the value of each when it is the
    highest, and how often it is the lowest.

    Args:
        n_blocks: number of blocks; each has 160 features and 64 more per level above the first.
        order: highest level.
        scaling: standardise each channel with the statistics of the training data (`"channel"`) or of each
            sequence by itself (`"sequence"`), or not at all (None).
        n_jobs: number of threads; -1 means all, and 1 as many as torch uses (`torch.set_num_threads`), by
            default one per core. The result does not depend on it.
        random_state: an integer, a numpy `RandomState` or None.

    Examples:
        >>> import numpy as np
        >>> from seq2tens.estimators import RandomLS2TFeatures
        >>> X = np.random.default_rng(0).normal(size=(10, 2, 30))
        >>> RandomLS2TFeatures(n_blocks=3, random_state=0).fit_transform(X).shape
        (10, 864)
    """

    n_blocks: int = 40
    order: int = 3
    scaling: Literal["channel", "sequence"] | None = "channel"
    n_jobs: int = 1
    random_state: RandomState = None

    _tags: ClassVar[dict[str, Any]] = {"capability:multithreading": True}
    _test_params: ClassVar[dict[str, Any]] = {"n_blocks": 2, "random_state": 0}

    @property
    def n_features_(self) -> int:
        """Number of columns of the result."""
        return sum(block.n_features for block in self.blocks_)

    def _fit(self, X: Sequences) -> None:
        check.positive_int("n_blocks", self.n_blocks)
        check.positive_int("order", self.order)
        self.preparation_ = Preparation(self.scaling).fit(X)
        self.seed_ = seed_of(self.random_state)
        self.length_, self.design_ = float(np.median(X.lengths)), NEWEST
        self.blocks_ = self._draw()
        rows = np.unique(np.linspace(0, len(X) - 1, CALIBRATION).astype(int))
        sample = self.preparation_.transform(X[rows])
        self.increments_ = Scaler().fit(increments(sample))
        paths = self._paths(sample)
        with one_thread_each(self.n_jobs) as run:
            convolutions = list(run(lambda block: block.calibrate(*paths[block.difference]), self.blocks_))
        with torch_threads(threads(self.n_jobs)):
            scales = calibrate_levels(*stack_paths(paths), stack(self.blocks_, convolutions))
        self.calibrations_ = [
            calibration._replace(level_scale=scale)
            for calibration, scale in zip(convolutions, scales, strict=True)
        ]

    def _draw(self) -> list[Block]:
        sizes = (self.preparation_.n_outputs, self.length_, self.order)
        blocks = (Block.draw(self.seed_, number, *sizes) for number in range(self.n_blocks))
        return [replace(block, design=DESIGNS[self.design_]) for block in blocks]

    @torch.no_grad()
    def _transform(self, X: Sequences) -> Float[np.ndarray, "rows features"]:
        table = torch.empty(len(X), self.n_features_)
        blocks = stack(self.blocks_, self.calibrations_)
        with torch_threads(threads(self.n_jobs)):
            for rows in length_blocks(X.lengths, CHUNK_STEPS):
                paths = self._paths(self.preparation_.transform(X[rows]))
                table[torch.from_numpy(rows)] = self._features(paths, blocks)
        _check_finite(table, X)
        return table.numpy()

    def _features(self, paths: Paths, blocks: Blocks) -> Float[Tensor, "rows features"]:
        design = self.blocks_[0].design
        if "peak" in design.convolutions:  # an old model
            each = zip(self.blocks_, self.calibrations_, strict=True)
            return torch.cat([block.features(*paths[block.difference], c) for block, c in each], dim=1)
        x, lengths = stack_paths(paths)
        pooled = pool_blocks(x, lengths, blocks, KERNELS // GROUP, design.steepness)
        return select(pooled, lengths, design)

    def _paths(self, prepared: Sequences) -> Paths:
        """Return values and increments, padded, with their lengths."""
        values, lengths = collate(prepared)[:2]
        return (values, lengths), (collate(self.increments_.transform(increments(prepared))).values, lengths)

    def _tensors(self) -> Tensors:
        return {
            name: torch.stack([getattr(calibration, name) for calibration in self.calibrations_])
            for name in BlockStatistics._fields
        }

    def _facts(self) -> dict[str, Any]:
        return {
            **super()._facts(),
            "increments": self.increments_.state(),
            "seed": self.seed_,
            "length": self.length_,
            "design": self.design_,
        }

    def _restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.increments_ = Scaler.from_state(facts["increments"])
        self.seed_, self.length_, self.design_ = facts["seed"], facts["length"], facts.get("design", 1)
        sizes, drawn = (self.n_blocks, self.order), tuple(tensors["level_scale"].shape[:2])
        check.require(
            drawn == sizes, f"`n_blocks` and `order` must match the saved tensors, {drawn}, got {sizes}"
        )
        self.blocks_ = self._draw()
        self.calibrations_ = [
            BlockStatistics(*parts) for parts in zip(*map(tensors.get, BlockStatistics._fields), strict=True)
        ]


def _check_finite(table: Float[Tensor, "rows features"], X: Sequences) -> None:
    wrong = np.flatnonzero(~table.isfinite().all(dim=1).numpy())
    if len(wrong):
        largest = np.nanmax(np.abs(X[wrong].values))
        rule = "`X` must have values of the size of those in training, or features overflow"
        raise check.ArgumentError(f"{rule}; got values up to {largest:.3g}")


def stack_paths(
    paths: Paths,
) -> tuple[Float[Tensor, "sources rows time channels"], Int[Tensor, " rows"]]:
    """Return values and increments as one tensor, and the lengths."""
    return torch.stack([values for values, _ in paths]), paths[0][1]


def increments(sequences: Sequences) -> Sequences:
    """Return the change since the previous step, 0 at the first step."""
    change = np.diff(sequences.values, axis=0, prepend=sequences.values[:1])
    change[sequences.offsets[:-1]] = 0
    return Sequences(change, sequences.offsets)


@contextmanager
def one_thread_each(n_jobs: int) -> Iterator[Any]:
    """Yield a `map` with this many threads, in each of which torch uses a single thread."""
    workers = threads(n_jobs)
    with torch_threads(1):
        if workers == 1:
            yield map
        else:
            with ThreadPoolExecutor(workers) as pool:
                yield pool.map
