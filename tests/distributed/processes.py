"""Real processes that work together, forked from a server that has imported everything."""

import multiprocessing
import os
import tempfile
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

PRELOAD = ["torch", "torch._dynamo", "lightning_fabric", "distributed.problems", "distributed.fits"]
SECONDS = 600  # generous: the machine may be busy, or measured on


def together(target, ranks, *arguments):
    """What `target(rank, ranks, *arguments)` returns on each rank; an exception there is one here."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with tempfile.TemporaryDirectory() as folder:
        workers = []
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            given = (theirs, target, rank, ranks, folder, arguments)
            process = context.Process(target=_member, args=given, daemon=True)
            process.start()
            theirs.close()
            workers.append((process, ours))
        answers = [connection.recv() if connection.poll(SECONDS) else "silent" for _, connection in workers]
        for process, _ in workers:
            process.join(SECONDS)
    for answer in answers:
        assert isinstance(answer, tuple), answer
    return [answer[0] for answer in answers]


def _member(connection, target, rank, ranks, folder, arguments):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{Path(folder) / 'meeting'}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=SECONDS),
        )
        connection.send((target(rank, ranks, *arguments),))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        connection.send(traceback.format_exc())
        raise
