import pytest
import torch
from torch.testing import assert_close

from comparison import gradients_of
from seq2tens import functional as F
from seq2tens.models.gpvae.layers import BiLS2TBlock, ImagePreprocessor, LevelNorm

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def results(layer, x, weights):
    """Outputs, and gradients of a weighted sum of them."""
    layer.zero_grad()
    y = layer(x)
    (y * weights).sum().backward()
    return {"y": y.detach(), **gradients_of(layer, (p.grad.clone() for p in layer.parameters()))}


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 5), (3, 2), (9, 12)])
def test_black_and_white_images_by_the_table_are_the_convolutions(height, width, monkeypatch):
    torch.manual_seed(0)
    layer = ImagePreprocessor((height, width, 1), width=7).double()
    torch.nn.init.normal_(layer.first.bias)
    torch.nn.init.normal_(layer.second.bias)
    x = (torch.rand(4, 3, height * width, dtype=torch.double) < 0.4).double()
    weights = torch.randn_like(x)
    with monkeypatch.context() as patch:
        patch.setattr(layer, "_colored", None)  # only the table is left
        by_table = results(layer, x, weights)
    monkeypatch.setattr(layer, "_black_and_white", None)
    by_convolution = results(layer, x.requires_grad_(), weights)  # the table gives no gradient of its input
    assert_close(by_table, by_convolution, **EXACT)


def test_a_grey_pixel_anywhere_asks_for_the_convolutions(monkeypatch):
    torch.manual_seed(0)
    layer = ImagePreprocessor((4, 4, 1), width=5).double()
    monkeypatch.setattr(layer, "_black_and_white", None)
    x = torch.zeros(2, 3, 16, dtype=torch.double)
    x[1, 2, 15] = 0.5
    assert_close(layer(x), layer(x.clone().requires_grad_()), **EXACT)
    assert not torch.equal(layer(x)[1, 2], layer(x)[0, 0])


def test_levels_are_normalised_by_themselves_and_without_padding():
    torch.manual_seed(0)
    norm, lengths = LevelNorm(2, 3).double(), torch.tensor([4, 1, 6])
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    levels = torch.randn(3, 6, 2, 3, dtype=torch.double) * torch.tensor([1.0, 1e-3])[:, None]
    mask = torch.arange(6) < lengths[:, None]
    found = norm(levels.masked_fill(~mask[..., None, None], torch.nan), mask)
    for sequence, length in enumerate(lengths):
        for level in range(2):
            alone = levels[sequence, :length, level]
            expected = torch.nn.functional.layer_norm(alone, alone.shape, eps=norm.eps)
            expected = expected * norm.weight[level] + norm.bias[level]
            assert_close(found[sequence, :length, level], expected, **EXACT)
        assert not found[sequence, length:].any()
    assert_close(norm(levels), norm(levels, torch.ones(3, 6, dtype=torch.bool)), **EXACT)


def test_a_relu_after_the_second_convolution_as_published():
    torch.manual_seed(0)
    layer = ImagePreprocessor((5, 4, 1), width=6, last_relu=True).double()
    torch.nn.init.constant_(layer.second.bias, -0.2)
    plain = ImagePreprocessor((5, 4, 1), width=6).double()
    plain.load_state_dict(layer.state_dict())
    grey = torch.rand(2, 3, 20, dtype=torch.double)
    for x in (grey, grey.round()):  # by convolutions, and by the table
        assert ((plain(x) < 0).any(), (plain(x) > 0).any()) == (True, True)
        assert torch.equal(layer(x), plain(x).relu())


def test_the_published_block_against_its_definition():
    """h/2 functionals per direction, 4h features; one mean and variance per sample and level, eps 1e-3."""
    torch.manual_seed(0)
    width, order, steps = 6, 4, 5
    block = BiLS2TBlock(width, width // 2, order, steps).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter)
    assert block.out_features == 4 * width
    assert tuple(block.norm.weight.shape) == tuple(block.norm.bias.shape) == (steps, 1, width)
    per_direction = order * (order + 1) // 2 * (width // 2) * (width + 1 + 1)  # a time coordinate and a bias
    assert sum(p.numel() for p in block.parameters()) == 2 * per_direction + 2 * steps * width
    x = torch.randn(2, steps, width, dtype=torch.double)
    path = F.difference(F.time_embedding(x))
    raw = block.ls2t(path)
    assert raw.shape == (2, steps, order, width)
    found = block(x).unflatten(2, (order, width))
    for sample in range(2):
        for level in range(order):
            one = raw[sample, :, level]
            spread = (one - one.mean()).square().mean()
            expected = (one - one.mean()) / (spread + 1e-3).sqrt()
            expected = expected * block.norm.weight[:, 0] + block.norm.bias[:, 0]
            assert_close(found[sample, :, level], expected, **EXACT)


def test_the_published_block_is_for_sequences_that_are_not_longer():
    block = BiLS2TBlock(4, 2, 2, 5)
    with pytest.raises(ValueError, match="`levels` must have at most 5 steps, got 6"):
        block(torch.zeros(1, 6, 4))
