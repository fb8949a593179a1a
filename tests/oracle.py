"""LS2T from its definition: a sum over all index tuples, in float64 numpy, with no recursion."""

from itertools import combinations_with_replacement, groupby

import numpy as np
import torch


def chain_words(order, weights):
    if weights == "recursive":
        return [list(range(m)) for m in range(1, order + 1)]
    if weights == "symmetric":
        return [[0] * m for m in range(1, order + 1)]
    return [list(range(m * (m - 1) // 2, m * (m + 1) // 2)) for m in range(1, order + 1)]


def components(order, weights):
    return max(map(max, chain_words(order, weights))) + 1


def whole_sequence(x, weight, bias, order, weights, coefficients, decay, age):
    """Levels of one sequence `(time, d)`; `age[i]` is the number of steps by which step i has faded."""
    factors = np.einsum("td,cdn->ctn", x, weight) + bias[:, None]
    width = weight.shape[2]
    levels = np.zeros((order, width))
    for m, word in enumerate(chain_words(order, weights), start=1):
        for indices in combinations_with_replacement(range(len(x)), m):
            repeats = [len(list(group)) for _, group in groupby(indices)]
            if max(repeats) > len(coefficients):
                continue
            term = np.prod([coefficients[r - 1] for r in repeats]) * np.ones(width)
            for z, i in zip(word, indices, strict=True):
                term = term * factors[z, i] * decay ** age[i]
            levels[m - 1] += term
    return levels


def every_step(x, keep, weight, bias, order, weights, coefficients, decay, reverse):
    """Levels at every step of one sequence, masked steps (keep False) left out of every sum."""
    output = []
    for step in range(len(x)):
        window = range(step, len(x)) if reverse else range(step + 1)
        used = [i for i in window if keep[i]]
        age = range(len(used)) if reverse else range(len(used) - 1, -1, -1)
        output.append(whole_sequence(x[used], weight, bias, order, weights, coefficients, decay, list(age)))
    return np.stack(output)


def ls2t(x, mask, weight, bias, order, weights, coefficients, decay, reverse):
    """Batched version on torch tensors, `(batch, time, order, width)`."""
    arrays = [t.detach().numpy() for t in (weight, bias)]
    rows = [
        every_step(
            row, keep, *arrays, order, weights, coefficients.detach().numpy(), decay.detach().numpy(), reverse
        )
        for row, keep in zip(x.detach().numpy(), mask.numpy(), strict=True)
    ]
    return torch.from_numpy(np.stack(rows))
