"""A custom network in ten lines, compared with an LSTM.

`LS2T` is an `nn.Module` like `nn.LSTM`: use it in `nn.Sequential` and train it with your own loop. The task,
"did A come before B?", depends on order alone.
"""

# %%
# ## The network
import time

import torch
from matplotlib.figure import Figure
from torch import nn

from seq2tens import LS2T, plots

torch.manual_seed(0)
network = nn.Sequential(
    LS2T(3, width=32, order=2),  # (batch, time, channels) to (batch, time, order, width)
    nn.Flatten(2),
    nn.Linear(64, 32),
    nn.ReLU(),
    LS2T(32, width=32, order=2, return_sequences=False),
    nn.Flatten(1),
    nn.BatchNorm1d(64),
    nn.Linear(64, 2),
)
print(network(torch.randn(8, 100, 3)).shape)


# %%
# ## The same with `nn.LSTM`
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 64, batch_first=True), nn.Linear(64, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


# %%
# ## Data and training
def batch(number, length=40):
    x = 0.1 * torch.randn(number, length, 3)
    places = torch.stack([torch.randperm(length)[:2] for _ in range(number)])
    x[torch.arange(number), places[:, 0], 0] += 1  # A
    x[torch.arange(number), places[:, 1], 1] += 1  # B
    return x, (places[:, 0] < places[:, 1]).long()


def train(model, steps=120):
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    curve, begin = [], time.perf_counter()
    for _ in range(steps):
        x, y = batch(64)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve, time.perf_counter() - begin


test = batch(500)
curves = {}
for name, model in {"LS2T": network, "LSTM": Recurrent()}.items():
    curves[name], seconds = train(model)
    accuracy = (model.eval()(test[0]).argmax(1) == test[1]).float().mean()
    print(f"{name}: accuracy {accuracy:.3f} after 120 steps in {seconds:.1f} s")

# %%
# ## Plot
figure = Figure(figsize=(7, 3.4), layout="constrained")
ax = figure.subplots()
for name, curve in curves.items():
    ax.plot(curve, label=name)
ax.set_xlabel("training step")
ax.set_ylabel("loss")
ax.legend()
plots.save(figure, "losses.png")

# %%
# ![Training loss of the LS2T network and of the LSTM over 120 steps](losses.png)
