"""The compiled kernels: finds and loads the library of `csrc`, or says why there is none.

Kernels are C functions of one struct. They run on torch's own threads, because both use one OpenMP.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

_NAMES = {"darwin": "libseq2tens.dylib", "win32": "seq2tens.dll"}
_SOURCES = Path(__file__).parents[3] / "csrc"  # only in a checkout
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True  # a child process has none of its parent's threads, and OpenMP would wait for them


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Library(NamedTuple):
    """The kernels of one instruction set."""

    functions: ctypes.CDLL
    path: Path
    instruction_set: str


class Struct(ctypes.Structure):
    """A struct of `csrc/seq2tens.h`: the same fields in the same order."""

    name: ClassVar[str]  # of the struct in the header
    tensors: Sequence[Tensor | None] = ()  # those whose addresses stand in it, kept alive


def fields(names: str, kind: Any = ctypes.c_int64) -> list[tuple[str, Any]]:
    """Fields of one type."""
    return [(name, kind) for name in names.split()]


def arrays(names: str) -> list[tuple[str, Any]]:
    """Fields that are addresses of arrays."""
    return fields(names, ctypes.c_void_p)


def addresses(*tensors: Tensor | None) -> list[int | None]:
    """Where contiguous tensors begin."""
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def threads() -> int:
    """How many threads torch may use."""
    return 1 if _forked else torch.get_num_threads()


def run(operation: str, call: ctypes.Structure) -> None:
    """Run an operation on its struct."""
    if _function(operation)(ctypes.byref(call)):
        raise MemoryError(f"not enough memory for the scratch of {operation}")


def unavailable() -> str | None:
    """Why there are no kernels, None if there are."""
    return LOADED if isinstance(LOADED, str) else None


def kernels() -> str:
    """Which library is loaded and for which instruction set, or why there is none."""
    return LOADED if isinstance(LOADED, str) else f"{LOADED.instruction_set} ({LOADED.path})"


def _load() -> Library | str:
    """The library, or the reason why there is none.

    Environment: `SEQ2TENS_LIBRARY` names another file, `SEQ2TENS_ISA` one of its instruction sets.
    """
    path = _find()
    if isinstance(path, str):
        return path
    try:
        functions = ctypes.CDLL(str(path))
    except OSError as error:
        return f"{path} cannot be loaded: {error}"
    functions.seq2tens_source_digest.restype = ctypes.c_char_p
    functions.seq2tens_set_isa.restype = ctypes.c_char_p
    if _is_stale(functions.seq2tens_source_digest().decode()):
        return f"{path} was built from other sources than those in {_SOURCES}: {_INSTALL}"
    wanted = os.environ.get("SEQ2TENS_ISA")
    chosen = functions.seq2tens_set_isa(wanted.encode() if wanted else None)
    if chosen is None:
        return f"this processor, or {path}, has no instruction set {wanted!r}"
    return Library(functions, path, chosen.decode())


_INSTALL = "install the package again, with a C++ compiler at hand (pip install .)"


def _find() -> Path | str:
    if "SEQ2TENS_LIBRARY" in os.environ:
        return Path(os.environ["SEQ2TENS_LIBRARY"])
    name = _NAMES.get(sys.platform, "libseq2tens.so")
    path = Path(__file__).with_name(name)
    return path if path.is_file() else f"the installation has no compiled kernels ({name}): {_INSTALL}"


def _is_stale(digest: str) -> bool:
    """Whether the library was built from other sources than those beside the package, if there are any."""
    sources = [*_SOURCES.glob("*.cpp"), *_SOURCES.glob("*.h")]
    if not sources or not (_SOURCES / "seq2tens.h").is_file():
        return False
    digests = sorted(hashlib.sha256(source.read_bytes()).hexdigest() for source in sources)
    return digest != hashlib.sha256("".join(digests).encode()).hexdigest()


@lru_cache(maxsize=64)
def _function(operation: str) -> Callable[[Any], int]:
    if isinstance(LOADED, str):
        raise RuntimeError(LOADED)
    function = getattr(LOADED.functions, f"seq2tens_{operation}")
    function.restype = ctypes.c_int64
    return function


LOADED = _load()  # torch.compile cannot call what loads it later
