"""Pooling along time, one pass over each path, compiled by numba on first use.

The loops run over the functionals of a step, which lie side by side in memory and make whole vectors.
"""

from __future__ import annotations

import numba
import numpy as np

compiled = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"nnan", "nsz", "contract"})


@compiled
def pool_path(path, lengths, threshold, steepness, share, peak):
    """Mean of a ramp around the threshold, and maximum, over the steps of every sequence."""
    width, half = path.shape[2], np.float32(0.5)
    zero, one = np.float32(0), np.float32(1)
    for i in range(path.shape[0]):
        share[i, :] = zero
        peak[i, :] = path[i, 0, :]
        for t in range(lengths[i]):
            for k in range(width):
                value = path[i, t, k]
                share[i, k] += min(max((value - threshold[k]) * steepness + half, zero), one)
                peak[i, k] = max(peak[i, k], value)
        share[i, :] /= np.float32(lengths[i])


@compiled
def pool_contest(path, lengths, groups, steepness, wins, losses):
    """How far each member of a group is the highest, weighted by its height, and how often the lowest.

    Member k belongs to group k mod `groups`; the number of members is a power of 2. Extremes are found by
    folding a step in halves and spread again by doubling, so that short groups fill long vectors too.
    """
    width, zero, one = path.shape[2], np.float32(0), np.float32(1)
    top, bottom = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(path.shape[0]):
        wins[i, :] = zero
        losses[i, :] = zero
        for t in range(lengths[i]):
            half = width // 2
            for k in range(half):
                top[k] = max(path[i, t, k], path[i, t, half + k])
                bottom[k] = min(path[i, t, k], path[i, t, half + k])
            while half > groups:
                half //= 2
                for k in range(half):
                    top[k] = max(top[k], top[half + k])
                    bottom[k] = min(bottom[k], bottom[half + k])
            while half < width:
                for k in range(half):
                    top[half + k] = top[k]
                    bottom[half + k] = bottom[k]
                half *= 2
            for k in range(width):
                value = path[i, t, k]
                wins[i, k] += max(one - (top[k] - value) * steepness, zero) * top[k]
                losses[i, k] += max(one - (value - bottom[k]) * steepness, zero)
        wins[i, :] /= np.float32(lengths[i])
        losses[i, :] /= np.float32(lengths[i])
