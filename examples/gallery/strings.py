"""Strings: count gapped m-mers, as string kernels do.

For letters as unit vectors, the Seq2Tens map counts every subsequence of m letters, adjacent or not. We classify
synthetic DNA in which motif TATA comes before or after motif GGC.
"""

# %%
# ## Counting by hand
import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.linear_model import RidgeClassifierCV

from seq2tens import plots, string_features

small = string_features(["aabc", "cab"], order=2)
print("ab, with gaps, in aabc and cab:", small.counts("ab").tolist())


# %%
# ## Before or after?
def strand(label, rng):
    letters = rng.choice(list("ACGT"), size=rng.integers(50, 80))
    early, late = rng.integers(2, 18), rng.integers(28, 42)
    motifs = ("TATATATA", "GGCGGCGG") if label else ("GGCGGCGG", "TATATATA")
    for at, motif in zip((early, late), motifs):
        letters[at : at + len(motif)] = list(motif)
    return "".join(letters)


rng = np.random.default_rng(0)
y = np.arange(600) % 2
strands = [strand(label, rng) for label in y]
print(strands[0], strands[1], sep="\n")

# %%
# ## Classify
# Order 1 counts letters, order 2 ordered pairs, order 3 triples. Counts are normalised by the number of m-mers in a strand.
counted = string_features(strands, order=3)
tables = [level.flatten(1).double() for level in counted.tensor.levels[1:]]
tables = [table / table.sum(1, keepdim=True) for table in tables]
for order in (1, 2, 3):
    table = torch.cat(tables[:order], dim=1).numpy()
    model = RidgeClassifierCV(np.logspace(-8, 2, 21)).fit(table[:400], y[:400])
    print(f"order {order}: {table.shape[1]} features, accuracy {model.score(table[400:], y[400:]):.3f}")

# %%
# ## Which pairs separate the classes?
pairs = (tables[1][y == 1].mean(0) - tables[1][y == 0].mean(0)).reshape(4, 4).numpy()
figure = Figure(figsize=(4.6, 3.8), layout="constrained")
ax = figure.subplots()
limit = float(abs(pairs).max())
picture = ax.imshow(pairs, cmap="RdBu_r", vmin=-limit, vmax=limit)
ax.set_xticks(range(4), counted.alphabet)
ax.set_yticks(range(4), counted.alphabet)
ax.set_xlabel("later letter")
ax.set_ylabel("earlier letter")
figure.colorbar(picture, label="share of pairs, TATA first − GGC first")
plots.save(figure, "pairs.png")

# %%
# ![Heat map of ordered letter pairs: T and A before G and C in one class, the reverse in the other](pairs.png)
