"""A stack on CPUs: the kernel of `csrc/stack.cpp`, forward and backward, as one function of autograd."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.batch_norm import Running, Settings
from seq2tens.ops.chains import Chains
from seq2tens.ops.dispatch import cpu_unsupported, is_observed
from seq2tens.ops.ls2t.cpu import Words, steps_per_block, words_of
from seq2tens.ops.stack import reference
from seq2tens.ops.stack.reference import Ends, Layer, Options, Shortcut


class StackLayer(native.Struct):
    """One layer; see `csrc/seq2tens.h`."""

    name = "seq2tens_stack_layer"
    _fields_ = (
        *native.fields("width return_sequences block"),
        *native.fields("eps momentum", ctypes.c_double),
        ("words", ctypes.POINTER(Words)),
        *native.arrays("weight bias running_mean running_variance dweight dbias"),
    )


class Branch(native.Struct):
    """A branch of a sum; see `csrc/seq2tens.h`."""

    name = "seq2tens_branch"
    _fields_ = native.arrays(
        "matrix shift weight bias running_mean running_variance dmatrix dshift dweight dbias"
    )


class Residual(native.Struct):
    """Residual connections; see `csrc/seq2tens.h`."""

    name = "seq2tens_residual"
    _fields_ = (
        *native.fields("input_features out_features"),
        *native.fields("scale eps momentum", ctypes.c_double),
        ("x", ctypes.c_void_p),
        *native.fields("main input output", ctypes.POINTER(Branch)),
    )


class Forward(native.Struct):
    """The forward pass of a stack; see `csrc/seq2tens.h`."""

    name = "seq2tens_stack"
    _fields_ = (
        *native.fields("is_double threads batch length features layers"),
        ("layer", ctypes.POINTER(StackLayer)),
        ("residual", ctypes.POINTER(Residual)),
        *native.arrays("x mask y memory"),
        ("memory_size", ctypes.POINTER(ctypes.c_int64)),
    )


class Backward(native.Struct):
    """Its adjoint; see `csrc/seq2tens.h`."""

    name = "seq2tens_stack_gradients"
    _fields_ = (("call", ctypes.POINTER(Forward)), *native.arrays("y x input"))


class Stack(NamedTuple):
    """What stays the same for all calls of a stack, with the settings of its residual if it has one."""

    options: tuple[Options, ...]
    residual: Settings | None
    biased: tuple[bool, ...]  # which layers have a bias


def unsupported(
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running],
    *others: Tensor,
) -> str | None:
    """Why the kernel cannot take such a call; None if it can."""
    statistics = [tensor for pair in running for tensor in pair]
    tensors = [x, *(t for layer in layers for t in layer if t is not None), *statistics, *others]
    if is_observed(x):
        return "operations are traced or intercepted"
    if len({tensor.dtype for tensor in tensors}) > 1 or x.dtype not in (torch.float32, torch.float64):
        return "tensors have different dtypes"
    if not all(tensor.is_contiguous() for tensor in statistics):
        return "running statistics are parts of other tensors, and are written in place"
    pairs = zip(layers, options, strict=True)
    if 0 in x.shape or not all(_is_one_chain(layer.weight, option.chains) for layer, option in pairs):
        return "it takes layers of one chain"
    return cpu_unsupported(*tensors, *(() if mask is None else (mask,)))


def residual_unsupported(
    features: Tensor,
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
    running: Sequence[Running],
) -> str | None:
    """Why the kernel cannot take such a call; None if it can."""
    outside = (x, ends.weight, ends.bias, *ends.start, *ends.end)
    return unsupported(features, mask, layers, options, running, *outside)


def _is_one_chain(weight: Tensor, chains: Chains) -> bool:
    levels = tuple(range(weight.shape[0]))
    return chains == Chains(levels, tuple(m - 1 for m in levels), levels)


def stack(
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    running: Sequence[Running],
) -> Tensor:
    """Same signature and meaning as `reference.stack`."""
    fixed = Stack(tuple(options), None, tuple(layer.bias is not None for layer in layers))
    y: Tensor = _Stack.apply(fixed, running, x, None, mask, *(t for layer in layers for t in layer))
    return y


def residual_stack(
    features: Tensor,
    x: Tensor,
    mask: Tensor | None,
    layers: Sequence[Layer],
    options: Sequence[Options],
    ends: Ends,
    settings: Settings,
    running: Sequence[Running],
) -> Tensor:
    """Same signature and meaning as `reference.residual_stack`."""
    fixed = Stack(tuple(options), settings, tuple(layer.bias is not None for layer in layers))
    parameters = [t for layer in layers for t in layer]
    outside = (ends.weight, ends.bias, *ends.start, *ends.end)
    y: Tensor = _Stack.apply(fixed, running, features, x, mask, *parameters, *outside)
    return y


class _Call:
    """The struct of a call, and the tensors whose addresses stand in it.

    `parameters` are weight and bias of every layer, then with a residual weight and bias of its main branch,
    and matrix, shift, weight and bias of the two others. Derivatives have the same order.
    """

    def __init__(
        self,
        fixed: Stack,
        running: Sequence[Running],
        tensors: Sequence[Tensor | None],
        parameters: Sequence[Tensor | None],
        gradients: Sequence[Tensor | None],
    ) -> None:
        x, residual_input, mask = tensors
        assert x is not None
        self.tensors = (*tensors, *parameters)
        count = len(fixed.options)
        self.layers = (StackLayer * count)()
        for i, option in enumerate(fixed.options):
            pair = slice(2 * i, 2 * i + 2)
            self.layers[i] = _layer(option, running[i], parameters[pair], gradients[pair])
        self.struct = Forward(x.dtype == torch.float64, native.threads(), *x.shape, count, self.layers)
        self.struct.x, self.struct.mask = native.address(x), native.address(mask)
        if fixed.residual is not None:
            assert residual_input is not None
            self.struct.residual = ctypes.pointer(
                _residual(
                    fixed.residual, running[count:], residual_input, parameters[2 * count :],
                    gradients[2 * count :],
                )
            )  # fmt: skip

    def run(self, y: Tensor) -> Tensor:
        """Fill `y`; return the memory that the backward pass needs."""
        size = ctypes.c_int64()
        self.struct.memory_size = ctypes.pointer(size)
        native.run("stack_forward", self.struct)
        memory = torch.empty(size.value, dtype=torch.uint8)
        self.struct.y, self.struct.memory = y.data_ptr(), memory.data_ptr()
        native.run("stack_forward", self.struct)
        return memory


def _layer(
    option: Options, running: Running, parameters: Sequence[Tensor | None], gradients: Sequence[Tensor | None]
) -> StackLayer:
    weight = parameters[0]
    assert weight is not None
    words = ctypes.pointer(words_of(option.chains, weight.shape[0]).struct)
    arrays = map(native.address, (*parameters, *running, *gradients))
    return StackLayer(
        weight.shape[2], option.return_sequences, steps_per_block(weight.shape), option.norm.eps,
        option.norm.momentum, words, *arrays,
    )  # fmt: skip


def _residual(
    settings: Settings,
    running: Sequence[Running],
    x: Tensor,
    parameters: Sequence[Tensor | None],
    gradients: Sequence[Tensor | None],
) -> Residual:
    """The branches are the main one, that of the input and that of the output."""
    branches = []
    for statistics, part in zip(running, (slice(0, 2), slice(2, 6), slice(6, 10)), strict=True):
        missing = (None,) * (4 - len(parameters[part]))  # the main branch has no linear map
        arrays = (*missing, *parameters[part], *statistics, *missing, *gradients[part])
        branches.append(ctypes.pointer(Branch(*map(native.address, arrays))))
    out_features = len(running[-1].mean)
    return Residual(
        x.shape[2], out_features, settings.scale, settings.eps, settings.momentum, x.data_ptr(), *branches
    )


class _Stack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        fixed: Stack,
        running: Sequence[Running],
        x: Tensor,
        residual_input: Tensor | None,
        mask: Tensor | None,
        *parameters: Tensor | None,
    ) -> Tensor:
        given = (x, residual_input, mask, *parameters)
        tensors = [None if t is None else native.contiguous(t) for t in given]
        nothing = [None] * len(parameters)
        call = _Call(fixed, running, tensors[:3], tensors[3:], nothing)
        last = parameters[2 * len(fixed.options) - 2]
        assert last is not None
        steps = x.shape[:2] if fixed.options[-1].return_sequences else x.shape[:1]
        y = x.new_empty(*steps, last.shape[0] * last.shape[2])
        ctx.memory = call.run(y)
        ctx.save_for_backward(x, residual_input, mask, *parameters)
        ctx.fixed, ctx.running, ctx.contiguous = fixed, running, tensors
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, residual_input, mask, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again, for which there is no kernel
            return None, None, *_differentiable(dy, ctx.fixed, x, residual_input, mask, parameters)
        dy, dx = dy.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
        gradients = [None if p is None else torch.empty(p.shape, dtype=p.dtype) for p in parameters]
        call = _Call(ctx.fixed, ctx.running, ctx.contiguous[:3], ctx.contiguous[3:], gradients)
        call.struct.memory = ctx.memory.data_ptr()
        dinput = x.new_empty(residual_input.shape) if ctx.needs_input_grad[3] else None
        addresses = map(native.address, (dy, dx, dinput))
        native.run("stack_backward", Backward(ctypes.pointer(call.struct), *addresses))
        return None, None, dx, dinput, None, *gradients


def _differentiable(
    dy: Tensor,
    fixed: Stack,
    x: Tensor,
    residual_input: Tensor | None,
    mask: Tensor | None,
    parameters: Sequence[Any],
) -> tuple[Tensor | None, ...]:
    tensors = [x, residual_input, None, *parameters]
    wanted = [t for t in tensors if t is not None and t.requires_grad]
    count = 2 * len(fixed.options)
    layers = [Layer(*pair) for pair in zip(parameters[:count:2], parameters[1:count:2], strict=True)]
    if fixed.residual is None:
        y = reference.stack(x, mask, layers, fixed.options)
    else:
        assert residual_input is not None
        weight, bias, *ends = parameters[count:]
        y = reference.residual_stack(
            x, residual_input, mask, layers, fixed.options,
            Ends(weight, bias, Shortcut(*ends[:4]), Shortcut(*ends[4:])), fixed.residual,
        )  # fmt: skip
    gradients = iter(torch.autograd.grad(y, wanted, dy, create_graph=True))
    return tuple(next(gradients) if t is not None and t.requires_grad else None for t in tensors)
