"""Statements that look as if they did not determine a solution, or contradicted themselves.

These are doubts, not errors: equations that degenerate somewhere need fewer conditions than their order suggests.

    time      fewer initial conditions for an unknown than its highest time derivative asks for
    space     fewer boundary conditions along an axis than its highest derivative along it asks for; or at a point of a shape
    nothing   a condition that depends on no unknown
    posed     unknowns without conditions, contradictory values, equations that run backward in time (`posed.py`)
    corners   initial and boundary values of an unknown that differ where they meet

Unknowns with values at given points (`at`) are left out of the first two: data may take the place of conditions.
"""

from collections.abc import Iterator

import numpy as np

from dsgnar.calculus.jets import LAPLACIAN
from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Initial, Interior, Points
from dsgnar.problem.posed import absent, backward, clash, on_values, values
from dsgnar.problem.problem import Problem
from dsgnar.problem.region import Region, belonging
from dsgnar.problem.sampling import sample

CORNERS = 16  # points of a corner at which values are compared
DIFFERENT = 1e-3  # relative to the largest value
AROUND = 512  # points of the boundary of a shape


@x64
def doubts(problem: Problem) -> list[str]:
    """What seems wrong with a statement, a sentence each."""
    looks = (_nothing, absent, _time, _space, clash, _corners, backward)
    return [doubt for look in looks for doubt in look(problem)]


def _nothing(problem: Problem) -> Iterator[str]:
    for name, requests in problem.requests.items():
        if not any(requests.values()):
            yield f"condition {name!r} depends on no unknown, so nothing can make it hold"


def highest(problem: Problem, unknown: str, axis: str) -> int:
    """The highest derivative of an unknown along an axis in the interior."""
    orders, i = [0], problem.domain.index(axis)
    for name, condition in problem.conditions.items():
        if isinstance(condition.part, Interior):
            for key in problem.requests[name].get(unknown, ()):
                orders.append(2 * (axis in problem.domain.space) if key == LAPLACIAN else int(key[i]))
    return max(orders)


def _stated(problem: Problem, unknown: str, kind: type) -> list:
    """The parts of one kind on which conditions involve an unknown, hard ones included."""
    parts = [c.part for name, c in problem.conditions.items() if problem.requests[name].get(unknown)]
    hard = problem.hard.get(unknown)
    if hard is not None:
        parts += hard.on
        parts += [part for part in hard.on if isinstance(part, Initial) and hard.rate is not None]
    return [part for part in parts if isinstance(part, kind)]


def _given(problem: Problem) -> list[str]:
    return [unknown for unknown in problem.unknowns if not _stated(problem, unknown, Points)]


def _time(problem: Problem) -> Iterator[str]:
    time = problem.domain.time
    for unknown in _given(problem) if time is not None else ():
        order, count = highest(problem, unknown, str(time)), len(_stated(problem, unknown, Initial))
        if count < order:
            yield (
                f"{unknown} has a time derivative of order {order} and {_number(count, 'initial condition')}: "
                f"state {unknown} at the first instant" + (" and its rate" if order > 1 else "")
            )


def _space(problem: Problem) -> Iterator[str]:
    if isinstance(problem.domain, Region):
        yield from _around(problem, problem.domain)
        return
    for unknown in _given(problem):
        for axis in problem.domain.space:
            order = highest(problem, unknown, axis)
            if axis in problem.periodic or order < 2:
                continue
            faces = [f for part in _stated(problem, unknown, Boundary) for f in part.resolve(problem.domain)]
            count = sum(face[0] == axis for face in faces)
            if count < order:
                yield (
                    f"{unknown} has a derivative of order {order} along {axis} and "
                    f"{_number(count, 'boundary condition')} at the ends of {axis}: {order} are usual"
                )


def _around(problem: Problem, region: Region) -> Iterator[str]:
    """Of a shape: half as many conditions at each point of its boundary as the order of the equation."""
    points = sample(Boundary(), region, AROUND, stream(0, "around"))
    for unknown in _given(problem):
        order = max(highest(problem, unknown, axis) for axis in region.space)
        parts = [belonging(part, region, points) for part in _stated(problem, unknown, Boundary)]
        bare = np.flatnonzero(np.sum(parts, axis=0) < order // 2) if parts else np.arange(len(points) * (order > 1))
        if bare.size:
            where = ", ".join(f"{a}={v:.3g}" for a, v in zip(region.space, points[bare[0]], strict=False))
            share = 100 * bare.size / len(points)
            yield (
                f"{unknown} has a derivative of order {order} and fewer than {order // 2} boundary condition"
                f"{'s' if order > 3 else ''} on {share:.0f} % of the boundary, for instance at {where}"
            )


def _number(count: int, what: str) -> str:
    return f"no {what}" if not count else f"{count} {what}{'s' if count > 1 else ''}"


def _corners(problem: Problem) -> Iterator[str]:
    """Initial against boundary values, where both are on the value of one unknown."""
    plain = {name: unknown for name in problem.conditions if (unknown := on_values(problem, name)) is not None}
    for first, unknown in plain.items():
        for second in (n for n, u in plain.items() if u == unknown):
            parts = problem.conditions[first].part, problem.conditions[second].part
            if not (isinstance(parts[0], Initial) and isinstance(parts[1], Boundary)):
                continue
            later = sample(parts[1], problem.domain, 2 * CORNERS, stream(0, "corners"))
            points = later.copy()
            points[:, problem.domain.index(str(problem.domain.time))] = problem.domain.interval(
                str(problem.domain.time)
            )[0]
            a, b = (values(problem, name, unknown, points) for name in (first, second))
            whole = [(first, sample(parts[0], problem.domain, 2 * CORNERS, stream(0, "sizes"))), (second, points)]
            whole.append((second, later))  # a pulse that has hardly begun
            size = max(float(np.abs(values(problem, name, unknown, x)).max()) for name, x in whole)
            worst = int(np.argmax(np.abs(a - b)))
            if np.abs(a - b)[worst] > DIFFERENT * size:
                where = ", ".join(f"{axis}={v:.3g}" for axis, v in zip(problem.domain.axes, points[worst], strict=True))
                differ = f"{first!r} and {second!r} differ at {where}: {unknown} = {a[worst]:.3g} and {b[worst]:.3g}"
                yield f"{differ}; if that is not meant, change one of them (docs/method.md: conditions that do not fit)"
