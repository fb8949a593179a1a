"""Signatures and log-signatures, and how they relate to LS2T.

The signature of a path is the Seq2Tens map with the lift exp, applied to increments. Its second level holds the
area that a path encloses, which distinguishes clockwise from counterclockwise loops.
"""

# %%
# ## Signature and log-signature
# The signature is an element of the tensor algebra; coordinates are named by words. The logarithm keeps the same
# information without the redundancy of the shuffle product.
import torch
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

from seq2tens import plots, signature

torch.manual_seed(0)
angle = torch.linspace(0, 2 * torch.pi, 60, dtype=torch.float64)
circle = torch.stack([angle.cos(), angle.sin()], dim=-1)[None]
full = signature(circle, order=2)
log = full.log()
print(f"level 1, where the path ends: {[round(float(v), 3) for v in full.levels[1][0]]}")
print(f"area {(full[(0, 1)] - full[(1, 0)]).item() / 2:.4f}, exactly {torch.pi:.4f}")
print(f"log-signature, level 2: {log.levels[2][0].round(decimals=3).tolist()}")

# %%
# ## Chen's identity
# The signature of a concatenated path is the product of the signatures.
first, second = circle[:, :31], circle[:, 30:]
product = signature(first, order=4) * signature(second, order=4)
print(f"difference {(product.flatten() - signature(circle, order=4).flatten()).abs().max():.1e}")


# %%
# ## As features
# Noisy loops, half of them clockwise. Level 1 cannot distinguish them, level 2 can.
def loops(number):
    turn = torch.where(torch.arange(number) % 2 == 0, 1.0, -1.0).double()
    start = 6.28 * torch.rand(number, 1, dtype=torch.float64)
    phase = start + turn[:, None] * angle
    path = torch.stack([phase.cos(), phase.sin()], dim=-1)
    return path + 0.1 * torch.randn_like(path).cumsum(1), turn


(train, y), (test, truth) = loops(100), loops(200)
for order in (1, 2, 3):
    tables = [signature(paths, order=order).flatten(scalar=False) for paths in (train, test)]
    model = LogisticRegression().fit(tables[0], y)
    print(f"order {order}: {tables[0].shape[1]:2} features, accuracy {model.score(tables[1], truth):.3f}")

# %%
# ## Plot
figure = Figure(figsize=(8.5, 3.8), layout="constrained")
left, right = figure.subplots(1, 2)
coordinates = signature(test, order=2)
area = (coordinates[(0, 1)] - coordinates[(1, 0)]) / 2
for path, sign in list(zip(test, truth))[:6]:
    left.plot(*path.T, color="#3b6fb6" if sign > 0 else "#d1652b", alpha=0.8)
left.set_title("loops")
left.set_aspect("equal")
for sign, color, name in ((1, "#3b6fb6", "counterclockwise"), (-1, "#d1652b", "clockwise")):
    right.hist(area[truth == sign], bins=30, color=color, alpha=0.8, label=name)
right.set_xlabel("signed area, from level 2")
right.legend()
plots.save(figure, "loops.png")

# %%
# ![Noisy loops, and a histogram of their signed areas that separates the two directions](loops.png)
