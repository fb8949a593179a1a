import pytest
import torch
from torch.testing import assert_close

from contracts import EXACT, MASKS, ORDERS, problem
from seq2tens.functional import apply_transfer, combine, ls2t, transfer

PIECES = [slice(0, 2), slice(2, 2), slice(2, 5)]  # one of them is empty


def transfers(options, mask, reverse):
    """Of all pieces, in the order in which a layer meets them, and of the whole."""
    of = lambda part: transfer(  # noqa: E731
        **{**options, "x": options["x"][:, part], "mask": mask[:, part]}, reverse=reverse
    )
    return [of(part) for part in (PIECES[::-1] if reverse else PIECES)], of(slice(None))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("order", "weights", "lift_order"), ORDERS)
def test_chunks_on_end(order, weights, lift_order, reverse):
    options = problem(order, weights, lift_order)
    for rows in MASKS.values():
        mask = torch.tensor(rows, dtype=torch.bool)
        (first, second, third), whole = transfers(options, mask, reverse)
        for joined in (combine(combine(first, second), third), combine(first, combine(second, third))):
            assert_close(joined.values, whole.values, **EXACT)
            assert_close(joined.fading, whole.fading, **EXACT)
        assert_close(first.matrix @ second.matrix @ third.matrix, whole.matrix, **EXACT)
        _, after = ls2t(**options, mask=mask, reverse=reverse, return_state=True)
        state = None
        for chunk in (first, second, third):
            state = apply_transfer(state, chunk)
        assert_close(state, after, **EXACT)
        row = torch.eye(len(whole.chains.component) + 1).double()[0]
        assert_close((row @ whole.matrix)[..., 1:].mT, after, **EXACT)


def test_the_matrix_is_that_of_the_theory():
    """Entry (p, q) is the level q - p of the chain that begins with vector p + 1."""
    options = {k: v for k, v in problem(3, "recursive", 1).items() if k in ("x", "weight", "bias", "order")}
    matrix = transfer(**options).matrix
    assert matrix.shape == (2, 2, 4, 4)
    assert (matrix.tril() == torch.eye(4)).all()
    for p in range(3):
        part = {**options, "weight": options["weight"][p:], "bias": options["bias"][p:], "order": 3 - p}
        assert_close(matrix[:, :, p, p + 1 :].mT, ls2t(**part, return_sequences=False), **EXACT)


@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_derivatives(weights):
    options = problem(3, weights, 2, time=4)
    names = ["x", "weight", "bias", "lift_coefficients", "decay"]
    values = [options[name].clone().requires_grad_() for name in names]
    values[4].data.mul_(0.9)
    _, start = ls2t(**options, return_state=True)

    def function(state, *tensors):
        filled = {**options, **dict(zip(names, tensors, strict=True))}
        first, second, empty = (
            transfer(**{**filled, "x": filled["x"][:, part]})
            for part in (slice(0, 1), slice(1, 4), slice(0, 0))
        )
        joined = combine(combine(first, empty), second)
        return apply_transfer(state, joined), joined.matrix

    inputs = (start.requires_grad_(), *values)
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_an_empty_chunk_has_a_graph():
    options = problem(2, "recursive", 1)
    x, weight = options["x"][:, :0].requires_grad_(), options["weight"].requires_grad_()
    nothing = transfer(**{**options, "x": x, "weight": weight})
    assert (nothing.values == 0).all()
    assert (nothing.fading == 1).all()
    for gradient in torch.autograd.grad(nothing.values.sum(), [x, weight]):
        assert (gradient == 0).all()


def test_a_level_beyond_the_range_leaves_those_below():
    x = torch.full((1, 4, 1), 1e20)
    weight = torch.ones(2, 1, 1)
    first, second = (transfer(x[:, part], weight, order=2) for part in (slice(0, 2), slice(2, 4)))
    joined = combine(first, second)
    state = apply_transfer(apply_transfer(None, first), second)
    assert_close(state[0, :, 0], torch.tensor([4e20, torch.inf]))
    assert_close(joined.values[0, :2, 0], torch.tensor([4e20, torch.inf]))


def test_wrong_arguments():
    options = problem(2, "recursive", 1)
    chunk = transfer(**options)
    other = transfer(**problem(3, "recursive", 1))
    with pytest.raises(ValueError, match="`second` must have the chains of `first`, got other ones"):
        combine(chunk, other)
    with pytest.raises(ValueError, match=r"`state` must have shape .* = \(2, 2, 2\), got \(2, 3, 2\)"):
        apply_transfer(torch.zeros(2, 3, 2), chunk)
    with pytest.raises(ValueError, match="`x` must have 3 channels"):
        transfer(**{**options, "x": torch.zeros(2, 5, 4)})
