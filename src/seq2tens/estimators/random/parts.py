"""Training on more data than memory or one machine can hold: parts are summed, and the sums merged."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from aeon.utils.validation import check_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from seq2tens import _checks as check
from seq2tens.data import Split, read
from seq2tens.estimators.random.moments import Moments

if TYPE_CHECKING:
    from seq2tens.estimators.random.learning import LearnsOn

SUFFIXES = (".npz", ".parquet")
# How often a part is retried after its worker or machine was lost.
RETRIES = 10

# A file, a pair (sequences, labels), or a function that returns the pair; it is called in the worker.
Part = str | Path | tuple[Any, Any] | Callable[[], tuple[Any, Any]]
Sums = tuple[Moments, np.ndarray | None]


def as_parts(parts: str | Path | Iterable[Part]) -> Iterator[Part]:
    """Return the files of a folder in the order of their names, or the given parts."""
    if not isinstance(parts, str | Path):
        return iter(parts)
    folder = Path(parts)
    check.require(folder.is_dir(), f"`parts` must be a folder or an iterable of parts, got {folder}")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    check.require(len(files) > 0, f"`parts` must be a folder of {' or '.join(SUFFIXES)} files, got {folder}")
    return iter(files)


def load(part: Part) -> tuple[Any, Any]:
    """Return sequences and labels of a part; of a file with two splits, those of the training split."""
    if callable(part):
        return part()
    if not isinstance(part, str | Path):
        return part
    content = read(part)
    half = content.train if isinstance(content, Split) else content
    check.require(half.labels is not None, f"{part} must have labels, got none")
    return half.sequences, half.labels


def part_sums(model: LearnsOn, part: Part) -> Sums:
    """Return the sums of one part and the classes of its targets; the calibrated model is not changed."""
    model = copy.copy(model)
    sequences, labels = model._check_batch(*load(part))
    model._begin_sums(sequences, labels)
    model._count(model.moments_.add, sequences, labels)
    return model.moments_, getattr(model, "classes_", None)


def with_joblib(model: LearnsOn, parts: Iterator[Part]) -> Iterator[Sums]:
    """Sum parts in workers of the backend set by `joblib.parallel_config`."""
    yield from Parallel(return_as="generator")(delayed(part_sums)(model, part) for part in parts)


def with_ray(model: LearnsOn, parts: Iterator[Part]) -> Iterator[Sums]:
    """Sum parts as tasks of the connected cluster; lost tasks run again elsewhere."""
    if importlib.util.find_spec("ray") is None:
        raise ImportError("`on='ray'` needs ray: pip install 'seq2tens[ray]'")
    ray = importlib.import_module("ray")
    check.require(ray.is_initialized(), "`on='ray'` needs a connection, got none; call `ray.init` first")
    cores = check_n_jobs(model.n_jobs)
    task = ray.remote(part_sums).options(num_cpus=cores, max_retries=RETRIES)
    shared, running = ray.put(model), deque[Any]()
    for part in parts:
        running.append(task.remote(shared, part))
        # one running and one waiting per slot; more would fill the memory of the cluster with sums
        while len(running) >= max(2, 2 * int(ray.cluster_resources().get("CPU", 1)) // cores):
            yield ray.get(running.popleft())
    while running:
        yield ray.get(running.popleft())


BACKENDS: dict[str, Callable[[Any, Iterator[Part]], Iterator[Sums]]] = {
    "joblib": with_joblib,
    "ray": with_ray,
}
