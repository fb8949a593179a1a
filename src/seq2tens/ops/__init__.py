"""Operations, each with a reference implementation and fast ones; `dispatch` alone chooses which one runs."""

from seq2tens.ops.chains import Chains, make_chains
from seq2tens.ops.dispatch import full_precision as full_precision
from seq2tens.ops.heap import trim_heap as trim_heap
from seq2tens.ops.ls2t import Backend, Functionals, accumulation_dtype, backends
from seq2tens.ops.native import kernels

__all__ = ["Backend", "Chains", "Functionals", "accumulation_dtype", "backends", "kernels", "make_chains"]
