"""Every claim of speed, as a case that one runner measures: `python -m benchmarks run [SUITE…]`."""
