"""Measures of predictions, compared with scikit-learn's."""

import json

import numpy as np
import pytest
from sklearn import metrics

from seq2tens.estimators.evaluation import evaluate


def problem(n_classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    classes = np.array([f"c{i}" for i in range(n_classes)])
    labels = classes[np.arange(n) % n_classes]
    return labels, rng.dirichlet(np.ones(n_classes), n), classes


@pytest.mark.parametrize("n_classes", [2, 5])
def test_as_scikit_learn(n_classes):
    labels, chances, classes = problem(n_classes)
    found, predicted = evaluate(labels, chances, classes), classes[chances.argmax(axis=1)]
    assert found.accuracy == metrics.accuracy_score(labels, predicted)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(labels, predicted))
    scores = chances[:, 1] if n_classes == 2 else chances
    truth = labels == "c1" if n_classes == 2 else labels
    assert found.auroc == pytest.approx(metrics.roc_auc_score(truth, scores, multi_class="ovr"))
    assert found.auprc == pytest.approx(metrics.average_precision_score(truth, scores))
    table = metrics.precision_recall_fscore_support(labels, predicted, labels=classes, zero_division=0)
    rows = [(row.precision or 0, row.recall, row.f1, row.support) for row in found.classes]
    np.testing.assert_allclose(rows, np.array(table).T)


def test_classes_that_do_not_occur():
    labels, chances, classes = problem(3)
    found = evaluate(labels[labels != "c2"], chances[labels != "c2"], classes)
    assert found.auroc is None
    assert found.auprc is None
    assert found.classes[2].support == 0
    assert found.classes[2].recall is None
    assert found.balanced_accuracy == np.mean([row.recall for row in found.classes[:2]])


def test_labels_that_are_no_classes_count_as_wrong():
    found = evaluate([1, 2, "new"], np.eye(3)[:, :2] + 0.1, np.array([1, 2]))
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.auroc is None
    assert [(row.label, row.support, row.recall) for row in found.classes] == [
        (1, 1, 1),
        (2, 1, 1),
        ("new", 1, 0),
    ]


def test_json():
    found = evaluate(np.array([0, 1]), np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    data = json.loads(json.dumps(found.to_dict()))
    assert data["auroc"] == data["auprc"] == data["accuracy"] == 1
    assert data["classes"][1] == {"label": 1, "support": 1, "precision": 1, "recall": 1, "f1": 1}


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="`labels` must hold at least one label, got none"):
        evaluate([], np.zeros((0, 2)), ["a", "b"])
    with pytest.raises(ValueError, match=r"`probabilities` must have shape .* = \(1, 2\), got \(1, 3\)"):
        evaluate(["a"], np.zeros((1, 3)), ["a", "b"])
