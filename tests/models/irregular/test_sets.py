"""SeFT and the transformer: what attention may and may not depend on."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from models.irregular.stays import EXACT, batch, build, stays
from seq2tens.data import Sequences
from seq2tens.models.irregular.network import TimeEncoding
from seq2tens.models.irregular.readings import Observations


class Shuffled:
    """Readings whose observations come in another order."""

    def __init__(self, readings, generator):
        self.readings, self.generator = readings, generator

    def __getattr__(self, name):
        return getattr(self.readings, name)

    def observations(self):
        seen = self.readings.observations()
        order = torch.randperm(len(seen.rows), generator=self.generator)
        return Observations(*(field[order] for field in seen))


def test_seft_does_not_depend_on_the_order_of_observations(generator):
    network = build("seft")
    readings = network.read(batch(stays()))
    assert_close(network.summarize(Shuffled(readings, generator)), network.summarize(readings), **EXACT)


def test_seft_does_not_depend_on_how_observations_share_rows():
    """A row with two observations and two rows at one time with one each are the same set."""
    network = build("seft", n_static=0)
    together = Sequences.from_list([np.array([[1.0, -0.5, np.nan]])], [np.array([3.0])])
    apart = Sequences.from_list(
        [np.array([[1.0, np.nan, np.nan], [np.nan, np.nan, np.nan], [np.nan, -0.5, np.nan]])],
        [np.array([3.0, 3.0 + 1e-13, 3.0 + 2e-13])],
    )
    assert_close(network(batch(apart)), network(batch(together)), **EXACT)


def test_seft_is_its_equations():
    network, sequences = build("seft"), stays()
    readings = network.read(batch(sequences))
    found, seen = network.summarize(readings), readings.observations()
    described, attention = network.describe(seen), network.attention
    for i in range(len(sequences)):
        elements = described[seen.rows == i]
        summary = attention.summary(attention.elements(elements).mean(0))
        keys = attention.keys(torch.cat([elements, summary.expand(len(elements), -1)], dim=-1))
        averages = []
        for head, query in enumerate(attention.query):
            width = len(query)
            logits = keys[:, head * width : (head + 1) * width] @ query / math.sqrt(width)
            averages.append(logits.softmax(0) @ network.elements(elements))
        expected = network.joined(torch.cat([*averages, readings.static[i]]))
        assert_close(found[i], expected, **EXACT)


def test_seft_starts_with_means():
    network = build("seft")
    torch.nn.init.zeros_(network.attention.query)
    seen = network.read(batch(stays())).observations()
    weights = network.attention(network.describe(seen), seen.rows, 4)
    counts = seen.rows.bincount()
    assert_close(weights, (1 / counts[seen.rows].double())[:, None].expand_as(weights), **EXACT)


@torch.no_grad()
def test_transformer_knows_the_order_from_times_alone():
    """Rows in another order with their times are the same sequence; without encodings times do not count."""
    network, given = build("transformer"), batch(stays((5, 5)))
    order = torch.tensor([3, 1, 4, 0, 2])
    shuffled = given._replace(
        values=given.values[:, order], observed=given.observed[:, order], times=given.times[:, order]
    )
    assert_close(network(shuffled), network(given), **EXACT)
    later = given._replace(times=given.times + 1)
    assert float((network(later) - network(given)).abs().max()) > 1e-4


def test_transformer_is_the_mean_over_rows_of_the_encoder():
    network, sequences = build("transformer"), stays()
    readings = network.read(batch(sequences))
    found = network.summarize(readings)
    for i, length in enumerate(sequences.lengths):
        rows = network.embedding(torch.cat([readings.values, readings.mask], -1)[i, :length])
        rows = rows + network.encoding(readings.times[i, :length])
        rows = torch.cat([network.initial(readings.static[i : i + 1]), rows])
        assert_close(found[i], network.encoder(rows[None])[0].mean(0), **EXACT)


def test_time_encoding():
    encoding = TimeEncoding(6, 0.1, 1000.0).double()
    times = torch.tensor([0.0, 0.3, 7.0], dtype=torch.float64)
    found = encoding(times)
    for k, wavelength in enumerate((0.1, 10.0, 1000.0)):
        angle = 2 * math.pi * times / wavelength
        assert_close(found[:, k], angle.sin(), rtol=1e-4, atol=1e-4)
        assert_close(found[:, 3 + k], angle.cos(), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="`width` must be even and positive, got 5"):
        TimeEncoding(5, 1.0, 2.0)
    with pytest.raises(ValueError, match="`width` must be a multiple of 8, twice `heads`, got 20"):
        build("transformer", width=20, heads=4)
