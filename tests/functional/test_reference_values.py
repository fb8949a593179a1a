"""The authors' own numbers, reproduced. Their last axes are (functional, level), ours (level, functional)."""

import re

import pytest
import torch
from torch.testing import assert_close

from seq2tens.functional import difference, ls2t, normalize_levels, time_embedding

pytestmark = pytest.mark.data("../reference")
EXACT = {"rtol": 1e-10, "atol": 1e-10}
NAME = re.compile(r"out_M(\d)_(ind|rec)_eo(\d)_rev(\d)_seq(\d)_bias(\d)_mask(\w+)")


def reversed_chains(rows, order, kind):
    """The authors flip time and keep the chain: our backward functional of the reversed chain, by level."""
    blocks = []
    for m in range(1, order + 1):
        level = rows[:m] if kind == "rec" else rows[m * (m - 1) // 2 : m * (m + 1) // 2]
        blocks.append(level.flip(0))
    return torch.cat(blocks)


def test_every_output_of_the_authors_layer(reference):
    values = {k: torch.from_numpy(v) for k, v in reference("ls2t_float64.npz").items()}
    names = [name for name in values if NAME.fullmatch(name)]
    assert len(names) == 192
    for name in names:
        order, kind, lift, rev, seq, bias, mask = NAME.fullmatch(name).groups()
        order = int(order)
        kernel, constant = values[f"kernel_M{order}_{kind}"], values[f"bias_M{order}_{kind}"]
        weights = {"rec": "recursive", "ind": "independent"}[kind]
        if rev == "1":
            kernel, constant = (reversed_chains(t, order, kind) for t in (kernel, constant))
            weights = "independent"
        y = ls2t(
            values["x"],
            kernel,
            constant if bias == "1" else None,
            order=order,
            weights=weights,
            lift_order=int(lift),
            mask=None if mask == "none" else values[f"mask_{mask}"],
            reverse=rev == "1",
            return_sequences=seq == "1",
        )
        assert_close(y.transpose(-1, -2), values[name], **EXACT, msg=lambda m, name=name: f"{name}: {m}")


def test_normalised_layer(reference):
    values = {k: torch.from_numpy(v) for k, v in reference("ls2t_float64.npz").items()}
    y = ls2t(values["x"], values["kernel_M3_rec"], values["bias_M3_rec"], order=3)
    counts = torch.arange(1, 8).expand(3, 7)
    y = normalize_levels(y, values["normalization_exponent"], counts).transpose(-1, -2)
    assert_close(y, values["out_M3_rec_usenorm_seq1"], **EXACT)
    assert_close(y[:, -1], values["out_M3_rec_usenorm_seq0"], **EXACT)


@pytest.mark.parametrize("kind", ["nomask", "maskpre", "maskpost"])
def test_time_and_difference_at_the_steps_that_count(reference, kind):
    values = {k: torch.from_numpy(v) for k, v in reference("ls2t_float64.npz").items()}
    x = values["x"]
    mask = (
        values.get(kind.replace("mask", "mask_")) if kind != "nomask" else torch.ones(3, 7, dtype=torch.bool)
    )
    given = None if kind == "nomask" else mask
    assert_close(time_embedding(x, mode="centred", mask=given)[mask], values[f"time_{kind}"][mask], **EXACT)
    ours = difference(x, mask=given)
    assert (ours[~mask] == 0).all()
    assert_close(ours[mask], values[f"diff_{kind}"][mask], **EXACT)
