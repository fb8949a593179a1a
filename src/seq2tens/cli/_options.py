"""Declare the options of the commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from seq2tens import _errors as check
from seq2tens.cli._shell import refusing


def option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value; it is named after its parameter, unless `names` are given."""
    return typer.Option(*names, metavar=metavar, help=text, **more)


def choice(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option that takes one of the words in its `metavar`."""

    def validate(param: typer.CallbackParam, value: Any) -> Any:
        words = tuple(None if word == "none" else word for word in metavar.split("|"))
        with refusing(option=param.opts[0]):
            if value is not None:
                check.choice("option", None if value == "none" else value, words)
        return value

    return option(metavar, text, *names, callback=validate, **more)


def count(metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option that takes an integer of at least 1."""

    def validate(param: typer.CallbackParam, value: Any) -> Any:
        with refusing(option=param.opts[0]):
            if value is not None:
                check.positive_int("option", value)
        return value

    return option(metavar, text, *names, callback=validate, **more)


def flag(name: str, text: str) -> Any:
    """A boolean option without a value."""
    return typer.Option(name, help=text)


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a command take options in groups: a parameter that is a dataclass stands for its fields.

    In the shell, the fields are ordinary options in the position of the parameter.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            parameters += [_parameter(field.name, field.default, types) for field in fields(groups[name])]
        else:
            parameters.append(_parameter(name, parameter.default, hints))

    def ungrouped(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        verb(**values)

    ungrouped.__name__, ungrouped.__doc__ = verb.__name__, verb.__doc__
    ungrouped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return ungrouped


def _parameter(name: str, default: Any, types: dict[str, Any]) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
