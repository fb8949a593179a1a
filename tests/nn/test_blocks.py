import math

import pytest
import torch
from torch.testing import assert_close

from seq2tens.functional import difference, time_embedding
from seq2tens.nn import LS2T, DeepLS2T, Difference, Lags, LevelNorm, LS2TBlock, TimeEmbedding

EXACT = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture
def x():
    return torch.randn(3, 6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def with_padding(x, before, after):
    padded = torch.nn.functional.pad(x, (0, 0, before, after), value=math.nan)
    mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
    mask[:, before : before + x.shape[1]] = True
    return padded, mask


def test_block_is_its_parts(x):
    block = LS2TBlock(2, 4, 3, time="index", norm=False).double()
    layer = LS2T(3, 4, 3, bias=False, dtype=torch.float64)
    layer.load_state_dict(block.ls2t.state_dict())
    assert_close(block(x), layer(difference(time_embedding(x))).flatten(2), **EXACT)
    plain = LS2TBlock(2, 4, 3, time=None, difference=False, norm=False).double()
    layer = LS2T(2, 4, 3, bias=False, dtype=torch.float64)
    layer.load_state_dict(plain.ls2t.state_dict())
    assert_close(plain(x), layer(x).flatten(2), **EXACT)


@pytest.mark.parametrize("time", ["bias", "index", "centred", None])
@pytest.mark.parametrize("training", [True, False])
def test_padding_changes_neither_output_nor_statistics(x, time, training):
    results = []
    for before, after in [(0, 0), (2, 0), (0, 3)]:
        torch.manual_seed(0)
        model = DeepLS2T(2, 4, 2, time=time).double().train(training)
        padded, mask = with_padding(x, before, after)
        results.append({"y": model(padded, mask), **dict(model.named_buffers())})
    for other in results[1:]:
        assert_close(results[0], other, **EXACT)


def test_batch_composition_in_eval_mode(x):
    model = DeepLS2T(2, 4).double().eval()
    assert_close(model(x)[1:2], model(x[1:2]), **EXACT)


def test_level_norm_statistics():
    norm = LevelNorm(2, eps=0.0, momentum=1.0)
    y = (
        torch.randn(5, 7, 2, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([[1.0], [50.0]])
        + 3
    )
    z = norm(y)
    assert_close(z.mean((0, 1, 3)), torch.zeros(2), atol=1e-5, rtol=0)
    assert_close(z.var((0, 1, 3), unbiased=False), torch.ones(2))
    assert_close(norm.eval()(y), z)


def test_parameter_count_of_the_paper():
    assert sum(p.numel() for p in DeepLS2T(3).parameters()) == 33_536


def test_depth_and_shapes(x):
    assert DeepLS2T(2, 5, 3, 4).double()(x).shape == (3, 20)
    assert DeepLS2T(2, 5, 1, 2, return_sequences=True).double()(x).shape == (3, 6, 10)
    with pytest.raises(ValueError, match="`depth` must be at least 1"):
        DeepLS2T(2, depth=0)
    with pytest.raises(ValueError, match="`time` must be one of"):
        LS2TBlock(2, 4, 2, time="clock")
    with pytest.raises(TypeError, match="unknown"):
        DeepLS2T(2, unknown=1)


def test_path_modules(x):
    assert_close(Difference()(x), difference(x))
    assert TimeEmbedding("centred")(x).shape == (3, 6, 3)
    assert Lags(3)(x).shape == (3, 6, 8)
