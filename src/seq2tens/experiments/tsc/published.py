"""The paper's numbers for classification (Toth, Bonnier and Oberhauser, ICLR 2021).

Accuracies of models that the authors trained are means over five runs; the others are from the literature,
with some missing results.
"""

from __future__ import annotations

from typing import NamedTuple

from seq2tens.experiments.report.tables import Score


class DataSet(NamedTuple):
    """The size of a data set according to the paper."""

    n_classes: int
    n_channels: int
    min_length: int
    max_length: int
    n_train: int
    n_test: int


# Data sets that differ, or may differ, from the paper's although sizes agree.
DATA_REMARKS = {
    "AUSLAN": "split by the week of recording, which is assumed; sizes agree with the paper's",
    "CharacterTrajectories": "zeros at the ends are cut off, 60 to 182 steps are left of 109 to 205",
    "CMUsubject16": "a reconstruction from recordings of subject 16: labels are inferred, the split assumed",
}


class SignedRankProbabilities(NamedTuple):
    """Probabilities of the Bayesian signed-rank test that either model is better, or both are equivalent."""

    baseline: float
    equivalent: float
    model: float


BORROWED = ("ARKernel", "DTW", "LPS", "SMTS", "gRSF", "mvARF", "MUSE", "MLSTMFCN")
TRAINED = ("FCN128", "ResNet", "LS2T64-3", "FCN64-LS2T64-3", "FCN128-LS2T64-3")
MODELS = (*BORROWED, *TRAINED)

DATASETS = {
    "ArabicDigits": DataSet(10, 13, 4, 93, 6600, 2200),
    "AUSLAN": DataSet(95, 22, 45, 136, 1140, 1425),
    "CharacterTrajectories": DataSet(20, 3, 109, 205, 300, 2558),
    "CMUsubject16": DataSet(2, 62, 127, 580, 29, 29),
    "DigitShapes": DataSet(4, 2, 30, 98, 24, 16),
    "ECG": DataSet(2, 2, 39, 152, 100, 100),
    "JapaneseVowels": DataSet(9, 12, 7, 29, 270, 370),
    "KickvsPunch": DataSet(2, 62, 274, 841, 16, 10),
    "LIBRAS": DataSet(15, 2, 45, 45, 180, 180),
    "NetFlow": DataSet(2, 4, 50, 997, 803, 534),
    "PEMS": DataSet(7, 963, 144, 144, 267, 173),
    "PenDigits": DataSet(10, 2, 8, 8, 300, 10692),
    "Shapes": DataSet(3, 2, 52, 98, 18, 12),
    "UWave": DataSet(8, 3, 315, 315, 896, 3582),
    "Wafer": DataSet(2, 6, 104, 198, 298, 896),
    "WalkvsRun": DataSet(2, 62, 128, 1918, 28, 16),
}
_BORROWED: dict[str, tuple[float | None, ...]] = {
    "ArabicDigits": (0.988, 0.908, 0.971, 0.964, 0.975, 0.952, 0.992, 0.990),
    "AUSLAN": (0.918, 0.727, 0.754, 0.947, 0.955, 0.934, 0.970, 0.950),
    "CharacterTrajectories": (0.900, 0.948, 0.965, 0.992, 0.994, 0.928, 0.937, 0.990),
    "CMUsubject16": (1.000, 0.930, 1.000, 0.997, 1.000, 1.000, 1.000, 1.000),
    "DigitShapes": (1.000, 1.000, 1.000, 1.000, 1.000, 1.000, 1.000, 1.000),
    "ECG": (0.820, 0.790, 0.820, 0.818, 0.880, 0.785, 0.880, 0.870),
    "JapaneseVowels": (0.984, 0.962, 0.951, 0.969, 0.800, 0.959, 0.976, 1.000),
    "KickvsPunch": (0.927, 0.600, 0.900, 0.820, 1.000, 0.976, 1.000, 0.900),
    "LIBRAS": (0.952, 0.888, 0.903, 0.909, 0.911, 0.945, 0.894, 0.970),
    "NetFlow": (None, 0.976, 0.968, 0.977, 0.914, None, 0.961, 0.950),
    "PEMS": (0.750, 0.832, 0.844, 0.896, 1.000, None, None, None),
    "PenDigits": (0.952, 0.927, 0.908, 0.917, 0.932, 0.923, 0.912, 0.970),
    "Shapes": (1.000, 1.000, 1.000, 1.000, 1.000, 1.000, 1.000, 1.000),
    "UWave": (0.904, 0.916, 0.980, 0.941, 0.929, 0.952, 0.916, 0.970),
    "Wafer": (0.968, 0.974, 0.962, 0.965, 0.992, 0.931, 0.997, 0.990),
    "WalkvsRun": (1.000, 1.000, 1.000, 1.000, 1.000, 1.000, 1.000, 1.000),
}
# Means and standard deviations, in the order of `TRAINED`.
_TRAINED = {
    "ArabicDigits": ((0.995, 0.001), (0.995, 0.002), (0.979, 0.002), (0.996, 0.001), (0.997, 0.001)),
    "AUSLAN": ((0.979, 0.003), (0.971, 0.003), (0.987, 0.002), (0.996, 0.001), (0.995, 0.001)),
    "CharacterTrajectories": ((0.992, 0.001), (0.985, 0.002), (0.980, 0.003), (0.993, 0.001), (0.995, 0.000)),
    "CMUsubject16": ((1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000)),
    "DigitShapes": ((1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000)),
    "ECG": ((0.860, 0.018), (0.856, 0.010), (0.824, 0.016), (0.892, 0.015), (0.886, 0.014)),
    "JapaneseVowels": ((0.990, 0.003), (0.989, 0.003), (0.984, 0.005), (0.991, 0.003), (0.994, 0.003)),
    "KickvsPunch": ((1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000)),
    "LIBRAS": ((0.966, 0.002), (0.966, 0.008), (0.859, 0.008), (0.946, 0.005), (0.956, 0.008)),
    "NetFlow": ((0.970, 0.003), (0.953, 0.006), (0.921, 0.014), (0.962, 0.006), (0.962, 0.005)),
    "PEMS": ((0.775, 0.019), (0.787, 0.008), (0.725, 0.013), (0.788, 0.025), (0.802, 0.017)),
    "PenDigits": ((0.967, 0.002), (0.963, 0.001), (0.956, 0.002), (0.963, 0.003), (0.962, 0.002)),
    "Shapes": ((1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000)),
    "UWave": ((0.979, 0.001), (0.978, 0.001), (0.958, 0.001), (0.975, 0.002), (0.976, 0.001)),
    "Wafer": ((0.987, 0.005), (0.989, 0.002), (0.983, 0.003), (0.988, 0.001), (0.990, 0.001)),
    "WalkvsRun": ((1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000), (1.000, 0.000)),
}
# As printed below the table of accuracies.
MEAN_RANKS = {
    "ARKernel": 6.000,
    "DTW": 6.812,
    "LPS": 6.000,
    "SMTS": 5.625,
    "gRSF": 4.625,
    "mvARF": 6.714,
    "MUSE": 4.933,
    "MLSTMFCN": 3.333,
    "FCN128": 3.000,
    "ResNet": 3.500,
    "LS2T64-3": 5.312,
    "FCN64-LS2T64-3": 2.750,
    "FCN128-LS2T64-3": 2.312,
}
# Each model against the last three of `TRAINED`, in their order; rope 0.001, 100,000 samples.
_SIGNED_RANK: dict[str, tuple[tuple[float, float, float] | None, ...]] = {
    "SMTS": ((0.180, 0.000, 0.820), (0.010, 0.000, 0.990), (0.008, 0.000, 0.992)),
    "LPS": ((0.191, 0.002, 0.807), (0.012, 0.001, 0.987), (0.006, 0.001, 0.993)),
    "mvARF": ((0.011, 0.140, 0.849), (0.000, 0.126, 0.874), (0.000, 0.088, 0.912)),
    "DTW": ((0.033, 0.000, 0.967), (0.001, 0.000, 0.999), (0.000, 0.000, 1.000)),
    "ARKernel": ((0.100, 0.097, 0.803), (0.000, 0.021, 0.979), (0.000, 0.015, 0.985)),
    "gRSF": ((0.481, 0.011, 0.508), (0.028, 0.013, 0.960), (0.022, 0.013, 0.965)),
    "MUSE": ((0.405, 0.128, 0.467), (0.001, 0.074, 0.925), (0.001, 0.077, 0.922)),
    "MLSTMFCN": ((0.916, 0.043, 0.041), (0.123, 0.071, 0.807), (0.055, 0.110, 0.835)),
    "FCN128": ((0.998, 0.002, 0.000), (0.363, 0.186, 0.451), (0.169, 0.011, 0.820)),
    "ResNet": ((0.998, 0.002, 0.001), (0.056, 0.240, 0.704), (0.016, 0.048, 0.935)),
    "LS2T64-3": (None, (0.000, 0.001, 0.999), (0.000, 0.001, 0.999)),
    "FCN64-LS2T64-3": ((0.999, 0.001, 0.000), None, (0.020, 0.387, 0.593)),
}
SIGNED_RANK = {
    (baseline, model): SignedRankProbabilities(*numbers)
    for baseline, row in _SIGNED_RANK.items()
    for model, numbers in zip(TRAINED[2:], row, strict=True)
    if numbers is not None
}


def _scores(name: str) -> dict[str, Score]:
    borrowed = zip(BORROWED, _BORROWED[name], strict=True)
    trained = zip(TRAINED, _TRAINED[name], strict=True)
    return {model: Score(mean) for model, mean in borrowed if mean is not None} | {
        model: Score(*numbers) for model, numbers in trained
    }


# Scores by data set and model, without pairs for which the paper has no result.
ACCURACY = {name: _scores(name) for name in DATASETS}
