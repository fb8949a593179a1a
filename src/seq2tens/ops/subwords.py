"""Subwords of the words of a set of chains: they determine how the values of two adjacent chunks combine."""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from seq2tens.ops import native
from seq2tens.ops.chains import Chains

Word = tuple[int, ...]
_ARRAYS = "order length first rest last parent output cut_from cut_left cut_right"


class Subwords(NamedTuple):
    """All distinct contiguous subwords of the words of some chains, the words of the states first.

    `chains` has a state and an output for each. `splits` lists all ways to cut a word in two, as indices of
    (word, prefix, suffix), in the order of the words.
    """

    words: tuple[Word, ...]
    chains: Chains
    splits: tuple[tuple[int, int, int], ...]


@lru_cache(maxsize=256)
def make_subwords(chains: Chains) -> Subwords:
    """Return the subwords of some chains.

    By Chen's identity, the value of a word on two adjacent chunks is a sum over its cuts: the value of the
    prefix on the first chunk times the value of the suffix on the second.
    """
    words = _words(chains)
    inner = [word[i:j] for word in words for i in range(1, len(word)) for j in range(i + 1, len(word) + 1)]
    number = _number([*words, *inner])
    cuts = [(word, cut) for word in number for cut in range(1, len(word))]
    splits = tuple((number[word], number[word[:cut]], number[word[cut:]]) for word, cut in cuts)
    return Subwords(tuple(number), _chains_of(number, list(number)), splits)


@lru_cache(maxsize=256)
def mirrored(chains: Chains) -> Chains:
    """Reverse every word, for a scan from the end; the result has an output for each state of `chains`."""
    words = [word[::-1] for word in _words(chains)]
    return _chains_of(_number([word[:k] for word in words for k in range(1, len(word) + 1)]), words)


def join(left: Tensor, right: Tensor, fading: Tensor | None, chains: Chains) -> Tensor:
    """Combine the values of words on two adjacent chunks into their values on both.

    The value of a word is its value on the left chunk, plus its value on the right one, plus a product for
    each of its cuts. Values are `(…, words, width)`; `left` may hold the states of `chains` only, and the
    result has the words of `left`. `fading`, `(…, width)`, is the decay over the right chunk.
    """
    subwords = make_subwords(chains)
    before, after = list(left.unbind(-2)), right.unbind(-2)
    if fading is not None:
        before = [value * fading ** len(subwords.words[w]) for w, value in enumerate(before)]
    joined = [value + after[w] for w, value in enumerate(before)]
    for word, beginning, end in subwords.splits:
        if word < len(joined):
            joined[word] = torch.addcmul(joined[word], before[beginning], after[end])
    return torch.stack(joined, dim=-2)


class SubwordArrays(native.Struct):
    """The subwords in the form that the kernels read; see `csrc/seq2tens.h`."""

    name = "seq2tens_subwords"
    _fields_ = (*native.fields("words states levels"), *native.arrays(_ARRAYS))
    checkpoints: list[array[int]]  # the arrays; the struct holds their addresses, so they must stay alive


@lru_cache(maxsize=256)
def subword_arrays(chains: Chains) -> SubwordArrays:
    """Return the subwords as arrays, with the empty word first."""
    words = ((), *make_subwords(chains).words)
    number = _number(list(words))
    cuts = [(word[:k], word[k:]) for word in words for k in range(1, len(word))]
    lists = {
        "order": sorted(range(1, len(words)), key=lambda w: -len(words[w])),
        "length": [len(word) for word in words],
        "first": [word[0] if word else 0 for word in words],
        "rest": [number[word[1:]] for word in words],
        "last": [word[-1] if word else 0 for word in words],
        "parent": [number[word[:-1]] for word in words],
        "output": [state + 1 for state in chains.output],
        "cut_from": [0, *accumulate(max(0, len(word) - 1) for word in words)],
        "cut_left": [number[left] for left, _ in cuts],
        "cut_right": [number[right] for _, right in cuts],
    }
    checkpoints = [array("q", lists[name]) for name in _ARRAYS.split()]
    addresses = (numbers.buffer_info()[0] for numbers in checkpoints)
    struct = SubwordArrays(len(words) - 1, len(chains.component), len(chains.output), *addresses)
    struct.checkpoints = checkpoints
    return struct


def _words(chains: Chains) -> list[Word]:
    words: list[Word] = []
    for component, parent in zip(chains.component, chains.parent, strict=True):
        words.append((*(words[parent] if parent >= 0 else ()), component))
    return words


def _number(words: list[Word]) -> dict[Word, int]:
    """Number the distinct words in the order of first appearance; prefixes must come before their words."""
    return {word: index for index, word in enumerate(dict.fromkeys(words))}


def _chains_of(number: dict[Word, int], output: list[Word]) -> Chains:
    parent = tuple(number[word[:-1]] if len(word) > 1 else -1 for word in number)
    return Chains(tuple(word[-1] for word in number), parent, tuple(number[word] for word in output))
