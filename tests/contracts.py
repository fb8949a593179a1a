"""Suites that every implementation inherits."""

import itertools
import math
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import oracle
from seq2tens.functional import ls2t

EXACT = {"rtol": 1e-10, "atol": 1e-10}
ORDERS = [
    (order, weights, lift)
    for order in (1, 2, 3, 4)
    for weights in ("recursive", "independent", "symmetric")
    for lift in range(1, order + 1)
    if weights != "symmetric" or order in (2, 3)
]
MASKS = {
    "none": [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]],
    "before": [[0, 0, 1, 1, 1], [0, 1, 1, 1, 1]],
    "after": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]],
    "inside": [[1, 0, 1, 0, 1], [0, 0, 0, 0, 0]],
}


def problem(order, weights, lift_order, *, batch=2, time=5, features=3, width=2, seed=0, dtype=torch.float64):
    """Random tensors of one layer, as keyword arguments of `functional.ls2t`."""
    gen = torch.Generator().manual_seed(seed)
    components = oracle.components(order, weights)
    draw = lambda *shape: torch.randn(*shape, generator=gen, dtype=torch.float64).to(dtype)  # noqa: E731
    return {
        "x": draw(batch, time, features),
        "weight": draw(components, features, width),
        "bias": draw(components, width),
        "order": order,
        "weights": weights,
        "lift_order": lift_order,
        "lift_coefficients": torch.tensor([1.0, 0.7, -0.3, 0.2], dtype=dtype)[:lift_order],
        "decay": torch.linspace(0.6, 1.0, width, dtype=dtype),
    }


def expected(options, mask, reverse):
    return oracle.ls2t(
        options["x"], mask, options["weight"], options["bias"], options["order"], options["weights"],
        options["lift_coefficients"], options["decay"], reverse,
    )  # fmt: skip


class LS2TContract:
    """What any backend of the recursion must satisfy, exactly, in float64."""

    backend: str

    def run(self, options, **more):
        return ls2t(**{**options, "backend": self.backend, **more})

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(("order", "weights", "lift_order"), ORDERS)
    def test_equals_the_sum_over_index_tuples(self, order, weights, lift_order, reverse):
        options = problem(order, weights, lift_order)
        for rows in MASKS.values():
            mask = torch.tensor(rows, dtype=torch.bool)
            target = expected(options, mask, reverse)
            assert_close(self.run(options, mask=mask, reverse=reverse), target, **EXACT)
            end = self.run(options, mask=mask, reverse=reverse, return_sequences=False)
            assert_close(end, target[:, 0 if reverse else -1], **EXACT)

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(("order", "weights", "lift_order"), ORDERS)
    def test_state_continues_a_sequence(self, order, weights, lift_order, reverse):
        options = problem(order, weights, lift_order)
        for rows, cut in itertools.product(MASKS.values(), (1, 3)):
            mask = torch.tensor(rows, dtype=torch.bool)
            target = expected(options, mask, reverse)
            pieces = [slice(0, cut), slice(cut, None)]
            first, second = reversed(pieces) if reverse else pieces
            _, state = self.run(
                {**options, "x": options["x"][:, first]},
                mask=mask[:, first],
                reverse=reverse,
                return_state=True,
            )
            rest = {**options, "x": options["x"][:, second], "state": state, "mask": mask[:, second]}
            assert_close(self.run(rest, reverse=reverse), target[:, second], **EXACT)
            end = self.run(rest, reverse=reverse, return_sequences=False)
            assert_close(end, target[:, 0 if reverse else -1], **EXACT)

    @pytest.mark.parametrize("weights", ["recursive", "independent"])
    def test_defaults_are_the_papers(self, weights):
        options = problem(3, weights, 2)
        plain = {k: options[k] for k in ("x", "weight", "order", "weights")}
        explicit = {
            **plain,
            "bias": torch.zeros_like(options["bias"]),
            "lift_order": 2,
            "lift_coefficients": torch.tensor([1.0, 1 / 2]).double(),
            "decay": torch.ones(2).double(),
        }
        assert_close(self.run(plain, lift_order=2), self.run(explicit), **EXACT)
        explicit.update(lift_order=1, lift_coefficients=torch.ones(1).double())
        assert_close(self.run(plain), self.run(explicit), **EXACT)

    @pytest.mark.parametrize("return_sequences", [False, True])
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize(("order", "weights", "lift_order"), [o for o in ORDERS if o[0] in (1, 3)])
    def test_first_and_second_derivatives(self, order, weights, lift_order, reverse, return_sequences):
        options = problem(order, weights, lift_order, time=3, features=2)
        mask = torch.tensor([[1, 1, 1], [0, 1, 1]], dtype=torch.bool)
        _, state = self.run(options, reverse=reverse, return_state=True)
        names = ["x", "weight", "bias", "lift_coefficients", "decay", "state"]
        values = [{**options, "state": state}[name].detach().clone() for name in names]
        values[4].mul_(0.9)  # away from the end of the allowed interval, so that differences stay inside

        def function(*tensors):
            filled = {**options, **dict(zip(names, tensors, strict=True))}
            return self.run(
                filled, mask=mask, reverse=reverse, return_sequences=return_sequences, return_state=True
            )

        inputs = tuple(v.requires_grad_() for v in values)
        assert torch.autograd.gradcheck(function, inputs, fast_mode=True)
        assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)

    @pytest.mark.parametrize("weights", ["recursive", "independent"])
    def test_padding_may_hold_anything(self, weights):
        options = problem(3, weights, 2, time=4)
        target = self.run(options)
        for before, after in [(2, 0), (0, 3), (1, 1)]:
            x = torch.nn.functional.pad(options["x"], (0, 0, before, after), value=math.nan)
            mask = torch.zeros(x.shape[:2], dtype=torch.bool)
            mask[:, before : before + 4] = True
            x, weight = x.requires_grad_(), options["weight"].clone().requires_grad_()
            y = self.run({**options, "x": x, "weight": weight}, mask=mask)
            assert_close(y[:, before : before + 4], target, **EXACT)
            assert_close(y[:, -1], target[:, -1], **EXACT)
            gx, gw = torch.autograd.grad(y.sum(), [x, weight])
            assert gx.isfinite().all()
            assert gw.isfinite().all()
            assert (gx[~mask] == 0).all()

    @pytest.mark.parametrize("weights", ["recursive", "independent"])
    def test_batch_composition_changes_nothing(self, weights):
        options = problem(3, weights, 1, batch=6, time=7)
        whole = self.run(options)
        for rows in ([0], [3, 1], [5, 4, 2, 0]):
            assert_close(self.run({**options, "x": options["x"][rows]}), whole[rows], **EXACT)

    def test_empty_sequence_in_a_batch_is_the_unit(self):
        options = problem(3, "independent", 2)
        y, state = self.run(options, lengths=torch.tensor([0, 5]), return_state=True)
        assert (y[0] == 0).all()
        assert (state[0] == 0).all()
        assert_close(y[1], self.run(options)[1], **EXACT)

    def test_one_step(self):
        options = problem(3, "recursive", 1, time=1)
        y = self.run(options)
        assert_close(y[:, 0, 0], options["x"][:, 0] @ options["weight"][0] + options["bias"][0], **EXACT)
        assert (y[:, 0, 1:] == 0).all()

    def test_nan_stays_in_its_own_sequence_and_future(self):
        options = problem(2, "recursive", 1, batch=3, time=6)
        clean = self.run(options)
        x = options["x"].clone()
        x[1, 3, 0] = math.nan
        y = self.run({**options, "x": x})
        assert_close(y[[0, 2]], clean[[0, 2]], **EXACT)
        assert_close(y[1, :3], clean[1, :3], **EXACT)
        assert y[1, 3:].isnan().all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_accumulates_wider(self, dtype):
        options = problem(4, "recursive", 1, time=300, dtype=dtype)
        wide = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        y = self.run({**options, "decay": None})
        assert y.dtype == torch.float32
        target = self.run({**wide, "decay": None})
        assert target.abs().max() > torch.finfo(torch.float16).max
        assert_close(y.double(), target, rtol=1e-4, atol=1e-4 * float(target.abs().max()))


def spread_out(tensor):
    """The same values with gaps of something else between them."""
    memory = torch.full((*tensor.shape, 3), 7).to(tensor)
    memory[..., 1] = tensor
    return memory[..., 1]


@contextmanager
def poisoned_memory():
    """Inside, `torch.empty` is filled with NaN, so that reading what was not written shows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


LAYERS = st.fixed_dictionaries(
    {
        "order": st.integers(1, 4),
        "weights": st.sampled_from(["recursive", "independent"]),
        "lift_order": st.integers(1, 3),
        "batch": st.integers(1, 6),
        "time": st.integers(1, 150),
        "features": st.integers(1, 5),
        "width": st.integers(1, 20),
        "seed": st.integers(0, 10**6),
    }
)


class FastPathContract(LS2TContract):
    """What a faster backend must share with the reference: every value and gradient, in every dtype."""

    examples = 60

    def compare(self, layer, dtype, mask, drop, reverse, return_sequences, rtol):
        options = problem(**layer, dtype=dtype)
        options["x"] /= (
            options["x"].shape[1] ** 0.5
        )  # keep higher levels near 1, where both dtypes are accurate
        options = {k: v for k, v in options.items() if k not in drop}
        results = []
        for backend in ("reference", self.backend):
            leaves = {
                k: v.clone().requires_grad_() for k, v in options.items() if isinstance(v, torch.Tensor)
            }
            with poisoned_memory():
                y, state = ls2t(
                    **{**options, **leaves}, mask=mask, reverse=reverse, return_sequences=return_sequences,
                    return_state=True, backend=backend,
                )  # fmt: skip
                weights = torch.linspace(-1, 1, y.numel(), dtype=dtype).reshape(y.shape)
                loss = (y * weights).sum() + state.square().sum()
                grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
            by_name = {f"d{k}": g for k, g in zip(leaves, grads, strict=True) if g is not None}
            results.append({"y": y.detach(), "state": state.detach(), **by_name})
        assert results[0].keys() == results[1].keys()
        for name, expected in results[0].items():
            atol = rtol * (1 + float(expected.abs().max()))
            assert_close({name: results[1][name]}, {name: expected}, rtol=rtol, atol=atol)

    @pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-10), (torch.float32, 2e-4)])
    def test_values_and_gradients_equal_the_references(self, dtype, rtol):
        @settings(max_examples=self.examples)
        @given(
            layer=LAYERS,
            masked=st.booleans(),
            drop=st.sets(st.sampled_from(["bias", "decay", "lift_coefficients"])),
            reverse=st.booleans(),
            return_sequences=st.booleans(),
        )
        def check(layer, masked, drop, reverse, return_sequences):
            mask = None
            if masked:
                gen = torch.Generator().manual_seed(layer["seed"])
                mask = torch.rand(layer["batch"], layer["time"], generator=gen) < 0.7
            self.compare(layer, dtype, mask, drop, reverse, return_sequences, rtol)

        check()

    @pytest.mark.parametrize("weights", ["recursive", "independent"])
    def test_strided_inputs(self, weights):
        options = problem(3, weights, 3, batch=4, time=9)
        options["mask"] = torch.arange(9) < torch.tensor([[9], [4], [7], [1]])
        _, options["state"] = self.run(options, return_state=True)
        strided = {k: spread_out(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        assert not any(t.is_contiguous() for t in strided.values() if isinstance(t, torch.Tensor))
        assert_close(self.run(strided), self.run(options), **EXACT)
        for changes in self.expanded(options):
            copied = {k: v.clone(memory_format=torch.contiguous_format) for k, v in changes.items()}
            assert_close(self.run({**options, **changes}), self.run({**options, **copied}), **EXACT)

    def expanded(self, options):
        """One number in place of many: memory ends where a kernel that counts would read on."""
        for name in ("lift_coefficients", "decay", "bias", "weight", "state"):
            yield {name: options[name].flatten()[:1].expand(options[name].shape)}
