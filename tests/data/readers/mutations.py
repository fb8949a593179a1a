"""Files with something wrong in them."""

import numpy as np


def mutations(content, n, seed=0):
    """So many broken copies of some bytes."""
    rng = np.random.default_rng(seed)
    kinds = (_flip, _noise, _cut, _drop, _repeat, _number)
    for i in range(n):
        yield kinds[i % len(kinds)](content, rng)


def _place(content, rng):
    """Anywhere, but mostly where headers are: at both ends."""
    where = rng.random() ** 3 / 2
    return int(len(content) * (where if rng.random() < 0.5 else 1 - where)) % len(content)


def _flip(content, rng):
    broken = bytearray(content)
    broken[_place(content, rng)] ^= 1 << rng.integers(8)
    return bytes(broken)


def _noise(content, rng):
    at = _place(content, rng)
    return content[:at] + rng.bytes(4) + content[at + 4 :]


def _cut(content, rng):
    return content[: _place(content, rng)]


def _drop(content, rng):
    at = _place(content, rng)
    return content[:at] + content[at + int(rng.integers(1, 9)) :]


def _repeat(content, rng):
    at = _place(content, rng)
    return content[:at] + content[at : at + int(rng.integers(1, 40))] + content[at:]


def _number(content, rng):
    """A number that is far too large, or below 0, in place of what is there."""
    at = _place(content, rng)
    number = int(rng.choice([-1, 2**31 - 1, 2**30, -(2**31), 0]))
    return content[:at] + number.to_bytes(4, "little", signed=True) + content[at + 4 :]
