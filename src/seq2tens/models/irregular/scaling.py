"""Standardisation that keeps missing entries and times."""

from __future__ import annotations

from seq2tens.data import Scaler, Sequences, single_steps


class IrregularScaler:
    """Standardises values and static features with the statistics of the sequences given to `fit`.

    Missing entries and times are kept: the networks of this package handle them themselves.
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
        """Return the standardised sequences, in float32."""
        scaled, static = self.values.transform(sequences), sequences.static
        if self.static is not None and static is not None:
            static = self.static.transform(single_steps(static)).values
        return Sequences(scaled.values, sequences.offsets, sequences.times, static)
