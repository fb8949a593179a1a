"""What ranks tell each other in tests of the collectives; here, so that other processes can import it."""

import torch

from seq2tens.ops import collectives


def tensor_of(rank):
    return torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(rank))


def fold_of(rank):
    return lambda stacked: (stacked[: rank + 1].prod(0) * (rank + 1)).sin()


def plain(rank, _):
    """Not contiguous, and with a gradient that must not flow."""
    x = tensor_of(rank).T.requires_grad_()
    gathered, total = collectives.gather(x), collectives.total(x)
    assert not gathered.requires_grad
    assert not total.requires_grad
    return gathered, total, collectives.gather_objects({"rank": rank})


def exchanged(rank, _):
    x = tensor_of(rank).requires_grad_()
    y = collectives.exchange(x, fold_of(rank))
    y.square().sum().backward()
    return y.detach(), x.grad


def ignored(rank, _):
    """The first rank's fold depends on no tensor, as that of a prefix does."""
    x = tensor_of(rank).requires_grad_()
    y = collectives.exchange(x, lambda stacked: stacked[0] if rank else torch.zeros(2, 3).double())
    (y.sum() + 0 * x.sum()).backward() if y.requires_grad else None
    return x.grad
