"""The only place that chooses which implementation of an operation runs.

Every operation has a reference implementation: its definition, in operations of torch. Faster implementations
are registered before it, each with a function that returns the reason why it cannot handle a call, or None if
it can. The first implementation that can handle the call runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode

from seq2tens._checks import choice, in_func_transform
from seq2tens.ops import native

_PLAIN = (Tensor, torch.nn.Parameter)


class Implementation(NamedTuple):
    """A function with the signature of the reference, and a check that says why it cannot handle a call."""

    run: Callable[..., Any]
    unsupported: Callable[..., str | None]


_registry: dict[str, dict[str, Implementation]] = {}  # operation → backend, in order of preference


def register(
    operation: str, backend: str, run: Callable[..., Any], unsupported: Callable[..., str | None]
) -> None:
    """Register an implementation; `unsupported` returns why it cannot handle some arguments, or None."""
    _registry.setdefault(operation, {})[backend] = Implementation(run, unsupported)


def run(operation: str, backend: str | None, *arguments: Any) -> Any:
    """Run an operation with the implementation that `choose` selects."""
    return choose(operation, backend, *arguments)(*arguments)


def choose(operation: str, backend: str | None, *arguments: Any) -> Callable[..., Any]:
    """Return the implementation for these arguments; a backend requested by name must support them."""
    offered = _registry[operation]
    if backend in (None, "auto"):
        for implementation in offered.values():
            if implementation.unsupported(*arguments) is None:
                return implementation.run
    choice("backend", backend, (None, "auto", *offered))
    reason = offered[str(backend)].unsupported(*arguments)
    if reason is not None:
        raise RuntimeError(f"`backend` {backend!r} cannot run here: {reason}")
    return offered[str(backend)].run


def reasons(operation: str, *arguments: Any) -> dict[str, str | None]:
    """Return, for every backend of an operation, why it cannot run these arguments; None if it can."""
    return {name: each.unsupported(*arguments) for name, each in _registry[operation].items()}


def tensors_in(arguments: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among the arguments, including those inside tuples and lists."""
    tensors: list[Tensor] = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            tensors.append(argument)
        elif isinstance(argument, (tuple, list)):
            tensors += tensors_in(argument)
    return tensors


def always_supported(*_: Any) -> None:
    """Return None: a reference implementation supports every call."""


def cpu_unsupported(*arguments: Any) -> str | None:
    """Return why the CPU kernels cannot handle the tensors among the arguments; None if they can."""
    tensors = tensors_in(arguments)
    for tensor in tensors:
        if not tensor.is_cpu:
            return f"a tensor is on {tensor.device}"
    if torch.compiler.is_compiling():
        return native.unavailable()
    if torch._C._functorch.peek_interpreter_stack() is not None and any(map(in_func_transform, tensors)):
        return "it has no rules for torch.func transforms; use the reference"
    if forward_ad._current_level >= 0 and any(map(_has_tangent, tensors)):
        return "it has no rule for forward-mode differentiation; use the reference"
    _warn_once()
    return native.unavailable()


def _has_tangent(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and forward_ad.unpack_dual(tensor).tangent is not None


def is_observed(tensor: Tensor) -> bool:
    """Whether operations are traced or intercepted and so must go through torch's dispatcher."""
    return (
        torch.compiler.is_compiling()
        or type(tensor) not in _PLAIN
        or _get_current_dispatch_mode() is not None
        or torch.jit.is_tracing()
    )


def forward_unsupported(*arguments: Any) -> str | None:
    """Return why a kernel without derivatives cannot handle the tensors; None if it can."""
    tensors = tensors_in(arguments)
    if may_be_differentiated(*tensors):
        return "it has no derivatives; use the reference"
    if any(is_observed(tensor) for tensor in tensors):
        return "operations of torch are being recorded; use the reference, which consists of them"
    return cpu_unsupported(*tensors)


def full_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """Disable autocast, which would run matrix products in half precision; the meta device has none."""
    return nullcontext() if tensor.is_meta else torch.autocast(tensor.device.type, enabled=False)


def may_be_differentiated(*tensors: Tensor | None) -> bool:
    """Whether a backward pass may follow; a torch.jit trace is run later, with other tensors."""
    if torch.jit.is_tracing():
        return True
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def reference_gradients(
    reference: Callable[..., Tensor], inputs: tuple[Any, ...], dy: Tensor
) -> tuple[Tensor | None, ...]:
    """Return gradients that can be differentiated again; the kernels have no second derivatives."""
    needed = [isinstance(t, Tensor) and t.requires_grad for t in inputs]
    leaves = [t for t, needs_gradient in zip(inputs, needed, strict=True) if needs_gradient]
    gradients = iter(torch.autograd.grad(reference(*inputs), leaves, dy, create_graph=True))
    return tuple(next(gradients) if needs_gradient else None for needs_gradient in needed)


_warned = False


def _warn_once() -> None:
    """Warn that the installation has no kernels: results are correct, but slow."""
    global _warned
    if not _warned and (reason := native.unavailable()) is not None:
        _warned = True
        warnings.warn(f"seq2tens runs without its compiled kernels, slower: {reason}", stacklevel=2)
