"""Operations with a definition and fast versions; `dispatch` alone chooses which of them runs."""

from seq2tens.ops.chains import Chains, make_chains
from seq2tens.ops.dispatch import backends
from seq2tens.ops.ls2t import Backend, accumulation_dtype, ls2t
from seq2tens.ops.native import kernels

__all__ = ["Backend", "Chains", "accumulation_dtype", "backends", "kernels", "ls2t", "make_chains"]
