"""Regions: a shape in space as the domain of a problem, over time and parameters.

A `Region` is the box around its shape, with the axes of time and parameters behind those of space, and knows which of its
points belong to it. What works with axes and bounds (networks, scales, intervals of time) works with a region as it is.

Points inside are drawn in the box and kept where they lie in the shape. Points of the boundary are drawn on the surfaces of
the primitives, in proportion to their measure, and kept where the surface is the boundary of the whole: where a small step
along the outward normal leads out and a step back leads in. A patch that two primitives share counts once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Box, Face
from dsgnar.problem.shapes.tree import Combined, Leaf, Oriented, Product, Shape
from dsgnar.problem.signature import Signature

STEP = 1e-7  # of the size of a shape: to its inside and outside
TRIES = 2**20  # points without one that is kept, after which there is none
DRAWN = 2**14  # points drawn at once, at most


@dataclass(frozen=True, init=False)
class Region(Box):
    """A shape over time and parameters."""

    shape: Shape = None  # type: ignore[assignment]  # always given

    def __init__(self, shape: Shape, intervals: dict[str, tuple[float, float]], time: str | None = "t"):
        together = dict(zip(shape.axes, shape.bounds, strict=True)) | dict(intervals)
        known = time if time in intervals else None
        parameters = tuple(axis for axis in intervals if axis != known)
        if time not in (None, "t") and known is None:
            raise ValueError(f"the time axis {time!r} is not one of {', '.join(intervals) or 'the axes of over()'}")
        super().__init__(time=known, parameters=parameters, name=" ".join(shape.names), **together)
        object.__setattr__(self, "shape", shape)

    @property
    def shaped(self) -> bool:
        return True

    @property
    def faces(self) -> tuple[Face, ...]:
        """The faces of the boxes in the shape."""
        axes = dict.fromkeys(axis for leaf, _ in self.shape.leaves for axis in leaf.flat)
        return tuple((axis, side) for axis in axes for side in ("lower", "upper"))

    @property
    def holes(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Middle and radius of every hole: a primitive that is cut out, wholly within the bounds, and holds its middle.

        The radius is that of the largest ball about the middle which the hole holds.
        """
        out, bounds = [], np.array(self.shape.bounds)
        for leaf, sign in self.shape.leaves:
            lower, upper = np.array(leaf.bounds).T
            middle = (lower + upper) / 2
            radius = -float(leaf.depth(middle[None], np)[0])
            within = np.all(lower > bounds[:, 0]) and np.all(upper < bounds[:, 1])
            if sign < 0 and within and radius > 0 and not self.shape.inside(middle[None])[0]:
                out.append((tuple(map(float, middle)), radius))
        return tuple(out)

    def with_interval(self, axis: str, interval: tuple[float, float]) -> "Region":
        """The same region with another interval on an axis of time or of a parameter."""
        if self.index(axis) < len(self.shape.axes):
            raise ValueError(f"axis {axis!r} belongs to the shape, which has no other interval")
        further = self._further | {axis: interval}
        return Region(self.shape, further, self.time)

    @property
    def _further(self) -> dict[str, tuple[float, float]]:
        return {axis: self.interval(axis) for axis in self.axes[len(self.shape.axes) :]}

    def contains(self, points: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Which rows of `points` (n, d) lie in the closed region, up to rounding."""
        out = super().contains(points)
        out[out] = self.shape.contains(points[out, : len(self.shape.axes)])
        return out

    # --- boundaries ---------------------------------------------------------------------------------------------------

    def chosen(self, part: Boundary) -> tuple[Oriented, ...]:
        """The primitives whose surface a part of the boundary is on."""
        leaves = self.shape.leaves
        for name in part.on or ():
            if name not in self.shape.names:
                raise ValueError(f"no shape here is called {name!r}; there are {', '.join(self.shape.names)}")
        if part.on is not None:
            leaves = tuple(pair for pair in leaves if pair.leaf.name in part.on)
        if part.faces is not None:
            asked = {axis for axis, _ in part.faces}
            leaves = tuple(pair for pair in leaves if asked & set(pair.leaf.flat))
            if not leaves:
                raise ValueError(f"no box with a face {part.faces[0]} is a part of the shape; use on= or where=")
        return leaves

    def normal(self, part: Boundary | None, x: Any, xp: Any) -> Any:
        """The outward unit normal at a point (d,) of a part of the boundary; None: of all of it."""
        y = x[..., : len(self.shape.axes)]
        leaves = self.shape.leaves if part is None else self.chosen(part)
        normals = [sign * leaf.normal(y, xp) for leaf, sign in leaves]
        if len(leaves) == 1:
            return normals[0]
        nearest = xp.argmin(xp.stack([xp.abs(leaf.depth(y, xp)) for leaf, _ in leaves]), axis=0)
        return xp.stack(normals)[nearest] if y.ndim == 1 else np.stack(normals)[nearest, np.arange(len(y))]

    def on_boundary(self, part: Boundary, count: int, rng: np.random.Generator, keep: Callable) -> np.ndarray:
        """Points (count, d) of a part of the boundary, uniform; time and parameters come from `keep`.

        `keep(points of space)` gives points of the region and says which of them are wanted.
        """
        leaves = self.chosen(part)
        measures = np.array([leaf.surface for leaf, _ in leaves])
        found, tried, kept = [], 0, 0
        while kept < count:
            share = max(kept, 1) / max(tried, 1) if tried else 0.5
            number = min(max(DRAWN, count), math.ceil(1.2 * (count - kept) / share) + 64)
            counts = rng.multinomial(number, measures / measures.sum())
            points = np.concatenate([self.of_leaf(leaves, k, int(n), part, rng) for k, n in enumerate(counts)])
            points, wanted = keep(points)
            points = rng.permutation(points[wanted])
            found.append(points)
            tried, kept = tried + number, kept + len(points)
            if not kept and tried >= TRIES:
                raise ValueError(f"no point of {part.describe()} was found among {tried:,}: is there such a boundary?")
        return np.concatenate(found)[:count]

    def of_leaf(
        self,
        leaves: tuple[Oriented, ...],
        k: int,
        count: int,
        part: Boundary,
        rng: np.random.Generator,
        evenly: bool = False,
    ) -> np.ndarray:
        """Points on the surface of one primitive that are on the boundary of the whole and on no earlier primitive."""
        leaf, sign = leaves[k]
        points, normals = (leaf.evenly if evenly else leaf.on_surface)(count, rng)
        if part.faces is not None:
            ours = _on_faces(leaf, part.faces, points, normals)
            points, normals = points[ours], normals[ours]
        step = STEP * self.shape.size * sign * normals
        if len(self.shape.leaves) > 1:
            ours = self.shape.inside(points - step) & ~self.shape.inside(points + step)
            points, normals = points[ours], normals[ours]
        for earlier, turn in leaves[:k]:  # a patch that both have: there the earlier one ends as well, on the same side
            step = STEP * self.shape.size * sign * normals
            before, after = earlier.inside(points - step), earlier.inside(points + step)
            ours = ~(before & ~after if turn > 0 else ~before & after)
            points, normals = points[ours], normals[ours]
        return points

    # --- hard values --------------------------------------------------------------------------------------------------

    def vanishing(self, part: Boundary, x: Any, xp: Any) -> Any:
        """A function that is zero on a part of the boundary and positive inside (d,)."""
        y, out = x[..., : len(self.shape.axes)], 1.0
        if part.where is not None or part.faces is not None:
            raise ValueError("hard values hold on whole shapes: name them with on=..., or state a condition, boundary(...)")
        crossing = _crossing(self.shape, 1)
        for leaf, sign in self.chosen(part):
            if leaf in crossing:
                raise ValueError(
                    f"hard values on {leaf.name!r}: its surface runs through the inside of a union, where nothing is "
                    "prescribed; state them as a condition, boundary(...)"
                )
            out = out * leaf.vanishing(y, xp, sign)
        return out


def _on_faces(leaf: Leaf, faces: tuple[Face, ...], points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    ours = np.zeros(len(points), bool)
    for axis, side in faces:
        if axis in leaf.flat:
            i, high = leaf.axes.index(axis), side == "upper"
            ours |= (normals[:, i] * (1 if high else -1) > 1 - 1e-9) & np.isclose(points[:, i], leaf.bounds[i][high])
    return ours


def _crossing(shape: Shape, sign: int) -> set[Leaf]:
    """Primitives whose surface may run through the inside: those of a union, or of a subtracted intersection."""
    if not isinstance(shape, Combined):
        return set()
    if (shape.kind == "+") == (sign > 0):
        return {leaf for leaf, _ in shape.leaves}
    return _crossing(shape.left, sign) | _crossing(shape.right, -sign if shape.kind == "-" else sign)


def selected(part: Boundary, domain: Box) -> Callable[[np.ndarray], np.ndarray]:
    """Which points (n, d) the `where` of a part picks."""
    if part.where is None:
        return lambda points: np.ones(len(points), bool)
    function = Signature.of(part.where, domain.axes, f"where, of {part.describe()}")

    def picks(points: np.ndarray) -> np.ndarray:
        found = np.asarray(function(dict(zip(domain.axes, points.T, strict=True))))
        if found.dtype != bool or found.shape not in ((), (len(points),)):
            raise ValueError(f"where must say yes or no for each point, as in lambda x, y: y > 0, not {found.dtype}")
        return np.broadcast_to(found, (len(points),))

    return picks


def belonging(part: Boundary, region: Region, points: np.ndarray) -> np.ndarray:
    """Which points (n, d) of the boundary belong to a part of it."""
    space, out = points[:, : len(region.shape.axes)], np.zeros(len(points), bool)
    for leaf, _ in region.chosen(part):
        near = np.abs(leaf.depth(space, np)) < STEP * region.shape.size
        if part.faces is not None:
            near &= _on_faces(leaf, part.faces, space, leaf.normal(space, np))
        out |= near
    out[out] = selected(part, region)(points[out])
    return out


def as_domain(given: Any) -> Any:
    """A shape, alone or over further axes, as a region; all else as it is."""
    if isinstance(given, Product):
        return _checked(Region(given.shape, dict(given.intervals), given.time))
    return _checked(Region(given, {})) if isinstance(given, Shape) else given


class Domain:
    """For type checkers: a field that takes a box or a shape, and gives the box or region that it is."""

    def __get__(self, instance: Any, owner: type | None = None) -> Box: ...  # type: ignore[empty-body]

    def __set__(self, instance: Any, given: Box | Shape | Product) -> None: ...


def _checked(region: Region) -> Region:
    """The region, if it has an inside and a boundary; primitives have both."""
    if isinstance(region.shape, Leaf):
        return region
    rng, shape = stream(0, "region"), region.shape
    lower, upper = np.array(shape.bounds).T
    for _ in range(TRIES // DRAWN):
        if shape.inside(lower + (upper - lower) * rng.random((DRAWN, len(lower)))).any():
            break
    else:
        raise ValueError(f"the shape ({', '.join(shape.names)}) has no inside: none of {TRIES:,} points lies in it")
    region.on_boundary(Boundary(), 1, rng, lambda points: (points, np.ones(len(points), bool)))
    return region
