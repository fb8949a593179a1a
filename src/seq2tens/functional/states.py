"""All states of the recursion along a sequence, from any of which it can be continued."""

from __future__ import annotations

from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from seq2tens import _checks as check
from seq2tens.functional.layer import Description
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
    """Return the complete state of `ls2t` after every step; the arguments are those of `ls2t`.

    State `make_chains(…).output[m - 1]` holds level m.
    """
    recursion = state_functionals(x, weight, bias, **functionals)
    check.not_empty("x", x)
    states, _ = recursion.run(x, mask, state)
    return states


def state_functionals(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, **functionals: Any
) -> Functionals:
    """Check the arguments of `ls2t_states` and return its functionals: every state is an output."""
    recursion = Description(weight, bias, **functionals).functionals(x)
    chains = recursion.chains
    return recursion._replace(chains=chains._replace(output=tuple(range(len(chains.component)))))
