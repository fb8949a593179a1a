"""`python -m benchmarks.imputation`."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.imputation
from benchmarks.imputation.data import PROTOCOLS, Hide
from benchmarks.imputation.reporting import report
from benchmarks.imputation.rows import RESULTS
from benchmarks.imputation.running import MODELS, Plan, run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.imputation",
        description=benchmarks.imputation.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="fit and score the cells that are not in the results yet")
    runner.add_argument("--datasets", nargs="+", default=list(PROTOCOLS), choices=list(PROTOCOLS))
    runner.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    runner.add_argument("--hide", nargs="+", type=Hide.parse, help="such as points:0.1 or blocks:0.5")
    runner.add_argument("--seeds", type=int, default=2)
    runner.add_argument("--limit", type=int, default=0, help="sequences per half, for a trial")
    runner.add_argument("--epochs", type=int, default=0, help="number of epochs, for a trial")
    runner.add_argument("--time-limit", type=int, default=0, help="seconds per fit, for models with a limit")
    runner.add_argument("--results", type=Path, default=RESULTS)
    verbs.add_parser("report", help="write the tables into the documentation")
    options = parser.parse_args()
    if options.verb == "report":
        report()
    else:
        plan = Plan(
            options.datasets,
            options.models,
            options.hide,
            options.seeds,
            limit=options.limit,
            epochs=options.epochs,
            time_limit=options.time_limit,
        )
        run(plan, options.results)


if __name__ == "__main__":
    main()
