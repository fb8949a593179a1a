"""Where networks are trained and used."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from seq2tens import _checks as check

if TYPE_CHECKING:  # importing it takes seconds
    from lightning_fabric import Fabric

# How long processes wait for one that is there but does not answer; one that ends is noticed at once.
PATIENCE = timedelta(minutes=5)


def make_fabric(device: str, devices: int = 1, num_nodes: int = 1) -> Fabric:
    """One device of that kind; or this process's, of those that train together, having met the others."""
    from lightning_fabric import Fabric

    check.positive_int("devices", devices)
    check.positive_int("num_nodes", num_nodes)
    if devices * num_nodes == 1:
        return Fabric(accelerator=device, devices=1)
    from lightning_fabric.strategies import DDPStrategy

    _check_launched(devices, num_nodes)
    strategy = DDPStrategy(timeout=PATIENCE)
    fabric = Fabric(accelerator=device, devices=devices, num_nodes=num_nodes, strategy=strategy)
    fabric.launch()
    return fabric


def is_first() -> bool:
    """Whether this process is the first of those it has met, or has met none."""
    return not dist.is_initialized() or dist.get_rank() == 0


def find_device(device: str) -> torch.device:
    """The device that `make_fabric` would take, without Fabric where there is no choice."""
    if device == "cpu" or (device == "auto" and not torch.accelerator.is_available()):
        return torch.device("cpu")
    return make_fabric(device).device


def _check_launched(devices: int, num_nodes: int) -> None:
    """Processes must have been started from outside: to run a script again from within is full of traps."""
    from lightning_fabric.plugins.environments import SLURMEnvironment

    nodes = "" if num_nodes == 1 else f" --nnodes {num_nodes} --rdzv-backend c10d --rdzv-endpoint HOST:PORT"
    check.require(
        "LOCAL_RANK" in os.environ or SLURMEnvironment.detect(),
        f"`devices` = {devices} and `num_nodes` = {num_nodes} need as many processes: start the script with "
        f"`torchrun{nodes} --nproc-per-node {devices} SCRIPT`, got a single process",
    )
    started = int(os.environ.get("WORLD_SIZE", devices * num_nodes))
    check.require(
        started == devices * num_nodes,
        f"`devices` · `num_nodes` must be the number of processes, {started}, "
        f"got {devices} · {num_nodes} = {devices * num_nodes}",
    )
