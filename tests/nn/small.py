"""A network that the library does not know, written in the verbs of a context, and its runs on two ranks."""

import torch
from torch import nn

from seq2tens import distributed
from seq2tens.nn import LS2T, MaskedBatchNorm, MaskedConv, Whole


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = MaskedConv(2, 4, 4), MaskedBatchNorm(4)
        self.layer, self.end = LS2T(4, 3, 2, normalize=True), LS2T(6, 3, 2, return_sequences=False)

    def forward(self, x, context=None):
        context = context or Whole()
        local = self.norm(self.conv(x, context=context), context=context).relu()
        levels = self.layer(local - context.halo(local, 1, 0)[:, :-1], context=context).flatten(2)
        levels = levels + local.mean(2, keepdim=True)  # of two branches that look ahead alike and not
        end = self.end(levels + x.sum(2, keepdim=True), context=context).flatten(1)
        return torch.cat([context.mean(levels), end, context.mean(x)], dim=1)


def build(training=False):
    """In double precision, with weights and statistics that are not 0 or 1 anywhere."""
    torch.manual_seed(0)
    network = Small().double().train(training)
    with torch.no_grad():
        for value in (*network.parameters(), network.norm.running_mean):
            value += 0.3 * torch.randn_like(value)
    return network


def draw(time, batch=2):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, time, 2, generator=generator, dtype=torch.float64)


def learned(network, x, y):
    """Output, gradients and statistics."""
    (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)).sum().backward()
    gradients = {name: parameter.grad for name, parameter in network.named_parameters()}
    return {"output": y.detach(), "input": x.grad, **gradients, **dict(network.named_buffers())}


def on_a_rank(rank, ranks, training, cut):
    """What a rank of two finds for its side of the cut, with the sum of both ranks' gradients."""
    x = draw(17)[:, :cut] if rank == 0 else draw(17)[:, cut:]
    x, network = x.clone().requires_grad_(), build(training)
    y = distributed.sequence_parallel(network)(x)
    found = learned(network, x, y)
    distributed.sum_gradients(network)
    found |= {name: parameter.grad / ranks for name, parameter in network.named_parameters()}
    return {name: tensor.tolist() for name, tensor in found.items()}
