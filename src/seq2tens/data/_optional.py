"""Import of packages that only some functions need."""

from __future__ import annotations

import importlib
from typing import Any


def import_optional(module: str, purpose: str) -> Any:
    """Import a module, or say how to install its package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install {package}") from error
