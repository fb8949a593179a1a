"""One time step of the LS2T recursion and its adjoint, on flat arrays of states, compiled by numba.

The layout is that of `_kernels`: functionals padded to whole cache lines, `width` in all; state 0 is the
empty word, whose value is 1; state s is h[s · width : (s + 1) · width].
"""

from __future__ import annotations

from seq2tens.ops._kernel_tools import compiled
from seq2tens.ops._lanes import WIDE, add, fill_wide, fma, lanes_of, load, load_wide, store, times


@compiled
def advance(path, old, new, change, base, a, row, bias, runs):
    """One step of the plain recursion: h_m += h_(m-1) · a_m, from path[old:] to path[new:].

    A run is a range of states whose parents and components are ranges too: (state, parent, component, count).
    """
    lanes = lanes_of(path)
    for r in range(runs.shape[0]):
        state, parent, column = runs[r, 0], old + runs[r, 1], runs[r, 2]
        for q in range(0, runs[r, 3], lanes):
            factor = add(load(a, row + column + q), load(bias, column + q))
            moved = fma(factor, load(path, parent + q), load(change, state + q))
            store(change, state + q, moved)
            store(path, new + state + q, add(load(base, state + q), moved))


@compiled
def retreat(adjoint, path, here, a, da, row, bias, runs, shared):
    """Adjoint of `advance`; the state before the step is path[here:]. Children are read before parents.

    Unless every component has one state of its own, parts are added to what `da` holds.
    """
    for r in range(runs.shape[0]):
        state, parent, column = runs[r, 0], runs[r, 1], runs[r, 2]
        for q in range(0, runs[r, 3], WIDE):
            flow = load_wide(adjoint, state + q)
            factor = add(load_wide(a, row + column + q), load_wide(bias, column + q))
            place = row + column + q
            part = times(flow, load_wide(path, here + parent + q))
            store(da, place, add(part, load_wide(da, place)) if shared else part)
            store(adjoint, parent + q, fma(flow, factor, load_wide(adjoint, parent + q)))


@compiled
def advance_lifted(h, a, row, bias, component, parent, depth, coefficients, powers, width):
    """One step with any lift and decay, in place; `powers` holds decay^0, decay^1, …"""
    for s in range(component.shape[0] - 1, 0, -1):
        for q in range(0, width, WIDE):
            value = times(load_wide(h, s * width + q), load_wide(powers, depth[s] * width + q))
            product = fill_wide(1.0)
            node = s
            for j in range(min(coefficients.shape[0], depth[s])):
                column = component[node] * width + q
                product = times(product, add(load_wide(a, row + column), load_wide(bias, column)))
                node = parent[node]
                faded = times(load_wide(powers, depth[node] * width + q), load_wide(h, node * width + q))
                value = fma(times(fill_wide(coefficients[j]), product), faded, value)
            store(h, s * width + q, value)


@compiled
def retreat_lifted(
    adjoint, h, a, da, row, bias, component, parent, depth, coefficients, powers, dcoefficients, dpowers,
    width, tail, line,
):  # fmt: skip
    """Adjoint of `advance_lifted`.

    With a_0, a_1, … the factors of a state and its ancestors, term j is c_j · a_0 ··· a_j · (faded ancestor
    j + 1). `tail[i]` sums what multiplies a_0 ··· a_i over all j >= i, so that no factor is divided out.
    """
    for s in range(1, component.shape[0]):
        terms = min(coefficients.shape[0], depth[s])
        line[0] = s
        for j in range(terms):
            line[j + 1] = parent[line[j]]
        for q in range(0, width, WIDE):
            for j in range(terms - 1, -1, -1):
                node = line[j + 1]
                faded = times(load_wide(powers, depth[node] * width + q), load_wide(h, node * width + q))
                rest = times(fill_wide(coefficients[j]), faded)
                if j + 1 < terms:
                    column = component[node] * width + q
                    factor = add(load_wide(a, row + column), load_wide(bias, column))
                    rest = fma(factor, load_wide(tail, (j + 1) * WIDE), rest)
                store(tail, j * WIDE, rest)
            flow = load_wide(adjoint, s * width + q)
            for j in range(terms):
                column = component[line[j]] * width + q
                place = row + column
                store(da, place, fma(flow, load_wide(tail, j * WIDE), load_wide(da, place)))
                flow = times(flow, add(load_wide(a, place), load_wide(bias, column)))
                node, power = line[j + 1] * width + q, depth[line[j + 1]] * width + q
                scaled = times(fill_wide(coefficients[j]), flow)
                slot = j * width + q
                fading = load_wide(powers, power)
                store(
                    dcoefficients,
                    slot,
                    fma(times(flow, fading), load_wide(h, node), load_wide(dcoefficients, slot)),
                )
                store(dpowers, power, fma(scaled, load_wide(h, node), load_wide(dpowers, power)))
                store(adjoint, node, fma(scaled, fading, load_wide(adjoint, node)))
            here, power = s * width + q, depth[s] * width + q
            flow = load_wide(adjoint, here)
            store(dpowers, power, fma(flow, load_wide(h, here), load_wide(dpowers, power)))
            store(adjoint, here, times(flow, load_wide(powers, power)))


@compiled
def read_state(h, source, position, total, count, width):
    """Fill states 1, 2, … from rows of `total` functionals, `count` of each; padding is 0."""
    h[:] = 0
    for s in range(h.shape[0] // width - 1):
        for j in range(count):
            h[(s + 1) * width + j] = source[position + s * total + j]


@compiled
def write_state(h, target, position, total, count, width):
    """The opposite of `read_state`."""
    for s in range(h.shape[0] // width - 1):
        for j in range(count):
            target[position + s * total + j] = h[(s + 1) * width + j]


@compiled
def write_output(path, here, out, position, total, output, count, width):
    """Copy the levels of one step to `out`, where a level has `total` functionals, from `position` on."""
    lanes = lanes_of(out)
    whole = count - count % lanes
    for o in range(output.shape[0]):
        target, source = position + o * total, here + output[o] * width
        for q in range(0, whole, lanes):
            store(out, target + q, load(path, source + q))
        for q in range(whole, count):
            out[target + q] = path[source + q]


@compiled
def read_gradient(adjoint, dout, position, total, output, count, width):
    """Add the incoming gradient of one step to the adjoint; positions as in `write_output`."""
    whole = count - count % WIDE
    for o in range(output.shape[0]):
        source, target = position + o * total, output[o] * width
        for q in range(0, whole, WIDE):
            store(adjoint, target + q, add(load_wide(dout, source + q), load_wide(adjoint, target + q)))
        for q in range(whole, count):
            adjoint[target + q] += dout[source + q]
