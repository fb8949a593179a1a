"""States of streams as trees: what is written is what is read, bit for bit, and other files are refused."""

import pytest
import torch
from torch import nn

from seq2tens._errors import ArgumentError
from seq2tens.nn.streaming import storage


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_a_tree_comes_back(tmp_path):
    tree = {
        "steps": 3,
        "parts": (torch.randn(2, 0, 3, dtype=torch.float64), (), (torch.tensor([1, -2]), 0.1)),
        "empty": {},
    }
    storage.save(tmp_path / "state", tree, {"id": "ä", "rows": [1, 2]})
    state, notes = storage.load(tmp_path / "state")
    assert same(state, tree)
    assert notes == {"id": "ä", "rows": [1, 2]}


def test_shapes_tell_states_apart():
    state = (torch.zeros(2, 3), (torch.zeros(1, dtype=torch.long), 4))
    assert storage.shapes(state) == storage.shapes((torch.ones(2, 3), (torch.ones(1, dtype=torch.long), 5)))
    assert storage.shapes(state) != storage.shapes((torch.zeros(2, 4), state[1]))
    assert storage.shapes(state) != storage.shapes((torch.zeros(2, 3).double(), state[1]))
    assert storage.shapes(state) != storage.shapes((state[0], (state[1][0], 4.0)))


def test_a_fingerprint_is_that_of_weights_and_class():
    layer, like = nn.Linear(2, 3), nn.Linear(2, 3)
    like.load_state_dict(layer.state_dict())
    expected = storage.fingerprint(layer)
    assert storage.fingerprint(like) == expected
    assert storage.fingerprint(nn.Bilinear(1, 2, 3)) != expected
    like.bias.data[2] += 1e-3
    assert storage.fingerprint(like) != expected


def test_a_state_moves_as_a_whole():
    moved = storage.to_device((torch.zeros(2), (torch.zeros(1), 3)), torch.device("meta"))
    assert moved[0].is_meta
    assert moved[1][0].is_meta
    assert moved[1][1] == 3


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"`path` must be the file of a saved state, got .*absent"):
        storage.load(tmp_path / "absent")
    file = tmp_path / "state"
    storage.save(file, (torch.zeros(3),), {})
    content = file.read_bytes()
    for broken in (b"", content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1]), b"text"):
        file.write_bytes(broken)
        with pytest.raises(
            ArgumentError, match=r"`path` must be the file of a saved state, but .* cannot be"
        ):
            storage.load(file)
