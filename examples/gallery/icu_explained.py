"""An ICU stay explained: which measurements raised the risk, and when.

The network takes irregular times and missing values directly. `explain` then decomposes the prediction into
contributions of variables at times, and of ordered pairs of times, that add up exactly.

With `SEQ2TENS_DATA` set, the stays are those of the PhysioNet 2012 challenge; otherwise they are simulated:
a patient deteriorates if lactate rises before blood pressure falls.
"""

# %%
# ## The data
import os
from pathlib import Path

import numpy as np

from seq2tens.data import Sequences, physionet2012
from seq2tens.estimators import DeepLS2TClassifier, evaluate
from seq2tens.explaining import explain


def simulated(number, rng):
    """Stays at irregular times, one entry in five missing; the order of two events makes the label."""
    values, times, labels = [], [], np.arange(number) % 2
    for label in labels:
        steps = rng.integers(20, 30)
        rise, fall = np.sort(rng.choice(np.arange(2, steps - 2), size=2, replace=False))[
            :: 1 if label else -1
        ]
        x = np.array([1.5, 80, 75]) + rng.normal(scale=[0.2, 4, 4], size=(steps, 3))
        x[rise:, 0] += 2
        x[fall:, 1] -= 30
        x[rng.random(x.shape) < 0.2] = np.nan
        values.append(x)
        times.append(np.sort(rng.uniform(0, 48, size=steps)))
    return Sequences.from_list(values, times, rng.uniform(40, 90, size=(number, 1))), labels


folder = Path(os.environ.get("SEQ2TENS_DATA", "")) / "physionet2012"
if os.environ.get("SEQ2TENS_DATA") and folder.exists():
    stays = physionet2012.load(folder)
    names = [*stays.train.channels, *physionet2012.STATIC]
    train, labels = stays.train.sequences[:1000], stays.train.labels[:1000]
    new, truth = stays.test.sequences[:300], stays.test.labels[:300]
else:
    rng = np.random.default_rng(0)
    names = ["lactate", "pressure", "pulse", "age"]
    train, labels = simulated(300, rng)
    new, truth = simulated(100, rng)
print(train)

# %%
# ## Train
model = DeepLS2TClassifier(width=16, depth=1, epochs=8, scaling="channel", random_state=0).fit(train, labels)
probabilities = model.predict_proba(new)
found = evaluate(truth, probabilities, model.classes_)
print(f"AUROC {found.auroc:.3f}, AUPRC {found.auprc:.3f}")

# %%
# ## One stay
# The stay with the highest predicted risk among those with a bad outcome. The output is the log-odds.
stay = int(np.argmax(np.where(truth == 1, probabilities[:, 1], 0)))
why = explain(model, new[stay], names=names)
print(
    f"risk {probabilities[stay, 1]:.2f}; log odds {why.output:.2f}, of an average stay {why.baseline_output:.2f}"
)
print(f"the contributions add up to {why.variables.sum():.2f} = {why.output:.2f} - {why.baseline_output:.2f}")
for row in why.top_variables(5):
    print(f"{row.contribution:+.3f}  {row.variable} at hour {row.time:.1f}")
for pair in why.top_pairs(3):
    print(f"{pair.contribution:+.3f}  hour {pair.first:.1f} before hour {pair.second:.1f}")
why.plot("why.png", unit="hours")

# %%
# Red raises the risk, blue lowers it. Arcs are ordered pairs of times that interact.
#
# ![Heat map of contributions by variable and hour, with arcs above for pairs of times](why.png)
#
# Contributions describe how the network computed its output. They are not effects of a treatment.
