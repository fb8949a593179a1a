"""The difference of a network's outputs for two inputs, as an exact sum over the entries of the input.

Autograd runs as usual, but with slopes of secants between the two inputs in place of derivatives. Linear maps
are their own secants. A ReLU has the slope Δy / Δx. A product has Δ(ab) = Δa · mean(b) + mean(a) · Δb, so the
adjoint of the recursion is the usual one at the mean of the two runs. The chain rule holds for secants as it
does for derivatives, so the slopes times the differences of the inputs add up to the difference of the
outputs.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_RELU = {torch.relu, Tensor.relu, nn.functional.relu}
_PRODUCT = {torch.mul, Tensor.mul}


def contributions(
    network: nn.Module,
    contrast: Float[Tensor, " classes"],
    pair: Float[Tensor, "2 time channels"],
) -> Float[Tensor, "time channels"]:
    """Return the contribution of each entry of the first sequence to the difference from the second's output.

    The output is the combination `contrast` of the network's logits.
    """
    leaf = pair.detach().requires_grad_()
    with _Secants():
        output = network(leaf) @ contrast
    (slopes,) = torch.autograd.grad(output[0], leaf)
    return slopes[0] * (pair[0] - pair[1])


class _Secants(TorchFunctionMode):
    """Replace derivatives of non-linear operations by secants; the first axis of tensors is the two runs."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func in _RELU:
            return _Rectified.apply(args[0])
        if func in _PRODUCT and all(isinstance(t, Tensor) and t.requires_grad for t in args):
            return _Product.apply(*torch.broadcast_tensors(*args))
        return func(*args, **(kwargs or {}))


class _Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.relu()
        rise, run = y[:1] - y[1:], x[:1] - x[1:]
        ctx.save_for_backward(torch.where(run == 0, (x[:1] > 0).to(x.dtype), rise / run))
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * ctx.saved_tensors[0]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a.mean(0, keepdim=True), b.mean(0, keepdim=True))
        return a * b

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        return gradient * b, gradient * a
