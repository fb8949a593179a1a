"""Gradients of parameters that several ranks share."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from seq2tens.ops import collectives


@torch.no_grad()
def sum_gradients(parameters: nn.Module | Iterable[Tensor], group: ProcessGroup | None = None) -> None:
    """Sum the gradients of all ranks, in place and in one message.

    All ranks must call it after `backward`. `DistributedDataParallel` takes the mean instead.
    """
    every = parameters.parameters() if isinstance(parameters, nn.Module) else parameters
    trained = [p for p in every if p.requires_grad]
    if not trained:
        return
    # A parameter without a gradient on this rank may have one on another.
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    sums = collectives.total(torch.cat([part.reshape(-1) for part in parts]), group)
    for parameter, summed in zip(trained, sums.split([p.numel() for p in trained]), strict=True):
        parameter.grad = summed.view_as(parameter)
