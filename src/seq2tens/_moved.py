"""Deprecated names: the old ones work for one more release, with a warning that gives the new ones."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def warn_moved(old: str, new: str, stacklevel: int = 2) -> None:
    """Warn and give the new name; `stacklevel` counts from the caller of this function, which is 1."""
    warnings.warn(
        f"`{old}` is now `{new}`; the old name will be removed in the next release",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def moved_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, given the new full name of each moved name."""

    def getattr_moved(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_moved(f"{module}.{name}", names[name])
        target, _, attribute = names[name].rpartition(".")
        return getattr(importlib.import_module(target), attribute)

    return getattr_moved


def moved_attributes(
    names: Mapping[str, str], otherwise: Callable[[Any, str], Any] | None = None
) -> Callable[[Any, str], Any]:
    """Return the `__getattr__` of a class, given the new name of each moved attribute.

    There are no properties for them: scikit-learn reads all properties, which would warn each time.
    """

    def getattr_moved(self: Any, name: str) -> Any:
        if name in names:
            value = getattr(self, names[name])
            warn_moved(name, names[name])
            return value
        if otherwise is not None:
            return otherwise(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    return getattr_moved


def moved_argument(old: str, new: str) -> Callable[[F], F]:
    """Decorate a function whose keyword argument `old` is now `new`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                warn_moved(old, new)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast(F, wrapper)

    return decorate


class _MovedModule(ModuleType):
    """A module under its old name; the new one is imported on first use."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, f"Now `{new}`.")
        self._new = new

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks these up
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(self._new), name)
        warn_moved(self.__name__, self._new)
        return value


def moved_module(old: str, new: str) -> None:
    """Let a module be imported by its old name, which has no file any more; called by its old parent."""
    sys.modules[old] = _MovedModule(old, new)
    parent, _, child = old.rpartition(".")
    setattr(sys.modules[parent], child, sys.modules[old])
