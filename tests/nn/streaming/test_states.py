"""Streams stop and go on, and refuse what they cannot take."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from nn.streaming.streams import EXACT, MODULES, STEPS, build, draw, prefixes
from seq2tens.nn import FCN, LS2T, BiLS2T, Stream

every_module = pytest.mark.parametrize("name", MODULES)


@every_module
def test_a_state_goes_on_elsewhere(name, tmp_path):
    module, x = build(name), draw(2, STEPS, 3)
    stream, file = Stream(module), tmp_path / "state.safetensors"
    stream.push(x[:, :11])
    stream.save(file, {"rows": [11], "name": "ä"})
    expected = stream.push(x[:, 11:])
    other = Stream(copy.deepcopy(module))
    assert other.load(file) == {"rows": [11], "name": "ä"}
    assert other.steps == 11
    assert_close(other.push(x[:, 11:]), expected, rtol=0, atol=0)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def leaves(tree):
    branches = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, tuple) else None
    return [tree] if branches is None else [leaf for branch in branches for leaf in leaves(branch)]


@every_module
def test_a_state_is_a_plain_tree_of_fixed_size_that_later_steps_leave_alone(name):
    module, x = build(name), draw(2, 60, 3)
    stream, sizes = Stream(module), []
    for part in x.split(20, dim=1):
        stream.push(part)
        found = leaves(stream.state())
        assert {type(leaf) for leaf in found} <= {torch.Tensor, int}
        sizes.append([leaf.shape for leaf in found if isinstance(leaf, torch.Tensor)])
    assert sizes[0] == sizes[1] == sizes[2]
    state, values = stream.state(), [copy.copy(leaf) for leaf in leaves(stream.state())]
    after = stream.push(x[:, :5])
    assert_close(leaves(state), values, rtol=0, atol=0)
    stream.restore(state)
    assert_close(stream.push(x[:, :5]), after, rtol=0, atol=0)


@pytest.mark.slow
def test_a_state_goes_on_in_another_process(tmp_path):
    module, x = build("fcn-ls2t"), draw(1, STEPS, 3)
    stream = module.stream()
    stream.push(x[:, :13])
    stream.save(tmp_path / "state")
    torch.save({"weights": module.state_dict(), "x": x[:, 13:]}, tmp_path / "rest.pt")
    code = """
import sys, torch
from seq2tens.nn import FCNLS2T
folder = sys.argv[1]
rest = torch.load(f"{folder}/rest.pt")
module = FCNLS2T(3, 4, 5, 3, time_embedding=False).double()
module.load_state_dict(rest["weights"])
stream = module.stream()
stream.load(f"{folder}/state")
torch.save(stream.push(rest["x"]), f"{folder}/y.pt")
"""
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
    assert_close(torch.load(tmp_path / "y.pt"), stream.push(x[:, 13:]), rtol=0, atol=0)


def test_states_of_others_are_refused(tmp_path):
    module, x = build("deep"), draw(2, 5, 3)
    stream = module.stream()
    stream.push(x)
    state = stream.state()
    with pytest.raises(
        ValueError, match="`state` must come from a stream of this module, got one with other weights"
    ):
        build("fcn").stream().restore(state)
    with torch.no_grad():
        changed = copy.deepcopy(module)
        changed.blocks[0].ls2t.bias[0, 0] += 1e-6
    with pytest.raises(ValueError, match="other weights"):
        changed.stream().restore(state)
    with pytest.raises(ValueError, match="`state` must come from a stream with length=9, got None"):
        module.stream(length=9).restore(state)
    with pytest.raises(ValueError, match="`state` must have the tensors of this module, got others"):
        module.stream().restore({**state, "batch": 3})
    with pytest.raises(ValueError, match="`state` must be a dict with the keys batch, channels, fing"):
        module.stream().restore({"steps": 3})
    earlier = {("nodes" if name == "states" else name): value for name, value in state.items()}
    with pytest.raises(ValueError, match="'nodes'; states saved by earlier versions cannot be restored"):
        module.stream().restore(earlier)
    with pytest.raises(ValueError, match=r"`path` must be the file of a saved state, got .*none"):
        module.stream().load(tmp_path / "none")
    (tmp_path / "broken").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=r"`path` must be the file of a saved state, but .* cannot be read"):
        module.stream().load(tmp_path / "broken")


def test_a_file_is_kept_if_saving_fails(tmp_path):
    stream = build("deep").stream()
    stream.push(draw(1, 3, 3))
    stream.save(tmp_path / "state")
    before = (tmp_path / "state").read_bytes()
    with pytest.raises(TypeError):
        stream.save(tmp_path / "state", {"not JSON": object()})
    assert (tmp_path / "state").read_bytes() == before


def test_a_state_from_before_the_first_step(tmp_path):
    module, x = build("fcn"), draw(2, 4, 3)
    module.stream().save(tmp_path / "state")
    stream = module.stream()
    stream.push(x)
    stream.load(tmp_path / "state")
    assert stream.steps == 0
    assert_close(stream.push(x), prefixes("fcn", module, x), **EXACT)


@every_module
def test_an_open_stream_can_be_pickled_and_copied(name):
    module, x = build(name), draw(2, STEPS, 3)
    stream = Stream(module)
    stream.push(x[:, :11])
    others = pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream)
    expected = stream.push(x[:, 11:])
    for other in others:
        assert torch.equal(other.push(x[:, 11:]), expected)


def test_a_new_sequence_begins_after_reset():
    module, x = build("fcn-ls2t"), draw(3, 9, 3)
    stream = module.stream()
    first = stream.push(x)
    stream.reset()
    assert stream.steps == 0
    assert_close(stream.push(x[:1]), first[:1], **EXACT)  # of another batch size, even


@every_module
def test_an_empty_chunk_changes_nothing(name):
    module, x = build(name), draw(2, 12, 3)
    stream = Stream(module)
    expected = Stream(module).push(x)
    nothing = stream.push(x[:, :0])
    assert nothing.shape == (2, 0, *expected.shape[2:])
    assert stream.steps == 0
    pieces = [stream.push(x[:, :5]), stream.push(x[:, :0]), stream.push(x[:, 5:])]
    assert_close(torch.cat(pieces, dim=1), expected, **EXACT)


def test_wrong_arguments_leave_the_stream_as_it_was():
    module, x = build("fcn-ls2t"), draw(2, 9, 3)
    stream = module.stream(length=9)
    y = [stream.push(x[:, :4])]
    for wrong, message in [
        (x[..., :2], r"`chunk` must have shape \(2, steps, 3\) as before, got \(2, 9, 2\)"),
        (x[:1], r"`chunk` must have shape \(2, steps, 3\) as before, got \(1, 9, 3\)"),
        (x[0], r"`chunk` must have 3 axes"),
        (x[:0], r"`chunk` must hold at least one sequence"),
        (x.to("meta"), "`chunk` must be on the device of the stream, cpu, got meta"),
        (x, r"`chunk` must not go beyond `length` = 9 steps, got 13"),
    ]:
        with pytest.raises(ValueError, match=message):
            stream.push(wrong)
    with pytest.raises(TypeError, match="`chunk` must have a floating-point dtype"):
        stream.push(x.long())
    y.append(stream.push(x[:, 4:]))
    assert_close(torch.cat(y, dim=1), prefixes("fcn-ls2t", module, x), **EXACT)


@every_module
def test_wrong_channels_at_the_first_push(name):
    stream = Stream(build(name))
    with pytest.raises(ValueError, match=r"`chunk` must have \d channels \(in_features\), got \d"):
        stream.push(draw(2, 5, 4))
    assert stream.push(draw(2, 5, 3)).shape[1] == 5


def test_what_cannot_be_streamed():
    for module, message in [
        (BiLS2T(3, 4, 2), "must not look at the future to be streamed, got BiLS2T"),
        (LS2T(3, 4, 2, reverse=True), "must not look at the future to be streamed, got reverse=True"),
        (nn.LSTM(3, 4), "`module` must be made of LS2T layers, .* got LSTM"),
        (nn.Sequential(FCN(3, 4), LS2T(4, 4, 2)), "must not apply LS2T after sequences were reduced to one"),
    ]:
        with pytest.raises(ValueError, match=message):
            Stream(module)
    with pytest.raises(ValueError, match="`length` must be at least 1, got 0"):
        LS2T(3, 4, 2).stream(length=0)
    with pytest.raises(
        ValueError, match="`last` must be False for a module that returns sequences and looks"
    ):
        FCN(3, 4, return_sequences=True).stream().push(torch.randn(1, 9, 3), last=True)
    with pytest.raises(ValueError, match="`finish` needs at least one step"):
        LS2T(3, 4, 2).stream().finish()


def test_moving_to_a_device():
    module, x = build("resnet"), draw(2, 9, 3)
    stream = module.stream()
    first = stream.push(x[:, :4])
    assert stream.to("cpu") is stream
    y = torch.cat([first, stream.push(x[:, 4:])], dim=1)
    assert_close(y, prefixes("resnet", module, x), **EXACT)
    tensors = [leaf for leaf in leaves(stream.to("meta").state()) if isinstance(leaf, torch.Tensor)]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
