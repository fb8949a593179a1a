"""Healing digits: impute the missing pixels of short videos.

Digits rotate from frame to frame, and almost half of the pixels are missing. A GP-VAE reads all frames and
imputes the pixels, as in the Healing MNIST experiment, here with the small digits of scikit-learn.
"""

# %%
# ## The data
# 8 × 8 digits, enlarged to 16 × 16, rotated by a random angle per frame.
import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import rotate, zoom
from sklearn.datasets import load_digits

from seq2tens import plots
from seq2tens.data import from_aeon, held_out
from seq2tens.estimators import ForwardImputer, GPVAEImputer, MeanImputer

FRAMES, SIDE = 8, 16


def films(images, rng):
    """(films, pixels, frames), black and white"""
    made = np.zeros((len(images), SIDE * SIDE, FRAMES), dtype=np.float32)
    for film, image in zip(made, images):
        large = zoom(image, 2, order=1)
        angle = 0.0
        for frame in range(FRAMES):
            angle += rng.normal(scale=23)
            film[:, frame] = rotate(large, angle, reshape=False, order=1).ravel() > 7
    return made


rng = np.random.default_rng(0)
digits = load_digits().images
train, truth = films(digits[:300], rng), films(digits[1700:1750], rng)
X, hidden = held_out(truth, 0.45, rng)
print(f"{len(train)} videos to train, {len(truth)} to impute, {hidden.mean():.0%} of the pixels hidden")

# %%
# ## Train
# With more pixels than frames, `fit` would warn that the axes of an array may be swapped; those of a `Sequences`
# are unambiguous.
videos = from_aeon(train)
options = {"image_shape": (SIDE, SIDE, 1), "likelihood": "bernoulli", "latent": 32}
model = GPVAEImputer(**options, encoder_sizes=(128, 128), decoder_sizes=(128, 128), epochs=6, random_state=0)
model.fit(videos)
for imputer in (MeanImputer().fit(videos), ForwardImputer().fit(videos), model):
    wrong = ((imputer.transform(X) > 0.5) != truth)[hidden].mean()
    print(f"{type(imputer).__name__:15} {wrong:.1%} of the hidden pixels wrong")

# %%
# ## Plot
filled = model.transform(X)
figure = Figure(figsize=(8, 6.4), layout="constrained")
rows = [(film, kind) for film in (0, 1) for kind in ("given", "restored", "truth")]
for axes, (film, kind) in zip(figure.subplots(6, FRAMES), rows):
    frames = {"given": X, "restored": filled, "truth": truth}[kind][film]
    for frame, ax in enumerate(axes):
        colors = "Greys_r" if kind != "given" else "gray"
        ax.set_facecolor("#e8b27d")  # what is missing
        ax.imshow(frames[:, frame].reshape(SIDE, SIDE), cmap=colors, vmin=0, vmax=1)
        ax.set_xticks([])
        ax.set_yticks([])
    axes[0].set_ylabel(kind, fontsize=9)
plots.save(figure, "digits.png")

# %%
# ![Two videos of rotating digits: with missing pixels in orange, imputed by the GP-VAE, and the truth](digits.png)
