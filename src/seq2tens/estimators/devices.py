"""Where networks are trained and used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:  # importing it takes seconds
    from lightning_fabric import Fabric


def make_fabric(device: str) -> Fabric:
    """One device of that kind."""
    from lightning_fabric import Fabric

    return Fabric(accelerator=device, devices=1)


def find_device(device: str) -> torch.device:
    """The device that `make_fabric` would take, without Fabric where there is no choice."""
    if device == "cpu" or (device == "auto" and not torch.accelerator.is_available()):
        return torch.device("cpu")
    return make_fabric(device).device
