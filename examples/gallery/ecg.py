"""ECG: detect abnormal heartbeats, with calibrated probabilities.

Each sequence is one heartbeat, recorded by two electrodes, normal or abnormal. We evaluate the predicted
probabilities by accuracy and the areas under the ROC and precision-recall curves.

With `SEQ2TENS_DATA` set, the data are the ECG data set of the archive; otherwise the beats are simulated.
"""

# %%
# ## The data
import numpy as np
from matplotlib.figure import Figure

from seq2tens import plots
from seq2tens.data import Labelled, Sequences, available_datasets, load_dataset
from seq2tens.estimators import RandomLS2TClassifier, evaluate


def beats(number, rng):
    """P, Q, R, S and T waves as bumps; in an abnormal beat the T wave is inverted and the P wave is late."""
    labels = rng.choice(["normal", "abnormal"], size=number, p=[0.7, 0.3])
    values = []
    for label in labels:
        sick = label == "abnormal"
        t = np.linspace(0, 1, rng.integers(60, 110))
        places = np.array([0.2 + 0.05 * sick, 0.36, 0.4, 0.44, 0.7]) + rng.normal(scale=0.015, size=5)
        heights = np.array([0.15, -0.15, 1.0, -0.25, -0.1 if sick else 0.3]) + rng.normal(scale=0.08, size=5)
        widths = np.array([0.03, 0.012, 0.015, 0.015, 0.06])
        beat = sum(h * np.exp(-(((t - p) / w) ** 2)) for h, p, w in zip(heights, places, widths))
        two = np.column_stack([beat, 0.6 * beat]) + rng.normal(scale=0.06, size=(len(t), 2))
        values.append(two)
    return Labelled(Sequences.from_list(values), labels)


if "ECG" in available_datasets():
    train, test = load_dataset("ECG")
else:
    rng = np.random.default_rng(0)
    train, test = beats(100, rng), beats(100, rng)
print(train.sequences)

# %%
# ## Train and evaluate
# Leave-one-out cross-validation chooses the regularisation and calibrates the probabilities.
model = RandomLS2TClassifier(class_weight="balanced", random_state=0).fit(train.sequences, train.labels)
probabilities = model.predict_proba(test.sequences)
found = evaluate(test.labels, probabilities, model.classes_)
print(f"accuracy {found.accuracy:.3f}, AUROC {found.auroc:.3f}, AUPRC {found.auprc:.3f}")

# %%
# ## Beats by the probability of the first class
chance = probabilities[:, 0]
order = np.argsort(chance)
figure = Figure(figsize=(9, 3.4), layout="constrained")
axes = figure.subplots(1, 3, sharey=True)
groups = {
    "least likely": order[:8],
    "undecided": np.argsort(abs(chance - 0.5))[:8],
    "most likely": order[-8:],
}
for ax, (title, rows) in zip(axes, groups.items()):
    for row in rows:
        agrees = test.labels[row] == model.classes_[0]
        ax.plot(test.sequences[row].values[:, 0], color="#c0392b" if agrees else "#3b6fb6", alpha=0.7)
    ax.set_title(f"{title}: {chance[rows].min():.2f} to {chance[rows].max():.2f}", fontsize=10)
    ax.set_xlabel("step")
axes[0].set_ylabel("first electrode")
figure.suptitle(f"probability of class {model.classes_[0]} (red: it is)", fontsize=11)
plots.save(figure, "beats.png")

# %%
# ![Heartbeats in three groups by predicted probability: least likely, undecided and most likely abnormal](beats.png)
