"""The layer is a low-rank functional of the full map: both computed, both compared."""

import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT, ORDERS, problem
from oracle import chain_words
from seq2tens.algebra import FreeTensor, lifts, seq2tens
from seq2tens.functional import ls2t


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("order", "weights", "lift_order"), ORDERS)
def test_layer_is_an_inner_product_with_the_full_map(order, weights, lift_order, reverse):
    options = {**problem(order, weights, lift_order, time=4), "decay": None}
    mask = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 1]], dtype=torch.bool)
    y = ls2t(**options, mask=mask, reverse=reverse)
    # a constant coordinate carries the bias
    x = torch.cat([options["x"], torch.ones(2, 4, 1).double()], dim=2)
    vectors = torch.cat([options["weight"], options["bias"][:, None]], dim=1)
    lift = lifts.coefficients(options["lift_coefficients"])
    for step in range(4):
        window = slice(step, None) if reverse else slice(0, step + 1)
        phi = seq2tens(x[:, window], order, lift, mask=mask[:, window])
        for m, word in enumerate(chain_words(order, weights), start=1):
            functional = FreeTensor.pure(vectors[word].permute(2, 0, 1), order)  # one per functional
            inner = torch.stack([phi.inner(one(functional, k)) for k in range(vectors.shape[2])], dim=1)
            assert_close(y[:, step, m - 1], inner, **EXACT)


def one(element, index):
    return FreeTensor(tuple(level[index] for level in element.levels))
