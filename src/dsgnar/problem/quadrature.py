"""Points and weights with which a function f is integrated over a part of a domain.

    weights[0] @ f(points)      the integral
    weights[1:] @ f(points)     other estimates of it, which tell how good it is (`Sums`)

On boxes and their faces these are Gauss-Legendre nodes along every axis, and evenly spaced ones along periodic axes; inside
plane shapes such nodes on lines through the shape. The other estimate has fewer of them. Elsewhere points are drawn in
several independent sets, whose spread is the error: inside other shapes nodes on lines through scrambled Sobol points, on
surfaces random points, around plane shapes evenly spaced ones from a random place on, and Sobol points where a function
picks a part of a boundary and along many axes.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import qmc

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Box, Part
from dsgnar.problem.region import Region, selected
from dsgnar.problem.sampling import on_piece

AXES = 5  # beyond which a grid is too coarse
MOST = 256  # nodes along an axis
FEWER = 0.7  # of them in the other estimate
SETS = 16  # of drawn points
CHORD = 16  # nodes along a line inside a shape
CELLS = 64  # places along a line at which a shape is looked for
HALVINGS = 12  # of a cell, in search of narrow places
BISECTIONS = 45  # of a cell, to rounding


class Rule(NamedTuple):
    """Points, and weights for several estimates of an integral."""

    points: Float[np.ndarray, "n d"]
    weights: Float[np.ndarray, "estimates n"]


def rule(part: Part, domain: Box, fixed: dict[int, float], periodic: Sequence[str], count: int) -> Rule:
    """A rule with about `count` points for a part of a domain, cut at fixed coordinates."""
    pieces = [piece | fixed for piece in part.fixed(domain)]
    free = domain.dimension - len(pieces[0])
    shaped = isinstance(domain, Region)
    picked = shaped or (isinstance(part, Boundary) and part.where is not None)
    if free == 0 or not (picked or free > AXES):
        side = min(MOST, max(2, math.floor(count ** (1 / max(free, 1)))))
        sides = side, max(1, round(FEWER * side))
        return _apart([[_grid(piece, domain, periodic, n) for piece in pieces] for n in sides])
    if isinstance(domain, Region) and len(domain.shape.axes) == 2 and not isinstance(part, Boundary) and free <= AXES:
        breaks = sorted({end for leaf, _ in domain.shape.leaves for end in np.clip(leaf.bounds[0], *domain.bounds[0])})
        side = min(MOST // 4, max(4, math.floor((count / (len(breaks) - 1)) ** (1 / free))))
        return _apart([[_plane(piece, domain, breaks, n) for piece in pieces] for n in (side, round(FEWER * side))])
    draw = _picked if not shaped else _on_surface if isinstance(part, Boundary) else _inside
    each = 2 ** max(4, round(math.log2(count / SETS)))
    sets = [[draw(part, piece, domain, each, stream(0, "quadrature", k)) for piece in pieces] for k in range(SETS)]
    points, weights = _apart(sets)
    return Rule(points, np.concatenate([weights.mean(axis=0, keepdims=True), weights]))


Weighted = tuple[np.ndarray, np.ndarray]  # points and their weights


def _apart(estimates: list[list[Weighted]]) -> Rule:
    """Estimates at points of their own, each of which consists of pieces."""
    whole = [[np.concatenate(arrays) for arrays in zip(*pieces, strict=True)] for pieces in estimates]
    weights = np.zeros((len(whole), sum(len(w) for _, w in whole)))
    begin = 0
    for row, (_, w) in zip(weights, whole, strict=True):
        row[begin : begin + len(w)] = w
        begin += len(w)
    return Rule(np.concatenate([points for points, _ in whole]), weights)


def _grid(piece: dict[int, float], domain: Box, periodic: Sequence[str], side: int) -> Weighted:
    """So many nodes along every axis that is free."""
    free = [i for i in range(domain.dimension) if i not in piece]
    nodes, weights = np.polynomial.legendre.leggauss(side)
    gauss = (1 + nodes) / 2, weights / 2
    even = (np.arange(side) + 0.5) / side, np.full(side, 1 / side)
    along = [even if domain.axes[i] in periodic else gauss for i in free]
    unit = _product([places for places, _ in along])
    share = np.prod(_product([w for _, w in along]), axis=1)
    return on_piece(piece, domain, len(unit), lambda *_: unit, {}), share * _measure(free, domain)


def _product(along: list[np.ndarray]) -> np.ndarray:
    """All combinations as rows; one, of nothing, where there are no axes."""
    return np.stack(np.meshgrid(*along, indexing="ij"), -1).reshape(-1, len(along)) if along else np.zeros((1, 0))


def _measure(axes: Sequence[int], domain: Box) -> float:
    return math.prod(upper - lower for lower, upper in (domain.bounds[i] for i in axes))


def _picked(part: Part, piece: dict[int, float], domain: Box, count: int, rng: np.random.Generator) -> Weighted:
    """Points of a box, or of a face of it, kept where they belong."""
    points = on_piece(piece, domain, count, partial(_sobol, rng=rng), {})
    if isinstance(part, Boundary):
        points = points[selected(part, domain)(points)]
    free = [i for i in range(domain.dimension) if i not in piece]
    return points, np.full(len(points), _measure(free, domain) / count)


def _inside(part: Part, piece: dict[int, float], domain: Box, count: int, rng: np.random.Generator) -> Weighted:
    """Lines through a shape, parallel to its last axis, at Sobol points of the other axes."""
    assert isinstance(domain, Region)
    last, lines = len(domain.shape.axes) - 1, max(2, count // CHORD)
    across = on_piece(piece | {last: domain.bounds[last][0]}, domain, lines, partial(_sobol, rng=rng), {})
    free = [i for i in range(domain.dimension) if i not in piece and i != last]
    return _along_chords(domain, across, np.full(lines, _measure(free, domain) / lines), CHORD, rng.random())


def _plane(piece: dict[int, float], domain: Region, breaks: Sequence[float], side: int) -> Weighted:
    """Lines through a plane shape, parallel to its second axis; the first is cut where its primitives begin and end.

    The sine makes the roots smooth with which the length of a line in a round shape begins and ends.
    """
    nodes, weights = np.polynomial.legendre.leggauss(side)
    middle, half = (np.add(*ends) / 2 for ends in ((breaks[1:], breaks[:-1]), (breaks[1:], np.negative(breaks[:-1]))))
    x = (middle[:, None] + half[:, None] * np.sin(np.pi / 2 * nodes)).ravel()
    w = (half[:, None] * np.pi / 2 * np.cos(np.pi / 2 * nodes) * weights).ravel()
    found = []
    for place, weight in zip(x, w, strict=True):
        across, further = _grid(piece | {0: place, 1: domain.bounds[1][0]}, domain, (), side)
        found.append((across, weight * further))
    across, weights = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return _along_chords(domain, across, weights, side, 0.5)


def _along_chords(domain: Region, across: np.ndarray, lines: np.ndarray, count: int, start: float) -> Weighted:
    """Nodes along the chords that weighted lines have in a shape; `start` is where in its cells it is looked for."""
    last, (nodes, weights) = len(domain.shape.axes) - 1, np.polynomial.legendre.leggauss(count)
    lower, upper = domain.bounds[last]
    which, begin, end = _chords(domain, across, lower + (upper - lower) * (np.arange(CELLS) + start) / CELLS)
    points = np.repeat(across[which], count, axis=0)
    points[:, last] = (begin[:, None] + (end - begin)[:, None] * (1 + nodes) / 2).ravel()
    return points, ((lines[which] * (end - begin) / 2)[:, None] * weights).ravel()


def _chords(region: Region, across: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where lines enter and leave a shape: the line, begin and end of every chord.

    Between two places on the same side of the boundary it is looked for further where the distances to it do not rule that
    out; not in space, where distances are costly and lines that just touch a shape are few.
    """
    space, (lower, upper) = len(region.shape.axes), region.bounds[len(region.shape.axes) - 1]

    def depth(line: np.ndarray, place: np.ndarray) -> np.ndarray:
        points = across[line, :space].copy()
        points[:, -1] = place
        return region.shape.depth(points, np) if space == 2 else np.where(region.shape.inside(points), -1.0, 1.0)

    edges = np.concatenate([[lower], places, [upper]])
    found = depth(np.repeat(np.arange(len(across)), len(edges)), np.tile(edges, len(across))).reshape(len(across), -1)
    found[:, [0, -1]] = np.maximum(np.abs(found[:, [0, -1]]), 1e-300)  # beyond these there is nothing
    line = np.repeat(np.arange(len(across)), len(edges) - 1)
    a, b = (np.tile(ends, len(across)) for ends in (edges[:-1], edges[1:]))
    at_a, at_b = found[:, :-1].ravel(), found[:, 1:].ravel()
    for _ in range(HALVINGS if space == 2 else 0):
        near = ((at_a <= 0) == (at_b <= 0)) & (np.abs(at_a) + np.abs(at_b) <= b - a)
        middle = (a[near] + b[near]) / 2
        there = depth(line[near], middle)
        line, a = np.concatenate([line, line[near]]), np.concatenate([a, middle])
        at_a, ends, at_ends = np.concatenate([at_a, there]), b[near], at_b[near]
        b[near], at_b[near] = middle, there
        b, at_b = np.concatenate([b, ends]), np.concatenate([at_b, at_ends])
    crossing = (at_a <= 0) != (at_b <= 0)
    line, a, b, entering = line[crossing], a[crossing], b[crossing], at_a[crossing] > 0
    outer, inner = np.where(entering, a, b), np.where(entering, b, a)
    for _ in range(BISECTIONS):
        middle = (outer + inner) / 2
        within = depth(line, middle) <= 0
        outer, inner = np.where(within, outer, middle), np.where(within, middle, inner)
    order = np.lexsort((a, line))  # along each line it enters and leaves in turn
    return line[order][::2], inner[order][::2], inner[order][1::2]


def _sobol(count: int, axes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    return qmc.Sobol(len(axes), rng=rng).random(count)


def _on_surface(part: Part, piece: dict[int, float], domain: Box, count: int, rng: np.random.Generator) -> Weighted:
    """Points of the boundary of a shape, so many on each of its primitives."""
    assert isinstance(part, Boundary) and isinstance(domain, Region)
    leaves, space = domain.chosen(part), len(domain.shape.axes)
    free = [i for i in range(space, domain.dimension) if i not in piece]
    found = []
    for k, (leaf, _) in enumerate(leaves):
        on_leaf = domain.of_leaf(leaves, k, count, part, rng, evenly=True)
        points = on_piece(dict.fromkeys(range(space), 0.0) | piece, domain, len(on_leaf), partial(_spread, rng=rng), {})
        points[:, :space] = on_leaf
        points = points[selected(part, domain)(points)]
        found.append((points, np.full(len(points), leaf.surface * _measure(free, domain) / count)))
    points, weights = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return points, weights


def _spread(count: int, axes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Multiples of square roots of primes, from a random place on: even along every axis, and beside even points."""
    return (np.arange(count)[:, None] * np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0][: len(axes)]) + rng.random(len(axes))) % 1


class Sums(NamedTuple):
    """Estimates of an integral, and of the measure of its part; pieces of a part are added up."""

    integral: Float[np.ndarray, " estimates"]
    measure: Float[np.ndarray, " estimates"]

    def number(self, mean: bool) -> tuple[float, float]:
        """The integral, or the mean, and its error: the distance to the other estimate, or two standard errors of many."""
        values = self.integral / self.measure if mean else self.integral
        others = values[1:] - values[0]
        if len(others) == 1:
            return float(values[0]), float(abs(others[0]))
        return float(values[0]), float(2 * np.sqrt(np.mean(others**2) / (len(others) - 1)))
