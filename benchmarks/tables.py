"""Time and memory for reading tables of ten million rows.

python -m benchmarks.tables --rows 10000000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.run import status

STEPS = 1000  # per sequence


def write(folder: Path, rows: int) -> list[Path]:
    """Write the same table with four channels as `.csv` and `.parquet`."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    ids = np.arange(rows) // STEPS
    columns = {
        "id": ids,
        "time": np.arange(rows) % STEPS,
        **{name: rng.normal(size=rows).round(6) for name in ("x", "y", "z", "w")},
        "label": pa.array(np.array(["rest", "run"])[ids % 2]),
    }
    table = pa.table(columns)
    folder.mkdir()
    paths = [folder / "table.csv", folder / "table.parquet"]
    pyarrow.csv.write_csv(table, paths[0])
    pyarrow.parquet.write_table(table, paths[1])
    return paths


def measure(path: Path, small: Path) -> None:
    """Read a file in this process and print its cost; a small file is read first, which loads libraries."""
    from seq2tens.data import read

    read(small)
    before = status("VmRSS")
    start, cpu = time.perf_counter(), time.process_time()
    data = read(path)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak, size = status("VmHWM") - before, path.stat().st_size
    print(
        f"{path.suffix:<9}{len(data.sequences.values):>9} rows {size / 2**20:6.0f} MiB {seconds:6.1f} s, "
        f"{cpu:.1f} s of processors; {peak / 2**20:.0f} MiB at most, {peak / size:.1f} times the file"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument(
        "--files", type=Path, nargs=2, help="a large and a small file to read in this process"
    )
    arguments = parser.parse_args()
    if arguments.files is not None:
        measure(*arguments.files)
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        large, small = (
            write(Path(folder, name), rows) for name, rows in (("large", arguments.rows), ("small", 50_000))
        )
        for files in zip(large, small, strict=True):
            # a separate process, whose peak memory is that of this file
            command = [sys.executable, "-m", "benchmarks.tables", "--files", *map(str, files)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
