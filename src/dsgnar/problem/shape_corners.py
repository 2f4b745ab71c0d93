"""Corners of plane shapes at which a steady solution is singular: where they are, and with which powers.

At a corner of opening w, a solution of an equation that begins with a Laplacian is a sum of r^p sin(p theta) and smoother
functions (Kondratiev 1967; Grisvard 1985), theta from the first side, with

    values on both sides, or slopes on both      p = k pi / w           sin, or cos
    values on the first, slopes on the second    p = (k - 1/2) pi / w   sin;      the other way round  cos

At w = 3 pi / 2 it is r^(2/3), whose slope is infinite. Powers below HIGHEST that are no whole numbers count; for whole ones
these functions are polynomials, and with sources that do not vanish there are z^p log z. How strong each of them is depends
on all of the shape, so the network learns it (`networks/singular.py`).

Corners are ends of straight sides, and points in which they cross. At a candidate the directions of all sides through it cut
a small circle into sectors, which lie inside or outside; a corner has one run of sectors inside.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.problem.corners import SAME, involved, order
from dsgnar.problem.domain import Boundary
from dsgnar.problem.problem import Problem
from dsgnar.problem.region import Region, selected
from dsgnar.problem.shapes.cuboid import Cuboid
from dsgnar.problem.shapes.polygon import Polygon
from dsgnar.problem.shapes.tree import Leaf
from dsgnar.problem.wedges import equation_of

HIGHEST = 3.0
WHOLE = 1e-3  # by which a power may miss a whole number
CLOSE, LITTLE = 1e-9, 1e-4  # of the size of the shape: the same point, and the radius of the circle
MANY = 32  # corners, beyond which none is looked at: they belong to what was round
RAY = 400  # points at which the line where theta jumps is looked at


@dataclass(frozen=True)
class ShapeCorner:
    """A corner for one unknown; directions are angles."""

    unknown: str
    place: tuple[float, float]
    middle: float
    opening: float
    powers: tuple[float, ...]
    logarithms: tuple[bool, ...]
    sine: bool
    reach: float


@dataclass(frozen=True, eq=False)
class _Edge:
    leaf: Leaf
    begin: Float[np.ndarray, " 2"]
    end: Float[np.ndarray, " 2"]

    def holds(self, point: np.ndarray, close: float) -> bool:
        """Whether a point lies on it."""
        along = self.end - self.begin
        share = np.clip(np.dot(point - self.begin, along) / np.dot(along, along), 0, 1)
        return bool(np.linalg.norm(self.begin + share * along - point) <= close)


@x64
def shape_corners(problem: Problem) -> tuple[ShapeCorner, ...]:
    """All corners of all unknowns that are singular; none where anything is not as this page has it."""
    domain = problem.domain
    if not isinstance(domain, Region) or domain.time is not None or len(domain.axes) != 2 or problem.inverse:
        return ()
    out = []
    for unknown in problem.unknowns:
        equation = None if unknown in problem.hard or unknown in problem.known else equation_of(problem, unknown)
        if equation is not None:
            out += [found for found in _found(problem, unknown) if _isotropic(problem, unknown, equation, found.place)]
    return tuple(out) if len(out) <= MANY else ()


def _edges(shape) -> list[_Edge]:
    out = []
    for leaf, _ in shape.leaves:
        if isinstance(leaf, Polygon):
            out += [_Edge(leaf, a, b) for a, b in zip(*leaf.edges, strict=True)]
        elif isinstance(leaf, Cuboid):
            (left, right), (low, high) = leaf.bounds
            ring = np.array([(left, low), (right, low), (right, high), (left, high)])
            out += [_Edge(leaf, a, b) for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True)]
    return out


def _candidates(edges: list[_Edge], close: float) -> list[np.ndarray]:
    """Ends of edges and points in which they cross, each once."""
    points = [edge.begin for edge in edges]
    for k, first in enumerate(edges):
        for second in edges[:k]:
            matrix = np.stack([first.end - first.begin, second.begin - second.end], axis=1)
            if abs(np.linalg.det(matrix)) > 1e-12 * np.prod(np.linalg.norm(matrix, axis=0)):
                share = np.linalg.solve(matrix, second.begin - first.begin)
                if ((share >= 0) & (share <= 1)).all():
                    points.append(first.begin + share[0] * (first.end - first.begin))
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.linalg.norm(point - other) > close for other in kept):
            kept.append(point)
    return kept


def _found(problem: Problem, unknown: str) -> Iterator[ShapeCorner]:
    region = problem.domain
    assert isinstance(region, Region)
    shape, size = region.shape, region.shape.size
    edges, round_ones = _edges(shape), [leaf for leaf, _ in shape.leaves if not isinstance(leaf, Polygon | Cuboid)]
    if len(edges) > 4 * MANY:
        return
    for point in _candidates(edges, CLOSE * size):
        if any(abs(float(leaf.depth(point[None], np)[0])) < 10 * LITTLE * size for leaf in round_ones):
            continue
        through = [edge for edge in edges if edge.holds(point, CLOSE * size)]
        sector = _sector(shape, point, through, size)
        if sector is None:
            continue
        first, opening = sector
        kinds = [_kind(problem, unknown, through, point, angle, size) for angle in (first, first + opening)]
        if None in kinds:
            continue
        powers = _powers(opening, kinds[0] == kinds[1])
        if powers:
            middle = first + opening / 2
            reach = _reach(shape, point, middle + math.pi, size)
            whole = tuple(abs(p - round(p)) < WHOLE for p in powers)
            powers = tuple(float(round(p)) if w else p for p, w in zip(powers, whole, strict=True))
            yield ShapeCorner(unknown, tuple(point.tolist()), middle, opening, powers, whole, bool(kinds[0]), reach)


def _sector(shape, point: np.ndarray, through: list[_Edge], size: float) -> tuple[float, float] | None:
    """Where the inside begins, and its opening; None where it is all, nothing, a half plane or several parts."""
    ends = [end - point for edge in through for end in (edge.begin, edge.end)]
    directions = sorted(math.atan2(y, x) % (2 * math.pi) for x, y in ends if math.hypot(x, y) > CLOSE * size)
    angles = [a for k, a in enumerate(directions) if not k or a - directions[k - 1] > CLOSE]
    if len(angles) < 2:
        return None
    ends = [*angles[1:], angles[0] + 2 * math.pi]
    middles = (np.array(angles) + ends) / 2
    inside = shape.inside(point + LITTLE * size * np.stack([np.cos(middles), np.sin(middles)], axis=1))
    starts = [k for k in range(len(angles)) if inside[k] and not inside[k - 1]]
    if len(starts) != 1:
        return None
    opening, k = 0.0, starts[0]
    while inside[k % len(angles)] and opening < 2 * math.pi:
        opening += ends[k % len(angles)] - angles[k % len(angles)]
        k += 1
    return None if abs(opening - math.pi) < WHOLE or opening > 2 * math.pi - WHOLE else (angles[starts[0]], opening)


def _kind(
    problem: Problem, unknown: str, through: list[_Edge], point: np.ndarray, angle: float, size: float
) -> bool | None:
    """Whether the side at a corner that lies in this direction has values, else slopes; None where it is neither."""
    there, found = point + LITTLE * size * np.array([math.cos(angle), math.sin(angle)]), set()
    owners = {edge.leaf.name for edge in through if edge.holds(there, CLOSE * size)}
    for name, condition in problem.conditions.items():
        part = condition.part
        if not isinstance(part, Boundary) or unknown not in involved(problem, name):
            continue
        if part.faces is not None or (part.on is not None and not owners & set(part.on)):
            if part.faces is not None:
                return None
            continue
        if not selected(part, problem.domain)(there[None])[0]:
            continue
        orders = [order(key) for key in problem.requests[name][unknown]]
        if involved(problem, name) != {unknown} or max(orders) > 1:
            return None
        found.add(not max(orders))
    return found.pop() if len(found) == 1 else None


def _powers(opening: float, same: bool) -> tuple[float, ...]:
    """Powers below HIGHEST; whole ones above the first."""
    steps = [(k if same else k - 0.5) * math.pi / opening for k in range(1, 1 + math.ceil(HIGHEST * opening / math.pi))]
    whole = lambda p: abs(p - round(p)) < WHOLE
    return tuple(p for p in steps if p < HIGHEST and not (whole(p) and p < 2 - WHOLE))


def _reach(shape, point: np.ndarray, angle: float, size: float) -> float:
    """How far it is to the inside in a direction that begins outside."""
    r = size * np.linspace(LITTLE, 1, RAY)
    inside = shape.inside(point + r[:, None] * np.array([math.cos(angle), math.sin(angle)]))
    return float(r[np.argmax(inside)]) - size / RAY if inside.any() else math.inf


def _isotropic(problem: Problem, unknown: str, equation: str, place: tuple[float, float]) -> bool:
    """Whether the equation has the same coefficient for both second derivatives at a point."""
    unit, x = np.array([float(name == unknown) for name in problem.unknowns]), jnp.asarray(place)

    def along(i):
        more = lambda z: (z[i] - place[i]) ** 2 / 2
        return jax.grad(lambda a: problem.residual(equation, lambda z: a * more(z) * unit, x, "nested"))(0.0)

    a, b = (float(along(i)) for i in (0, 1))
    return abs(a) > 0 and abs(a - b) <= SAME * abs(a)
