"""Domains with named axes, and the parts of them on which conditions are stated.

A `Box` is a product of intervals `[a_i, b_i]`, one per named axis; one of them may be time. The parts are

    Interior()          the whole box, time included
    Initial()           the slice t = t_0
    Boundary(faces)     faces of the spatial box over all times; all of them, or what is picked
    Points(values)      points that the user gives

Each part says which coordinates it fixes; everything else about sampling is in `sampling.py`. A box can be cut like any
shape (`shapes/`); what is left of it is a `Region` (`region.py`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from dsgnar.problem.shapes.cuboid import Cuboid
from dsgnar.problem.shapes.tree import Shape, Solid, named

Side = Literal["lower", "upper"]
Face = tuple[str, Side]


@dataclass(frozen=True, init=False)
class Box(Solid):
    """A box with named axes: `Box(x=(-1, 1), t=(0, 1))`. The axis called `time` is time, if there is one.

    Along `parameters` nothing is a boundary and no Laplacian is taken; `over` adds such axes. `name` is what `on=` calls the
    box in a shape.
    """

    axes: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    time: str | None
    parameters: tuple[str, ...] = field(default=(), repr=False)
    name: str = field(default="box", repr=False)

    def __init__(
        self,
        *,
        time: str | None = "t",
        parameters: Any = (),  # names; any type, so that Box(**intervals) passes type checkers
        name: Any = "box",
        **intervals: tuple[float, float],
    ):
        if not intervals:
            raise ValueError("a Box needs at least one axis, for example Box(x=(0, 1))")
        object.__setattr__(self, "axes", tuple(intervals))
        object.__setattr__(self, "bounds", tuple(_bounds(axis, interval) for axis, interval in intervals.items()))
        object.__setattr__(self, "time", time if time in intervals else None)
        if not (time is None or isinstance(time, str)):
            raise ValueError(
                f"`time` names the axis that is time and cannot be an axis itself, got {time!r}; "
                "call that axis t, or Box(..., tau=(0, 1), time='tau')"
            )
        if time not in intervals and time not in (None, "t"):
            raise ValueError(f"the time axis {time!r} is not one of the axes {', '.join(intervals)}")
        object.__setattr__(self, "parameters", (parameters,) if isinstance(parameters, str) else tuple(parameters))
        object.__setattr__(self, "name", named(name))
        for axis in self.parameters:
            if self.index(axis) == (None if self.time is None else self.index(self.time)):
                raise ValueError(f"axis {axis!r} is time and cannot be a parameter as well")

    @property
    def shaped(self) -> bool:
        """Whether it is a part of its bounds only."""
        return False

    @property
    def dimension(self) -> int:
        return len(self.axes)

    @property
    def space(self) -> tuple[str, ...]:
        """The axes that are neither time nor parameters."""
        return tuple(axis for axis in self.axes if axis != self.time and axis not in self.parameters)

    @property
    def faces(self) -> tuple[Face, ...]:
        """All faces of the spatial box."""
        return tuple((axis, side) for axis in self.space for side in ("lower", "upper"))

    def index(self, axis: str) -> int:
        """Position of an axis; an unknown one is an error that lists the axes."""
        if axis not in self.axes:
            raise ValueError(f"there is no axis {axis!r}; the domain has {', '.join(self.axes)}")
        return self.axes.index(axis)

    def interval(self, axis: str) -> tuple[float, float]:
        return self.bounds[self.index(axis)]

    def with_interval(self, axis: str, interval: tuple[float, float]) -> "Box":
        """The same box with another interval on one axis (a slab of time, say)."""
        self.index(axis)
        intervals = dict(zip(self.axes, self.bounds, strict=True)) | {axis: interval}
        return Box(time=self.time, parameters=self.parameters, name=self.name, **intervals)

    def over(self, *, time: str | None = "t", **intervals: tuple[float, float]) -> "Box":
        """The box at all times and for all values of parameters: `Box(x=(0, 1)).over(t=(0, 1), nu=(0.01, 0.1))`."""
        if clash := [axis for axis in intervals if axis in self.axes]:
            raise ValueError(f"over({clash[0]}=...): the box has an axis {clash[0]!r} already; use another name")
        known = self.time or (time if time in intervals else None)
        parameters = (*self.parameters, *(axis for axis in intervals if axis != known))
        together = dict(zip(self.axes, self.bounds, strict=True)) | intervals
        return Box(time=known, parameters=parameters, name=self.name, **together)

    def as_shape(self) -> Shape:
        """The box as a shape that can be cut."""
        if self.time is not None or self.parameters:
            further = self.time or self.parameters[0]
            raise ValueError(
                f"a Box with time or parameters ({further!r}) cannot be cut: leave them out, combine the shapes, and add "
                f"them afterwards, (Box(...) - ...).over({further}=...)"
            )
        if self.dimension < 2:
            raise ValueError("a shape needs at least two axes; an interval cannot be cut")
        return Cuboid(self.axes, self.bounds, self.name)

    def contains(self, points: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Which rows of `points` (n, d) lie in the closed box, up to rounding."""
        lower, upper = np.asarray(self.bounds).T
        slack = 1e-12 * (upper - lower)
        return np.all((points >= lower - slack) & (points <= upper + slack), axis=1)


def _bounds(axis: str, interval: Any) -> tuple[float, float]:
    """The interval of an axis, checked."""
    if axis.startswith("_") or axis in ("d", "value", "laplacian"):
        raise ValueError(f"axis {axis!r}: the name has a meaning of its own in u.{axis}; use x, y, x1 or the like")
    try:
        given = tuple(interval)
        if isinstance(interval, bytes) or any(isinstance(v, str) for v in given):  # "01" would be read as (0, 1)
            raise TypeError
        lower, upper = map(float, given)
    except (TypeError, ValueError):
        raise ValueError(
            f"axis {axis!r}: expected an interval (lower, upper), got {interval!r}; write Box({axis}=(0, 1))"
        ) from None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise ValueError(f"axis {axis!r}: the bounds ({lower}, {upper}) must be finite; cut the domain off somewhere")
    if lower >= upper:
        raise ValueError(f"axis {axis!r}: the lower bound {lower} must be below the upper bound {upper}; swap them?")
    return lower, upper


@dataclass(frozen=True)
class Interior:
    """The whole domain, over all times."""

    def fixed(self, domain: Box) -> tuple[dict[int, float], ...]:
        """One dictionary of fixed coordinates per piece of the part; here nothing is fixed."""
        return ({},)

    def describe(self) -> str:
        return "the interior"


@dataclass(frozen=True)
class Initial:
    """The first instant of time."""

    def fixed(self, domain: Box) -> tuple[dict[int, float], ...]:
        if domain.time is None:
            raise ValueError(
                f"the domain has no time axis (axes {', '.join(domain.axes)}), so no initial slice; "
                f"time='{domain.axes[-1]}' in the domain says that {domain.axes[-1]} is time"
            )
        return ({domain.index(domain.time): domain.interval(domain.time)[0]},)

    def describe(self) -> str:
        return "the initial slice"


@dataclass(frozen=True)
class Boundary:
    """The boundary in space, over all times: all of it, or a part.

    `faces` are those of a box, `(axis, "lower" | "upper")`; `on` is the name of a shape, or several; `where` is a function
    of axes that says which points belong to it.
    """

    faces: tuple[Face, ...] | None = None
    on: tuple[str, ...] | None = None
    where: Callable | None = None

    def __post_init__(self):
        if isinstance(self.on, str):  # one name alone will do
            object.__setattr__(self, "on", (self.on,))

    def fixed(self, domain: Box) -> tuple[dict[int, float], ...]:
        if domain.shaped:
            return ({},)  # points of curved sides fix no coordinate
        pieces = []
        for axis, side in self.resolve(domain):
            pieces.append({domain.index(axis): domain.interval(axis)[side == "upper"]})
        return tuple(pieces)

    def resolve(self, domain: Box) -> tuple[Face, ...]:
        """The faces, checked against the domain."""
        for face in self.faces or ():
            if len(face) != 2 or face[1] not in ("lower", "upper"):
                raise ValueError(f"a face is (axis, 'lower') or (axis, 'upper'), not {face!r}")
            domain.index(face[0])
            if face[0] == domain.time:
                raise ValueError(f"{face[0]!r} is time: use an initial condition for its first instant")
        if self.on is not None and not set(self.on) <= {domain.name} and not domain.shaped:
            raise ValueError(f"the box is called {domain.name!r}; nothing here is called {', '.join(self.on)}")
        if not domain.space:
            raise ValueError(
                f"the domain has no axis of space (axes {', '.join(domain.axes)}), so no boundary; state values at its "
                "first instant by ds.initial, and elsewhere by ds.at(residual, {...})"
            )
        if self.faces is not None and not self.faces:
            raise ValueError("a boundary needs at least one face; leave `faces` out for all of them")
        return domain.faces if self.faces is None else self.faces

    def describe(self) -> str:
        words = "the boundary" if self.faces is None else "the face " + ", ".join(f"{a}={s}" for a, s in self.faces)
        if self.on is not None:
            words += " of " + ", ".join(self.on)
        return words + (" where a function says so" if self.where is not None else "")


@dataclass(frozen=True, eq=False)
class Points:
    """Points given by the user, as `{axis: values}`; scalars are repeated."""

    values: Mapping[str, Sequence[float] | np.ndarray | float]

    def fixed(self, domain: Box) -> tuple[dict[int, float], ...]:
        raise TypeError("given points are not sampled")

    def table(self, domain: Box) -> Float[np.ndarray, "n d"]:
        """The points as rows in the order of the domain's axes."""
        if not isinstance(self.values, Mapping):
            raise ValueError(f"given points are a dict such as {{{domain.axes[0]!r}: [0.5]}}, not {self.values!r}")
        if set(self.values) != set(domain.axes):
            raise ValueError(f"points need the axes {', '.join(domain.axes)}, got {', '.join(self.values) or 'none'}")
        columns = np.broadcast_arrays(*(np.asarray(self.values[axis], np.float64) for axis in domain.axes))
        table = np.stack([column.ravel() for column in columns], axis=1)
        if not table.size or not np.isfinite(table).all():
            raise ValueError("given points must be finite, and at least one")
        outside = np.flatnonzero(~domain.contains(table))
        if outside.size:
            raise ValueError(f"{outside.size} given points lie outside the domain, the first is {table[outside[0]]}")
        return table

    def describe(self) -> str:
        return "given points"


Part = Interior | Initial | Boundary | Points
