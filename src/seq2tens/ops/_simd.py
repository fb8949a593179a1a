"""Vectors of eight float64 that are read and written by address; `_lanes` has their arithmetic.

Slices of arrays cost more than the short loops over small levels; an address costs an addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from seq2tens.ops._lanes import Lanes
from seq2tens.ops.full_map import LANES

_double = ir.DoubleType()
_vector = ir.VectorType(_double, LANES)
_lanes = Lanes(64, LANES)


def _operation(result: types.Type, arguments: tuple[types.Type, ...], build: Callable) -> Any:
    """An intrinsic of fixed types; `build(builder, *values)` writes its instructions."""

    def codegen(context, builder, signature, args):
        value = build(builder, *args)
        return context.get_dummy_value() if result is types.void else value

    return result(*arguments), codegen


def _pointer(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.inttoptr(address, kind.as_pointer())


@intrinsic
def load(typingctx, address):
    """Eight numbers from an address."""
    build = lambda b, at: b.load(_pointer(b, at, _vector), align=8)  # noqa: E731
    return _operation(_lanes, (types.int64,), build)


@intrinsic
def store(typingctx, address, value):
    """Eight numbers to an address."""
    build = lambda b, at, value: b.store(value, _pointer(b, at, _vector), align=8)  # noqa: E731
    return _operation(types.void, (types.int64, _lanes), build)


@intrinsic
def load_one(typingctx, address):
    """One number from an address."""
    build = lambda b, at: b.load(_pointer(b, at, _double))  # noqa: E731
    return _operation(types.float64, (types.int64,), build)


@intrinsic
def store_one(typingctx, address, value):
    """One number to an address."""
    build = lambda b, at, value: b.store(value, _pointer(b, at, _double))  # noqa: E731
    return _operation(types.void, (types.int64, types.float64), build)


@intrinsic
def total(typingctx, a):
    """The sum of the lanes, neighbours first."""

    def build(builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
        lane = [builder.extract_element(a, ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
        while len(lane) > 1:
            lane = [builder.fadd(*pair) for pair in zip(lane[::2], lane[1::2], strict=True)]
        return lane[0]

    return _operation(types.float64, (_lanes,), build)


@intrinsic
def turn(typingctx, source, source_stride, source_kind, target, target_stride, target_kind):
    """Transpose eight vectors, `source_stride` bytes apart; the kinds are numbers of either dtype."""

    def at(context: Any, builder: ir.IRBuilder, start: ir.Value, stride: ir.Value, i: int, kind: Any) -> Any:
        address = builder.add(start, builder.mul(stride, ir.Constant(stride.type, i)))
        return _pointer(builder, address, ir.VectorType(context.get_value_type(kind), LANES))

    def codegen(context, builder, signature, args):
        source, source_stride, _, target, target_stride, _ = args
        places = [at(context, builder, source, source_stride, i, source_kind) for i in range(LANES)]
        rows = [builder.load(place, align=source_kind.bitwidth // 8) for place in places]
        if source_kind is types.float32:
            rows = [builder.fpext(row, _vector) for row in rows]
        rows = _transposed(builder, rows)
        places = [at(context, builder, target, target_stride, i, target_kind) for i in range(LANES)]
        for row, place in zip(rows, places, strict=True):
            value = builder.fptrunc(row, place.type.pointee) if target_kind is types.float32 else row
            builder.store(value, place, align=target_kind.bitwidth // 8)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(integer, integer, source_kind, integer, integer, target_kind), codegen


def _transposed(builder: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """In three rounds, each of which exchanges one bit of the row number with one of the lane number."""
    for bit in (1, 2, 4):
        for i in (i for i in range(LANES) if not i & bit):
            # lane k of the second vector of a pair is number LANES + k
            upper = [k + LANES - bit if k & bit else k for k in range(LANES)]
            lower = [k + LANES if k & bit else k + bit for k in range(LANES)]
            a, b = rows[i], rows[i + bit]
            rows[i], rows[i + bit] = (_shuffle(builder, a, b, lanes) for lanes in (upper, lower))
    return rows


def _shuffle(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes))
