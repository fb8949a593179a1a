"""A Ray cluster of two nodes on this machine, for tests: a process that does what its stdin says.

It prints its address; `remove` takes the second node away without a farewell; the end of stdin ends it all.
"""

import os
import shutil
import sys
import tempfile

# Nothing leaves this machine: the loopback interface only, no dashboard, no statistics.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# Its workers are not nice to others, as they are by default: beside busy tests they would hardly get to run.
os.environ |= {"RAY_worker_niceness": "0"}
# A short path: names of sockets must not be long.
FOLDER = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-", dir="/tmp")

from ray.cluster_utils import Cluster  # only now, since it reads its environment when it is imported

NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}


def main():
    os.mkdir(f"{FOLDER}/ray")
    cluster = Cluster()
    try:
        cluster.add_node(**NODE, include_dashboard=False)
        node = cluster.add_node(**NODE)
        print(cluster.address, flush=True)
        for line in sys.stdin:
            assert line == "remove\n"
            cluster.remove_node(node, allow_graceful=False)
            print("removed", flush=True)
    finally:
        cluster.shutdown()
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
