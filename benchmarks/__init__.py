"""Benchmarks: every claim about speed is a case, measured by `python -m benchmarks run [SUITE…]`."""
