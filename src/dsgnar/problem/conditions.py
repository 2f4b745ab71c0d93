"""Conditions: residuals `F_m u = 0` on parts of the domain (section 2.1 of the paper).

`interior(f)`, `initial(f)`, `boundary(f)` and `at(f, points)` make them. Their options are the same everywhere. `data(...)`
(`data.py`) makes one with measured values, which hold up to their noise.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dsgnar.problem.domain import Boundary, Face, Initial, Interior, Part, Points
from dsgnar.problem.sampling import Near, Sampling

if TYPE_CHECKING:
    from dsgnar.problem.data import Measurements

# Interior conditions start with a small weight and are let in gently (section 4.2; the authors' 1e-8 to 1e-2).
INTERIOR_WEIGHT = 1e-2


class Options(TypedDict, total=False):
    """The options of every condition."""

    points: int | None  # how many
    weight: float | None  # the initial one
    sampling: Sampling | None
    near: Near | Sequence[Near]  # concentrations of points


@dataclass(frozen=True, eq=False)
class Condition:
    """A residual that must vanish on a part of the domain."""

    residual: Callable
    part: Part
    points: int | None = None
    weight: float | None = None
    sampling: Sampling | None = None
    near: tuple[Near, ...] = ()
    measured: "Measurements | None" = None  # values that the residual has at its points, up to their noise

    @property
    def inside(self) -> bool:
        return isinstance(self.part, Interior)

    @property
    def initial_weight(self) -> float:
        """Its own, or that of its kind; a method may have another for equations inside (`interior_weight`)."""
        if self.weight is not None:
            return self.weight
        return INTERIOR_WEIGHT if self.inside else 1.0


def interior(residual: Callable, **options: Unpack[Options]) -> Condition:
    """A condition inside the domain, over all times: the equation itself.

    Options of every condition: `points` (how many), `weight` (the initial one), `sampling` ("uniform", "even", "sobol",
    "clustered") and `near` (concentrations of points, see `Near`).
    """
    return _condition("interior", residual, Interior(), options)


def initial(residual: Callable, **options: Unpack[Options]) -> Condition:
    """A condition at the first instant of time."""
    return _condition("initial", residual, Initial(), options)


def boundary(
    residual: Callable,
    faces: Sequence[Face] | None = None,
    *,
    on: str | Sequence[str] | None = None,
    where: Callable | None = None,
    **options: Unpack[Options],
) -> Condition:
    """A condition on the spatial boundary over all times, or on a part of it.

    `faces` are those of a box, such as `[("x", "lower")]`; `on` is the name of a shape, or several; `where` picks points,
    `where=lambda x, y: y > 1.99`. In the residual `u.n` is the derivative along the outward normal, and a parameter `n` the
    normal itself: `n.x`, `n["x"]` or `n[0]`.
    """
    names = (on,) if isinstance(on, str) else None if on is None else tuple(on)
    part = Boundary(None if faces is None else tuple(faces), names, where)
    return _condition("boundary", residual, part, options, "faces", "on", "where")


def at(residual: Callable, values: Mapping[str, Any], **options: Unpack[Options]) -> Condition:
    """A condition at given points, `{"x": [...], "t": 0.5}`."""
    return _condition("at", residual, Points(values), options)


def _condition(kind: str, residual: Callable, part: Part, options: Mapping[str, Any], *further: str) -> Condition:
    known = (*Options.__annotations__, *further)
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{kind}(...) has no option {option!r}.{hint} The options are {', '.join(known)}")
    return Condition(residual, part, **options)
