import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from contracts import EXACT, problem
from seq2tens.functional import ls2t, normalize_levels

BAD_VALUES = [
    ({"x": torch.zeros(2, 5)}, r"`x` must have 3 axes \(batch, time, channels\), got 2 with shape \(2, 5\)"),
    ({"x": torch.zeros(2, 5, 4)}, "`x` must have 3 channels .*, got 4"),
    ({"x": torch.zeros(0, 5, 3)}, "`x` must hold at least one sequence, got an empty batch"),
    ({"x": torch.zeros(2, 0, 3)}, "`x` must have at least one time step, got an empty time axis"),
    ({"order": 0}, "`order` must be at least 1, got 0"),
    ({"lift_order": 0}, "`lift_order` must be at least 1, got 0"),
    ({"weights": "shared"}, "`weights` must be one of 'recursive', 'independent', got 'shared'"),
    ({"weight": torch.zeros(2, 3)}, "`weight` must have 3 axes"),
    (
        {"weight": torch.zeros(3, 3, 2)},
        "`weight` must have 2 components for recursive weights of order 2, got 3",
    ),
    ({"bias": torch.zeros(2)}, r"`bias` must have shape \(components, width\) = \(2, 2\), got \(2,\)"),
    ({"lift_coefficients": torch.ones(2)}, r"`lift_coefficients` must have shape \(lift_order,\) = \(1,\)"),
    ({"decay": torch.ones(3)}, r"`decay` must have shape \(width,\) = \(2,\), got \(3,\)"),
    ({"decay": torch.tensor([0.5, 1.5])}, r"`decay` must lie in \(0, 1\], got 1.5 at index 1"),
    (
        {"mask": torch.ones(2, 4, dtype=torch.bool)},
        r"`mask` must have shape \(batch, time\) = \(2, 5\), got \(2, 4\)",
    ),
    (
        {"lengths": torch.tensor([1, 6])},
        r"`lengths` must lie in 0..5 \(the time axis of `x`\), got 6 at index 1",
    ),
    ({"lengths": torch.tensor([-1, 5])}, "got -1 at index 0"),
    ({"lengths": torch.tensor([5])}, r"`lengths` must have shape \(batch,\) = \(2,\), got \(1,\)"),
    ({"state": torch.zeros(2, 3, 2)}, r"`state` must have shape .* = \(2, 2, 2\), got \(2, 3, 2\)"),
    ({"backend": "gpu"}, "`backend` must be one of .*, got 'gpu'"),
]
BAD_TYPES = [
    ({"x": torch.zeros(2, 5, 3, dtype=torch.long)}, "`x` must have a floating-point dtype, got torch.int64"),
    ({"x": [[1.0]]}, "`x` must be a torch.Tensor, got list"),
    ({"order": 2.0}, "`order` must be an integer, got float"),
    ({"mask": torch.ones(2, 5)}, "`mask` must be boolean .*, got torch.float32"),
    ({"lengths": torch.ones(2)}, "`lengths` must be integers, got torch.float32"),
]


def options(**changes):
    plain = problem(2, "recursive", 1, dtype=torch.float32)
    return {**plain, **changes}


@pytest.mark.parametrize(("changes", "message"), BAD_VALUES)
def test_wrong_values(changes, message):
    with pytest.raises(ValueError, match=message):
        ls2t(**options(**changes))


@pytest.mark.parametrize(("changes", "message"), BAD_TYPES)
def test_wrong_types(changes, message):
    with pytest.raises(TypeError, match=message):
        ls2t(**options(**changes))


@given(
    cuts=st.lists(st.integers(1, 11), max_size=4, unique=True),
    order=st.integers(1, 4),
    weights=st.sampled_from(["recursive", "independent"]),
    lift_order=st.integers(1, 3),
    reverse=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_cutting_into_chunks_gives_one_result(cuts, order, weights, lift_order, reverse, seed):
    layer = problem(order, weights, lift_order, time=12, seed=seed)
    mask = torch.rand(2, 12, generator=torch.Generator().manual_seed(seed)) < 0.8
    whole, end = ls2t(**layer, mask=mask, reverse=reverse, return_state=True)
    bounds = [0, *sorted(cuts), 12]
    pieces = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    state = None
    for piece in reversed(pieces) if reverse else pieces:
        part = {**layer, "x": layer["x"][:, piece], "mask": mask[:, piece]}
        y, state = ls2t(**part, reverse=reverse, state=state, return_state=True)
        assert_close(y, whole[:, piece], **EXACT)
    assert_close(state, end, **EXACT)


def test_mask_and_lengths_are_joined():
    layer = problem(3, "recursive", 1)
    mask = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 0, 1]], dtype=torch.bool)
    lengths = torch.tensor([3, 5])
    both = mask & (torch.arange(5) < lengths[:, None])
    assert_close(ls2t(**layer, mask=mask, lengths=lengths), ls2t(**layer, mask=both), **EXACT)


def test_normalising_counts_terms():
    """With all inner products 1, level m counts its terms, so exponent 1 gives 1 and exponent 0 nothing."""
    y = ls2t(torch.ones(1, 8, 1).double(), torch.ones(3, 1, 1).double(), order=3)
    counts = torch.arange(1, 9)[None]
    ones = normalize_levels(y, torch.ones(3).double(), counts)
    for m in (1, 2, 3):
        assert_close(ones[0, m - 1 :, m - 1, 0], torch.ones(9 - m).double(), **EXACT)
        assert (ones[0, : m - 1, m - 1] == 0).all()
    assert_close(normalize_levels(y, torch.zeros(3).double(), counts), y, **EXACT)
    assert normalize_levels(y, torch.ones(3).double(), torch.zeros(1, 8).long()).isfinite().all()
