"""The training loop: recipes, sampling, checkpoints with exact resume, logs and progress."""

from seq2tens._moved import moved_names
from seq2tens.training._fit import fit
from seq2tens.training.callbacks import Callback, CSVLog, MLflowLog, TensorBoardLog
from seq2tens.training.checkpoint import Checkpoints
from seq2tens.training.loop import Interrupted, Result
from seq2tens.training.losses import CrossEntropy, Loss, class_weights
from seq2tens.training.losses import LossFunction as LossFunction
from seq2tens.training.metrics import Metric as Metric
from seq2tens.training.metrics import NonFiniteLoss
from seq2tens.training.metrics import validate as validate
from seq2tens.training.progress import Progress as Progress
from seq2tens.training.progress import ProgressStyle as ProgressStyle
from seq2tens.training.progress import format_seconds as format_seconds
from seq2tens.training.progress import make_progress as make_progress
from seq2tens.training.progress import resolve_style as resolve_style
from seq2tens.training.recipe import BatchRule, Recipe, fast_recipe, paper_recipe
from seq2tens.training.rng import seeded_initialization as seeded_initialization
from seq2tens.training.rng import shuffling_generator as shuffling_generator
from seq2tens.training.sampling import validation_split
from seq2tens.training.schedules import Constant, Cosine, OneCycle, Plateau, StepDecay
from seq2tens.training.schedules import Schedule as Schedule
from seq2tens.training.sources import SequenceBatch, SequenceSource, Source, Subset, TensorSource
from seq2tens.training.state import Row as Row

__all__ = [
    "BatchRule",
    "CSVLog",
    "Callback",
    "Checkpoints",
    "Constant",
    "Cosine",
    "CrossEntropy",
    "Interrupted",
    "Loss",
    "MLflowLog",
    "NonFiniteLoss",
    "OneCycle",
    "Plateau",
    "Recipe",
    "Result",
    "SequenceBatch",
    "SequenceSource",
    "Source",
    "StepDecay",
    "Subset",
    "TensorBoardLog",
    "TensorSource",
    "class_weights",
    "fast_recipe",
    "fit",
    "paper_recipe",
    "validation_split",
]

_GPVAE = ("HELD_OUT_METRICS", "IncompleteBatch", "IncompleteSource", "NegativeElbo", "RaggedSource")
__getattr__ = moved_names(
    __name__, {"Stairs": f"{__name__}.StepDecay"} | {name: f"seq2tens.models.gpvae.{name}" for name in _GPVAE}
)
