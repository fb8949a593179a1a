"""Pure functions on batches of sequences, axes `(batch, time, channels)`. Arguments are checked here.

A step is valid if `mask` is True there and, with `lengths`, if it lies within the length of its sequence.
Invalid steps may hold any values, including NaN: no result depends on them.
"""

from seq2tens.functional.chunks import Transfer, apply_transfer, combine, transfer
from seq2tens.functional.convolution import convolve
from seq2tens.functional.convolution import prepare_convolution as prepare_convolution
from seq2tens.functional.convolution import reach as reach
from seq2tens.functional.intervals import PrefixLS2T
from seq2tens.functional.layer import Weights, ls2t, normalize_levels
from seq2tens.functional.lifted import cut_into_runs as cut_into_runs
from seq2tens.functional.lifted import sum_runs as sum_runs
from seq2tens.functional.normalization import Running, batch_norm, masked_mean
from seq2tens.functional.paths import (
    Series,
    basepoint,
    clock,
    difference,
    forward_fill,
    lags,
    lead_lag,
    time_embedding,
)
from seq2tens.functional.paths import neighbor_difference as neighbor_difference
from seq2tens.functional.paths import relative_time as relative_time
from seq2tens.functional.states import ls2t_states
from seq2tens.functional.states import state_functionals as state_functionals
from seq2tens.functional.windows import sliding_ls2t
from seq2tens.ops import Backend, Chains, make_chains
from seq2tens.ops import trim_heap as trim_heap

__all__ = [
    "Backend",
    "Chains",
    "PrefixLS2T",
    "Running",
    "Series",
    "Transfer",
    "Weights",
    "apply_transfer",
    "basepoint",
    "batch_norm",
    "clock",
    "combine",
    "convolve",
    "difference",
    "forward_fill",
    "lags",
    "lead_lag",
    "ls2t",
    "ls2t_states",
    "make_chains",
    "masked_mean",
    "normalize_levels",
    "sliding_ls2t",
    "time_embedding",
    "transfer",
]
