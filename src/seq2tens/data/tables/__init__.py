"""Conversion of long and wide tables to sequences: roles of columns, times and categories."""

from seq2tens.data.tables.columns import NO_LABELS, ONE_SEQUENCE, Columns
from seq2tens.data.tables.encoding import Encoding
from seq2tens.data.tables.frames import from_frame, read_frame, read_frames
from seq2tens.data.tables.interchange import fill_columns, is_frame
from seq2tens.data.tables.long import Table

__all__ = [
    "NO_LABELS",
    "ONE_SEQUENCE",
    "Columns",
    "Encoding",
    "Table",
    "fill_columns",
    "from_frame",
    "is_frame",
    "read_frame",
    "read_frames",
]
