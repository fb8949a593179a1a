"""A ward chart with missing values: imputation with uncertainty.

Four vital signs every hour, 40 % of the entries missing. `LS2TImputer` fills them from the past and the future
of each gap, with prediction intervals. The chart is simulated, so the truth is known.
"""

# %%
# ## The data
# Slow shared trends drive pulse, pressure, respiration and temperature.
import numpy as np

from seq2tens import plots
from seq2tens.data import held_out
from seq2tens.estimators import LinearImputer, LS2TImputer, MeanImputer

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
# Single entries are missing, so single entries are hidden in training, too (`hide="points"`). The score is the
# negative mean squared error, in standard deviations of the channel.
model = LS2TImputer(hide="points", width=32, functionals=16, epochs=60, random_state=0).fit(train)
for imputer in (MeanImputer().fit(train), LinearImputer().fit(train), model):
    print(f"{type(imputer).__name__:15} {imputer.score(X, truth):.3f}")
low, high = model.predict_interval(X, coverage=0.9)
inside = ((truth >= low) & (truth <= high))[hidden].mean()
print(f"{inside:.0%} of the hidden entries lie in their 90 % interval")

# %%
# ## Plot one chart
filled = model.transform(X)
figure = plots.imputation(X[0].T, filled[0].T, (low[0].T, high[0].T), channels=NAMES, title="90 % intervals")
for ax, gaps, values in zip(figure.axes, hidden[0], truth[0]):
    ax.plot(np.flatnonzero(gaps), values[gaps], "x", color="black", markersize=4, label="hidden truth")
figure.axes[0].legend(frameon=False, fontsize=8, ncols=3)
figure.axes[-1].set_xlabel("hour")
plots.save(figure, "chart.png")

# %%
# ![Ward chart of four vital signs: measured points, imputed values with intervals, and the hidden truth](chart.png)
