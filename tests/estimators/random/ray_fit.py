"""A fit on a Ray cluster of two nodes, of which one is taken away while it runs, beside that of one process.

It prints how far coefficients are apart, on how many nodes parts were begun, and how many were begun again.
"""

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# As in the tests of experiments: loopback only, short paths, workers that get to run beside busy tests.
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_worker_niceness": "0",
}
FOLDER = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-", dir="/tmp")

import numpy as np
import ray
from ray.cluster_utils import Cluster

from seq2tens.estimators import RandomLS2TClassifier

NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
PARTS, BEGUN = 8, Path(FOLDER) / "begun"


class Part:
    """Draws its sequences where it is called, and notes where that was."""

    def __init__(self, number):
        self.number = number

    def __call__(self):
        rng = np.random.default_rng(self.number)
        if ray.is_initialized() and ray.get_runtime_context().get_task_id():
            node = ray.get_runtime_context().get_node_id()
            (BEGUN / f"{self.number}-{node}-{time.time_ns()}").touch()
            time.sleep(1)
        y = np.arange(30) % 3
        y[0] = self.number + 3  # a class of its own
        return rng.normal(y[:, None, None] * 0.3, 1, size=(30, 2, 12)), y


def begun():
    """Number and node of every time a part was begun."""
    return [tuple(path.name.split("-")[:2]) for path in BEGUN.iterdir()]


def parts(cluster, node):
    """All parts; once both nodes are at work on some, the second one goes."""
    for number in range(PARTS):
        if number == 4:
            while len({node for _, node in begun()}) < 2:
                time.sleep(0.05)
            cluster.remove_node(node, allow_graceful=False)
        yield Part(number)


def model():
    return RandomLS2TClassifier(n_blocks=1, order=2, random_state=0)


def main():
    BEGUN.mkdir()
    os.mkdir(f"{FOLDER}/ray")
    cluster = Cluster()
    try:
        cluster.add_node(**NODE, include_dashboard=False)
        node = cluster.add_node(**NODE)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        there = model().fit_parts(parts(cluster, node), on="ray")
        ray.shutdown()
    finally:
        cluster.shutdown()
    here = model().fit_parts(map(Part, range(PARTS)))
    assert there.classes_.tolist() == here.classes_.tolist() == list(range(PARTS + 3))
    assert there.moments_.rows == here.moments_.rows == 30 * PARTS
    apart = (there.ridge_.coefficients - here.ridge_.coefficients).abs().max()
    times = Counter(number for number, _ in begun())
    print(f"{apart:.1e}", len({node for _, node in begun()}), sum(times.values()) - PARTS)


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
        sys.stdout.flush()
