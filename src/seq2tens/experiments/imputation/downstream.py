"""What imputed sequences are good for: a classifier fitted to one half of them and tested on the other."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Shaped

# Of the largest entry of the gradient.
TOLERANCE, MOST_ITERATIONS = 1e-5, 3000


def auroc(features: Float[np.ndarray, "n features"], labels: Shaped[np.ndarray, " n"]) -> float:
    """Area under the ROC curve of a logistic regression; the mean of one class against the rest.

    The first half of the rows is fitted to, the second one is scored.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    half = len(labels) // 2
    classifier = LogisticRegression(tol=TOLERANCE, max_iter=MOST_ITERATIONS)
    classifier.fit(features[:half].astype(np.float32, copy=False), labels[:half])
    chances = classifier.predict_proba(features[half:].astype(np.float32, copy=False))
    if chances.shape[1] == 2:
        return float(roc_auc_score(labels[half:], chances[:, 1]))
    return float(roc_auc_score(labels[half:], chances, multi_class="ovr", labels=classifier.classes_))
