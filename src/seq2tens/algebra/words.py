"""Words over letters that may merge, their quasi-shuffle products, and their values on sequences.

A letter is a monomial in the channels, a sorted tuple of channel indices: letter (0, 2) reads the product
x^0 x^2 of one step. Words pair with Φ(x★), where x★ = (1, x, x⊗x, …) is lifted by 1 + ·:

    ⟨a_1|…|a_m, Φ(x★)⟩ = Σ_{i_1 < … < i_m} a_1(x_{i_1}) ··· a_m(x_{i_m}).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from seq2tens._checks import require
from seq2tens.algebra.full_map import valid_steps

Letter = tuple[int, ...]
Word = tuple[Letter, ...]
Number = int | float


class WordSum(Mapping[Word, Number]):
    """A finite linear combination of words, an immutable mapping from words to non-zero coefficients."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Mapping[Word, Number]) -> None:
        self._terms = _collect((_word(letters), value) for letters, value in terms.items())

    def __getitem__(self, key: Word) -> Number:
        return self._terms[key]

    def __iter__(self) -> Iterator[Word]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    def __hash__(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __add__(self, other: WordSum) -> WordSum:
        if not isinstance(other, WordSum):
            return NotImplemented
        return WordSum(_collect([*self.items(), *other.items()]))

    def __neg__(self) -> WordSum:
        return self * -1

    def __sub__(self, other: WordSum) -> WordSum:
        return self + (-other) if isinstance(other, WordSum) else NotImplemented

    def __mul__(self, factor: Number) -> WordSum:
        if not isinstance(factor, Number):
            return NotImplemented
        return WordSum({letters: factor * value for letters, value in self.items()})

    __rmul__ = __mul__

    def __repr__(self) -> str:
        ordered = sorted(self.items(), key=lambda term: (len(term[0]), term[0]))
        terms = [f"{'' if value == 1 else f'{value}·'}{_spelled(letters)}" for letters, value in ordered]
        return f"WordSum({' + '.join(terms) or '0'})"


def word(*letters: int | Letter) -> WordSum:
    """Return one word with coefficient 1, such as `word(0, 1, (0, 2))`; `word()` is the empty word."""
    return WordSum({_word(letters): 1})


def quasi_shuffle(a: WordSum, b: WordSum) -> WordSum:
    """Return a ⋆ b, the functional whose value on a sequence is the product of the values of a and b.

    (u|i) ⋆ (v|j) = ((u|i) ⋆ v)|j + (u ⋆ (v|j))|i + (u ⋆ v)|ij, and the empty word is neutral.
    """
    return _bilinear(a, b, _quasi)


def half_quasi_shuffle(a: WordSum, b: WordSum) -> WordSum:
    """Return a ≺ b, the part of a ⋆ b whose last letter is that of b alone: u ≺ (v|i) = (u ⋆ v)|i.

    With Δ the increments of k ↦ Φ(x_1, …, x_k) from Φ(()) = 1, the value of a ≺ b on x★ is that of the
    word of the two letters a, b on the sequence ΔΦ(x), for non-empty a and b. Increments cancel constants,
    so there the empty word has the value 0 at either position. Here u ≺ () = 0 as well, but () ≺ v = v, by
    the rule above.
    """
    return _bilinear(a, b, _half)


def evaluate(
    words: WordSum,
    x: Float[Tensor, "batch time dim"],
    *,
    mask: Bool[Tensor, "batch time"] | None = None,
    lengths: Int[Tensor, " batch"] | None = None,
    return_sequences: bool = False,
) -> Float[Tensor, "batch ..."]:
    """Return ⟨words, Φ(x★)⟩ for each sequence, or for each of its prefixes with `return_sequences`."""
    x, _ = valid_steps(x, mask, lengths)
    _check_channels(words, x.shape[-1])
    paths = _paths(words, x)
    total = x.new_zeros(x.shape[0], x.shape[1] + 1)
    for letters, value in words.items():
        total = total + value * paths[letters]
    return total[:, 1:] if return_sequences else total[:, -1]


def _paths(words: Iterable[Word], x: Tensor) -> dict[Word, Tensor]:
    """Return the values of all prefixes of the words: column k is that on x_1..x_k, column 0 on no steps."""
    prefixes = {letters[:k] for letters in words for k in range(1, len(letters) + 1)}
    paths: dict[Word, Tensor] = {(): x.new_ones(x.shape[0], x.shape[1] + 1)}
    for prefix in sorted(prefixes, key=len):
        step = x[..., list(prefix[-1])].prod(-1)
        paths[prefix] = pad((paths[prefix[:-1]][:, :-1] * step).cumsum(1), (1, 0))
    return paths


Terms = tuple[tuple[Word, Number], ...]


def _bilinear(a: WordSum, b: WordSum, rule: Callable[[Word, Word], Terms]) -> WordSum:
    pairs = product(a.items(), b.items())
    return WordSum(_collect((w, p * q * c) for (u, p), (v, q) in pairs for w, c in rule(u, v)))


@lru_cache(maxsize=1 << 14)
def _quasi(u: Word, v: Word) -> Terms:
    if not u or not v:
        return ((u or v, 1),)
    merged = _letter(u[-1] + v[-1])
    cases = ((u, v[:-1], v[-1]), (u[:-1], v, u[-1]), (u[:-1], v[:-1], merged))
    terms = (((*w, last), c) for left, right, last in cases for w, c in _quasi(left, right))
    return tuple(_collect(terms).items())


def _half(u: Word, v: Word) -> Terms:
    return tuple((w + v[-1:], c) for w, c in _quasi(u, v[:-1])) if v else ()


def _collect(terms: Iterable[tuple[Word, Number]]) -> dict[Word, Number]:
    """Add up the coefficients of equal words and drop zeros."""
    total: dict[Word, Number] = {}
    for letters, value in terms:
        total[letters] = total.get(letters, 0) + value
    return {letters: value for letters, value in total.items() if value != 0}


def _word(letters: Iterable[int | Letter]) -> Word:
    return tuple(_letter(letter) for letter in letters)


def _letter(letter: int | Letter) -> Letter:
    channels = (letter,) if isinstance(letter, int) else tuple(letter)
    valid = len(channels) > 0 and all(isinstance(i, int) and i >= 0 for i in channels)
    require(
        valid, f"a letter must be a channel or a non-empty tuple of channels, each 0 or more, got {letter!r}"
    )
    return tuple(sorted(channels))


def _check_channels(words: WordSum, dim: int) -> None:
    for letters in words:
        largest = max((letter[-1] for letter in letters), default=0)
        require(
            largest < dim,
            f"`words` must use channels 0..{dim - 1} of `x`, got {largest} in {_spelled(letters)}",
        )


def _spelled(letters: Word) -> str:
    return "|".join("".join(f"e{i}" for i in letter) for letter in letters) or "∅"
