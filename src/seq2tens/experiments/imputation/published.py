"""The paper's numbers for imputation; all but those with B-LS2T are those of Fortuin et al."""

from __future__ import annotations

from seq2tens.experiments.report.tables import Score

# The paper's measures on each data set, which are the columns of its tables.
MEASURES = {
    "hmnist": ("nll", "mse", "auroc"),
    "sprites": ("mse",),
    "sprites-conv256": ("mse",),
    "physionet": ("auroc",),
}
# Mean and standard deviation of each measure, in the order of `MEASURES`; None if there is none.
_NUMBERS: dict[str, dict[str, tuple[tuple[float, float] | None, ...]]] = {
    "Mean imputation": {
        "hmnist": (None, (0.168, 0.0), (0.938, 0.0)),
        "sprites": ((0.013, 0.0),),
        "physionet": ((0.703, 0.0),),
    },
    "Forward imputation": {
        "hmnist": (None, (0.177, 0.0), (0.935, 0.0)),
        "sprites": ((0.028, 0.0),),
        "physionet": ((0.710, 0.0),),
    },
    "VAE": {
        "hmnist": ((0.599, 0.002), (0.232, 0.0), (0.922, 0.0)),
        "sprites": ((0.028, 0.0),),
        "physionet": ((0.677, 0.002),),
    },
    "HI-VAE": {
        "hmnist": ((0.372, 0.008), (0.134, 0.003), (0.962, 0.001)),
        "sprites": ((0.007, 0.0),),
        "physionet": ((0.686, 0.010),),
    },
    "GP-VAE": {
        "hmnist": ((0.350, 0.007), (0.114, 0.002), (0.960, 0.002)),
        "sprites": ((0.002, 0.0),),
        "physionet": ((0.730, 0.006),),
    },
    "GP-VAE (B-LS2T)": {
        "hmnist": ((0.251, 0.008), (0.092, 0.003), (0.962, 0.001)),
        "sprites": ((0.002, 0.0),),
        "physionet": ((0.743, 0.007),),
    },
    "BRITS": {"physionet": ((0.742, 0.008),)},
}
# With a convolution over time of width 256 and batches of 16; the appendix has no standard deviations.
_NUMBERS["GP-VAE"]["sprites-conv256"] = ((0.0014, 0.0),)
_NUMBERS["GP-VAE (B-LS2T)"]["sprites-conv256"] = ((0.0013, 0.0),)
# Scores by the label of a model, the name of a data set and the name of a measure.
SCORES = {
    label: {
        dataset: {
            name: Score(*pair)
            for name, pair in zip(MEASURES[dataset], pairs, strict=True)
            if pair is not None
        }
        for dataset, pairs in of_sets.items()
    }
    for label, of_sets in _NUMBERS.items()
}
