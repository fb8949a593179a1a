import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from estimator_contract import problem, rich, with_gaps, without_channel
from seq2tens.data import Preparation, Sequences, from_aeon
from seq2tens.estimators import (
    DeepLS2TClassifier,
    FCNClassifier,
    FCNLS2TClassifier,
    RandomLS2TClassifier,
    ResNetClassifier,
    load,
)
from seq2tens.estimators.streaming import StreamPreparation

SAME = {"rtol": 1e-5, "atol": 1e-5}
TRAINED = {"epochs": 2, "batch_size": 4, "scaling": "channel", "random_state": 0, "device": "cpu"}
CLASSIFIERS = {
    "fcn-ls2t": lambda **o: FCNLS2TClassifier(fcn_width=4, width=4, depth=2, time_embedding=False, **o),
    "ls2t": lambda **o: DeepLS2TClassifier(width=4, depth=2, **o),
    "fcn": lambda **o: FCNClassifier(width=4, **o),
    "resnet": lambda **o: ResNetClassifier(widths=(4, 4), **o),
}


def of_prefixes(classifier, sequence):
    """What the classifier says of the first step, the first two, …"""
    whole = sequence if isinstance(sequence, Sequences) else from_aeon([sequence])
    values, times = whole.values, whole.times
    return np.concatenate(
        [
            classifier.predict_proba(
                Sequences(values[:t], np.array([0, t]), None if times is None else times[:t], whole.static)
            )
            for t in range(1, len(values) + 1)
        ]
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    "change", [lambda X: X, with_gaps, without_channel], ids=["whole", "gaps", "unknown"]
)
def test_is_predict_proba_of_every_prefix(name, change):
    X, y = problem()
    classifier = CLASSIFIERS[name](**TRAINED).fit(change(X), y)
    x = max(change(problem(seed=3, longest=20)[0]), key=lambda x: x.shape[1])
    expected, stream = of_prefixes(classifier, x), classifier.stream()
    pieces = [stream.push(rows) for rows in np.split(x.T, [1, 2, 7, 7])]
    np.testing.assert_allclose(np.concatenate(pieces), expected, **SAME)
    assert stream.steps == x.shape[1]
    stream.reset()
    np.testing.assert_allclose(stream.push(x.T, last=True), expected[-1:], **SAME)


@pytest.mark.parametrize("since", [False, True])
def test_times_and_static_features(since):
    sequences, y = rich()
    classifier = CLASSIFIERS["fcn-ls2t"](**TRAINED, since_observed=since).fit(sequences, y)
    for row in (0, 5):
        one = sequences[row]
        stream = classifier.stream(static=one.static[0])
        pieces = [
            stream.push(rows, times)
            for rows, times in zip(np.split(one.values, [1, 2]), np.split(one.times, [1, 2]), strict=True)
        ]
        np.testing.assert_allclose(np.concatenate(pieces), of_prefixes(classifier, one), **SAME)
    classifier.stream(static=one.static[0]).restore(stream.state())
    with pytest.raises(ValueError, match="`state` must come from a stream with the same static features"):
        classifier.stream(static=one.static[0] + 1).restore(stream.state())


@given(
    cuts=st.lists(st.integers(0, 12), max_size=4),
    seed=st.integers(0, 50),
    scaling=st.sampled_from(["channel", None]),
    since=st.booleans(),
    timed=st.booleans(),
)
def test_preparation_in_pieces_is_that_of_the_whole(cuts, seed, scaling, since, timed):
    sequences, _ = rich(seed)
    if not timed:
        sequences = Sequences(sequences.values, sequences.offsets, static=sequences.static)
    preparation = Preparation(scaling, since_observed=since).fit(sequences)
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((12, 2)) < 0.5, np.nan, rng.normal(size=(12, 2)))
    times, static = np.cumsum(rng.random(12)), np.array([[np.nan, 2.0]])
    clocks = times if timed else None
    whole = preparation.transform(Sequences(values, np.array([0, 12]), clocks, static)).values
    feed = StreamPreparation(preparation, static[0])
    past, pieces = feed.initial_state(), []
    for rows, clock in zip(np.split(values, sorted(cuts)), np.split(times, sorted(cuts)), strict=True):
        if len(rows):
            piece, past = feed.prepare(rows, clock if timed else None, past)
            pieces.append(piece)
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


@pytest.fixture(scope="module")
def fitted():
    return CLASSIFIERS["fcn-ls2t"](**TRAINED).fit(*problem())


@pytest.mark.parametrize("since", [False, True])
def test_a_state_goes_on_with_a_loaded_model(fitted, tmp_path, since):
    if since:
        X, y = problem()
        fitted = CLASSIFIERS["fcn-ls2t"](**TRAINED, since_observed=True).fit(with_gaps(X), y)
    x = with_gaps(problem(seed=2, longest=20)[0])[0].T
    fitted.save(tmp_path / "model")
    stream = fitted.stream()
    stream.push(x[:3])
    stream.save(tmp_path / "state", {"rows": 3})
    other = load(tmp_path / "model").stream()
    assert other.load(tmp_path / "state") == {"rows": 3}
    np.testing.assert_array_equal(other.push(x[3:]), stream.push(x[3:]))


def test_a_state_of_another_model_is_refused(fitted):
    other = CLASSIFIERS["fcn-ls2t"](**{**TRAINED, "random_state": 1}).fit(*problem())
    with pytest.raises(ValueError, match="`state` must come from a stream of this module"):
        other.stream().restore(fitted.stream().state())
    with pytest.raises(
        ValueError, match="`state` must be a dict with the keys first, last, network, static, values"
    ):
        fitted.stream().restore({"network": 0})


def test_a_clock_needs_a_length():
    X, y = problem(shortest=9)
    classifier = FCNLS2TClassifier(fcn_width=4, width=4, depth=1, **TRAINED).fit(X, y)
    with pytest.raises(ValueError, match=r"`length` must be given .* `time_embedding=False`"):
        classifier.stream()
    stream = classifier.stream(length=9)
    x = X[0].T
    np.testing.assert_allclose(stream.push(x)[-1:], classifier.predict_proba(X[:1]), **SAME)
    with pytest.raises(ValueError, match="must not go beyond `length` = 9 steps, got 10"):
        stream.push(x[:1])


def test_what_cannot_be_streamed():
    X, y = problem()
    with pytest.raises(NotFittedError, match="`stream` needs a fitted FCNLS2TClassifier"):
        FCNLS2TClassifier().stream()
    by_sequence = FCNClassifier(width=4, **{**TRAINED, "scaling": "sequence"}).fit(X, y)
    with pytest.raises(ValueError, match=r'`stream` needs a model .* fit it with scaling="channel"'):
        by_sequence.stream()
    random = RandomLS2TClassifier(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"`stream` needs a network, .* got RandomLS2TClassifier"):
        random.stream()


def test_wrong_rows_leave_the_stream_as_it_was(fitted):
    x = problem(seed=2)[0][0].T
    expected = fitted.stream().push(x)
    stream = fitted.stream()
    first = stream.push(x[:1])
    for rows, message in [
        (x[:, :1], r"`rows` must have shape \(steps, 2\) with the channels of `fit`, got"),
        (x[0], r"`rows` must have shape \(steps, 2\) with the channels of `fit`, got \(2,\)"),
        (np.full((1, 2), np.inf), "`rows` must be finite, or NaN where missing, got infinity"),
        (np.full((3, 2), 1e300), "`rows` must have values of the size of those in training"),
    ]:
        with pytest.raises(ValueError, match=message):
            stream.push(rows)
    with pytest.raises(ValueError, match=r"`times` must be given as in `fit` \(none\), got some"):
        stream.push(x, np.arange(len(x)))
    assert stream.push(x[:0]).shape == (0, 2)
    np.testing.assert_allclose(np.concatenate([first, stream.push(x[1:])]), expected, **SAME)


def test_times_must_go_forwards():
    sequences, y = rich()
    plain = Sequences(sequences.values, sequences.offsets, sequences.times)
    stream = CLASSIFIERS["ls2t"](**TRAINED).fit(plain, y).stream()
    stream.push(np.zeros((2, 2)), [0.0, 5.0])
    for times, message in [
        ([4.0], "`times` must not decrease, got 4.0 after 5.0 at index 0"),
        ([6.0, 5.5], "`times` must not decrease, got 5.5 after 6.0 at index 1"),
        ([np.nan], "`times` must be finite"),
        ([[6.0]], r"`times` must have shape \(steps,\) = \(1,\), got \(1, 1\)"),
        (None, r"`times` must be given as in `fit` \(some\), got none"),
    ]:
        with pytest.raises(ValueError, match=message):
            stream.push(np.zeros((1 if times is None else len(times), 2)), times)
    with pytest.raises(ValueError, match=r"`stream.static` must be given as in `fit` \(none\), got some"):
        CLASSIFIERS["ls2t"](**TRAINED).fit(plain, y).stream(static=[1.0])
    assert stream.push(np.zeros((1, 2)), [5.0]).shape == (1, 2)


def test_the_option_time_embedding():
    X, y = problem()
    with_time, without = (
        FCNLS2TClassifier(fcn_width=4, width=4, depth=1, time_embedding=on, **TRAINED).fit(X, y)
        for on in (True, False)
    )
    counts = [sum(p.numel() for p in c.network_.parameters()) for c in (with_time, without)]
    assert counts[0] - counts[1] == 8 * 4 + 5 * 8 + 3 * 4  # a channel for each of the kernels
    assert torch.isfinite(torch.from_numpy(without.predict_proba(X))).all()
