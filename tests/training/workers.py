"""What tests run in processes of their own.

The processes are forked from a server that has imported everything: importing takes longer than training.
"""

import multiprocessing
import os
import signal
import time
from contextlib import suppress

import safetensors.torch
import torch

from seq2tens.training import Callback, Checkpoints, Plateau, fit
from training.problems import QUIET, cross_entropy, make_model, order_task, recipe, train

PRELOAD = ["torch", "torch._dynamo", "lightning_fabric", "seq2tens.training", "seq2tens.nn"]


def start(target, *arguments):
    """Start a process; the connection receives what it sends."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def receive(process, connection, seconds=60):
    """The next message, None if the process ends or is silent for too long."""
    with suppress(EOFError):
        if connection.poll(seconds):
            return connection.recv()
    return None


class Ready(Callback):
    """Says when the first epoch begins."""

    def __init__(self, connection):
        self.connection = connection

    def start(self, history):
        self.connection.send("ready")


def interruptible(connection, folder, epochs):
    """Train, with a checkpoint after every epoch; say when that begins, how long it took, and the weights."""
    torch.set_num_threads(1)
    how = recipe(epochs=epochs, schedule=Plateau(patience=3, floor=1e-4), average=0.9)
    train(recipe(epochs=1), model=make_model(width=8))  # kernels are loaded on first use
    begin = time.perf_counter()
    options = {"checkpoint": Checkpoints(folder, seconds=0), "callbacks": [Ready(connection)]}
    model, result = train(how, model=make_model(width=8), **options)
    connection.send((time.perf_counter() - begin, result.epochs, safetensors.torch.save(model.state_dict())))


class FullDisk(Callback):
    """Lets the system end the process in the middle of writing a file, after some epochs."""

    def __init__(self, at, size):
        self.at, self.size = at, size

    def epoch(self, row, model):
        if row["epoch"] == self.at:
            import resource  # not on every system

            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


def torn(connection, folder, at, size):
    """Train until the file of an epoch breaks off after so many bytes."""
    torch.set_num_threads(1)
    train(recipe(), checkpoint=Checkpoints(folder, seconds=0), callbacks=[FullDisk(at, size)])


def shared(connection, rank, port, folder):
    """Train as one of two processes; batches of 8 and 7 rows make their shares differ."""
    from lightning_fabric import Fabric

    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0"}
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    for _ in range(2):  # the second time from the checkpoint
        model, result = double_run(fabric=fabric, checkpoint=folder)
    losses = [row["train_loss"] for row in result.history]
    connection.send((losses, safetensors.torch.save(model.state_dict())))
    torch.distributed.destroy_process_group()


def double_run(**options):
    """A run in double precision."""
    data = order_task(45)
    source = type(data)(data.tensors[0].double(), data.tensors[1])
    model = make_model(dropout=0.0).double()
    how = recipe(clip_norm=1.0, monitor="validation_loss")
    options = {"recipe": how, "seed": 0, "validation": source} | QUIET | options
    return model, fit(model, cross_entropy, source, **options)
