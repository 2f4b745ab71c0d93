"""Shapes in space: primitives, and what unions, differences and intersections make of them.

A primitive knows its depth, the signed distance phi(x) to its surface (negative inside), and its unit normal nu(x). A
combination is a tree of them:

    A + B    min(phi_A, phi_B)        A - B    max(phi_A, -phi_B)        A & B    max(phi_A, phi_B)

The sign and the zero set are exact; away from the boundary the depth of a combination is a bound of the distance. Each
primitive has one orientation in its tree: sign = -1 under an odd number of subtractions, and the outward normal of the
combination on its surface is sign nu.

Functions of points take arrays (..., d) and the module that computes with them, `numpy` for sampling or `jax.numpy` inside
residuals, so that there is one formula for both.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

Bounds = tuple[tuple[float, float], ...]
Kind = Literal["+", "-", "&"]


class Solid:
    """Whatever can be cut and put together: shapes and boxes."""

    def as_shape(self) -> "Shape":
        """This as a shape."""
        raise NotImplementedError

    def __add__(self, other: "Solid") -> "Shape":
        return combine("+", self, other)

    def __sub__(self, other: "Solid") -> "Shape":
        return combine("-", self, other)

    def __and__(self, other: "Solid") -> "Shape":
        return combine("&", self, other)


class Shape(Solid):
    """A bounded part of space with named axes."""

    axes: tuple[str, ...]
    bounds: Bounds  # of a box around it

    def as_shape(self) -> "Shape":
        return self

    def over(self, *, time: str | None = "t", **intervals: tuple[float, float]) -> "Product":
        """The shape at all times and for all values of parameters: `plate.over(t=(0, 1), nu=(0.01, 0.1))`.

        The axis called `time` is time; all others are parameters, along which nothing is a boundary.
        """
        return Product(self, dict(intervals), time)

    def depth(self, x: Any, xp: Any) -> Any:
        """The signed distance to the boundary, negative inside."""
        raise NotImplementedError

    def inside(self, points: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Which points lie inside; rounding decides on the boundary."""
        return np.asarray(self.depth(points, np) <= 0)

    @property
    def leaves(self) -> tuple["Oriented", ...]:
        """The primitives, each with its orientation."""
        raise NotImplementedError

    def describe(self) -> str:
        """In words, for the record of a run."""
        raise NotImplementedError

    @property
    def size(self) -> float:
        """The diagonal of the bounding box."""
        return math.dist(*zip(*self.bounds, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its primitives, each once."""
        return tuple(dict.fromkeys(leaf.name for leaf, _ in self.leaves))

    def contains(self, points: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Which points lie in the closed shape, up to rounding."""
        out = self.inside(points)
        if not out.all():
            out[~out] = self.depth(points[~out], np) <= 1e-9 * self.size
        return out


@dataclass(frozen=True, eq=False)
class Leaf(Shape):
    """A primitive: it has a name, a measure and a surface that can be sampled."""

    axes: tuple[str, ...]
    bounds: Bounds
    name: str

    @property
    def leaves(self) -> tuple["Oriented", ...]:
        return (Oriented(self, 1),)

    def describe(self) -> str:
        sides = " x ".join(f"[{low:g}, {high:g}]" for low, high in self.bounds)
        return f"{self.name} in {sides} of measure {self.volume:.9g}"

    @property
    def volume(self) -> float:
        """Its measure."""
        raise NotImplementedError

    @property
    def surface(self) -> float:
        """The measure of its surface."""
        raise NotImplementedError

    @property
    def flat(self) -> tuple[str, ...]:
        """The axes at whose ends it has faces."""
        return ()

    def normal(self, x: Any, xp: Any) -> Any:
        """The outward unit normal at points of the surface; nearby, that of a point of the surface nearby."""
        raise NotImplementedError

    def on_surface(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Points, uniform on the surface by its measure, and the unit normals there."""
        raise NotImplementedError

    def evenly(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The same, evenly spaced from a random place on where the surface is a curve."""
        if len(self.axes) != 2:
            return self.on_surface(count, rng)
        points = self.along((np.arange(count) + rng.random()) / count)
        return points, self.normal(points, np)

    def along(self, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
        """Points of the curve that a plane shape has for a surface, at shares of its length."""
        raise NotImplementedError

    def in_volume(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Points, uniform inside."""
        lower, upper = np.array(self.bounds).T
        found = np.empty((0, len(self.axes)))
        while len(found) < count:
            points = lower + (upper - lower) * rng.random((max(64, 2 * count), len(self.axes)))
            found = np.concatenate([found, points[self.inside(points)]])
        return found[:count]

    def vanishing(self, x: Any, xp: Any, sign: int) -> Any:
        """A smooth function for hard values: zero on the surface, positive on the side that the sign leaves."""
        raise ValueError(f"hard values on {self.name!r}: {self.why_soft}; state them as a condition, boundary(...)")

    @property
    def why_soft(self) -> str:
        """Why values on its surface cannot hold exactly."""
        return f"there is no smooth function that vanishes on just the surface of a {type(self).__name__}"


class Oriented(NamedTuple):
    """A primitive of a tree: its boundary is that of the tree from inside (1) or from outside (-1)."""

    leaf: Leaf
    sign: int


@dataclass(frozen=True, eq=False)
class Combined(Shape):
    """Two shapes put together."""

    kind: Kind
    left: Shape
    right: Shape
    axes: tuple[str, ...]
    bounds: Bounds

    @property
    def leaves(self) -> tuple[Oriented, ...]:
        turn = -1 if self.kind == "-" else 1
        return (*self.left.leaves, *(Oriented(leaf, turn * sign) for leaf, sign in self.right.leaves))

    def describe(self) -> str:
        return f"({self.left.describe()} {self.kind} {self.right.describe()})"

    def depth(self, x: Any, xp: Any) -> Any:
        one, other = self.left.depth(x, xp), self.right.depth(x, xp)
        if self.kind == "+":
            return xp.minimum(one, other)
        return xp.maximum(one, -other if self.kind == "-" else other)

    def inside(self, points: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        one, other = self.left.inside(points), self.right.inside(points)
        return one | other if self.kind == "+" else one & (~other if self.kind == "-" else other)


def combine(kind: Kind, left: Any, right: Any) -> Combined:
    """Two shapes put together; they must have the same axes."""
    if not isinstance(left, Solid) or not isinstance(right, Solid):
        other = right if isinstance(left, Solid) else left
        hint = "; combine the shapes first, then .over(...)" if isinstance(other, Product) else ""
        raise TypeError(f"{kind}: a shape can be combined with a shape only, not with {type(other).__name__}{hint}")
    one, other = left.as_shape(), right.as_shape()
    if one.axes != other.axes:
        names = " and ".join(", ".join(shape.axes) for shape in (one, other))
        raise ValueError(f"{kind}: both shapes need the same axes in the same order, got {names}")
    pairs = list(zip(one.bounds, other.bounds, strict=True))
    if kind == "+":
        bounds = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
    elif kind == "&":
        bounds = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in pairs)
    else:
        bounds = one.bounds
    for axis, (lower, upper) in zip(one.axes, bounds, strict=True):
        if lower >= upper:
            raise ValueError(f"&: the shapes do not meet (along {axis!r}), so that nothing is left; move one of them")
    return Combined(kind, one, other, one.axes, bounds)


@dataclass(frozen=True, eq=False)
class Product:
    """A shape over further axes, of time and of parameters."""

    shape: Shape
    intervals: Mapping[str, tuple[float, float]]
    time: str | None = "t"

    def __post_init__(self):
        clash = [axis for axis in self.intervals if axis in self.shape.axes]
        if clash:
            raise ValueError(f"over({clash[0]}=...): the shape has an axis {clash[0]!r} already; use another name")
        if not self.intervals:
            raise ValueError("over() needs at least one axis, for example over(t=(0, 1))")


def number(value: Any, what: str) -> float:
    """A finite number, or an error that says which is not."""
    try:
        found = math.nan if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{what} must be a finite number, not {value!r}")
    return found


def named(name: Any) -> str:
    """The name of a shape."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a shape is a word such as 'hole', not {name!r}")
    return name


def several(axes: Mapping[str, Any], example: str) -> tuple[str, ...]:
    """The axes of a shape: at least two."""
    if len(axes) < 2:
        raise ValueError(f"a shape needs at least two axes, as in {example}; an interval is ds.Box(x=(0, 1))")
    return tuple(axes)


def along_edges(begin: np.ndarray, end: np.ndarray, share: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 2"]:
    """Points of edges (edges, 2), one after the other, at shares of their length."""
    ends = np.cumsum(np.linalg.norm(end - begin, axis=1))
    place = share * ends[-1]
    edge = np.minimum(np.searchsorted(ends, place, side="right"), len(ends) - 1)
    part = (place - np.concatenate([[0.0], ends])[edge]) / np.diff(ends, prepend=0.0)[edge]
    return begin[edge] + part[:, None] * (end - begin)[edge]
