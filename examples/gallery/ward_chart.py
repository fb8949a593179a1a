"""A ward chart with missing values: imputation with uncertainty.

Four vital signs every hour, 40 % of the entries missing. A GP-VAE imputes them, with
multiple imputations and prediction intervals. The chart is simulated, so the truth is known.
"""

# %%
# ## The data
# Slow shared trends drive pulse, pressure, respiration and temperature.
import numpy as np
from matplotlib.figure import Figure

from seq2tens import plots
from seq2tens.data import held_out
from seq2tens.estimators import GPVAEImputer, LinearImputer, MeanImputer

NAMES, LEVEL = ["pulse", "pressure", "respiration", "temperature"], np.array([80, 120, 16, 37.0])
SPREAD = np.array([12, 15, 3, 0.6])
MIX = np.array([[1, 0.3], [-0.8, 0.5], [0.7, 0.6], [0.2, 0.9]])


def charts(number, rng, hours=36):
    """(patients, signs, hours)"""
    t = np.arange(hours)
    trends = [
        np.sin(2 * np.pi * t / rng.uniform(18, 40) + rng.uniform(0, 2 * np.pi)) for _ in range(2 * number)
    ]
    smooth = np.einsum("sk,nkt->nst", MIX, np.reshape(trends, (number, 2, hours)))
    noisy = smooth + rng.normal(scale=0.15, size=smooth.shape)
    return LEVEL[:, None] + SPREAD[:, None] * noisy


rng = np.random.default_rng(0)
train, _ = held_out(charts(200, rng), 0.4, rng)
truth = charts(50, rng)
X, hidden = held_out(truth, 0.4, rng)
print(f"{np.isnan(X).mean():.0%} of {X.shape} entries are missing")

# %%
# ## Fit and compare
# The score is the negative mean squared error, in standard deviations of the channel.
model = GPVAEImputer(epochs=30, random_state=0).fit(train)
for imputer in (MeanImputer().fit(train), LinearImputer().fit(train), model):
    print(f"{type(imputer).__name__:15} {imputer.score(X, truth):.3f}")
low, high = model.predict_interval(X, coverage=0.9)
inside = ((truth >= low) & (truth <= high))[hidden].mean()
print(f"{inside:.0%} of the hidden entries lie in their 90 % interval")

# %%
# ## Plot one chart
filled = model.transform(X)
figure = Figure(figsize=(9, 6.5), layout="constrained")
for ax, name, sign in zip(figure.subplots(4, sharex=True), NAMES, range(4)):
    gaps = hidden[0, sign]
    ax.fill_between(
        range(36), low[0, sign], high[0, sign], color="#d1652b", alpha=0.25, label="90 % interval"
    )
    ax.plot(filled[0, sign], color="#d1652b", linewidth=1, label="imputed")
    ax.plot(np.flatnonzero(~gaps), X[0, sign, ~gaps], "o", color="#3b6fb6", markersize=4, label="measured")
    ax.plot(
        np.flatnonzero(gaps), truth[0, sign, gaps], "x", color="black", markersize=4, label="hidden truth"
    )
    ax.set_ylabel(name)
ax.set_xlabel("hour")
figure.axes[0].legend(ncols=4, fontsize=8, loc="upper right")
plots.save(figure, "chart.png")

# %%
# ![Ward chart of four vital signs: measured points, imputed lines with intervals, and the hidden truth](chart.png)
