"""Which implementation of an operation runs, and why another does not."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from seq2tens._checks import ArgumentError
from seq2tens.ops import dispatch, native


class Observer(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        return function(*arguments, **(options or {}))


def doubled_if_small(x):
    return 2 * x


def doubled(x):
    return x + x


def too_large(x):
    return f"{len(x)} are too many" if len(x) > 3 else None


@pytest.fixture
def operation(monkeypatch):
    """An operation that has a definition and a fast version for few numbers."""
    monkeypatch.setitem(dispatch._registry, "double", {})
    dispatch.register("double", "fast", doubled_if_small, too_large)
    dispatch.register("double", "reference", doubled, dispatch.always_supported)
    return "double"


@pytest.mark.parametrize("backend", [None, "auto"])
def test_the_first_that_can_runs(operation, backend):
    assert dispatch.choose(operation, backend, [1, 2]) is doubled_if_small
    assert dispatch.choose(operation, backend, [1, 2, 3, 4]) is doubled
    assert dispatch.run(operation, backend, [1, 2, 3, 4]) == [1, 2, 3, 4, 1, 2, 3, 4]


def test_a_backend_asked_for_runs_or_raises(operation):
    assert dispatch.choose(operation, "reference", [1]) is doubled
    with pytest.raises(RuntimeError, match="`backend` 'fast' cannot run here: 4 are too many"):
        dispatch.choose(operation, "fast", [1, 2, 3, 4])
    with pytest.raises(ArgumentError, match="`backend` must be one of None, 'auto', 'fast', 'reference'"):
        dispatch.choose(operation, "faster", [1])


def test_reasons_of_all_backends(operation):
    assert dispatch.reasons(operation, [1] * 4) == {"fast": "4 are too many", "reference": None}


def test_tensors_are_found_inside_of_tuples_and_lists():
    a, b, c = torch.ones(3).unbind()
    found = dispatch.tensors_in([a, 3, (None, [b], "text"), [c]])
    assert [id(tensor) for tensor in found] == [id(a), id(b), id(c)]


def test_kernels_take_plain_tensors_on_the_cpu():
    x = torch.ones(2)
    assert dispatch.cpu_unsupported(x, (x, None)) == native.unavailable()
    assert dispatch.cpu_unsupported(x, [x.to("meta")]) == "a tensor is on meta"


def test_kernels_have_no_rules_for_transforms():
    reasons = []

    def note(x):
        reasons.append(dispatch.cpu_unsupported(x))
        return x.sum()

    torch.func.grad(note)(torch.ones(2))
    with forward_ad.dual_level():
        note(forward_ad.make_dual(torch.ones(2), torch.ones(2)))
        note(torch.ones(2))
    transform, forward_mode, none = reasons
    assert "torch.func" in transform
    assert "forward-mode" in forward_mode
    assert none == native.unavailable()


def test_kernels_without_derivatives_leave_those_to_the_reference():
    x, learned = torch.ones(2), torch.ones(2, requires_grad=True)
    assert dispatch.forward_unsupported(x) == native.unavailable()
    assert "no derivatives" in dispatch.forward_unsupported(x, [learned])
    with torch.no_grad():
        assert dispatch.forward_unsupported(x, [learned]) == native.unavailable()
    with Observer():
        assert "being recorded" in dispatch.forward_unsupported(x)


def test_what_may_be_differentiated():
    x, learned = torch.ones(2), torch.ones(2, requires_grad=True)
    assert dispatch.may_be_differentiated(None, learned)
    assert not dispatch.may_be_differentiated(None, x)
    with torch.no_grad():
        assert not dispatch.may_be_differentiated(learned)
