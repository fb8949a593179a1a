"""The cost of training on one sequence that is split over ranks: bytes, seconds and memory.

python -m benchmarks.cost_model measure   # one rank of this machine: seconds and memory per time step
python -m benchmarks.cost_model report    # the tables of docs/scale.md, computed from that
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.pages import fill, markdown
from benchmarks.run import peak_bytes
from seq2tens import functional as F
from seq2tens.distributed import sequence_parallel, sum_gradients
from seq2tens.distributed.layer import tree_reduce
from seq2tens.nn import FCNLS2T, LS2T, LS2TBlock, MaskedBatchNorm
from seq2tens.nn.convolutional import ConvBlock

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "cost_model.json", HERE.parent / "docs" / "scale.md"
START, END = "<!-- tables -->", "<!-- end of tables -->"
BATCH, FLOAT, DOUBLE = 1, 4, 8
RANKS = (1, 4, 16, 64)
LENGTHS = (10**6, 10**7, 10**8, 10**9)
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "LS2T": lambda: LS2T(4, 16, 3),
    "FCN64-LS2T64³": lambda: FCNLS2T(3, 64, 64, 3, 2),
}
MEASURED_STEPS = {"LS2T": 2**20, "FCN64-LS2T64³": 2**16}


@dataclass(frozen=True)
class Link:
    """The assumed speed of the network between ranks."""

    seconds: float = 50e-6  # latency of a collective
    bytes_per_second: float = 25e9


@dataclass(frozen=True)
class Rank:
    """The cost of a rank in training, per time step of its chunk, and of each round of folding."""

    seconds: float
    bytes: float
    fold_seconds: float


@dataclass(frozen=True)
class Traffic:
    """The number of collectives of a training step, and the bytes that a rank receives in them."""

    calls: int
    bytes: float


def gathered(size: float, ranks: int) -> Traffic:
    """The traffic of an all-gather of `size` bytes per rank."""
    return Traffic(1, (ranks - 1) * size)


def summed(size: float, ranks: int) -> Traffic:
    """The traffic of an all-reduce of `size` bytes, in two rounds."""
    return Traffic(1, 2 * (ranks - 1) / ranks * size)


def exchanges(network: nn.Module, batch: int) -> Iterator[tuple[int, bool]]:
    """Yield the size per rank of each exchange in the forward pass, and whether gradients are exchanged."""
    first = network.fcn.blocks[0] if isinstance(network, FCNLS2T) else None
    for module in network.modules():
        if isinstance(module, LS2T):
            words = F.transfer(
                torch.zeros(1, 0, module.in_features),
                module.weight,
                order=module.order,
                weights=module.weights,
            )
            yield batch * words.values.shape[1] * module.width, True
        elif isinstance(module, LS2TBlock) and module.difference:
            yield batch * module.ls2t.in_features, True
        elif isinstance(module, ConvBlock) and module.conv.weight.shape[2] > 1:
            _, channels, kernel = module.conv.weight.shape
            yield batch * (kernel - 1) * channels, module is not first  # the input needs no gradient
    if isinstance(network, FCNLS2T):
        yield batch * network.fcn_norm.running_mean.numel(), True  # the mean over time


def traffic(network: nn.Module, ranks: int, batch: int = BATCH) -> Traffic:
    """The traffic of a training step, which does not depend on the length of the sequence."""
    parts = [gathered(3 * DOUBLE, ranks), gathered(batch * DOUBLE, ranks)]  # shapes and lengths
    for numbers, back in exchanges(network, batch):
        parts.append(gathered(numbers * FLOAT, ranks))
        if back:
            parts.append(summed(ranks * numbers * FLOAT, ranks))
    for module in network.modules():
        if isinstance(module, MaskedBatchNorm):
            channels = module.running_mean.numel()
            parts += [gathered((1 + 2 * channels) * DOUBLE, ranks), summed(2 * channels * DOUBLE, ranks)]
    parts.append(summed(sum(p.numel() for p in network.parameters()) * FLOAT, ranks))  # gradients
    return Traffic(sum(part.calls for part in parts), sum(part.bytes for part in parts))


def seconds(network: nn.Module, length: int, ranks: int, rank: Rank, link: Link) -> tuple[float, float]:
    """The time of a training step: computing, and exchanging and folding."""
    computing = math.ceil(length / ranks) * rank.seconds
    if ranks == 1:
        return computing, 0.0
    sent = traffic(network, ranks)
    layers = sum(isinstance(module, LS2T) for module in network.modules())
    fold = layers * math.ceil(math.log2(ranks)) * rank.fold_seconds
    return computing, sent.calls * link.seconds + sent.bytes / link.bytes_per_second + fold


def train_once(network: nn.Module, x: Tensor) -> None:
    """Run the forward and backward pass of one rank in a group."""
    sequence_parallel(network)(x).square().mean().backward()
    sum_gradients(network)


def measure(name: str) -> Rank:
    """Measure one rank, in a group of size 1 in this process."""
    torch.manual_seed(0)
    network, steps = NETWORKS[name](), MEASURED_STEPS[name]
    x = torch.randn(BATCH, steps, 4 if name == "LS2T" else 3)

    def work() -> None:
        train_once(network, x)

    work()
    times = [_timed(work) for _ in range(5)]
    return Rank(min(times) / steps, peak_bytes(work) / steps, _fold_seconds())


def _timed(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _fold_seconds() -> float:
    """The time of one of the six rounds that join the transfers of 64 ranks, forward and backward."""
    chunk = F.transfer(torch.randn(BATCH, 1, 64), torch.randn(2, 64, 64), order=2)
    values = chunk.values.detach().expand(64, -1, -1, -1).clone().requires_grad_()

    def work() -> None:
        tree_reduce(chunk._replace(values=values)).values.sum().backward()

    work()
    return statistics.median(_timed(work) for _ in range(50)) / 6


def measure_all() -> dict:
    """Measure every network, each in a new process for its own peak memory."""
    by_network = {}
    for name in NETWORKS:
        command = [sys.executable, "-m", "benchmarks.cost_model", "one", name]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=_local()).stdout
        by_network[name] = json.loads(output.splitlines()[-1])
    machine = f"{platform.machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    return {"machine": machine, "ranks": by_network}


def _local() -> dict[str, str]:
    return os.environ | {"GLOO_SOCKET_IFNAME": "lo"}


def measure_one(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
        print(json.dumps(asdict(measure(name))))
        dist.destroy_process_group()


def assumed_gpu(network: nn.Module) -> float:
    """Seconds per time step of a GPU with 10 TFLOP/s and 1 TB/s, whichever takes longer.

    Every weight is used once per step in the forward pass, in a multiplication and an addition, and twice in
    the backward pass. A layer at least reads its input and writes its output once in the forward pass and
    twice in the backward pass.
    """
    weights = sum(p.numel() for p in network.parameters())
    layers = [m for m in network.modules() if isinstance(m, LS2T)]
    numbers = sum(m.in_features + m.order * m.width for m in layers)
    numbers += sum(sum(m.conv.weight.shape[:2]) for m in network.modules() if isinstance(m, ConvBlock))
    return max(6 * weights / 10e12, 3 * numbers * FLOAT / 1e12)


def tables(results: dict, link: Link | None = None) -> str:
    """All tables of the page as Markdown."""
    link = link or Link()
    parts = [f"Measured on: {results['machine']}; one sequence, float32.\n", _measured_table(results)]
    parts += ["### Exchange (counted)\n", _traffic_table()]
    for name in NETWORKS:
        rank = Rank(**results["ranks"][name])
        parts += [f"### {name} on ranks like the one measured (computed)\n", _time_table(name, rank, link)]
    parts += ["### 64 GPUs (computed from assumptions)\n", _gpu_table(results, link)]
    return "\n".join(parts)


def _measured_table(results: dict) -> str:
    rows = [
        [name, f"{1e9 * rank['seconds']:.0f}", f"{rank['bytes']:.0f}", f"{1e6 * rank['fold_seconds']:.0f}"]
        for name, rank in results["ranks"].items()
    ]
    header = [
        "one rank, training",
        "ns per time step",
        "bytes per time step",
        "µs per round of folding",
    ]
    return markdown(header, rows) + "\n"


def _traffic_table() -> str:
    rows = []
    for name, make in NETWORKS.items():
        traffics = [traffic(make(), ranks) for ranks in RANKS[1:]]
        rows.append([name, str(traffics[0].calls), *(f"{part.bytes / 1e3:,.0f}" for part in traffics)])
    return markdown(["network", "collectives", *(f"kB, {ranks} ranks" for ranks in RANKS[1:])], rows) + "\n"


def _time_table(name: str, rank: Rank, link: Link) -> str:
    network, rows = NETWORKS[name](), []
    for length in LENGTHS:
        cells = []
        for ranks in RANKS:
            computing, communication = seconds(network, length, ranks, rank, link)
            memory = math.ceil(length / ranks) * rank.bytes
            cells.append(f"{_time(computing + communication)}, {_size(memory)}")
        rows.append([_power(length), *cells])
    return markdown(["steps", *(f"{ranks} rank{'s' * (ranks > 1)}" for ranks in RANKS)], rows) + "\n"


def _gpu_table(results: dict, link: Link) -> str:
    rows = []
    for name, make in NETWORKS.items():
        network, measured = make(), Rank(**results["ranks"][name])
        rank = Rank(assumed_gpu(network), measured.bytes, measured.fold_seconds)
        for length in LENGTHS:
            computing, communication = seconds(network, length, 64, rank, link)
            memory = math.ceil(length / 64) * rank.bytes
            rows.append([name, _power(length), _time(computing), _time(communication), _size(memory)])
    return markdown(["network", "steps", "computing", "exchange", "memory per GPU"], rows) + "\n"


def _time(value: float) -> str:
    return f"{_short(value)} s" if value >= 1 else f"{_short(1e3 * value)} ms"


def _size(value: float) -> str:
    return f"{_short(value / 2**30)} GiB" if value >= 2**30 else f"{_short(value / 2**20)} MiB"


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _power(length: int) -> str:
    return f"10^{round(math.log10(length))}"


def report(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Insert the tables between the markers of the page."""
    fill(page, START, END, tables(json.loads(results.read_text())))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_model", description=__doc__)
    parser.add_argument("action", choices=["measure", "report", "one"])
    parser.add_argument("network", nargs="?", choices=list(NETWORKS), help="network for `one`")
    options = parser.parse_args()
    if options.action == "one":
        measure_one(options.network)
    elif options.action == "measure":
        RESULTS.write_text(json.dumps(measure_all(), indent=1) + "\n")
    else:
        report()


if __name__ == "__main__":
    main()
