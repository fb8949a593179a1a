"""Handwriting: classify pen trajectories.

The data are the velocities of a pen. The order of the strokes determines the letter; random LS2T features with
ridge regression classify it in seconds.

With `SEQ2TENS_DATA` set, the data set is CharacterTrajectories (20 classes, real pens); otherwise four letters
are generated from templates with random slant, speed and noise.
"""

# %%
# ## The data
import numpy as np
from matplotlib.figure import Figure

from seq2tens import plots
from seq2tens.data import Labelled, Sequences, available_datasets, load_dataset
from seq2tens.estimators import RandomLS2TClassifier

TEMPLATES = {
    "l": [(0, 0), (0.6, 1.6), (0.2, 2), (0, 1.2), (0.1, 0), (0.6, 0)],
    "z": [(0, 1), (1, 1), (0, 0), (1, 0)],
    "v": [(0, 1), (0.5, 0), (1, 1)],
    "o": [(0.5, 1), (0, 0.5), (0.5, 0), (1, 0.5), (0.5, 1)],
}


def written(number, rng):
    """Velocities of a pen that follows the templates, never twice in the same way."""
    values, labels = [], rng.choice(list(TEMPLATES), size=number)
    for label in labels:
        corners = np.array(TEMPLATES[label]) + rng.normal(scale=0.12, size=(len(TEMPLATES[label]), 2))
        at = np.linspace(0, len(corners) - 1, rng.integers(40, 90))
        path = np.column_stack([np.interp(at, range(len(corners)), column) for column in corners.T])
        path[:, 0] += rng.normal(scale=0.2) * path[:, 1]  # slant
        values.append(np.diff(path, axis=0) + rng.normal(scale=0.005, size=(len(path) - 1, 2)))
    return Labelled(Sequences.from_list(values), labels)


if "CharacterTrajectories" in available_datasets():
    train, test = load_dataset("CharacterTrajectories")
    test = test[::7]  # sorted by letter
else:
    rng = np.random.default_rng(0)
    train, test = written(200, rng), written(200, rng)
print(train.sequences)

# %%
# ## Train and test
model = RandomLS2TClassifier(random_state=0).fit(train.sequences, train.labels)
predicted = model.predict(test.sequences)
wrong = np.flatnonzero(predicted != test.labels)
print(f"accuracy {np.mean(predicted == test.labels):.3f}, {len(wrong)} of {len(test)} wrong")

# %%
# ## Plot some letters
# The path of the pen is the cumulative sum of its velocity. Mistakes come first, in red.
shown = [*wrong[:6], *np.flatnonzero(predicted == test.labels)][:18]
figure = Figure(figsize=(9, 4.8), layout="constrained")
for ax, row in zip(figure.subplots(3, 6).flat, shown):
    x, y = np.cumsum(test.sequences[row].values[:, :2], axis=0).T
    right = predicted[row] == test.labels[row]
    ax.plot(x, y, color="#3b6fb6" if right else "#c0392b")
    ax.plot(x[0], y[0], "o", color="black", markersize=3)
    ax.set_title(
        f"{test.labels[row]}" if right else f"{test.labels[row]}, read as {predicted[row]}", fontsize=9
    )
    ax.set_aspect("equal")
    ax.axis("off")
plots.save(figure, "letters.png")

# %%
# ![Eighteen handwritten letters as pen trajectories, mistakes in red; a dot marks where the pen starts](letters.png)
