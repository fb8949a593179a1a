"""The paper's classification networks, without their heads: `(batch, time, channels)` to `(batch, features)`.

They have as many trainable parameters as published; the table counts them for 3 channels. A convolution
c(i, o, k), from i to o channels with kernel k, has a bias: k·i·o + o parameters. A batch normalisation b(n)
has scale and shift: 2n parameters. Those after LS2T layers have neither.

    FCN_128          c(3, 128, 8) + c(128, 256, 5) + c(256, 128, 3) + b(128 + 256 + 128)       266,752
    ResNet           c(i, n, 8) + c(n, n, 5) + c(n, n, 3) + c(i, n, 1) + 4 b(n) for
                     (i, n) = (3, 64), (64, 128), (128, 128)                                   521,664
    LS2T_64^3        2 · (i + 1) · 64 for i = 3, 128, 128                                       33,536
    FCN_h-LS2T_64^3                                                                h = 64      h = 128
      FCN            as above, one more input channel each: time                   69,184      269,440
      LS2T           i = h, 128, 128                                               41,344       49,536
      input shortcut c(3, h, 1)                                                       256          512
      first merge    2 b(h)                                                           256          512
      FCN shortcut   c(h, 128, 1)                                                   8,320       16,512
      last merge     b(128); the LS2T branch is normalised already                    256          256
                                                                                  119,616      336,768
"""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from seq2tens import functional as F
from seq2tens.nn.alignment import Series
from seq2tens.nn.blocks import DeepLS2T
from seq2tens.nn.context import Network, Whole
from seq2tens.nn.convolutional import ConvBlock, ConvStack, check_sizes
from seq2tens.nn.masked import MaskedBatchNorm, check_rate

MERGED = math.sqrt(0.5)  # rescales the sum of two branches of variance 1 to variance 1


class FCNLS2T(Network):
    """An FCN block for local patterns, followed by a deep LS2T block for long-range order.

    Skip connections lead from the input to the LS2T block and from the FCN block, via the mean over time, to
    the output. Where two branches join, both are normalised, and their sum is divided by √2.

    Args:
        in_features: channels of the input.
        fcn_width: width of the FCN block.
        width: number of functionals in each LS2T layer.
        depth: number of LS2T layers.
        order: highest level.
        weights: `"recursive"`, `"independent"` or `"symmetric"`, see `LS2T`.
        normalize: divide level m of the LS2T layers by a power of its number of terms, see `LS2T`.
        time_embedding: add time, from -1 to 1 over the sequence, as an input channel of each convolution.
        dropout: rate for the output.
        spatial_dropout: rate at which channels are dropped after each convolution and each LS2T layer.
    """

    def __init__(
        self,
        in_features: int,
        fcn_width: int = 64,
        width: int = 64,
        depth: int = 3,
        order: int = 2,
        *,
        weights: F.Weights = "recursive",
        normalize: bool | float = False,
        time_embedding: bool = True,
        dropout: float = 0.0,
        spatial_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, fcn_width=fcn_width)
        check_rate("dropout", dropout)
        self.in_features, self.out_features, self.dropout = in_features, order * width, dropout
        self.ls2t = DeepLS2T(
            fcn_width,
            width,
            depth,
            order,
            weights=weights,
            normalize=normalize,
            spatial_dropout=spatial_dropout,
        )
        self.fcn = ConvStack(
            in_features,
            (fcn_width, 2 * fcn_width, fcn_width),
            time_embedding=time_embedding,
            spatial_dropout=spatial_dropout,
        )
        self.fcn_norm = MaskedBatchNorm(fcn_width)
        self.input_shortcut = ConvBlock(in_features, fcn_width, 1, activation=False)
        self.fcn_shortcut = ConvBlock(fcn_width, self.out_features, 1, activation=False)

    def compute(self, x: Series, context: Whole) -> Float[Tensor, "batch out_features"]:
        """Extract local features with convolutions, then functionals of their sequence with LS2T layers."""
        local = self.fcn(x, context)
        merged = _merge(self.fcn_norm(local, context=context), self.input_shortcut(x, context=context))
        levels = self.ls2t(merged, context=context)
        pooled = self.fcn_shortcut(context.mean(local).unsqueeze(1), context=context.one_step()).squeeze(1)
        return context.dropout(_merge(levels, pooled), self.dropout, self.training)


def _merge(a: Tensor, b: Tensor) -> Tensor:
    """Add two normalised branches and rescale the sum to variance 1."""
    return (a + b).mul_(MERGED)
