"""The one training loop: recipes, sampling, checkpoints with exact resume, logs and progress."""

from seq2tens.training.callbacks import Callback, CSVLog, TensorBoardLog
from seq2tens.training.checkpoint import Checkpoints
from seq2tens.training.fitting import fit
from seq2tens.training.incomplete import (
    HELD_OUT_METRICS,
    IncompleteBatch,
    IncompleteSource,
    NegativeElbo,
    RaggedSource,
)
from seq2tens.training.losses import CrossEntropy, Loss, class_weights
from seq2tens.training.meter import NonFiniteLoss
from seq2tens.training.recipe import BatchRule, Recipe, fast_recipe, paper_recipe
from seq2tens.training.run import Interrupted, Result
from seq2tens.training.sampling import validation_split
from seq2tens.training.schedules import Constant, Cosine, OneCycle, Plateau, Stairs
from seq2tens.training.sources import SequenceBatch, SequenceSource, Source, Subset, TensorSource

__all__ = [
    "HELD_OUT_METRICS",
    "BatchRule",
    "CSVLog",
    "Callback",
    "Checkpoints",
    "Constant",
    "Cosine",
    "CrossEntropy",
    "IncompleteBatch",
    "IncompleteSource",
    "Interrupted",
    "Loss",
    "NegativeElbo",
    "NonFiniteLoss",
    "OneCycle",
    "Plateau",
    "RaggedSource",
    "Recipe",
    "Result",
    "SequenceBatch",
    "SequenceSource",
    "Source",
    "Stairs",
    "Subset",
    "TensorBoardLog",
    "TensorSource",
    "class_weights",
    "fast_recipe",
    "fit",
    "paper_recipe",
    "validation_split",
]
