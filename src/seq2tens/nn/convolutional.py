"""Convolutional networks and their blocks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as torch_F

from seq2tens import _checks as check
from seq2tens.nn.alignment import Mask, Series
from seq2tens.nn.context import Network, Whole
from seq2tens.nn.masked import MaskedBatchNorm, MaskedConv, check_rate

KERNEL_SIZES = (8, 5, 3)


class ConvBlock(nn.Module):
    """Convolution, batch normalisation, ReLU, spatial dropout.

    Maps `(batch, time, in_features)` to `(batch, time, out_features)`.
    """

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
        self.norm: MaskedBatchNorm | None = MaskedBatchNorm(out_features)
        self.activation, self.spatial_dropout = activation, spatial_dropout

    def forward(
        self, x: Series, mask: Mask | None = None, *, context: Whole | None = None
    ) -> Float[Tensor, "batch time out_features"]:
        """Apply the block to aligned sequences."""
        context = Whole(mask) if context is None else context
        norm = self.norm
        y = self.conv(x, train_bias=norm is None or not norm.training, context=context)
        if norm is not None:
            y = norm(y, context=context)
        return context.dropout(y.relu() if self.activation else y, self.spatial_dropout, self.training)

    @torch.no_grad()
    def fold_norm(self) -> None:
        """Fold the batch normalisation, as in evaluation mode, into the convolution, permanently.

        Does nothing if one of the two is of another class or has hooks.
        """
        conv, norm = self.conv, self.norm
        if type(conv) is not MaskedConv or type(norm) is not MaskedBatchNorm:
            return
        if any(part._forward_hooks or part._forward_pre_hooks for part in (conv, norm)):
            return
        scale, shift = norm.scale_and_shift()
        conv.weight.mul_(scale[:, None, None])
        conv.bias.mul_(scale).add_(shift)
        self.norm = None


class ConvStack(nn.Module):
    """Convolution blocks with the kernels 8, 5 and 3 on aligned sequences."""

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
        for index, (width, kernel) in enumerate(zip(widths, KERNEL_SIZES, strict=True)):
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

    def forward(self, x: Series, context: Whole) -> Float[Tensor, "batch time out_features"]:
        """Return the output of the last block."""
        clock = [context.clock(x, "centred")] if self.time_embedding else []
        for block in self.blocks:
            x = block(torch.cat([*clock, x], dim=2) if clock else x, context=context)
        return x


class FCN(Network):
    """Three convolutions (kernels 8, 5, 3; filters width, 2 · width, width), then the mean over time.

    Args:
        in_features: channels of the input.
        width: filters of the first and last convolution, and features of the output.
        time_embedding: add time, from -1 to 1, as an input channel of each convolution.
        return_sequences: omit the mean, output `(batch, time, width)`; masked steps are 0.
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
        check_sizes(in_features=in_features, width=width)
        check_rate("dropout", dropout)
        self.in_features, self.out_features = in_features, width
        self.return_sequences, self.dropout = return_sequences, dropout
        self.convolutions = ConvStack(
            in_features,
            (width, 2 * width, width),
            time_embedding=time_embedding,
            spatial_dropout=spatial_dropout,
        )

    def compute(self, x: Series, context: Whole) -> Tensor:
        """Apply the convolutions and, unless `return_sequences`, take the mean over time."""
        y = self.convolutions(x, context)
        if self.return_sequences:
            return torch_F.dropout(y, self.dropout, self.training)
        return context.dropout(context.mean(y), self.dropout, self.training)


class ResidualBlock(nn.Module):
    """Three convolutions of the same width plus a shortcut with one convolution, then ReLU."""

    def __init__(self, in_features: int, width: int) -> None:
        super().__init__()
        self.convolutions = ConvStack(in_features, (width, width, width), last_activation=False)
        self.shortcut = ConvBlock(in_features, width, 1, activation=False)

    def forward(self, x: Series, context: Whole) -> Float[Tensor, "batch time out_features"]:
        """Apply the block."""
        return (self.convolutions(x, context) + self.shortcut(x, context=context)).relu()


class ResNet(Network):
    """Residual blocks, then the mean over time.

    Args:
        in_features: channels of the input.
        widths: channels of each block.
    """

    def __init__(self, in_features: int, widths: Sequence[int] = (64, 128, 128)) -> None:
        super().__init__()
        check_sizes(in_features=in_features)
        check.require(len(widths) > 0, "`widths` must have at least one block, got none")
        self.in_features, self.out_features = in_features, widths[-1]
        sizes = zip((in_features, *widths), widths, strict=False)
        self.blocks = nn.ModuleList(ResidualBlock(before, width) for before, width in sizes)

    def compute(self, x: Series, context: Whole) -> Float[Tensor, "batch out_features"]:
        """Apply one block after the other, then take the mean over time."""
        for block in self.blocks:
            x = block(x, context)
        return context.mean(x)


def check_sizes(**sizes: int) -> None:
    """Require positive sizes."""
    for name, value in sizes.items():
        check.positive_int(name, value)
