"""Change of order: detect with sliding windows when B starts to lead A.

Change point detection: two sensors fire in pairs. First A leads B, later B leads A; rates, means and variances
stay the same. Level 2 of the LS2T map captures the order, and `sliding_ls2t` evaluates it in every window.
"""

# %%
# ## The data
import torch
from matplotlib.figure import Figure

from seq2tens import plots
from seq2tens.functional import sliding_ls2t

torch.manual_seed(0)
STEPS, CHANGE, LAG = 4000, 2300, 3
x = 0.1 * torch.randn(1, STEPS, 2, dtype=torch.float64)
for at in torch.randperm(STEPS - LAG)[:200].tolist():
    first, second = (0, 1) if at < CHANGE else (1, 0)
    x[0, at, first] += 1
    x[0, at + LAG, second] += 1
for name, part in (("before", x[0, :CHANGE]), ("after", x[0, CHANGE:])):
    print(f"{name}: means {part[:, 0].mean():.3f} and {part[:, 1].mean():.3f}")

# %%
# ## Two functionals in all windows
# One functional is A then B, the other B then A. Their difference on level 2 is twice the signed (Lévy) area
# of a window. It is positive while A leads, so its running sum peaks at the change.
weight = torch.tensor([[[1.0, 0], [0, 1]], [[0, 1], [1, 0]]], dtype=torch.float64)  # (order, channels, width)
windows = sliding_ls2t(x, 12, weight, order=2)[0, :, 1]  # level 2 of every window of 12 steps
local = (windows[:, 0] - windows[:, 1]).cumsum(0)
found = int(local.argmax())
print(f"the order changes at step {found}; the truth is {CHANGE}")

# %%
# ## Plot
figure = Figure(figsize=(9, 4.6), layout="constrained")
top, bottom = figure.subplots(2, sharex=True)
top.plot(x[0], linewidth=0.4)
top.set_ylabel("sensors A and B")
bottom.plot(local, color="#3b6fb6")
bottom.axvline(CHANGE, color="black", linestyle=":", label="truth")
bottom.axvline(found, color="#d1652b", linestyle="--", label="found")
bottom.set_ylabel("sum of A→B minus B→A")
bottom.set_xlabel("step")
bottom.legend()
plots.save(figure, "order.png")

# %%
# ![Two noisy sensors that look alike throughout, and below the summed area, which peaks at the change](order.png)
