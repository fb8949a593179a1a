import ctypes
import gc

import torch

from seq2tens.ops import _memory


def test_large_results_share_memory_in_turn_and_never_at_once():
    _memory._free.clear()
    shape = (2**20,)
    first = _memory.empty(shape, torch.float32)
    address = first.data_ptr()
    view = first[10:20]
    del first
    gc.collect()
    second = _memory.empty(shape, torch.float32)
    assert second.data_ptr() != address  # a view still holds the first
    del view
    gc.collect()
    third = _memory.empty(shape, torch.float32)
    assert third.data_ptr() == address


def test_workspaces_are_used_again_from_a_smaller_size_on():
    _memory._free.clear()
    addresses = set()
    for _ in range(3):
        space = _memory.workspace(2**18)
        ctypes.memset(space.data_ptr(), 1, 2**18)
        addresses.add(space.data_ptr())
        del space
    assert len(addresses) == 1
    assert len(_memory._free) == 1
    _memory.workspace(10)
    assert len(_memory._free) == 1


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(_memory, "_KEPT", 2**28)
    tensors = [_memory.empty((2**22,), torch.float64) for _ in range(12)]
    assert len({t.data_ptr() for t in tensors}) == 12
    for number, tensor in enumerate(tensors):
        tensor.fill_(number)
    assert all(bool((t == number).all()) for number, t in enumerate(tensors))
    del tensors, tensor
    gc.collect()
    assert sum(map(len, _memory._free)) <= _memory._KEPT


def test_small_ones_and_deterministic_mode_are_torchs():
    kept = len(_memory._free)
    assert _memory.empty((10,), torch.float32).shape == (10,)
    torch.use_deterministic_algorithms(True)
    try:
        assert _memory.empty((2**21,), torch.float32).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(_memory._free) == kept
