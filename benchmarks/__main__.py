"""Run the benchmarks and report their results."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.registry import SUITES, cases
from benchmarks.report import forward_times, write
from benchmarks.run import SECONDS, peak_bytes, run

RESULTS = Path("benchmarks/results.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="measure the named suites, or all of them")
    runner.add_argument("suites", nargs="*")
    runner.add_argument("--only", default="", help="measure only cases whose name contains this text")
    runner.add_argument("--out", type=Path, default=RESULTS)
    runner.add_argument("--seconds", type=float, default=SECONDS, help="time per contender and case")
    verbs.add_parser("list", help="list the suites")
    pages = verbs.add_parser("report", help="write the tables of a results file into the documentation")
    pages.add_argument("results", type=Path, nargs="?", default=RESULTS)
    pages.add_argument("--page", type=Path, default=Path("docs/performance.md"))
    times = verbs.add_parser("forward", help="compare the paper's forward times with a results file")
    times.add_argument("results", type=Path, nargs="?", default=RESULTS)
    memory = verbs.add_parser("memory", help="print the peak memory of one contender, in bytes")
    memory.add_argument("suite")
    memory.add_argument("case")
    memory.add_argument("contender")
    arguments = parser.parse_args()
    if arguments.verb == "list":
        cases([])
        print(
            "\n".join(f"{name:<14} {(make.__doc__ or '').splitlines()[0]}" for name, make in SUITES.items())
        )
    elif arguments.verb == "report":
        write(arguments.results, arguments.page)
    elif arguments.verb == "forward":
        print(forward_times(arguments.results))
    elif arguments.verb == "memory":
        case = next(c for c in cases([arguments.suite]) if c.name == arguments.case)
        print(peak_bytes(case.contenders[arguments.contender]()))
    else:
        chosen = [c for c in cases(arguments.suites) if arguments.only in c.name]
        run(chosen, arguments.out, arguments.seconds, arguments.only)


if __name__ == "__main__":
    main()
