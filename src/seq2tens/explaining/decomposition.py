"""Explanation of a network's prediction for one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import _checks as check
from seq2tens.data import Preparation, Sequences, forward_fill
from seq2tens.explaining.case import Case, case_of_classifier, case_of_network, case_of_prepared
from seq2tens.explaining.explanation import Explanation
from seq2tens.explaining.secant import contributions
from seq2tens.explaining.steps import step_contributions

# A sum that misses the output by more than this fraction of its terms is not explained by rounding.
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

    The result holds two exact decompositions of the difference between the outputs for `x` and for a
    baseline. The first is over times and variables: the slope of the network between the two inputs, times
    their difference. A variable is a channel with everything derived from it (whether and how long ago it was
    observed); time and static features are variables of their own. The second is over steps and pairs of
    steps of the last sequence that the network reduces to a vector, with a mean over time or an LS2T layer. A
    pair contributes what its two steps, with those between them, add jointly beyond their single
    contributions. Without LS2T layers there are no pairs. Everything is computed in float64.

    Args:
        model: a fitted network classifier of `seq2tens.estimators`, or a module that maps
            `(sequences, time, channels)` to logits `(sequences, classes)`, built on a network of
            `seq2tens.nn`.
        x: one sequence, in any form that the classifier's `predict` takes, or a tensor `(time, channels)`.
        target: the class to explain, or the index of a module's logit. The default is the second of two
            classes, otherwise the predicted one. The output is its logit minus the mean of the other logits.
        baseline: the sequence to compare `x` with, of the same length and form. The default is 0 for every
            channel that the network reads, which after standardisation is the mean of the training data, and
            no observations for the channels that describe missing values.
        names: names of the channels, or of the channels and then the static features.
        preparation: the preparation of a module's input; `x` is then a sequence as it was measured, as for a
            classifier.
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
    """Require that the terms add up; they do not if the network has unsupported non-linear parts."""
    total = sum(float(t.sum()) for t in terms)
    size = sum(float(t.abs().sum()) for t in terms) + abs(output) + abs(baseline_output)
    error = abs(total - (output - baseline_output))
    check.require(
        error <= TOLERANCE * size,
        "`model` must consist of linear maps, ReLU and products up to where it reads a sequence, and of "
        f"linear maps from there on, got one whose contributions miss the output by {error:.3g}",
    )
