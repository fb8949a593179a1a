"""Errors of imputers with their default settings on hidden entries.

    python -m benchmarks.imputation run [--datasets NAME…] [--models NAME…] [--hide points:0.1…] [--seeds N]
    python -m benchmarks.imputation report

A run appends one row per finished fit to `results/imputation_holdout.csv` and skips fits that are there; a
report writes the tables and figures of docs/accuracy.md. PhysioNet 2012, ETTh1 and weather are read from
SEQ2TENS_DATA, BasicMotions is included in aeon. PyPOTS models need `pip install 'seq2tens[baselines]'`.

The same fraction of the observed entries is hidden in training and test sequences, the same entries for all
models. A model is fitted on training sequences and fills test sequences, whose hidden entries are scored.
"""
