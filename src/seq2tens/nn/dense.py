"""A linear layer with bitwise equal gradients on any number of threads."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from seq2tens import functional as F


class Dense(nn.Linear):
    """`torch.nn.Linear` with a weight gradient that does not depend on the number of threads."""

    def forward(self, x: Float[Tensor, "*rows in_features"]) -> Float[Tensor, "*rows out_features"]:
        """Apply the layer, as a convolution with a kernel of one step.

        The last axis but one, if there is a batch axis before it, is the time axis of the convolution:
        sequences of a single step would take three times as long.
        """
        rows = x.reshape(-1, x.shape[-2] if x.dim() > 2 else 1, self.in_features)
        return F.convolve(rows, self.weight[..., None], self.bias).reshape(*x.shape[:-1], self.out_features)
