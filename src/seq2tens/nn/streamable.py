"""What layers and networks have in common that can be fed step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seq2tens.nn.streaming import Stream


class Streamable:
    """A module with `stream`; to be named before `torch.nn.Module`."""

    def stream(self, *, length: int | None = None) -> Stream:
        """Open a stream that gives, step by step, what the module would give for the steps so far."""
        from seq2tens.nn.streaming import Stream

        return Stream(self, length=length)  # type: ignore[arg-type]
