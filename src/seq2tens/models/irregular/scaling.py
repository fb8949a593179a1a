"""Standardisation that keeps everything else as it was measured."""

from __future__ import annotations

from seq2tens.data import Scaler, Sequences
from seq2tens.data.preparation import single_steps


class IrregularScaler:
    """Standardise values and static features with the statistics of the sequences given to `fit`.

    Missing entries stay missing and times stay times: the networks of this package fill gaps themselves.
    """

    def __init__(self) -> None:
        self.values = Scaler()
        self.static: Scaler | None = None

    def fit(self, sequences: Sequences) -> IrregularScaler:
        """Learn the statistics of each channel and of each static feature."""
        self.values.fit(sequences)
        self.static = None if sequences.static is None else Scaler().fit(single_steps(sequences.static))
        return self

    def transform(self, sequences: Sequences) -> Sequences:
        """The standardised sequences, in float32."""
        scaled, static = self.values.transform(sequences), sequences.static
        if self.static is not None and static is not None:
            static = self.static.transform(single_steps(static)).values
        return Sequences(scaled.values, sequences.offsets, sequences.times, static)
