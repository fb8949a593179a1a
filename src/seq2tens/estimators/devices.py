"""Devices on which networks are trained and used."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from seq2tens import _checks as check

if TYPE_CHECKING:  # importing it takes seconds
    from lightning_fabric import Fabric

# How long processes wait for one that does not respond; one that ends is noticed at once.
PATIENCE = timedelta(minutes=5)


def make_fabric(device: str, devices: int = 1, num_nodes: int = 1) -> Fabric:
    """Return a `Fabric` for one device, or, with several, for this process once it has joined the others."""
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
    """Whether this process has rank 0, or is the only one."""
    return not dist.is_initialized() or dist.get_rank() == 0


def find_device(device: str) -> torch.device:
    """Return the device that `make_fabric` would take; if that is the CPU, without importing Fabric."""
    if device == "cpu" or (device == "auto" and not torch.accelerator.is_available()):
        return torch.device("cpu")
    return make_fabric(device).device


def _check_launched(devices: int, num_nodes: int) -> None:
    """Require that a launcher started the processes: a script that restarts itself is error-prone."""
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
