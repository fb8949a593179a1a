"""Who is speaking? Classify variable-length recordings.

Nine speakers say two vowels; each recording has 12 channels and 7 to 29 steps. We compare random
features, which fit in a second, with the paper's network FCN-LS2T.

The recordings (JapaneseVowels) come with aeon.
"""

# %%
# ## The data
# `Sequences` holds recordings of variable length without padding.
import time

from seq2tens import plots
from seq2tens.data import load_dataset
from seq2tens.estimators import FCNLS2TClassifier, RandomLS2TClassifier

train, test = load_dataset("JapaneseVowels")
print(train.sequences)
print(
    f"{len(train)} recordings to train, {len(test)} to test, speakers {', '.join(sorted(set(train.labels)))}"
)

# %%
# ## Random features and ridge regression
# No tuning and no gradient descent.
begin = time.perf_counter()
quick = RandomLS2TClassifier(random_state=0).fit(train.sequences, train.labels)
print(f"accuracy {quick.score(test.sequences, test.labels):.3f} after {time.perf_counter() - begin:.1f} s")

# %%
# ## The paper's network
# Convolutions, then three low-rank Seq2Tens layers; here half as wide as in the paper and trained briefly.
# Omit the widths and `epochs` for the full model.
begin = time.perf_counter()
model = FCNLS2TClassifier(fcn_width=32, width=32, epochs=10, validation_fraction=0.2, random_state=0)
model.fit(train.sequences, train.labels)
print(f"accuracy {model.score(test.sequences, test.labels):.3f} after {time.perf_counter() - begin:.1f} s")

# %%
# ## Which speakers are confused?
predicted = model.predict(test.sequences)
plots.save(plots.confusion_matrix(test.labels, predicted, model.classes_), "confusion.png")
plots.save(plots.learning_curves(model.history_), "curves.png")

# %%
# ![Confusion matrix of the nine speakers: nearly all recordings lie on the diagonal](confusion.png)
#
# ## Did it train long enough?
# ![Training and validation loss, validation accuracy and learning rate by epoch](curves.png)
