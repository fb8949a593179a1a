"""Every state of the recursion along a sequence: where a push may end, and another begin."""

from __future__ import annotations

from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.functional.layer import check_functionals
from seq2tens.ops.ls2t import Functionals


def ls2t_states(
    x: Float[Tensor, "batch time in_features"],
    weight: Float[Tensor, "components in_features width"],
    bias: Float[Tensor, "components width"] | None = None,
    *,
    mask: Bool[Tensor, "batch time"] | None = None,
    state: Float[Tensor, "batch states width"] | None = None,
    **functionals: Any,
) -> Float[Tensor, "batch time states width"]:
    """The state of `ls2t`, all of it, after every step; arguments as there.

    State `make_chains(…).output[m - 1]` holds level m.
    """
    recursion = state_functionals(x, weight, bias, **functionals)
    check.not_empty("x", x)
    states, _ = recursion.run(x, mask, state)
    return states


def state_functionals(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, **functionals: Any
) -> Functionals:
    """What `ls2t_states` runs, checked: the functionals of `ls2t` with every state for a level."""
    defaults = {"weights": "recursive", "lift_order": 1, "lift_coefficients": None, "decay": None}
    recursion = check_functionals(
        x, weight, bias, **{**defaults, "reverse": False, "backend": None, **functionals}
    )
    chains = recursion.chains
    return recursion._replace(chains=chains._replace(output=tuple(range(len(chains.component)))))
