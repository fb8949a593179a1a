"""The paper's numbers for mortality prediction; all but FCN-LS2T and FCN are those of Horn et al."""

from __future__ import annotations

from typing import NamedTuple

from seq2tens.experiments.report.tables import Score

_ORDER = ("accuracy", "auprc", "auroc")
# Mean and standard deviation of accuracy, AUPRC and AUROC on the test set, over five runs.
_NUMBERS = {
    "FCN-LS2T": ((0.841, 0.016), (0.539, 0.005), (0.856, 0.005)),
    "FCN": ((0.807, 0.017), (0.528, 0.013), (0.856, 0.002)),
    "GRU-D": ((0.800, 0.029), (0.537, 0.009), (0.863, 0.003)),
    "GRU-Simple": ((0.822, 0.002), (0.422, 0.006), (0.808, 0.011)),
    "IP-Nets": ((0.794, 0.003), (0.510, 0.006), (0.860, 0.002)),
    "Phased-LSTM": ((0.768, 0.052), (0.387, 0.015), (0.790, 0.010)),
    "Transformer": ((0.837, 0.035), (0.528, 0.022), (0.863, 0.008)),
    "Latent-ODE": ((0.760, 0.001), (0.507, 0.017), (0.857, 0.006)),
    "SeFT-Attn": ((0.753, 0.035), (0.524, 0.011), (0.851, 0.004)),
}
# Scores by the label of a model and the name of a measure.
SCORES = {
    label: {name: Score(*pair) for name, pair in zip(_ORDER, pairs, strict=True)}
    for label, pairs in _NUMBERS.items()
}


class Range(NamedTuple):
    """The range of some numbers."""

    low: float
    high: float


class PublishedRuns(NamedTuple):
    """What is known about the authors' five test runs of a model; for FCN, only the best epochs are known."""

    accuracies: tuple[float, ...]
    auprc: Range
    auroc: Range
    epochs: tuple[int, int] | None
    best_epochs: tuple[int, int]


# Runs by the name of a model. The table above differs slightly: its AUROC of FCN-LS2T is their lowest.
RUNS = {
    "fcn-ls2t": PublishedRuns(
        (0.836, 0.840, 0.843, 0.847, 0.852), Range(0.533, 0.545), Range(0.856, 0.866), (170, 214), (119, 163)
    ),
    "fcn": PublishedRuns(
        (0.782, 0.791, 0.795, 0.807, 0.812), Range(0.518, 0.541), Range(0.855, 0.862), None, (10, 26)
    ),
}
# AUROC and AUPRC of later work on the splits of Raindrop; only the first reports standard deviations.
LATER = {
    "MTM": (Score(0.880, 0.010), Score(0.586, 0.041)),
    "GraFITi": (Score(0.866), Score(0.548)),
    "Warpformer": (Score(0.865), Score(0.543)),
    "ViTST": (Score(0.851), Score(0.511)),
    "mTAND": (Score(0.842), Score(0.482)),
    "Raindrop": (Score(0.828), Score(0.440)),
    "GRU-D": (Score(0.819), Score(0.461)),
}
