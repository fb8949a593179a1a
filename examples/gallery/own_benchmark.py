"""Benchmark several classifiers on your own data.

Compare accuracy and seconds by cross-validation on the training data, with two standard baselines from aeon:
ROCKET and nearest neighbours with dynamic time warping.

To use your own data, replace `load_dataset` by `read("your.csv")`.
"""

# %%
# ## The data and the candidates
import time

import numpy as np
from aeon.classification.convolution_based import MiniRocketClassifier
from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier
from matplotlib.figure import Figure
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seq2tens import plots
from seq2tens.data import load_dataset, to_aeon
from seq2tens.estimators import DeepLS2TClassifier, LS2TFeatures, RandomLS2TClassifier

data, _ = load_dataset("GunPoint")
X, y = np.stack(to_aeon(data.sequences)), data.labels
candidates = {
    "RandomLS2T": lambda: RandomLS2TClassifier(random_state=0),
    "LS2TFeatures + ridge": lambda: make_pipeline(
        LS2TFeatures(random_state=0), StandardScaler(), RidgeClassifierCV(np.logspace(-3, 3, 13))
    ),
    "DeepLS2T, 10 epochs": lambda: DeepLS2TClassifier(width=16, epochs=10, random_state=0),
    "MiniROCKET (aeon)": lambda: MiniRocketClassifier(n_kernels=1000, random_state=0),
    "1-NN DTW (aeon)": lambda: KNeighborsTimeSeriesClassifier(distance="dtw"),
}
print(data.sequences, "classes", *sorted(set(y)))

# %%
# ## Cross-validation
# Each candidate is fitted once before the clock starts, because aeon compiles on first use.
folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
results = {}
for name, make in candidates.items():
    make().fit(X[:10], y[:10]).predict(X[:4])
    begin = time.perf_counter()
    scores = [np.mean(make().fit(X[a], y[a]).predict(X[b]) == y[b]) for a, b in folds]
    results[name] = np.mean(scores), (time.perf_counter() - begin) / len(folds)
    print(f"{name:22} accuracy {np.mean(scores):.3f}  {results[name][1]:.2f} s per fold")

# %%
# ## Plot
figure = Figure(figsize=(7.5, 4), layout="constrained")
ax = figure.subplots()
for name, (accuracy, seconds) in results.items():
    ax.plot(seconds, accuracy, "o")
    ax.annotate(name, (seconds, accuracy), textcoords="offset points", xytext=(6, 4), fontsize=9)
ax.set_xscale("log")
ax.margins(x=0.35, y=0.15)
ax.set_xlabel("seconds per fold")
ax.set_ylabel("accuracy in cross-validation")
plots.save(figure, "benchmark.png")

# %%
# ![Accuracy against seconds for five classifiers on GunPoint](benchmark.png)
#
# With so few sequences, differences of a few hundredths may be due to chance. Repeat with other seeds before you choose.
