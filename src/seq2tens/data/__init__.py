"""Sequences of unequal length: the type, mini-batches, scaling, file formats and data sets."""

from seq2tens.data.archives import available_datasets, load_dataset
from seq2tens.data.arrays import from_aeon, from_padded, from_pypots, to_aeon, to_padded, to_pypots
from seq2tens.data.batches import Batch, collate, length_blocks, length_buckets
from seq2tens.data.elapsed import since_observed, since_start
from seq2tens.data.filling import forward_fill, forward_imputation, mean_imputation
from seq2tens.data.frames import from_df_list, from_multiindex, to_df_list, to_multiindex
from seq2tens.data.incomplete import Incomplete, held_out
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
    "Incomplete",
    "Labelled",
    "Preparation",
    "ReadError",
    "Scaler",
    "Sequences",
    "Split",
    "available_datasets",
    "collate",
    "forward_fill",
    "forward_imputation",
    "from_aeon",
    "from_df_list",
    "from_multiindex",
    "from_padded",
    "from_pypots",
    "held_out",
    "length_blocks",
    "length_buckets",
    "load_dataset",
    "mean_imputation",
    "read",
    "read_arff",
    "read_csv",
    "read_mat",
    "read_npz",
    "read_parquet",
    "read_ts",
    "since_observed",
    "since_start",
    "to_aeon",
    "to_df_list",
    "to_multiindex",
    "to_padded",
    "to_pypots",
]
