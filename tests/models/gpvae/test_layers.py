import pytest
import torch
from torch.testing import assert_close

from seq2tens.models.gpvae.layers import ImagePreprocessor, LevelNorm

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def results(layer, x, weights):
    """Outputs, and gradients of a weighted sum of them."""
    layer.zero_grad()
    y = layer(x)
    (y * weights).sum().backward()
    return y.detach(), *(p.grad.clone() for p in layer.parameters())


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 5), (3, 2), (9, 12)])
def test_black_and_white_images_by_the_table_are_the_convolutions(height, width):
    torch.manual_seed(0)
    layer = ImagePreprocessor((height, width, 1), width=7).double()
    torch.nn.init.normal_(layer.first.bias)
    torch.nn.init.normal_(layer.second.bias)
    x = (torch.rand(4, 3, height * width, dtype=torch.double) < 0.4).double()
    weights = torch.randn_like(x)
    by_table = results(layer, x, weights)
    by_convolution = results(layer, x.requires_grad_(), weights)  # the table gives no gradient of its input
    for found, expected in zip(by_table, by_convolution, strict=True):
        assert_close(found, expected, **EXACT)


def test_a_grey_pixel_anywhere_asks_for_the_convolutions():
    torch.manual_seed(0)
    layer = ImagePreprocessor((4, 4, 1), width=5).double()
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
