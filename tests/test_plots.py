"""Pictures: what they show, for few and for many classes, without a display and without pyplot."""

import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

from seq2tens import plots


def test_classes_may_be_left_out():
    labels = ["b", "a", "b"], ["b", "b", "c"]
    told, listed = plots.confusion_matrix(*labels), plots.confusion_matrix(*labels, ["a", "b", "c"])
    for figure in (told, listed):
        assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]
    assert [t.get_text() for t in told.axes[0].texts] == [t.get_text() for t in listed.axes[0].texts]


def test_predictions_against_truth():
    figure = plots.predictions([1.0, 2.0, 4.0], [1.5, 2.0, 3.0])
    (dots,) = figure.axes[0].collections
    assert dots.get_offsets().tolist() == [[1, 1.5], [2, 2], [4, 3]]
    with pytest.raises(ValueError, match=r"two lists of numbers of the same length, got \(2,\) and \(3,\)"):
        plots.predictions([1, 2], [1, 2, 3])


def test_scores_of_models():
    figure = plots.model_scores({"good": (0.9, 0.8), "poor": (0.5,)}, "accuracy")
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["good", "poor"]
    assert ax.yaxis_inverted()
    assert [dots.get_offsets()[:, 0].tolist() for dots in ax.collections] == [[0.9, 0.8], [0.5]]
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx([0.85, 0.5])
    with pytest.raises(ValueError, match="`scores` must hold at least one model, got none"):
        plots.model_scores({}, "accuracy")


def test_a_filled_sequence():
    given = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 4.0]])
    filled = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 4.0]])
    figure = plots.imputation(given, filled, (filled - 1, filled + 1), times=[0, 1, 5], channels=["a", "b"])
    first, second = figure.axes
    assert [ax.get_ylabel() for ax in figure.axes] == ["a", "b"]
    line, observed, circles = first.lines
    assert line.get_xydata().tolist() == [[0, 1], [1, 2], [5, 3]]
    assert observed.get_xydata().tolist() == [[0, 1], [5, 3]]
    assert circles.get_xydata().tolist() == [[1, 2]]
    assert len(second.collections) == 1
    assert second.get_xlabel() == "time"
    many = np.where(np.arange(20) < 12, np.nan, np.ones((4, 20)))
    many[0] = 1
    drawn = plots.imputation(many, np.ones((4, 20)))
    assert [ax.get_ylabel() for ax in drawn.axes] == [f"channel {i}" for i in range(8)]
    assert drawn.axes[-1].get_xlabel() == "step"
    with pytest.raises(
        ValueError, match=r"must have the same shape, \(steps, channels\), got \(3, 2\) and \(4,\)"
    ):
        plots.imputation(given, np.ones(4))


def history(epochs, validation=False):
    extra = {"validation_loss": 1.5, "validation_accuracy": 0.5} if validation else {}
    return [
        {"epoch": e, "train_loss": 1 / e**2, **extra, "rate": 0.001, "seconds": 1.0}
        for e in range(1, epochs + 1)
    ]


@pytest.mark.parametrize(("epochs", "validation", "panels"), [(1, False, 2), (30, False, 2), (30, True, 3)])
def test_learning_curves(epochs, validation, panels):
    figure = plots.learning_curves(history(epochs, validation))
    assert len(figure.axes) == panels
    loss = figure.axes[0]
    assert loss.get_ylabel() == "loss"
    assert loss.lines[0].get_ydata()[-1] == 1 / epochs**2
    assert loss.get_yscale() == ("log" if epochs > 1 else "linear")
    assert (loss.get_legend() is not None) == validation
    figure.canvas.draw()


def confusion(n, per_class=5):
    classes = [f"class {i}" for i in range(n)]
    truth = np.repeat(classes, per_class)
    return plots.confusion_matrix(truth, np.roll(truth, 1), classes)


@pytest.mark.parametrize(("n", "texts"), [(2, 4), (20, 40), (21, 0), (95, 0)])
def test_confusion_matrix(n, texts, tmp_path):
    figure = confusion(n)
    ax = figure.axes[0]
    assert len(ax.texts) == texts
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"class {i}" for i in range(n)]
    assert ax.get_title() == f"{4 * n} of {5 * n} right (80.0%)"
    np.testing.assert_allclose(np.diag(ax.images[0].get_array()), 0.8)
    plots.save(figure, tmp_path / "c.png")
    height, width, _ = matplotlib.image.imread(tmp_path / "c.png").shape
    assert 400 < height < 2400
    assert 400 < width < 2400


def test_labels_are_taken_literally_and_shortened():
    figure = plots.confusion_matrix(["$x_", "y" * 40], ["$x_", "$x_"], ["$x_", "y" * 40])
    figure.canvas.draw()
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["$x_", "y" * 17 + "…"]


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("SVG", b"<?xml"), ("pdf", b"%PDF")])
def test_saved_by_suffix(tmp_path, suffix, begin):
    path = tmp_path / f"x.{suffix}"
    path.write_text("old")
    plots.save(confusion(2), path)
    assert path.read_bytes().startswith(begin)
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_argument(tmp_path):
    for call, message in {
        lambda: plots.learning_curves([]): "`history` must hold at least one epoch, got none",
        lambda: plots.confusion_matrix(["a"], ["b"], ["a"]): "`y_pred` must only hold `classes`, got ['b']",
        lambda: plots.confusion_matrix(["a"], [], ["a"]): (
            "`y_true` and `y_pred` must have the same length, got 1 and 0"
        ),
        lambda: plots.save(confusion(2), "x.bmp"): (
            "a picture file must end with one of .png, .svg, .pdf, got 'x.bmp'"
        ),
    }.items():
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            call()
        assert str(raised.value) == message


@pytest.mark.slow
def test_no_global_state():
    code = "import sys, seq2tens.plots; print('matplotlib.pyplot' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
