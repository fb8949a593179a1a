"""List inherited arguments on the API pages.

Estimators also take the arguments of their bases and of their network. In the source, each argument is
documented once, where it is defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

ARGUMENTS = re.compile(r"^Args:\n((?:^(?: {4}.*)?\n?)+)", re.MULTILINE)
ONE = re.compile(r"^ {4}(\w+): .*\n?(?:^ {8}.*\n?)*", re.MULTILINE)
ELSEWHERE = re.compile(
    r"^(?:The (?:other )?arguments are those of|Arguments of|The other arguments are)[^.]*"
    r"(?:`[^`]*`[^.]*)*\.(?: |\n|$)",
    re.MULTILINE,
)


class WriteOutArguments(griffe.Extension):
    """Complete the `Args` section of every dataclass that inherits arguments."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        classes = [cls for cls in _classes(pkg) if cls.docstring and "dataclass" in cls.labels]
        texts = {cls.path: completed(cls) for cls in classes}  # all of them before any docstring changes
        for cls in classes:
            cls.docstring.value = texts[cls.path]  # type: ignore[union-attr]


def completed(cls: griffe.Class) -> str:
    """The docstring of a class, with the arguments that are documented in its bases and its network."""
    assert cls.docstring
    text = cls.docstring.value
    entries = explained(text)
    fields = {name for base in [cls, *cls.mro()] for name in base.attributes}
    more: dict[str, str] = {}
    for source in _sources(cls):
        for name, entry in explained(source.docstring.value if source.docstring else "").items():
            if name in fields and name not in entries:
                more.setdefault(name, entry)
    if not more:
        return text
    listed = "Args:\n" + "".join(entry.rstrip("\n") + "\n" for entry in [*entries.values(), *more.values()])
    text = ELSEWHERE.sub("", text)
    if entries:
        return ARGUMENTS.sub(lambda _: listed + "\n", text, count=1)
    head, _, rest = text.partition("\n\n")
    return f"{head}\n\n{listed}\n{rest}"


def explained(text: str) -> dict[str, str]:
    """The entries of the `Args` section, by name."""
    section = ARGUMENTS.search(text)
    return {entry[1]: entry[0] for entry in ONE.finditer(section[1])} if section else {}


def _sources(cls: griffe.Class) -> Iterator[griffe.Class]:
    network = cls.attributes.get("_features")
    if network is not None and isinstance(network.value, griffe.Expr):
        target = cls.modules_collection[network.value.canonical_path]
        yield target.final_target if target.is_alias else target
    yield from cls.mro()


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    yield from (cls for cls in module.classes.values() if not cls.is_alias)
    for inner in module.modules.values():
        if not inner.is_alias:
            yield from _classes(inner)
