"""Conversion of arguments and labels to JSON data and back, and joining of dictionaries of tensors.

JSON has neither tuples nor keys that are not strings; types that it lacks are written as a list that begins
with a name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from seq2tens._storage import Tensors
from seq2tens.training import Checkpoints, Recipe


def python(value: Any) -> Any:
    """Convert a numpy scalar, such as a grid search may pass, to a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def encode(value: Any) -> Any:
    """Encode a value as JSON data."""
    value = python(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for name, (kind, write, _) in CODECS.items():
        if isinstance(value, kind):
            return [name, write(value)]
    raise TypeError(f"an argument must be plain data to be saved, got {type(value).__name__}: {value!r}")


def decode(data: Any) -> Any:
    """Decode the result of `encode`."""
    if not isinstance(data, list):
        return data
    name, content = data
    return CODECS[name][2](content)


def encode_labels(labels: np.ndarray) -> dict[str, Any]:
    """Encode labels and their type as JSON data."""
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def decode_labels(data: dict[str, Any]) -> np.ndarray:
    """Decode the result of `encode_labels`."""
    return np.array(data["values"], dtype=np.dtype(data["dtype"]))


def join(**parts: Tensors) -> Tensors:
    """Join dictionaries of tensors into one, with names prefixed by those of the parts."""
    return {f"{part}.{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def split(tensors: Tensors, part: str) -> Tensors:
    """Return one part of the result of `join`."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def _encode_dict(value: dict[Any, Any]) -> Any:
    return [[encode(key), encode(item)] for key, item in value.items()]


def _decode_dict(content: Any) -> dict[Any, Any]:
    return {decode(key): decode(item) for key, item in content}


def _encode_generator(value: np.random.RandomState) -> Any:
    name, keys, *rest = value.get_state(legacy=True)
    return [name, keys.tolist(), *rest]  # type: ignore[union-attr]


def _decode_generator(content: Any) -> np.random.RandomState:
    generator = np.random.RandomState()
    generator.set_state(tuple(content))
    return generator


def _encode_checkpoints(value: Checkpoints) -> Any:
    return {"folder": str(value.folder), "seconds": value.seconds, "keep": value.keep}


Codec = tuple[type, Callable[[Any], Any], Callable[[Any], Any]]
CODECS: dict[str, Codec] = {
    "tuple": (tuple, lambda v: [encode(x) for x in v], lambda c: tuple(decode(x) for x in c)),
    "list": (list, lambda v: [encode(x) for x in v], lambda c: [decode(x) for x in c]),
    "dict": (dict, _encode_dict, _decode_dict),
    "recipe": (Recipe, Recipe.to_dict, Recipe.from_dict),
    "path": (Path, str, Path),
    "checkpoints": (Checkpoints, _encode_checkpoints, lambda c: Checkpoints(**c)),
    "random_state": (np.random.RandomState, _encode_generator, _decode_generator),
}
