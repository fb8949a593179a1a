"""Sequences of unequal length: the type, mini-batches, scaling, file formats and data sets."""

import sys

from seq2tens.data._optional import import_optional as import_optional
from seq2tens.data.arrays import from_aeon, from_padded, from_pypots, to_aeon, to_padded, to_pypots
from seq2tens.data.arrays import from_cube as from_cube
from seq2tens.data.batches import Batch, collate, length_blocks, length_buckets
from seq2tens.data.batches import PackedSteps as PackedSteps
from seq2tens.data.batches import PaddedIndex as PaddedIndex
from seq2tens.data.batches import content_digest as content_digest
from seq2tens.data.datasets import (
    available_datasets,
    healing_mnist,
    load_dataset,
    mnist,
    physionet2012,
    sprites,
)
from seq2tens.data.elapsed import since_observed, since_start
from seq2tens.data.elapsed import times_of as times_of
from seq2tens.data.elapsed import usual_step as usual_step
from seq2tens.data.filling import Steps as Steps
from seq2tens.data.filling import forward_fill, forward_imputation, mean_imputation
from seq2tens.data.filling import last_before as last_before
from seq2tens.data.filling import last_observed as last_observed
from seq2tens.data.filling import values_at as values_at
from seq2tens.data.frames import (
    from_df_list,
    from_multiindex,
    read_df_list,
    read_multiindex,
    to_df_list,
    to_multiindex,
)
from seq2tens.data.incomplete import Incomplete, held_out
from seq2tens.data.labelled import Labelled, Split
from seq2tens.data.preparation import Preparation
from seq2tens.data.preparation import single_steps as single_steps
from seq2tens.data.readers import (
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
from seq2tens.data.tables import (
    Columns,
    Encoding,
    Table,
    fill_columns,
    from_frame,
    is_frame,
    read_frame,
    read_frames,
)

__all__ = [
    "Batch",
    "Columns",
    "Encoding",
    "Incomplete",
    "Labelled",
    "Preparation",
    "ReadError",
    "Scaler",
    "Sequences",
    "Split",
    "Table",
    "available_datasets",
    "collate",
    "fill_columns",
    "forward_fill",
    "forward_imputation",
    "from_aeon",
    "from_df_list",
    "from_frame",
    "from_multiindex",
    "from_padded",
    "from_pypots",
    "healing_mnist",
    "held_out",
    "is_frame",
    "length_blocks",
    "length_buckets",
    "load_dataset",
    "mean_imputation",
    "mnist",
    "physionet2012",
    "read",
    "read_arff",
    "read_csv",
    "read_df_list",
    "read_frame",
    "read_frames",
    "read_mat",
    "read_multiindex",
    "read_npz",
    "read_parquet",
    "read_ts",
    "since_observed",
    "since_start",
    "sprites",
    "to_aeon",
    "to_df_list",
    "to_multiindex",
    "to_padded",
    "to_pypots",
]

# These were modules of this package; for one release they can still be imported as such.
for _dataset in (healing_mnist, mnist, physionet2012, sprites):
    sys.modules[f"{__name__}.{_dataset.__name__.rpartition('.')[2]}"] = _dataset
