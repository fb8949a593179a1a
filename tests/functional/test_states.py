import pytest
from torch.testing import assert_close

from contracts import EXACT, problem
from seq2tens.functional import ls2t, ls2t_states, make_chains


@pytest.mark.parametrize("weights", ["recursive", "independent"])
@pytest.mark.parametrize("decay", [False, True])
def test_states_are_those_after_each_beginning(weights, decay):
    options = problem(3, weights, 2, time=6)
    x = options.pop("x")
    if not decay:
        options.pop("decay", None)
    states = ls2t_states(x, **options)
    for t in range(1, x.shape[1] + 1):
        _, state = ls2t(x[:, :t], **options, return_state=True)
        assert_close(states[:, t - 1], state, **EXACT)
    output = make_chains(3, weights, False).output
    assert_close(states[:, :, list(output)], ls2t(x, **options), **EXACT)
