"""GP-VAE and its relatives: what they must satisfy on any data."""

import copy
import io
import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from models.gpvae.dense import EXACT, normal
from seq2tens.models.gpvae import GPVAE, Prior

CHANNELS, LATENT, TIME = 3, 2, 6
SMALL = {"encoder_sizes": (4, 5), "decoder_sizes": (5,), "order": 3, "beta": 0.7}
LENGTHS = torch.tensor([6, 1, 4, 5])
VAE = {"prior": Prior("independent"), "covariance": "diagonal"}
SETTINGS = {
    "gp-vae": {},
    "gp-vae (b-ls2t)": {"encoder": "bls2t", "bands": "sigmoid"},
    "bernoulli": {"encoder": "bls2t", "likelihood": "bernoulli"},
    "images": {"image_shape": (1, 3, 1), "variance": "learn", "prior": Prior("rbf", n_scales=2)},
    "gp-vae (b-ls2t, published)": {"encoder": "bls2t-published", "steps": TIME},
    "hi-vae": VAE,
    "hi-vae (published)": VAE | {"encoder": "dense", "covariance": "deviations"},
    "vae": VAE | {"masked": False},
}
every_setting = pytest.mark.parametrize("name", SETTINGS)


def build(name="gp-vae", **options):
    """A small model in double precision, its parameters away from zero."""
    torch.manual_seed(0)
    model = GPVAE(CHANNELS, LATENT, **SMALL | SETTINGS[name] | options).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def data(name="gp-vae", batch=4, time=TIME):
    """Values, and which of them were observed; of the third sequence none."""
    values, observed = normal(batch, time, CHANNELS), normal(batch, time, CHANNELS, seed=1) > 0
    if batch > 2:
        observed[2] = False
    return (values > 0).double() if name == "bernoulli" else values, observed


def noise(batch=4, time=TIME):
    return normal(2, batch, time, LATENT, seed=2)


@every_setting
def test_padding_and_batch_composition_change_nothing(name):
    model, (values, observed) = build(name), data(name)
    together = model.elbo(values, observed, LENGTHS, noise=noise())
    rebuilt = model.reconstruct(values, observed, LENGTHS)
    assert together.value.std() > 0.1
    for row, length in enumerate(LENGTHS.tolist()):
        cut = values[row : row + 1, :length], observed[row : row + 1, :length]
        alone = model.elbo(*cut, noise=noise()[:, row : row + 1, :length])
        expected = {name: values[row : row + 1] for name, values in together._asdict().items()}
        assert_close(alone._asdict(), expected, **EXACT)
        assert_close(model.reconstruct(*cut)[0], rebuilt[row, :length], **EXACT)
        assert rebuilt[row, length:].abs().sum() == 0


@every_setting
def test_what_was_not_observed_may_hold_anything(name):
    model, (values, observed) = build(name), data(name)
    outside = torch.arange(TIME) >= LENGTHS[:, None]
    dirty = values.masked_fill(~observed | outside[..., None], math.nan)
    clean, found = (model.elbo(x, observed, LENGTHS, noise=noise()) for x in (values, dirty))
    assert_close(found, clean, rtol=0, atol=0)
    found.value.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@every_setting
def test_derivatives(name):
    model, (values, observed) = build(name), data(name)
    names = [name for name, _ in model.named_parameters()]
    given = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]

    def bound(*parameters):
        arguments = (values, observed, LENGTHS), {"noise": noise()}
        return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), *arguments).value

    assert gradcheck(bound, given, fast_mode=True)


@every_setting
def test_a_generator_decides_everything(name):
    model, (values, observed) = build(name), data(name)

    def drawn(seed):
        generator = torch.Generator().manual_seed(seed)
        first = model.sample(values, observed, LENGTHS, n_samples=3, generator=generator)
        return first, model.elbo(values, observed, LENGTHS, generator=generator).value

    state = torch.get_rng_state()
    first, again, other = drawn(0), drawn(0), drawn(1)
    assert torch.equal(state, torch.get_rng_state())
    assert first[0].shape == (3, 4, TIME, CHANNELS)
    assert_close(first, again, rtol=0, atol=0)
    assert (first[1] != other[1])[[0, 1, 3]].all()
    assert first[0][:, 1, 1:].abs().sum() == 0


@every_setting
def test_nothing_observed_and_everything_observed(name):
    model, (values, observed) = build(name), data(name)
    nothing = model.elbo(values, torch.zeros_like(observed), noise=noise())
    assert nothing.value.isfinite().all()
    assert (nothing.log_likelihood == 0).all() == model.masked
    everything = model.elbo(values, torch.ones_like(observed), noise=noise())
    assert_close(model.elbo(values, noise=noise()), everything, rtol=0, atol=0)


def test_encoder_fills_with_zeros_or_forward():
    values = torch.tensor([[[1.0, math.nan, 3.0], [math.nan, 5.0, math.nan], [7.0, math.nan, math.nan]]])
    values, observed = values.double(), ~values.isnan()
    zeros = [[1, 0, 3], [0, 5, 0], [7, 0, 0]]
    forward = [[1, 0, 3], [1, 5, 3], [7, 5, 3]]
    for name, filled in [("gp-vae", zeros), ("gp-vae (b-ls2t)", forward)]:
        model = build(name)
        expected = model.encode(torch.tensor([filled], dtype=torch.float64))
        assert_close(model.encode(values, observed).mean, expected.mean, **EXACT)


@pytest.mark.parametrize(("name", "far"), [("gp-vae", False), ("gp-vae (b-ls2t)", True)])
def test_which_steps_the_posterior_looks_at(name, far):
    model, values = build(name, window=3), normal(1, 9, CHANNELS).requires_grad_()
    mean = model.encode(values).mean
    (slope,) = torch.autograd.grad(mean[0, 4].sum(), values)
    seen = slope.abs().sum((0, 2)) > 1e-12
    assert seen.tolist() == [far or 3 <= step <= 5 for step in range(9)]


@pytest.mark.parametrize("bands", ["softplus", "sigmoid"])
def test_factor_is_the_identity_plus_positive_bands(bands):
    posterior = build(bands=bands).encode(50 * normal(2, 5, CHANNELS))
    assert (posterior.diagonal >= 1).all()
    assert (posterior.off_diagonal >= 0).all()
    assert (posterior.diagonal.max() > 2) == (bands == "softplus")
    assert build(**VAE).encode(normal(2, 5, CHANNELS)).off_diagonal.abs().sum() == 0


def test_independent_prior_gives_the_divergence_of_a_vae():
    model, (values, observed) = build("hi-vae"), data()
    posterior, found = model.encode(values, observed), model.elbo(values, observed, noise=noise()).kl
    variance = posterior.diagonal**-2
    expected = 0.5 * (posterior.mean**2 + variance - 1 - variance.log())
    assert_close(found, expected.sum((1, 2)), **EXACT)


def test_without_masking_missing_entries_are_zeros():
    values, observed = data()
    found = build("vae").elbo(values, observed, LENGTHS, noise=noise())
    zeros = torch.where(observed, values, 0.0)
    expected = build("hi-vae").elbo(zeros, None, LENGTHS, noise=noise())
    assert_close(found, expected, **EXACT)


@every_setting
def test_held_out_entries(name):
    """The entries that count, one after the other, by the distribution that the decoder states."""
    model, (values, observed) = build(name), data(name)
    held_out = ~observed
    found = model.log_likelihood(values, observed, values, held_out, LENGTHS, noise=noise())
    output = model.decoder(model.encode(values, observed, LENGTHS).sample(noise()))
    deviation = torch.ones(CHANNELS).double()
    if model.decoder.log_variance is not None:
        deviation = torch.exp(model.decoder.log_variance / 2)
    distribution = (
        torch.distributions.Bernoulli(logits=output)
        if name == "bernoulli"
        else torch.distributions.Normal(output, deviation)
    )
    counted = held_out & (torch.arange(TIME) < LENGTHS[:, None])[..., None]
    density = distribution.log_prob(values) * counted
    assert_close(found, density.sum((2, 3)).mean(0), **EXACT)


def test_images_are_seen_frame_by_frame():
    torch.manual_seed(0)
    model = GPVAE(4 * 3 * 2, LATENT, image_shape=(4, 3, 2), encoder_sizes=(4,), decoder_sizes=()).double()
    frames = normal(2, 5, 24)
    first, second = model.encoder.image.first, model.encoder.image.second
    picture = frames[1, 3].reshape(4, 3, 2).permute(2, 0, 1)[None]
    expected = second(first(picture).relu())[0].permute(1, 2, 0).flatten()
    assert_close(model.encoder.image(frames)[1, 3], expected, **EXACT)
    assert (first.out_channels, second.out_channels) == (256, 2)


def test_published_vaes_see_one_step_at_a_time():
    model, (values, observed) = build("hi-vae (published)"), data()
    posterior = model.encode(values, observed)
    filled = torch.where(observed, values, 0.0)
    assert [layer.in_features for layer in model.encoder.dense if hasattr(layer, "in_features")] == [3, 4, 5]
    output = model.encoder.dense(filled)
    assert_close(posterior.mean, output[..., :LATENT], **EXACT)
    deviation = torch.nn.functional.softplus(output[..., LATENT:])
    assert_close(posterior.variance(), deviation.square(), **EXACT)
    drawn = posterior.sample(noise())
    assert_close(drawn, posterior.mean + deviation * noise(), **EXACT)


def test_the_published_encoder_has_four_times_the_width_as_features():
    model = GPVAE(35, 35, encoder="bls2t-published", steps=48, encoder_sizes=(128, 128), window=24)
    sizes = [(layer.in_features, layer.out_features) for layer in model.encoder.dense[::2]]
    assert sizes == [(4 * 128, 128), (128, 3 * 35)]
    assert model.encoder.block.ls2t.past.width == 64
    assert model.encoder.block.ls2t.past.bias is not None


@every_setting
def test_parameters_are_saved_and_copied(name):
    model, (values, observed) = build(name), data(name)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = GPVAE(CHANNELS, LATENT, **SMALL | SETTINGS[name]).double()
    other.load_state_dict(torch.load(file, weights_only=True))
    expected = model.elbo(values, observed, noise=noise())
    for twin in (other, copy.deepcopy(model)):
        assert_close(twin.elbo(values, observed, noise=noise()), expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["gp-vae", "gp-vae (b-ls2t)", "vae"])
def test_training_raises_the_bound(name):
    model = build(name).float()
    time = torch.linspace(0, 3, 12)
    values = torch.sin(time + torch.arange(8.0)[:, None])[..., None] * torch.tensor([1.0, -2.0, 3.0])
    observed = normal(8, 12, CHANNELS, seed=3) > -0.5
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    generator = torch.Generator().manual_seed(0)
    bounds = []
    for _ in range(40):
        optimizer.zero_grad()
        bounds.append(model(values, observed, generator=generator).value.mean())
        bounds[-1].neg().backward()
        optimizer.step()
    assert sum(bounds[-5:]) / 5 > sum(bounds[:5]) / 5 + 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "gru"}, r"`kind` must be one of 'conv', 'bls2t', 'bls2t-published', 'dense', got 'gru'"),
        ({"encoder": "bls2t-published"}, r"`steps` must be given for .* got None for 'bls2t-published'"),
        ({"encoder": "bls2t", "steps": 4}, r"`steps` must be given for .* and no other, got 4 for 'bls2t'"),
        ({"beta": -1.0}, r"`beta` must be a finite number of at least 0, got -1.0"),
        ({"encoder_sizes": ()}, r"`sizes` must begin with the width of the convolution"),
        ({"image_shape": (2, 2, 1)}, r"`image_shape` must be .* with 3 values, .* got \(2, 2, 1\)"),
        ({"likelihood": "poisson"}, r"`likelihood` must be one of .* got 'poisson'"),
        ({"variance": 0.0}, r"`variance` must be a number greater than 0 or 'learn', got 0.0"),
        ({"bands": "exp"}, r"`bands` must be one of 'softplus', 'sigmoid', got 'exp'"),
        (
            {"covariance": "full"},
            r"`covariance` must be one of 'banded', 'diagonal', 'deviations', got 'full'",
        ),
    ],
)
def test_mistakes_in_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        GPVAE(CHANNELS, LATENT, **options)


def test_mistakes_in_calls_are_named():
    model, (values, observed) = build(), data()
    with pytest.raises(ValueError, match=r"`values` must have shape .* = \(4, 6, 3\), got \(4, 6, 2\)"):
        model.elbo(values[..., :2])
    with pytest.raises(ValueError, match=r"`observed` must have shape .* got \(4, 5, 3\)"):
        model.elbo(values, observed[:, :5])
    with pytest.raises(TypeError, match=r"`observed` must be boolean, got torch.float64"):
        model.elbo(values, values)
    with pytest.raises(ValueError, match=r"`held_out` must have shape .* got \(4, 6, 1\)"):
        model.log_likelihood(values, observed, values, observed[..., :1])
    with pytest.raises(ValueError, match=r"`n_samples` must be at least 1, got 0"):
        model.sample(values, n_samples=0)
    with pytest.raises(ValueError, match=r"`noise` must end in the axes"):
        model.elbo(values, noise=noise(batch=3))
