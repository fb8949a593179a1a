"""Networks on sequences that are split over ranks along time."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from seq2tens import _checks as check
from seq2tens.distributed.sharded import Sharded
from seq2tens.distributed.synchronized import Peers, synchronized
from seq2tens.nn import LS2T, BiLS2T, align, call_in_context, restore, takes_context


def sequence_parallel(module: nn.Module, group: ProcessGroup | None = None) -> SequenceParallel:
    """Let all ranks of a group run a module together on sequences that are split over them along time.

    `module` is a layer, block or network of `seq2tens.nn`, or any module whose `forward` takes a `context`
    and accesses other steps through it alone, or a `torch.nn.Sequential` of such modules. It must have the
    same weights on all ranks. It keeps its parameters and can still be used on its own. Results and gradients
    are those of one process; the gradients of parameters must be summed over ranks, see `sum_gradients`.
    """
    check.require(
        takes_context(module) or isinstance(module, nn.Sequential),
        "`module` must be a layer or network of seq2tens.nn, or have a `forward` that takes a `context`, "
        f"got {type(module).__name__}",
    )
    return SequenceParallel(module, group)


class SequenceParallel(nn.Module):
    """A module that runs on sequences split over ranks, as returned by `sequence_parallel`."""

    def __init__(self, module: nn.Module, group: ProcessGroup | None = None) -> None:
        super().__init__()
        self.module, self.group = module, group

    def forward(
        self,
        x: Float[Tensor, "batch time in_features"],
        mask: Bool[Tensor, "batch time"] | None = None,
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Tensor:
        """Return the output for the steps of the chunk or, if it is one vector, for the whole sequence.

        `x` is the chunk of this rank, which may have no steps; `mask` and `lengths` refer to the chunk. All
        ranks must call this together, and each must run a backward pass through its result.
        """
        check.sequences("x", x)
        channels = getattr(self.module, "in_features", None) or x.shape[2]
        check.require(x.shape[2] == channels, f"`x` must have {channels} channels, got {x.shape[2]}")
        mask = check.step_mask(x, mask, lengths)
        time = x.shape[1]
        if time == 0:  # an invalid step takes the place of an empty chunk
            x, mask = nn.functional.pad(x, (0, 0, 0, 1)), x.new_zeros(x.shape[0], 1, dtype=torch.bool)
        source = None
        if not isinstance(self.module, LS2T | BiLS2T):  # these handle masks themselves
            x, mask, source = align(x, mask, None)
        context = Sharded(x, mask, self.group)
        with synchronized(self.module, Peers(self.group)):
            y = call_in_context(self.module, x, context)
        return y if context.reductions else restore(y, source)[:, :time]
