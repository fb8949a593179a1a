"""The shape of sets of functionals, and the words inside of theirs."""

import pytest

from seq2tens.ops import make_chains
from seq2tens.ops.subwords import make_subwords, mirrored


def words(chains):
    """The vectors of every state, in the order in which they are multiplied."""
    found = []
    for vector, parent in zip(chains.component, chains.parent, strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), vector))
    return found


def levels(chains):
    return [words(chains)[state] for state in chains.output]


def test_recursive_weights_share_one_chain():
    chains = make_chains(3, "recursive", False)
    assert words(chains) == levels(chains) == [(0,), (0, 1), (0, 1, 2)]


def test_independent_weights_have_their_own_vectors():
    chains = make_chains(3, "independent", False)
    assert levels(chains) == [(0,), (1, 2), (3, 4, 5)]
    assert len(chains.component) == 6


@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_from_the_end_words_run_backwards(weights):
    forwards, backwards = (make_chains(4, weights, reverse) for reverse in (False, True))
    assert levels(backwards) == [word[::-1] for word in levels(forwards)]


@pytest.mark.parametrize("weights", ["recursive", "independent"])
@pytest.mark.parametrize("reverse", [False, True])
def test_parents_come_first_and_depths_are_lengths(weights, reverse):
    chains = make_chains(4, weights, reverse)
    assert all(parent < state for state, parent in enumerate(chains.parent))
    assert chains.depth == tuple(map(len, words(chains)))
    assert [chains.depth[state] for state in chains.output] == [1, 2, 3, 4]


@pytest.mark.parametrize("weights", ["recursive", "independent"])
def test_subwords_are_all_words_inside_and_all_their_cuts(weights):
    chains = make_chains(4, weights, False)
    inside = {w[i:j] for w in words(chains) for i in range(len(w)) for j in range(i + 1, len(w) + 1)}
    subwords = make_subwords(chains)
    assert len(subwords.words) == len(set(subwords.words)) == len(inside)
    assert set(subwords.words) == inside
    assert list(subwords.words[: len(words(chains))]) == words(chains)
    assert levels(subwords.chains) == list(subwords.words)
    cuts = [tuple(subwords.words[k] for k in split) for split in subwords.splits]
    assert all(whole == left + right for whole, left, right in cuts)
    assert len(set(cuts)) == len(cuts) == sum(len(word) - 1 for word in inside)


def test_mirrored_chains_have_every_word_backwards():
    chains = make_chains(3, "independent", False)
    assert levels(mirrored(chains)) == [word[::-1] for word in words(chains)]
