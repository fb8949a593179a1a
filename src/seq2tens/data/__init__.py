"""Sequences of unequal length: the type, mini-batches, scaling, file formats and data sets."""

from seq2tens.data.archives import available_datasets, load_dataset
from seq2tens.data.arrays import from_aeon, from_padded, from_pypots, to_aeon, to_padded, to_pypots
from seq2tens.data.batches import Batch, collate, length_blocks, length_buckets
from seq2tens.data.filling import forward_fill
from seq2tens.data.frames import from_df_list, from_multiindex, to_df_list, to_multiindex
from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.preparation import Preparation
from seq2tens.data.readers import (
    Columns,
    ReadError,
    read,
    read_arff,
    read_csv,
    read_mat,
    read_npz,
    read_parquet,
    read_ts,
)
from seq2tens.data.scaler import Scaler
from seq2tens.data.sequences import Sequences

__all__ = [
    "Batch",
    "Columns",
    "Labelled",
    "Preparation",
    "ReadError",
    "Scaler",
    "Sequences",
    "Split",
    "available_datasets",
    "collate",
    "forward_fill",
    "from_aeon",
    "from_df_list",
    "from_multiindex",
    "from_padded",
    "from_pypots",
    "length_blocks",
    "length_buckets",
    "load_dataset",
    "read",
    "read_arff",
    "read_csv",
    "read_mat",
    "read_npz",
    "read_parquet",
    "read_ts",
    "to_aeon",
    "to_df_list",
    "to_multiindex",
    "to_padded",
    "to_pypots",
]
