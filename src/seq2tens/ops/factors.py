"""The words inside the words of a set of chains, which say how values of two chunks become one."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from seq2tens.ops.chains import Chains

Word = tuple[int, ...]


class Factors(NamedTuple):
    """All words inside the words of some chains, each once, those of the given states first.

    `chains` has a state and an output for each. `splits` are all ways to cut one of them in two, as numbers
    of (the word, its beginning, its end), in the order of the words.
    """

    chains: Chains
    splits: tuple[tuple[int, int, int], ...]


@lru_cache(maxsize=256)
def make_factors(chains: Chains) -> Factors:
    """A word's value on two chunks is a sum over its cuts, of products of values of its parts."""
    given = _words(chains)
    inner = [word[i:j] for word in given for i in range(1, len(word)) for j in range(i + 1, len(word) + 1)]
    number = _number([*given, *inner])
    cuts = [(word, cut) for word in number for cut in range(1, len(word))]
    splits = tuple((number[word], number[word[:cut]], number[word[cut:]]) for word, cut in cuts)
    return Factors(_chains_of(number, list(number)), splits)


@lru_cache(maxsize=256)
def mirrored(chains: Chains) -> Chains:
    """For a scan from the end: every word backwards, an output for each given state."""
    given = [word[::-1] for word in _words(chains)]
    return _chains_of(_number([word[:k] for word in given for k in range(1, len(word) + 1)]), given)


def join(left: Tensor, right: Tensor, fading: Tensor | None, chains: Chains) -> Tensor:
    """Values on two chunks on end, of all words or, where `left` has no others, of the states of `chains`.

    A word's value is that on the left chunk, plus that on the right one, plus products for all of its cuts.
    Values are `(…, words, width)`, `fading` is `(…, width)` and that of the right chunk.
    """
    factors = make_factors(chains)
    before, after = list(left.unbind(-2)), right.unbind(-2)
    if fading is not None:
        before = [value * fading ** factors.chains.depth[w] for w, value in enumerate(before)]
    joined = [value + after[w] for w, value in enumerate(before)]
    for word, beginning, end in factors.splits:
        if word < len(joined):
            joined[word] = torch.addcmul(joined[word], before[beginning], after[end])
    return torch.stack(joined, dim=-2)


def _words(chains: Chains) -> list[Word]:
    words: list[Word] = []
    for component, parent in zip(chains.component, chains.parent, strict=True):
        words.append((*(words[parent] if parent >= 0 else ()), component))
    return words


def _number(words: list[Word]) -> dict[Word, int]:
    """Each word once, in the order of first appearance; the beginnings of a word must stand before it."""
    return {word: index for index, word in enumerate(dict.fromkeys(words))}


def _chains_of(number: dict[Word, int], output: list[Word]) -> Chains:
    parent = tuple(number[word[:-1]] if len(word) > 1 else -1 for word in number)
    return Chains(tuple(word[-1] for word in number), parent, tuple(number[word] for word in output))
