"""The subject of an explanation: a network in float64, two prepared sequences, and their variables."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.data import Preparation, Sequences
from seq2tens.nn import LS2T

if TYPE_CHECKING:  # importing it takes seconds
    from seq2tens.estimators import NetworkClassifier


@dataclass(frozen=True, eq=False)
class Case:
    """One sequence and its baseline, as the network reads them.

    `variable[c]` is the variable that channel c belongs to, `names` are the names of the variables, and
    `values` their measured values, NaN where there are none. `contrast` is the combination of logits to
    explain.
    """

    network: nn.Module
    contrast: Float[Tensor, " classes"]
    target: str
    pair: Float[Tensor, "2 time channels"]
    variable: Int[np.ndarray, " channels"]
    names: tuple[str, ...]
    values: Float[np.ndarray, "time variables"]
    times: Float[np.ndarray, " time"] | None


def case_of_classifier(
    model: NetworkClassifier, x: Any, target: Any, baseline: Any, names: Sequence[str] | None
) -> Case:
    """Return the case of a fitted classifier."""
    from seq2tens.estimators import as_sequences

    check.require(model.is_fitted, f"`model` must be fitted, got a new {type(model).__name__}")
    classes = model.classes_.tolist()
    check.require(
        target is None or target in classes, f"`target` must be one of the classes {classes}, got {target!r}"
    )
    number = None if target is None else classes.index(target)
    sequences, reference = (
        None if data is None else as_sequences(data, model.encoding_) for data in (x, baseline)
    )
    known = names or model.variable_names_
    case = case_of_prepared(model.network_, model.preparation_, sequences, number, reference, known)
    return replace(case, target=str(classes[int(case.target)]))


def case_of_prepared(
    network: nn.Module,
    preparation: Preparation,
    x: Any,
    target: int | None,
    baseline: Any,
    names: Sequence[str] | None,
) -> Case:
    """Return the case of a network whose input comes from a fitted preparation."""
    sequence = _one_sequence("x", x, preparation)
    pair = _pair(preparation, sequence, baseline)
    variable, variable_names = _variables(preparation, names)
    exact = _exact(network)
    contrast, number = _contrast(exact, pair, target)
    values = _measured(preparation, sequence)
    return Case(exact, contrast, str(number), pair, variable, variable_names, values, sequence.times)


def case_of_network(
    network: nn.Module,
    x: Float[Tensor, "time channels"] | Float[Tensor, "1 time channels"],
    target: int | None,
    baseline: Tensor | None,
    names: Sequence[str] | None,
) -> Case:
    """Return the case of a network that returns logits."""
    sequence = _one_tensor("x", x)
    reference = torch.zeros_like(sequence) if baseline is None else _one_tensor("baseline", baseline)
    check.shape("baseline", reference, tuple(sequence.shape), "that of `x`")
    pair = torch.stack([sequence, reference])
    channels = sequence.shape[1]
    variable_names = _check_names(names, (channels,)) or tuple(f"channel {c}" for c in range(channels))
    exact = _exact(network)
    contrast, number = _contrast(exact, pair, target)
    return Case(
        exact,
        contrast,
        str(number),
        pair,
        np.arange(channels),
        variable_names,
        sequence.numpy(force=True),
        None,
    )


def _exact(network: nn.Module) -> nn.Module:
    """Return a copy in float64 and evaluation mode, made of operations of torch that have secants."""
    exact = copy.deepcopy(network).to("cpu", torch.float64).eval().requires_grad_(False)
    for module in exact.modules():
        if isinstance(module, LS2T):
            module.backend = "reference"
    return exact


def _contrast(network: nn.Module, pair: Tensor, target: int | None) -> tuple[Tensor, int]:
    """Return the weights of the target's logit minus the mean of the others, and the target's index.

    Without a target, it is the second of two classes, otherwise the one with the largest logit.
    """
    with torch.no_grad():
        logits = network(pair)
    check.require(
        logits.dim() == 2, f"`model` must return logits (sequences, classes), got shape {tuple(logits.shape)}"
    )
    for name, values in zip(("x", "baseline"), logits.tolist(), strict=True):
        finite = all(map(math.isfinite, values))
        check.require(finite, f"`{name}` must have finite logits, got {values}")
    n = logits.shape[1]
    check.require(
        target is None or (type(target) is int and 0 <= target < n),
        f"`target` must lie in 0..{n - 1} (the logits of `model`), got {target!r}",
    )
    number = target if target is not None else 1 if n == 2 else int(logits[0].argmax())
    contrast = logits.new_full((n,), -1 / max(n - 1, 1))
    contrast[number] = 1
    return contrast, number


def _one_sequence(name: str, x: Any, preparation: Preparation) -> Sequences:
    from seq2tens.estimators import as_sequences

    sequences = as_sequences(x)
    check.require(len(sequences) == 1, f"`{name}` must hold one sequence, got {len(sequences)}")
    preparation.check(sequences, name)
    return sequences


def _one_tensor(name: str, x: Tensor) -> Float[Tensor, "time channels"]:
    check.floating(name, x)
    if x.dim() == 3:
        check.require(len(x) == 1, f"`{name}` must hold one sequence, got {len(x)}")
        x = x[0]
    check.require(
        x.dim() == 2 and len(x) > 0,
        f"`{name}` must have the axes (time, channels) and at least one step, got shape {tuple(x.shape)}",
    )
    return x.detach().to("cpu", torch.float64)


def _pair(preparation: Preparation, sequence: Sequences, baseline: Any) -> Float[Tensor, "2 time channels"]:
    prepared = preparation.transform(sequence).values
    if baseline is None:
        reference = np.zeros_like(prepared)
        reference[:, : preparation.n_channels] = (
            preparation.fill
        )  # the mean where values are not standardised
    else:
        reference = preparation.transform(_one_sequence("baseline", baseline, preparation)).values
        check.require(
            len(reference) == len(prepared),
            f"`baseline` must have the {len(prepared)} steps of `x`, got {len(reference)}",
        )
    return torch.from_numpy(np.stack([prepared, reference])).double()


def _variables(
    preparation: Preparation, names: Sequence[str] | None
) -> tuple[Int[np.ndarray, " channels"], tuple[str, ...]]:
    """Return the variable of each prepared channel, and the names of channels, time and static features."""
    columns = preparation.columns
    n, has_time = preparation.n_channels, preparation.clock is not None
    statics = [number for kind, number in columns if kind == "static"]
    checked = _check_names(names, tuple(dict.fromkeys((n, n + len(statics)))))
    all_names = checked or tuple(f"channel {c}" for c in range(n))
    if len(all_names) == n:
        all_names += tuple(f"static {k}" for k in statics)
    first = {"time": n, "static": n + has_time}  # any other column belongs to its channel
    variable = np.array([first.get(kind, 0) + number for kind, number in columns])
    return variable, (*all_names[:n], *(["time"] if has_time else []), *all_names[n:])


def _check_names(names: Sequence[str] | None, sizes: tuple[int, ...]) -> tuple[str, ...]:
    if names is None:
        return ()
    checked = tuple(map(str, names))
    rule = " or ".join(map(str, sizes))
    check.require(
        len(checked) in sizes,
        f"`names` must name the {rule} variables (channels, then static features if any), got {len(checked)}",
    )
    return checked


def _measured(preparation: Preparation, sequence: Sequences) -> Float[np.ndarray, "time variables"]:
    """Return the measured values in their own units; static features are repeated at every step."""
    parts = [sequence.values]
    if preparation.clock is not None and sequence.times is not None:
        parts.append(sequence.times[:, None])
    if sequence.static is not None:
        parts.append(np.repeat(sequence.static, len(sequence.values), axis=0))
    return np.concatenate(parts, axis=1, dtype=np.float64)
