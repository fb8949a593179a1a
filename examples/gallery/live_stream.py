"""A live stream: a prediction after every step.

A sensor sends one row at a time. The classifier keeps a state of fixed size, and its probabilities after each
row equal those of `predict_proba` for all rows so far: online, early classification.

The movements (BasicMotions: standing, walking, running, badminton) come with aeon.
"""

# %%
# ## Train
# Streams need `scaling="channel"` and no time embedding: the end of a sequence is not known in advance.
# Training on prefixes of different length teaches the network to decide early.
import time

import numpy as np
from matplotlib.figure import Figure

from seq2tens import plots
from seq2tens.data import load_dataset, to_aeon
from seq2tens.estimators import FCNLS2TClassifier

train, test = load_dataset("BasicMotions")
series = [whole[:, :stop] for whole in to_aeon(train.sequences) for stop in (20, 40, 60, 80, 100)]
labels = np.repeat(train.labels, 5)
model = FCNLS2TClassifier(
    fcn_width=8, width=8, depth=2, epochs=15, time_embedding=False, scaling="channel", random_state=0
)
model.fit(series, labels)
print(f"accuracy on whole test sequences {model.score(test.sequences, test.labels):.3f}")

# %%
# ## Push row by row
stream = model.stream()
row_of = {label: int(np.flatnonzero(test.labels == label)[0]) for label in model.classes_}
histories, latencies = {}, []
for label, number in row_of.items():
    stream.reset()
    history = []
    for row in test.sequences[number].values:
        begin = time.perf_counter()
        history.append(stream.push(row[None])[0])
        latencies.append(time.perf_counter() - begin)
    histories[label] = np.array(history)
whole = model.predict_proba(test.sequences[row_of[label]])[0]
print(f"stream and predict_proba differ by {np.abs(history[-1] - whole).max():.1e}")
print(f"median time of a step {1e3 * np.median(latencies):.2f} ms")

# %%
# ## How early is the decision?
figure = Figure(figsize=(9, 5), layout="constrained")
for ax, (label, history) in zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, histories.items()):
    for name, curve in zip(model.classes_, history.T):
        ax.plot(range(1, len(curve) + 1), curve, label=name, linewidth=2.5 if name == label else 1)
    ax.set_title(label)
figure.axes[0].legend(fontsize=8)
figure.supxlabel("steps seen")
figure.supylabel("probability")
plots.save(figure, "stream.png")

# %%
# ![Class probabilities after every step of four movements; the right class leads before the end](stream.png)
