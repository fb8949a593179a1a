"""Run by test_house in a fresh process: every annotation of a shape is checked at run time."""

from jaxtyping import install_import_hook

with install_import_hook("seq2tens", "beartype.beartype"):
    from seq2tens import algebra, nn
    from seq2tens import functional as F
    from seq2tens.data import Batch
    from seq2tens.explaining import explain
    from seq2tens.models.gpvae import GPVAE, Prior
    from seq2tens.models.irregular import NETWORKS

import torch
from jaxtyping import TypeCheckError

x = torch.randn(2, 5, 3)
mask = torch.ones(2, 5, dtype=torch.bool)
lengths = torch.tensor([5, 2])
for options in [{}, {"weights": "independent"}, {"decay": "learn"}, {"lift_order": 2}, {"normalize": True}]:
    layer = nn.LS2T(3, 4, 2, **options)
    y, state = layer(x, mask, lengths, return_state=True)
    layer(x, state=state)
nn.BiLS2T(3, 4, 2)(x, lengths=lengths)
for network in NETWORKS.values():
    model = network(3, 1, width=8)
    model(batch := Batch(x, lengths, torch.rand_like(x) < 0.5, torch.rand(2, 5).cumsum(1), torch.rand(2, 1)))
    getattr(model, "auxiliary_loss", model)(batch)
for prior in (Prior("matern12"), Prior("rbf", n_scales=2), Prior("cauchy")):
    model = GPVAE(3, 2, encoder="bls2t", image_shape=(1, 3, 1), prior=prior, encoder_sizes=(4, 5))
    known = torch.rand_like(x) < 0.5
    model.elbo(x, known, lengths, n_samples=2)
    model.log_likelihood(x, known, x, ~known, lengths)
    model.reconstruct(x)
    model.sample(x, n_samples=2)
    prior.at(torch.rand(5).cumsum(0))
    GPVAE(3, 2, prior=prior, encoder_sizes=(4,))(torch.randn(2, 40, 3)).value.sum().backward()
nn.DeepLS2T(3, 4)(x, mask)
explain(torch.nn.Sequential(nn.DeepLS2T(3, 4, weights="independent"), torch.nn.Linear(8, 2)), x[0])
F.ls2t(x, torch.randn(2, 3, 4), torch.randn(2, 4), order=2, decay=torch.rand(4), mask=mask)
for transform in (F.difference, F.time_embedding, F.basepoint, F.lead_lag, F.forward_fill):
    transform(x)
    transform(x, mask=mask, lengths=lengths)
F.lags(x, 2)
weight = torch.randn(2, 3, 4)
chunk = F.transfer(x, weight, order=2, mask=mask)
F.apply_transfer(F.apply_transfer(None, chunk), F.combine(chunk, chunk))
starts, stops = torch.tensor([[0, 1, 2], [5, 1, 4]])
F.PrefixLS2T(x, weight, order=2)(starts, stops)
F.PrefixLS2T(x, weight, order=2)(starts, stops, torch.tensor([0, 1, 1]))
F.sliding_ls2t(x, [2, 3], weight, torch.randn(2, 4), order=2, lengths=lengths)
nn.checkpoint_chunks(nn.LS2T(3, 4, 2), nn.time_chunks(x, 2))
algebra.seq2tens(x, 3, "exp", mask=mask).exp().log().inverse().flatten()
algebra.signature(x, 2)
algebra.string_features(["ab", "b"], 2)

try:
    F.ls2t(x, torch.randn(2, 4, 4), order=2)
except TypeCheckError:
    print("shapes hold")
