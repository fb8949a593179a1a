"""Matrix products for numba kernels: the BLAS that torch already carries, called by its address.

An address is an argument of the kernels, so numba can keep the compiled code on disk.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@lru_cache(maxsize=1)
def addresses() -> tuple[int, int, int]:
    """Addresses of sgemm, of dgemm and of the function that sets this thread's BLAS threads (or 0)."""
    for path in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"):
        library = ctypes.CDLL(str(path))
        if hasattr(library, "sgemm_") and hasattr(library, "dgemm_"):
            return tuple(  # type: ignore[return-value]
                _address(library, name) for name in ("sgemm_", "dgemm_", "MKL_Set_Num_Threads_Local")
            )
    return _scipy_addresses()


def _address(library: ctypes.CDLL, name: str) -> int:
    found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value if hasattr(library, name) else 0
    return found or 0


def _scipy_addresses() -> tuple[int, int, int]:
    """SciPy's BLAS, where torch hides its own. Its threads are left alone: there is no local switch."""
    try:
        import scipy.linalg.cython_blas  # noqa: F401
    except ImportError as error:
        raise RuntimeError(
            "this build of torch exports no sgemm_, and SciPy, the other source of one, is not installed: "
            "pip install scipy"
        ) from error
    from numba.extending import get_cython_function_address as find

    return find("scipy.linalg.cython_blas", "sgemm"), find("scipy.linalg.cython_blas", "dgemm"), 0


@intrinsic
def gemm(typingctx, address, trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc):
    """Row-major C(m, n) = op(A)(m, k) · op(B)(k, n) + beta · C; a, b, c are addresses, beta sets the dtype.

    Fortran sees transposes, so the two factors change places.
    """
    integer = types.int64
    signature = types.void(
        integer,
        integer,
        integer,
        integer,
        integer,
        integer,
        integer,
        integer,
        integer,
        integer,
        beta,
        integer,
        integer,
    )

    def codegen(context, builder, signature, args):
        address, trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc = args
        byte = ir.IntType(8).as_pointer()

        def reference(value: ir.Value) -> ir.Value:
            return builder.bitcast(cgutils.alloca_once_value(builder, value), byte)

        def integer32(value: ir.Value) -> ir.Value:
            return reference(builder.trunc(value, ir.IntType(32)))

        def letter(flag: ir.Value) -> ir.Value:
            is_set = builder.icmp_signed("!=", flag, ir.Constant(flag.type, 0))
            return reference(
                builder.select(
                    is_set, ir.Constant(ir.IntType(8), ord("T")), ir.Constant(ir.IntType(8), ord("N"))
                )
            )

        def pointer(value: ir.Value) -> ir.Value:
            return builder.inttoptr(value, byte)

        one = ir.Constant(beta.type, 1.0)
        arguments = [
            letter(trans_b), letter(trans_a), integer32(n), integer32(m), integer32(k), reference(one),
            pointer(b), integer32(ldb), pointer(a), integer32(lda), reference(beta), pointer(c),
            integer32(ldc),
        ]  # fmt: skip
        function = ir.FunctionType(ir.VoidType(), [byte] * 13)
        builder.call(builder.inttoptr(address, function.as_pointer()), arguments)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def limit_threads(typingctx, address, count):
    """Set this thread's BLAS threads and return the number before."""

    def codegen(context, builder, signature, args):
        function = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        call = builder.inttoptr(args[0], function.as_pointer())
        before = builder.call(call, [builder.trunc(args[1], ir.IntType(32))])
        return builder.sext(before, ir.IntType(64))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def thread_number(typingctx, address):
    """Which of its team this thread is; `address` is that of omp_get_thread_num."""

    def codegen(context, builder, signature, args):
        function = ir.FunctionType(ir.IntType(32), [])
        number = builder.call(builder.inttoptr(args[0], function.as_pointer()), [])
        return builder.sext(number, ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def pointer(typingctx, address, like):
    """An address as a pointer to numbers like `like`."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(types.int64, like), codegen
