"""Training epochs on JapaneseVowels, which is included in aeon, with and without LS2T layers.

python -m benchmarks run epochs
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from benchmarks.registry import Case, Prepare, Work, suite
from seq2tens.nn import FCN, FCNLS2T

# The width of an FCN with about as many parameters as FCN64-LS2T64³, for 12 channels.
EQUAL_WIDTH = 85
FOR_EVER = 10**6


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def epoch(network: nn.Module) -> Prepare:
    """One epoch as in `fit`: sampling, batches and steps of the recipe `fast`."""

    def prepare() -> Work:
        from lightning_fabric import Fabric

        from seq2tens.data import Preparation, load_dataset
        from seq2tens.estimators.networks import WithHead, forward_batch
        from seq2tens.training import CrossEntropy, SequenceSource, fast_recipe
        from seq2tens.training.loop import Loop
        from seq2tens.training.progress import Progress

        train = load_dataset("JapaneseVowels").train
        classes, codes = np.unique(np.asarray(train.labels), return_inverse=True)
        sequences = Preparation().fit(train.sequences).transform(train.sequences)
        source = SequenceSource(sequences, torch.from_numpy(codes))
        recipe = replace(fast_recipe(len(train)), epochs=FOR_EVER, class_weights=False)
        loss = CrossEntropy(forward_batch, label_smoothing=recipe.label_smoothing)
        model = WithHead(network, len(classes))
        loop = Loop(model, loss, source, recipe, 0, Fabric(accelerator="cpu", devices=1), None, {})
        progress = Progress()
        return lambda: loop.epoch(progress)

    return prepare


@suite
def epochs() -> Iterator[Case]:
    """An epoch of FCN64-LS2T64³ against one of a plain FCN with as many parameters."""
    torch.manual_seed(0)
    plain, mixed = FCN(12, EQUAL_WIDTH), FCNLS2T(12)
    peer = f"FCN{EQUAL_WIDTH} ({parameters(plain)} parameters)"
    contenders = {peer: epoch(plain), f"FCN64-LS2T64³ ({parameters(mixed)} parameters)": epoch(mixed)}
    yield Case("epochs", "an epoch of JapaneseVowels", peer, contenders)
