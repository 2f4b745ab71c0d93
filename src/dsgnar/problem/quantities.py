"""Quantities: one number that a solution is wanted for, such as a flux through a wall, a mean, or a value at a point.

`integral(f)`, `mean(f)` and `value(f, x=0.5, t=1.0)` make them. The function f is written like a residual, and the part of
the domain is named as that of a hard value is; coordinates that are given by name cut it there:

    integral(lambda u: -k * u.n, on=Boundary([("x", "upper")]), t=1.0)     the flux through a wall at t = 1
    mean(lambda u: u)                                                      over the domain and all times
"""

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dsgnar.problem.checks import resolve_condition
from dsgnar.problem.conditions import Condition
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Part, Points
from dsgnar.problem.region import Region

if TYPE_CHECKING:
    from dsgnar.problem.problem import Problem

NAME = "quantity"  # of the condition that stands for it
Kind = Literal["integral", "mean", "value"]


@dataclass(frozen=True, eq=False)
class Quantity:
    """An integral or a mean of a function over a part of the domain, or its value at a point."""

    kind: Kind
    function: Callable
    on: Part
    at: Mapping[str, float]

    def within(self, problem: "Problem") -> "Problem":
        """The problem with this in the place of its conditions: it is checked and evaluated as if it were one."""
        self.fixed(problem.domain)
        asking = copy(problem)  # not made anew: the statement has been checked
        try:
            stated = resolve_condition(NAME, Condition(self.function, self.on), problem.domain, problem.periodic)
            object.__setattr__(asking, "conditions", {NAME: stated})
            asking.__dict__.pop("requests", None)  # those of other conditions
            asking.requests  # noqa: B018 - found now, outside of any function that JAX traces
        except (TypeError, ValueError) as error:
            said = str(error).replace(f"condition {NAME!r}", "quantity").replace("its residual", "its function")
            raise type(error)(said) from None
        return asking

    def fixed(self, domain: Box) -> dict[int, float]:
        """The coordinates that it is cut at, by the position of their axes."""
        if isinstance(self.on, Points):
            raise ValueError("quantity: given points have no measure; take value(f, x=..., ...) at each of them")
        out = {}
        for axis, given in self.at.items():
            lower, upper = domain.interval(axis)
            place = float(given) if isinstance(given, int | float | np.number) else math.nan
            if not lower <= place <= upper:
                raise ValueError(f"quantity: {axis}={given!r} must be a number between {lower:g} and {upper:g}")
            out[domain.index(axis)] = place
        missing = [axis for axis in domain.axes if axis not in self.at]
        if self.kind == "value" and missing:
            raise ValueError(
                f"quantity: a value at a point needs all coordinates ({', '.join(domain.axes)}), {', '.join(missing)} "
                "is missing; or take the integral or the mean over it"
            )
        self._check_cuts(domain, out, bool(missing))
        return out

    def _check_cuts(self, domain: Box, out: dict[int, float], several: bool) -> None:
        """Whether the coordinates leave something of the part."""
        held = {axis for axis, _ in self.on.faces or ()} if isinstance(self.on, Boundary) else set()
        held |= {domain.time} if isinstance(self.on, Initial) else set()
        for axis in self.at:
            if axis in held:
                raise ValueError(f"quantity: {self.on.describe()} has its own {axis}; leave {axis}={self.at[axis]!r} out")
        if isinstance(domain, Region):
            inside = [axis for axis in self.at if axis in domain.shape.axes]
            if inside and several:
                raise ValueError(f"quantity: a shape cannot be cut at {inside[0]}; only time, parameters and points can")
            if not several and not domain.contains(np.array([[out[i] for i in range(domain.dimension)]]))[0]:
                raise ValueError("quantity: the point lies outside the domain, where nothing is solved")

    def describe(self) -> str:
        """In words."""
        cut = ", ".join(f"{axis}={value:g}" for axis, value in self.at.items())
        if self.kind == "value":
            return f"the value at {cut}"
        return f"the {self.kind} over {self.on.describe()}" + (f" at {cut}" if cut else "")


def integral(function: Callable, on: Part | None = None, **at: Any) -> Quantity:
    """The integral of a function over a part of the domain, over all times: `integral(lambda u: u**2, t=1.0)`.

    `on` is `Interior()`, `Boundary(...)` or `Initial()`; coordinates given by name are held fixed.
    """
    return Quantity("integral", function, Interior() if on is None else on, at)


def mean(function: Callable, on: Part | None = None, **at: Any) -> Quantity:
    """The mean of a function over a part of the domain: its integral over the measure of the part."""
    return Quantity("mean", function, Interior() if on is None else on, at)


def value(function: Callable, **at: Any) -> Quantity:
    """A function at a point: `value(lambda u: u.x, x=0.5, t=1.0)`."""
    return Quantity("value", function, Interior(), at)
