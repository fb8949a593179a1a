"""Contributions of channels add up to the scores, and find the channel that tells the classes apart."""

import numpy as np
import pandas as pd
import pytest

from estimator_contract import rich
from seq2tens import plots
from seq2tens.estimators import RandomLS2TClassifier, RandomLS2TRegressor


def one_channel_tells(n=60):
    """Of three channels the second has a trend, up or down."""
    rng = np.random.default_rng(0)
    y = np.array(["down", "up"])[np.arange(n) % 2]
    X = rng.normal(size=(n, 3, 20))
    X[:, 1] += np.where(y == "up", 1, -1)[:, None] * np.linspace(-2, 2, 20)
    return X, y


def test_they_add_up_and_name_the_channel():
    X, y = one_channel_tells()
    model = RandomLS2TClassifier(n_blocks=8, random_state=0).fit(X, y)
    found = model.contributions(X)
    assert found.channels == ("0", "1", "2")
    assert found.targets == ("down", "up")
    assert found.values.shape == (60, 3, 3, 2)
    decisions = model._decide(model._as_in_fit(X)).numpy()
    np.testing.assert_allclose(found.scores, decisions, atol=2e-5)
    by_channel = found.values.sum(axis=2)[np.arange(60), :, (y == "up").astype(int)].mean(axis=0)
    assert by_channel[1] > 2 * max(by_channel[0], by_channel[2])


def test_names_of_a_table():
    X, y = one_channel_tells(20)
    frames = [pd.DataFrame(x.T, columns=["heat", "wind", "rain"]) for x in X]
    model = RandomLS2TClassifier(n_blocks=4, random_state=0).fit(frames, y)
    assert model.contributions(frames).channels == ("heat", "wind", "rain")


def test_channels_that_are_made():
    sequences, y = rich()
    model = RandomLS2TClassifier(n_blocks=4, random_state=0).fit(sequences, y)
    found = model.contributions(sequences)
    assert found.channels == ("0", "1", "observed 0", "observed 1", "time", "static 0", "static 1")
    np.testing.assert_allclose(found.scores, model._decide(sequences).numpy(), atol=2e-5)


def test_regression_in_its_units():
    rng = np.random.default_rng(0)
    y = rng.uniform(100, 200, size=50)
    X = rng.normal(y[:, None, None] / 50, 1, size=(50, 2, 10))
    model = RandomLS2TRegressor(n_blocks=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.contributions(X).scores[:, 0], model.predict(X), rtol=1e-5)


def test_a_picture(tmp_path):
    X, y = one_channel_tells()
    found = RandomLS2TClassifier(n_blocks=2, random_state=0).fit(X, y).contributions(X[:2])
    figure = found.draw(1, "up")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][-1] in found.channels
    assert figure.axes[0].get_title(loc="left").startswith("score of up: ")
    drawn = sum(bar.get_width() for bars in figure.axes[0].containers for bar in bars)
    assert drawn == pytest.approx(found.values[1, :, :, 1].sum())
    plots.save(found.draw(), tmp_path / "bars.png")
    assert (tmp_path / "bars.png").stat().st_size > 5000
    with pytest.raises(ValueError, match=r"`target` must be one of \['down', 'up'\], got 'left'"):
        found.draw(0, "left")
