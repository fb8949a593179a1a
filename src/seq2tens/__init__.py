"""Seq2Tens: a feature map for sequences, as exact and fast PyTorch layers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2tens import algebra, functional, nn
    from seq2tens.algebra import FreeTensor, seq2tens, signature, string_features
    from seq2tens.functional import ls2t
    from seq2tens.nn import LS2T, BiLS2T, DeepLS2T

__version__ = "0.2.0"

__all__ = [
    "LS2T",
    "BiLS2T",
    "DeepLS2T",
    "FreeTensor",
    "algebra",
    "functional",
    "ls2t",
    "nn",
    "seq2tens",
    "signature",
    "string_features",
]

_HOMES = {
    "algebra": ("FreeTensor", "seq2tens", "signature", "string_features"),
    "functional": ("ls2t",),
    "nn": ("LS2T", "BiLS2T", "DeepLS2T"),
}


def __getattr__(name: str) -> Any:
    """Import on first use, because torch takes seconds to load and `--help` does not need it."""
    for home, names in _HOMES.items():
        if name == home or name in names:
            module = importlib.import_module(f"seq2tens.{home}")
            value = module if name == home else getattr(module, name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'seq2tens' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
