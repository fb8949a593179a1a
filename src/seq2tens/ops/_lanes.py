"""Vectors of one cache line as numba types, so that loops over them stay in registers.

Compilers do not vectorise loops whose arrays may overlap, as the states of a chain do. Positions count
elements of contiguous arrays. Native vectors hold 16 float32 or 8 float64; wide vectors hold 8 float64
whatever the memory, widened when read and rounded when written.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WIDE = 8
_ELEMENT = {32: ir.FloatType(), 64: ir.DoubleType()}


class Lanes(types.Type):
    """`count` floating-point numbers of `bits` bits."""

    def __init__(self, bits: int, count: int) -> None:
        self.bits, self.count = bits, count
        self.vector = ir.VectorType(_ELEMENT[bits], count)
        super().__init__(name=f"float{bits}x{count}")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, frontend_type):
        super().__init__(manager, frontend_type, frontend_type.vector)


_wide = Lanes(64, WIDE)


def _pointer(context, builder, array_type, array, position, count):
    """Where `count` elements from `position` on lie, as a vector of the array's dtype."""
    start = builder.gep(context.make_array(array_type)(context, builder, array).data, [position])
    memory = ir.VectorType(_ELEMENT[array_type.dtype.bitwidth], count)
    return builder.bitcast(start, memory.as_pointer()), memory


def _loader(array, lanes):
    def codegen(context, builder, signature, args):
        pointer, memory = _pointer(context, builder, signature.args[0], *args, lanes.count)
        value = builder.load(pointer, align=array.dtype.bitwidth // 8)
        return value if memory == lanes.vector else builder.fpext(value, lanes.vector)

    return lanes(array, types.int64), codegen


@intrinsic
def lanes_of(typingctx, array):
    """Elements of a native vector, as a constant: a loop whose step is not costs a division."""
    count = 512 // array.dtype.bitwidth

    def codegen(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), count)

    return types.int64(array), codegen


@intrinsic
def load(typingctx, array, position):
    """A native vector."""
    return _loader(array, Lanes(array.dtype.bitwidth, 512 // array.dtype.bitwidth))


@intrinsic
def load_wide(typingctx, array, position):
    """A wide vector."""
    return _loader(array, _wide)


@intrinsic
def store(typingctx, array, position, value):
    """Write a vector, rounded to the array's dtype."""

    def codegen(context, builder, signature, args):
        pointer, memory = _pointer(context, builder, signature.args[0], args[0], args[1], value.count)
        number = args[2] if memory == value.vector else builder.fptrunc(args[2], memory)
        builder.store(number, pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), codegen


@intrinsic
def stream(typingctx, array, position, value):
    """Write a native vector past the caches; its place is at a cache line. A `fence` has to follow."""

    def codegen(context, builder, signature, args):
        pointer, _ = _pointer(context, builder, signature.args[0], args[0], args[1], value.count)
        instruction = builder.store(args[2], pointer, align=64)
        once = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        instruction.set_metadata("nontemporal", once)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), codegen


@intrinsic
def fence(typingctx):
    """Let other threads see all that has been written."""

    def codegen(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def fill_wide(typingctx, value):
    """The same number in every lane of a wide vector."""

    def codegen(context, builder, signature, args):
        start = ir.Constant(_wide.vector, ir.Undefined)
        first = builder.insert_element(start, args[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE)
        return builder.shuffle_vector(first, start, zeros)

    return _wide(types.float64), codegen


@intrinsic
def add(typingctx, a, b):
    """a + b in every lane."""

    def codegen(context, builder, signature, args):
        return builder.fadd(*args)

    return a(a, a), codegen


@intrinsic
def times(typingctx, a, b):
    """a · b in every lane."""

    def codegen(context, builder, signature, args):
        return builder.fmul(*args)

    return a(a, a), codegen


@intrinsic
def fma(typingctx, a, b, c):
    """a · b + c in every lane, rounded once."""

    def codegen(context, builder, signature, args):
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(a.vector, [a.vector] * 3), f"llvm.fma.v{a.count}f{a.bits}"
        )
        return builder.call(function, args)

    return a(a, a, a), codegen
