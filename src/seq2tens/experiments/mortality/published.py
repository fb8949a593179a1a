"""The numbers that the paper reports for mortality prediction; all but FCN-LS2T and FCN are Horn et al.'s."""

from __future__ import annotations

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
# By the label of a model and the name of a measure.
SCORES = {
    label: {name: Score(*pair) for name, pair in zip(_ORDER, pairs, strict=True)}
    for label, pairs in _NUMBERS.items()
}
