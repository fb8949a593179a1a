"""Find and load the library compiled from `csrc`, or say why there is none.

A kernel is a C function of one struct. Kernels run on torch's own threads, because both use the same OpenMP.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self

_NAMES = {"darwin": "libseq2tens.dylib", "win32": "seq2tens.dll"}
_SOURCES = Path(__file__).parents[3] / "csrc"  # exists in a checkout only
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
    """A struct of `csrc/seq2tens.h`, with the same fields in the same order."""

    name: ClassVar[str]  # the struct's name in the header
    tensors: Sequence[Tensor | None] = ()  # the struct holds their addresses, so they must stay alive

    @classmethod
    def of(cls, numbers: Iterable[Any], *tensors: Tensor | None) -> Self:
        """Return a struct of these first fields, then the addresses of these tensors, made contiguous."""
        arrays = [None if tensor is None else tensor.contiguous() for tensor in tensors]
        struct = cls(*numbers, *[None if array is None else _address(array) for array in arrays])
        struct.tensors = arrays
        return struct


def fields(names: str, kind: Any = ctypes.c_int64) -> list[tuple[str, Any]]:
    """Return fields of one type, given their names separated by spaces."""
    return [(name, kind) for name in names.split()]


def arrays(names: str) -> list[tuple[str, Any]]:
    """Return fields that hold addresses of arrays."""
    return fields(names, ctypes.c_void_p)


def supported_dtype(*tensors: Tensor) -> bool:
    """Whether the tensors have one dtype, float32 or float64."""
    dtype = tensors[0].dtype
    for tensor in tensors:
        if tensor.dtype != dtype:
            return False
    return dtype == torch.float32 or dtype == torch.float64


def addresses(*tensors: Tensor | None) -> list[int | None]:
    """Return the addresses of contiguous tensors; None for a missing one."""
    return [None if tensor is None else _address(tensor) for tensor in tensors]


def _address(tensor: Tensor) -> int:
    address = tensor.data_ptr()
    # tensors that only have a shape, such as those of a trace, would be read at address 0
    if address == 0 and tensor.numel() > 0:
        raise RuntimeError(f"kernels need a tensor with numbers, got a {type(tensor).__name__} without")
    return address


def threads() -> int:
    """Return the number of threads that kernels may use: torch's, or 1 in a forked process."""
    return 1 if _forked else torch.get_num_threads()


def run_kernel(operation: str, call: ctypes.Structure) -> None:
    """Run an operation on its struct."""
    if _function(operation)(ctypes.byref(call)):
        raise MemoryError(f"not enough memory for the scratch buffers of {operation}")


def unavailable() -> str | None:
    """Return why there are no kernels; None if there are."""
    return LOADED if isinstance(LOADED, str) else None


def kernels() -> str:
    """Return the instruction set and path of the loaded library, or the reason why there is none."""
    return LOADED if isinstance(LOADED, str) else f"{LOADED.instruction_set} ({LOADED.path})"


def _load() -> Library | str:
    """Load the library, or return the reason why there is none.

    The environment variable `SEQ2TENS_LIBRARY` selects another file, `SEQ2TENS_ISA` an instruction set.
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
        return f"{path} was built from other sources than those in {_SOURCES}; {_INSTALL}"
    requested = os.environ.get("SEQ2TENS_ISA")
    chosen = functions.seq2tens_set_isa(requested.encode() if requested else None)
    if chosen is None:
        return f"this processor or {path} has no instruction set {requested!r}"
    return Library(functions, path, chosen.decode())


_INSTALL = "reinstall the package with a C++ compiler available (pip install .)"


def _find() -> Path | str:
    if "SEQ2TENS_LIBRARY" in os.environ:
        return Path(os.environ["SEQ2TENS_LIBRARY"])
    name = _NAMES.get(sys.platform, "libseq2tens.so")
    path = Path(__file__).with_name(name)
    return path if path.is_file() else f"the installation has no compiled kernels ({name}); {_INSTALL}"


def _is_stale(digest: str) -> bool:
    """Whether this checkout, if it is one, has other sources than those that the library was built from."""
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


LOADED = _load()  # at import, because torch.compile cannot trace through loading a library
