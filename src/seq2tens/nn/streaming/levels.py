"""LS2T layers, window by window."""

from __future__ import annotations

import torch
from torch import Tensor

from seq2tens import functional as F
from seq2tens import ops
from seq2tens.nn.streaming.frame import Frame, State, Windows, owned
from seq2tens.nn.streaming.nodes import Node, check_channels

# Up to so many steps a handful of operations is quicker than the kernel of many.
FEW = 32


class Levels(Node):
    """An LS2T layer: the levels after every position."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        chains: ops.Chains,
        *,
        coefficients: Tensor | None,
        decay: Tensor | None,
        exponent: Tensor | None,
        backend: ops.Backend | None,
    ) -> None:
        self.weight, self.bias = weight, bias
        self.width = weight.shape[2]
        self.rows = weight.transpose(0, 1).flatten(1).contiguous()  # all components side by side
        self.shift = weight.new_zeros(self.rows.shape[1]) if bias is None else bias.flatten()
        self.coefficients, self.decay, self.exponent = coefficients, decay, exponent
        self.backend = backend
        # Every state along time, because a push may end, and another begin, at any of them.
        self.chains = chains._replace(output=tuple(range(len(chains.component))))
        every = self.chains.output == chains.output
        self.output = None if every else torch.tensor(chains.output, device=weight.device)

    def __call__(self, x: Windows, state: State, frame: Frame) -> tuple[Windows, State]:
        check_channels(x, len(self.rows))
        counted = frame.counted(x)
        if frame.ends == 1:
            path = self._run(x, counted, state)
            state = owned(path[:, frame.stride - 1], path) if frame.stride > 0 else state
        else:
            path, state = self._run_ends(x, counted, state, frame)
        y = path if self.output is None else path.index_select(2, self.output)
        if self.exponent is not None:
            count = frame.positions(x.shape[1], x.device) + 1
            y = F.normalize_levels(y, self.exponent, count)
        return y, state

    def _run_ends(
        self, x: Windows, counted: Tensor | None, state: State, frame: Frame
    ) -> tuple[Tensor, Tensor]:
        """Along the final positions of all ends, and from there, for each end, along its provisional ones."""
        mask = None if counted is None else frame.final(counted)
        path = self._run(frame.final(x), mask, state)
        final = path.reshape(x.shape[0], frame.stride, *path.shape[2:])
        if x.shape[1] == frame.stride:
            return final, owned(path[:, -1], path)
        rest = None if counted is None else counted[:, frame.stride :]
        provisional = self._run(x[:, frame.stride :], rest, final[:, -1])
        return torch.cat([final, provisional], dim=1), owned(path[:, -1], path)

    def _run(self, x: Tensor, mask: Tensor | None, state: State) -> Tensor:
        begin = None if isinstance(state, tuple) else state
        plain = mask is None and self.coefficients is None and self.decay is None
        if plain and begin is not None and x.shape[0] * x.shape[1] <= FEW:
            return self._run_few(x, begin)
        path, _ = ops.ls2t(
            x,
            self.weight,
            self.bias,
            self.coefficients,
            self.decay,
            mask,
            begin,
            chains=self.chains,
            backend=self.backend,
        )
        return path

    def _run_few(self, x: Tensor, state: Tensor) -> Tensor:
        """The same recursion in as few operations as there can be: they take the time, not the numbers."""
        batch, steps, features = x.shape
        factors = torch.addmm(self.shift, x.reshape(-1, features), self.rows)
        factors = factors.view(batch, steps, -1, self.width)
        paths: list[Tensor] = []  # one value more than there are steps: that before the first
        for s, (component, parent) in enumerate(zip(self.chains.component, self.chains.parent, strict=True)):
            inflow = factors[:, :, component]
            if parent >= 0:
                inflow = paths[parent][:, :-1] * inflow
            paths.append(torch.cat([state[:, s : s + 1], inflow], dim=1).cumsum(1))
        return torch.stack(paths, dim=2)[:, 1:]
