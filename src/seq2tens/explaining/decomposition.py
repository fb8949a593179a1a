"""Why a network says what it says of one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.data import Preparation, Sequences
from seq2tens.data.filling import forward_fill
from seq2tens.explaining.case import Case, case_of_classifier, case_of_network, case_of_prepared
from seq2tens.explaining.explanation import Explanation
from seq2tens.explaining.secant import contributions
from seq2tens.explaining.steps import step_contributions

# Sums that miss the output by more than this part of their terms are not rounding.
TOLERANCE = 1e-6


def explain(
    model: Any,
    x: Any,
    *,
    target: Any = None,
    baseline: Any = None,
    names: Sequence[str] | None = None,
    preparation: Preparation | None = None,
) -> Explanation:
    """Attribute the prediction for one sequence to variables at times, and to ordered pairs of times.

    Two exact decompositions of the difference between the outputs for `x` and for a baseline. The first is
    over times and variables: the slope of the network between the two inputs, times their difference. A
    variable is a channel with all that comes of it (whether and how long ago it was observed); time and
    static features are variables of their own. The second is over steps and pairs of steps of the sequence
    that the network reads last, as a mean over time or with an LS2T layer: a pair adds what its two steps,
    and those between them, add together and not apart. Without LS2T layers there are no pairs. Everything is
    computed in float64.

    Args:
        model: a fitted network classifier of `seq2tens.estimators`, or a module that gives logits
            `(sequences, classes)` for `(sequences, time, channels)`, built on a network of `seq2tens.nn`.
        x: one sequence, in any form that the classifier's `predict` takes, or a tensor `(time, channels)`.
        target: the class to explain, or the number of a module's logit; default the second of two classes,
            else the one that is predicted. The output is its logit minus the mean of the others'.
        baseline: what `x` is compared with, as long as `x` and of the same form. The default is 0 for every
            channel that the network reads, which after standardisation is the mean of the training data, and
            for gaps that nothing was observed.
        names: of the channels, or of the channels and then the static features.
        preparation: for a module that reads what this preparation gives; `x` is then a sequence as it was
            measured, as for a classifier.
    """
    with torch.inference_mode(False), torch.enable_grad():
        case = _case(model, x, target, baseline, names, preparation)
        with torch.no_grad():
            output, baseline_output = (case.network(case.pair) @ case.contrast).tolist()
        parts = contributions(case.network, case.contrast, case.pair)
        singles, pairs = step_contributions(case.network, case.contrast, case.pair)
    for terms in ([parts], [singles, pairs]):
        _check_sum(terms, output, baseline_output)
    variables = np.zeros((len(parts), len(case.names)))
    np.add.at(variables.T, case.variable, parts.numpy().T)
    times = np.arange(float(len(parts))) if case.times is None else case.times.astype(np.float64)
    return Explanation(
        target=case.target,
        output=output,
        baseline_output=baseline_output,
        names=case.names,
        times=times,
        values=_carried(case.values),
        measured=~np.isnan(case.values),
        variables=variables,
        singles=singles.numpy(),
        pairs=pairs.numpy(),
    )


def _case(
    model: Any,
    x: Any,
    target: Any,
    baseline: Any,
    names: Sequence[str] | None,
    preparation: Preparation | None,
) -> Case:
    if isinstance(model, nn.Module):
        if preparation is not None:
            return case_of_prepared(model, preparation, x, target, baseline, names)
        return case_of_network(model, x, target, baseline, names)
    from seq2tens.estimators import NetworkClassifier

    if not isinstance(model, NetworkClassifier):
        raise TypeError(
            "`model` must be a network classifier of seq2tens.estimators or a torch module, "
            f"got {type(model).__name__} (`explain_features` is for those on random features)"
        )
    check.require(preparation is None, "`preparation` must be None for a classifier, which has its own")
    return case_of_classifier(model, x, target, baseline, names)


def _carried(values: Float[np.ndarray, "time variables"]) -> Float[np.ndarray, "time variables"]:
    return forward_fill(Sequences(values, np.array([0, len(values)])), np.nan).values


def _check_sum(terms: list[Tensor], output: float, baseline_output: float) -> None:
    """A network of other parts than linear maps, ReLU, products and LS2T layers is found out here."""
    total = sum(float(t.sum()) for t in terms)
    size = sum(float(t.abs().sum()) for t in terms) + abs(output) + abs(baseline_output)
    error = abs(total - (output - baseline_output))
    check.require(
        error <= TOLERANCE * size,
        "`model` must consist of linear maps, ReLU and products up to where it reads a sequence, and of "
        f"linear maps from there on, got one whose contributions miss the output by {error:.3g}",
    )
