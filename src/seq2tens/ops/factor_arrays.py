"""The words inside a set of chains as arrays that kernels read; word 0 is the empty one."""

from __future__ import annotations

from array import array
from functools import lru_cache

from seq2tens.ops import native
from seq2tens.ops.chains import Chains
from seq2tens.ops.factors import make_factors

_ARRAYS = "order length first rest last parent output cut_from cut_left cut_right"


class FactorArrays(native.Struct):
    """The words as a kernel sees them; see `csrc/seq2tens.h`."""

    name = "seq2tens_factors"
    _fields_ = (*native.fields("words states levels"), *native.arrays(_ARRAYS))
    kept: list[array[int]]  # the arrays, which the struct knows by address alone


@lru_cache(maxsize=256)
def factor_arrays(chains: Chains) -> FactorArrays:
    """`order` has the long words first, `rest` is a word without its first letter, `parent` without its last.

    The words of the states come before others. Those cuts that make up word w stand from cut_from[w] on and
    before cut_from[w + 1], as a left and a right part.
    """
    every, splits = make_factors(chains)
    words = len(every.component)
    cuts: list[list[tuple[int, int]]] = [[] for _ in range(words + 1)]
    for word, left, right in splits:
        cuts[word + 1].append((left + 1, right + 1))
    length = (0, *every.depth)
    rest = [0] * (words + 1)
    first = [0] * (words + 1)
    for word in range(1, words + 1):
        alone = length[word] == 1
        # the shortest left part is the first letter
        head, tail = (word, 0) if alone else next(c for c in cuts[word] if length[c[0]] == 1)
        first[word], rest[word] = every.component[head - 1], tail
    starts = [0]
    for row in cuts:
        starts.append(starts[-1] + len(row))
    lists = {
        "order": sorted(range(1, words + 1), key=lambda word: -length[word]),
        "length": length,
        "first": first,
        "rest": rest,
        "last": (0, *every.component),
        "parent": (0, *(parent + 1 for parent in every.parent)),
        "output": [state + 1 for state in chains.output],
        "cut_from": starts,
        "cut_left": [left for row in cuts for left, _ in row],
        "cut_right": [right for row in cuts for _, right in row],
    }
    kept = [array("q", lists[name]) for name in _ARRAYS.split()]
    addresses = (numbers.buffer_info()[0] for numbers in kept)
    struct = FactorArrays(words, len(chains.component), len(chains.output), *addresses)
    struct.kept = kept
    return struct
