"""The paper's classification networks, without their heads: `(batch, time, channels)` to `(batch, features)`.

They have as many trainable parameters as published, here for 3 channels. Every convolution c(i, o, k), from i
to o channels with kernel k, has a bias: k·i·o + o parameters. Every batch normalisation b(n) has scale and
shift, 2n, but for those after LS2T layers, which have neither.

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
      last merge     b(128); the LS2T branch comes normalised                         256          256
                                                                                  119,616      336,768
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check
from seq2tens import functional as F
from seq2tens.nn.blocks import DeepLS2T
from seq2tens.nn.masked import (
    MaskedBatchNorm,
    MaskedConv,
    align,
    centred_clock,
    check_rate,
    restore,
    spatial_dropout,
)
from seq2tens.nn.streamable import Streamable

KERNELS = (8, 5, 3)
MERGED = math.sqrt(0.5)  # brings the sum of two branches of variance 1 back to variance 1

Path = Float[Tensor, "batch time in_features"]
Mask = Bool[Tensor, "batch time"]
Features = Float[Tensor, "batch out_features"]


class ConvBlock(nn.Module):
    """Convolution, batch normalisation, ReLU, spatial dropout; `(batch, time, in_features)` to
    `(batch, time, out_features)`."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel: int,
        *,
        activation: bool = True,
        spatial_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_rate("spatial_dropout", spatial_dropout)
        self.conv = MaskedConv(in_features, out_features, kernel)
        self.norm = MaskedBatchNorm(out_features)
        self.activation, self.spatial_dropout = activation, spatial_dropout

    def forward(
        self, x: Path, mask: Mask | None = None, clock: Float[Tensor, "batch time 1"] | None = None
    ) -> Float[Tensor, "batch time out_features"]:
        """Apply the block to aligned sequences; a `clock` is one more channel of the convolution."""
        y = self.norm(self.conv(x, clock=clock, train_bias=not self.norm.training), mask)
        return spatial_dropout(y.relu() if self.activation else y, self.spatial_dropout, self.training)


class ConvStack(nn.Module):
    """Convolution blocks with the kernels 8, 5 and 3 on aligned sequences; the time channel is made once."""

    def __init__(
        self,
        in_features: int,
        widths: tuple[int, int, int],
        *,
        time_embedding: bool = False,
        last_activation: bool = True,
        spatial_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.time_embedding = time_embedding
        self.blocks = nn.ModuleList()
        for index, (width, kernel) in enumerate(zip(widths, KERNELS, strict=True)):
            self.blocks.append(
                ConvBlock(
                    in_features + time_embedding,
                    width,
                    kernel,
                    activation=last_activation or index < len(widths) - 1,
                    spatial_dropout=spatial_dropout,
                )
            )
            in_features = width

    def forward(self, x: Path, mask: Mask | None = None) -> Float[Tensor, "batch time out_features"]:
        """The last block's sequence."""
        clock = centred_clock(x, mask) if self.time_embedding else None
        for block in self.blocks:
            x = block(x, mask, clock)
        return x


class FCN(Streamable, nn.Module):
    """Three convolutions (kernels 8, 5, 3; filters width, 2 · width, width), then the mean over time.

    Args:
        in_features: channels of the input.
        width: filters of the first and last convolution, and features of the output.
        time_embedding: give each convolution time, from -1 to 1, as a further channel.
        return_sequences: leave the mean out, `(batch, time, width)`; steps that do not count are 0.
        dropout: rate for the output.
        spatial_dropout: rate at which channels are dropped after each convolution.
    """

    def __init__(
        self,
        in_features: int,
        width: int = 128,
        *,
        time_embedding: bool = False,
        return_sequences: bool = False,
        dropout: float = 0.0,
        spatial_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(in_features=in_features, width=width)
        check_rate("dropout", dropout)
        self.in_features, self.out_features = in_features, width
        self.return_sequences, self.dropout = return_sequences, dropout
        self.convolutions = ConvStack(
            in_features,
            (width, 2 * width, width),
            time_embedding=time_embedding,
            spatial_dropout=spatial_dropout,
        )

    def forward(self, x: Path, mask: Mask | None = None, lengths: check.Lengths | None = None) -> Tensor:
        """Steps that do not count are left out, wherever they stand."""
        _check_channels(x, self.in_features)
        x, mask, source = align(x, mask, lengths)
        y = self.convolutions(x, mask)
        y = restore(y, source) if self.return_sequences else F.masked_mean(y, mask)
        return torch_F.dropout(y, self.dropout, self.training)


class ResidualBlock(nn.Module):
    """Three convolutions of one width beside a shortcut of one, summed, then ReLU."""

    def __init__(self, in_features: int, width: int) -> None:
        super().__init__()
        self.convolutions = ConvStack(in_features, (width, width, width), last_activation=False)
        self.shortcut = ConvBlock(in_features, width, 1, activation=False)

    def forward(self, x: Path, mask: Mask | None = None) -> Float[Tensor, "batch time out_features"]:
        """Apply the block."""
        return (self.convolutions(x, mask) + self.shortcut(x, mask)).relu()


class ResNet(Streamable, nn.Module):
    """Residual blocks of the given widths, then the mean over time."""

    def __init__(self, in_features: int, widths: Sequence[int] = (64, 128, 128)) -> None:
        super().__init__()
        _check_sizes(in_features=in_features)
        check.require(len(widths) > 0, "`widths` must name at least one block, got none")
        self.in_features, self.out_features = in_features, widths[-1]
        sizes = zip((in_features, *widths), widths, strict=False)
        self.blocks = nn.ModuleList(ResidualBlock(before, width) for before, width in sizes)

    def forward(self, x: Path, mask: Mask | None = None, lengths: check.Lengths | None = None) -> Features:
        """Steps that do not count are left out, wherever they stand."""
        _check_channels(x, self.in_features)
        x, mask, _ = align(x, mask, lengths)
        for block in self.blocks:
            x = block(x, mask)
        return F.masked_mean(x, mask)


class FCNLS2T(Streamable, nn.Module):
    """An FCN block for what is near in time, a deep LS2T block on top for what is far apart.

    Shortcuts lead from the input to the LS2T block and from the FCN block, by way of the mean over time, to
    the output. Where two branches meet, both are normalised, and their sum is divided by √2.

    Args:
        in_features: channels of the input.
        fcn_width: width of the FCN block.
        width: number of functionals in each LS2T layer.
        depth: number of LS2T layers.
        order: highest level.
        weights: `"recursive"` or `"independent"`.
        time_embedding: give each convolution time, from -1 to 1 over the sequence, as a further channel.
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
        time_embedding: bool = True,
        dropout: float = 0.0,
        spatial_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(in_features=in_features, fcn_width=fcn_width)
        check_rate("dropout", dropout)
        self.in_features, self.out_features, self.dropout = in_features, order * width, dropout
        self.ls2t = DeepLS2T(fcn_width, width, depth, order, weights=weights, spatial_dropout=spatial_dropout)
        self.fcn = ConvStack(
            in_features,
            (fcn_width, 2 * fcn_width, fcn_width),
            time_embedding=time_embedding,
            spatial_dropout=spatial_dropout,
        )
        self.fcn_norm = MaskedBatchNorm(fcn_width)
        self.input_shortcut = ConvBlock(in_features, fcn_width, 1, activation=False)
        self.fcn_shortcut = ConvBlock(fcn_width, self.out_features, 1, activation=False)

    def forward(self, x: Path, mask: Mask | None = None, lengths: check.Lengths | None = None) -> Features:
        """Steps that do not count are left out, wherever they stand."""
        _check_channels(x, self.in_features)
        x, mask, _ = align(x, mask, lengths)
        local = self.fcn(x, mask)
        merged = _merge(self.fcn_norm(local, mask), self.input_shortcut(x, mask))
        distant = self.ls2t(merged, mask, aligned=True)
        pooled = self.fcn_shortcut(F.masked_mean(local, mask)[:, None])[:, 0]  # a sequence of one step
        return torch_F.dropout(_merge(distant, pooled), self.dropout, self.training)


def _merge(a: Tensor, b: Tensor) -> Tensor:
    """Sum of two normalised branches."""
    return (a + b) * MERGED


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        check.positive_int(name, value)


def _check_channels(x: Tensor, in_features: int) -> None:
    check.sequences("x", x)
    check.require(
        x.shape[2] == in_features, f"`x` must have {in_features} channels (in_features), got {x.shape[2]}"
    )
