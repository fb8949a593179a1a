"""Who is speaking? Nine speakers, sequences of 7 to 29 steps: a deep LS2T network in plain PyTorch.

The recordings ship with aeon, so nothing is downloaded. Runs in well under a minute on two cores.
"""

from __future__ import annotations

import time

import torch
from aeon.datasets import load_japanese_vowels
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from seq2tens import DeepLS2T

PUBLISHED = {"LS2T64-3": 0.984, "FCN128": 0.990, "FCN128-LS2T64-3": 0.994, "1-NN DTW": 0.962}


class SpeakerClassifier(nn.Module):
    """The paper's LS2T network with a linear head."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.features = DeepLS2T(channels, width=64, depth=3, order=2)
        self.head = nn.Linear(self.features.out_features, classes)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.head(self.features(x, lengths=lengths))


def load(split: str) -> tuple[list[Tensor], Tensor]:
    """Sequences `(time, channels)` and speakers 0..8."""
    series, labels = load_japanese_vowels(split=split)
    return [torch.tensor(s.T, dtype=torch.float32) for s in series], torch.tensor(
        [int(v) - 1 for v in labels]
    )


def collate(sequences: list[Tensor]) -> tuple[Tensor, Tensor]:
    return pad_sequence(sequences, batch_first=True), torch.tensor([len(s) for s in sequences])


def train(model: nn.Module, sequences: list[Tensor], labels: Tensor, epochs: int, batch: int = 16) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    steps = epochs * -(-len(labels) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in torch.randperm(len(labels), generator=generator).split(batch):
            x, lengths = collate([sequences[i] for i in rows])
            loss = nn.functional.cross_entropy(model(x, lengths), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d}   training loss {total / len(labels):.4f}")


@torch.no_grad()
def accuracy(model: nn.Module, sequences: list[Tensor], labels: Tensor) -> float:
    return float((model.eval()(*collate(sequences)).argmax(1) == labels).float().mean())


def main() -> None:
    torch.manual_seed(0)
    (train_x, train_y), (test_x, test_y) = load("train"), load("test")
    every_step = torch.cat(train_x)
    mean, std = every_step.mean(0), every_step.std(0)
    train_x, test_x = ([(s - mean) / std for s in part] for part in (train_x, test_x))
    model = SpeakerClassifier(channels=12, classes=9)
    begin = time.perf_counter()
    train(model, train_x, train_y, epochs=60)
    seconds = time.perf_counter() - begin
    print(f"\nJapaneseVowels, {len(test_y)} test recordings, trained in {seconds:.0f} s")
    print(f"  {'this run':<18} {accuracy(model, test_x, test_y):.3f}")
    for name, value in PUBLISHED.items():
        print(f"  {name:<18} {value:.3f}  (published)")


if __name__ == "__main__":
    main()
