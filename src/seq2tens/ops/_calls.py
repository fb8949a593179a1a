"""The record that describes one call to the kernels: sizes, switches, and addresses of arrays."""

from __future__ import annotations

import numpy as np

_SIZES = (
    "batch length features components states levels width group_width slices tasks block blocks together "
    "lift_order run_count power_size out_size state_size kept_size scratch_size"
)
_SWITCHES = "has_bias has_mask lifted reverse sequences keep joined shared difference"
_INPUTS = (
    "x weight given_weight bias coefficients powers mask state out final kept products component parent "
    "depth runs output"
)
_GRADIENTS = "path dx dweight dbias weight_total bias_total dcoefficients dpowers"
_THREADS = "scratch threads thread thread_number gemm limit_threads"
FIELDS = " ".join((_SIZES, _SWITCHES, _INPUTS, _GRADIENTS, _THREADS)).split()
CALL = np.dtype([(name, np.int64) for name in FIELDS])
AT = {name: position for position, name in enumerate(FIELDS)}
