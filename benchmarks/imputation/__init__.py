"""Errors of imputers, with their default settings, on entries that were hidden from them.

    python -m benchmarks.imputation run [--datasets NAME…] [--models NAME…] [--hide points:0.1…] [--seeds N]
    python -m benchmarks.imputation report

A run appends one row per finished fit to `results/imputation_holdout.csv` and skips what is there; a report
writes the tables of docs/accuracy.md and draws its pictures. PhysioNet 2012, ETTh1 and weather are read from
SEQ2TENS_DATA, BasicMotions comes with aeon. The imputers of PyPOTS need `pip install 'seq2tens[baselines]'`.

The same part of the observed entries is hidden in training and in test sequences, for all models the same
entries. A model is fitted to training sequences and fills test sequences; hidden entries of these are scored.
"""
