"""Strings as sequences of one-hot letters: Φ_m then counts the non-contiguous m-mers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from seq2tens._checks import positive_int, require
from seq2tens.algebra.free_tensor import FreeTensor
from seq2tens.algebra.full_map import seq2tens


class StringFeatures(NamedTuple):
    """Φ of a batch of strings, and the alphabet that indexes its coordinates."""

    tensor: FreeTensor
    alphabet: tuple[str, ...]

    def counts(self, word: str) -> Float[Tensor, " batch"]:
        """Count how often each string contains `word` as a subsequence, not necessarily contiguous."""
        for letter in word:
            require(letter in self.alphabet, f"`word` must use letters of {self.alphabet}, got {letter!r}")
        return self.tensor[tuple(self.alphabet.index(letter) for letter in word)]


def string_features(
    strings: Sequence[str], order: int, alphabet: Iterable[str] | None = None
) -> StringFeatures:
    """Count the subsequences of up to `order` letters, in float64; strings may differ in length or be empty.

    `alphabet` fixes the letters and their order; by default the letters that occur, sorted.
    """
    positive_int("order", order)
    if isinstance(strings, str):
        raise TypeError(f"`strings` must be a sequence of strings, got the single string {strings!r}")
    require(len(strings) > 0, "`strings` must hold at least one string, got none")
    letters = _letters(strings, alphabet)
    codes, lengths = _encode(strings, letters)
    x = one_hot(codes, len(letters)).to(torch.float64)
    return StringFeatures(seq2tens(x, order, lengths=lengths), letters)


def _letters(strings: Sequence[str], alphabet: Iterable[str] | None) -> tuple[str, ...]:
    letters = tuple(sorted(set("".join(strings)))) if alphabet is None else tuple(alphabet)
    require(len(letters) > 0, "`alphabet` must be given when every string is empty, got no letters")
    repeated = {letter for letter in letters if letters.count(letter) > 1}
    require(not repeated, f"`alphabet` must not repeat letters, got {sorted(repeated)} more than once")
    return letters


def _encode(
    strings: Sequence[str], letters: tuple[str, ...]
) -> tuple[Int[Tensor, "batch time"], Int[Tensor, " batch"]]:
    """Return the letters as numbers, padded at the end, and the lengths of the strings."""
    number = {letter: i for i, letter in enumerate(letters)}
    lengths = torch.tensor([len(string) for string in strings])
    codes = torch.zeros(len(strings), int(lengths.max()), dtype=torch.long)
    for index, string in enumerate(strings):
        for letter in string:
            require(letter in number, f"`strings[{index}]` must use letters of {letters}, got {letter!r}")
        codes[index, : len(string)] = torch.tensor([number[letter] for letter in string], dtype=torch.long)
    return codes, lengths
