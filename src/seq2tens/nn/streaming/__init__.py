"""Online inference: layers and networks that process sequences step by step."""

from seq2tens.nn.streaming.storage import State as State
from seq2tens.nn.streaming.stream import Stream

__all__ = ["Stream"]
