"""The structure of a set of rank-1 functionals as data: which vectors are multiplied, in which order."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch


class Chains(NamedTuple):
    """A forest of states. State `s` extends the word of `parent[s]` by the vector `component[s]`.

    Parents come before their children. `output[m-1]` is the state that holds level m.
    """

    component: tuple[int, ...]
    parent: tuple[int, ...]  # -1: the empty word, whose value is 1
    output: tuple[int, ...]

    @property
    def components(self) -> int:
        """Number of different vectors in the words."""
        return max(self.component) + 1

    @property
    def depth(self) -> tuple[int, ...]:
        """Number of vectors in the word of each state."""
        depth: list[int] = []
        for parent in self.parent:
            depth.append(1 if parent < 0 else depth[parent] + 1)
        return tuple(depth)


def make_chains(order: int, weights: str, reverse: bool) -> Chains:
    """Return the chains of an LS2T layer.

    With recursive weights, all levels share one chain in the forward direction. In reverse, a scan starts at
    the end of the sequence, so every level needs its vectors in the opposite order and no two levels share a
    prefix. Symmetric weights use one vector at all positions of a word. Such a word reads the same in both
    directions, so one chain serves both.
    """
    # torch.compile traces through plain Python but warns about caches
    make = _make_chains if torch.compiler.is_compiling() else _cached_chains
    return make(order, weights, reverse)


def _make_chains(order: int, weights: str, reverse: bool) -> Chains:
    if weights == "symmetric":
        return _chain([0] * order, levels=order)
    if weights == "recursive":
        words = [list(range(m)) for m in range(1, order + 1)]
    else:
        words = [list(range(m * (m - 1) // 2, m * (m + 1) // 2)) for m in range(1, order + 1)]
    if reverse:
        words = [word[::-1] for word in words]
    shared = weights == "recursive" and not reverse
    return _chain(words[-1], levels=order) if shared else _forest(words)


_cached_chains = lru_cache(maxsize=256)(_make_chains)


def _chain(word: list[int], levels: int) -> Chains:
    return Chains(tuple(word), tuple(range(-1, levels - 1)), tuple(range(levels)))


def _forest(words: list[list[int]]) -> Chains:
    component: list[int] = []
    parent: list[int] = []
    output: list[int] = []
    for word in words:
        for position, vector in enumerate(word):
            parent.append(len(component) - 1 if position else -1)
            component.append(vector)
        output.append(len(component) - 1)
    return Chains(tuple(component), tuple(parent), tuple(output))
