"""Run compiled kernels one after the other without Python in between, compiled by numba on first use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from seq2tens.ops._blas import pointer
from seq2tens.ops._kernel_tools import callback, compiled

_FIELDS = "words steps step_count links link_count bases parallel thread_number threads"
CALL = np.dtype([(name, np.int64) for name in _FIELDS.split()])
STEP = 6  # numbers that describe a step
LINK = 3  # numbers that describe where an address comes from

as_callback = callback(CALL)


@intrinsic
def call_alone(typingctx, function, record):
    """Call a C function of one record."""

    def codegen(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [builder.inttoptr(args[1], byte)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def call_parallel(typingctx, parallel, function, record, threads):
    """Call it from a team of threads; `parallel` is the address of GOMP_parallel."""

    def codegen(context, builder, signature, args):
        byte, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, byte, integer, integer])
        arguments = [
            builder.inttoptr(args[1], byte),
            builder.inttoptr(args[2], byte),
            builder.trunc(args[3], integer),
            ir.Constant(integer, 0),
        ]
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


@compiled
def run(r):
    """Write the addresses into the records, then call each step."""
    word = np.int64(0)
    links = carray(pointer(r.links, word), (r.link_count * LINK,))
    bases = pointer(r.bases, word)
    words = pointer(r.words, word)
    for i in range(0, r.link_count * LINK, LINK):
        words[links[i]] = bases[links[i + 1]] + links[i + 2]
    steps = carray(pointer(r.steps, word), (r.step_count * STEP,))
    for i in range(0, r.step_count * STEP, STEP):
        function, record, tasks = steps[i], steps[i + 1], steps[i + 2]
        threads = min(r.threads, tasks)
        words[record + steps[i + 3]] = threads
        words[record + steps[i + 4]] = 0
        words[record + steps[i + 5]] = r.thread_number if threads > 1 else 0
        if threads > 1:
            call_parallel(r.parallel, function, r.words + 8 * record, threads)
        else:
            call_alone(function, r.words + 8 * record)


@lru_cache(maxsize=1)
def entry() -> Any:
    """The compiled function of one record."""

    @as_callback
    def run_program(call):
        run(carray(call, (1,))[0])

    return run_program
