"""Layers and networks that are fed step by step."""

from seq2tens.nn.streaming.stream import Stream

__all__ = ["Stream"]
