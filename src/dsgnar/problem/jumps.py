"""Where a statement jumps: media in layers, sources on a part of the domain, switches.

With v the derivatives that an equation uses, its residual F(x, v) may be a discontinuous function of the point x:

    at a plane x_i = c      Of an equation of order m along axis i the m-th derivative of the solution jumps there; it is
                            smooth on either side. So it is a smooth function of x and of z |z|^(m-1), z = x_i - c, which
                            a network is given beside x (`networks/kinks.py`).
    at a time t = c         The solution is smooth before and after. A time interval ends there (`solving/beginning.py`).
                            So it does where boundary values jump, and in one variable where a slope of F does.

Jumps are found by halving: pieces of lines through the domain are halved again and again towards the larger change of F.
Fronts along other surfaces are left alone, and so are tables of many values.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dsgnar.calculus.jets import LAPLACIAN, Key
from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Kink
from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Interior
from dsgnar.problem.inverse import axes_of
from dsgnar.problem.problem import Problem
from dsgnar.problem.scales import Scales, of_derivatives

CUTS = frozenset("select_n sign floor ceil round gt ge lt le abs max min clamp rem gather".split())  # what can jump, or bend
PIECES = 500  # of a line, in each of which a jump is sought
HALVINGS = 45
LINES = 32  # through the domain along each axis: a heated patch is not met by all of them
STATES = 3  # of derivatives for which the equation is looked at; the first is zero
LEAST = 1e-6  # a jump over the largest size of the residual on the line
MOST = 6  # planes across an axis: more of them are a table, not a medium in layers
SWITCHES = 64
SAME = 1e-9  # of an axis: places that are one


class Plane(NamedTuple):
    """A plane across an axis of space at which an equation jumps, and the order of the equation along that axis."""

    axis: int
    place: float
    order: int


def jumps(function: Callable, ends: Float[np.ndarray, "*lines n"], least: Any) -> list[float]:
    """Where a function of one variable jumps: every piece is halved again and again, towards the larger change.

    Of a function on several lines, the places on all of them.
    """
    a, b = ends[..., :-1], ends[..., 1:]
    low, high = np.asarray(function(a)), np.asarray(function(b))
    for _ in range(HALVINGS):
        there = np.abs(high - low) > least  # a smooth function soon changes less; what is not finite is no jump
        if not there.any():
            return []
        middle = (a + b) / 2
        value = np.asarray(function(middle))
        left = np.abs(value - low) > np.abs(high - value)
        a, low = np.where(left, a, middle), np.where(left, low, value)
        b, high = np.where(left, middle, b), np.where(left, value, high)
    change = np.abs(high - low)
    return [float(x) for x in ((a + b) / 2)[np.isfinite(change) & (change > least)]]


def pieces(lower: float, upper: float, count: int = PIECES, beside: float = SAME) -> Float[np.ndarray, " n"]:
    """Ends of pieces of an interval: round numbers are none of them."""
    moved = 1 / np.pi / count
    return lower + (upper - lower) * np.concatenate([[beside], np.arange(count) / count + moved, [1 - beside]])


@lru_cache(maxsize=8)
@x64
def planes(problem: Problem, scales: Scales) -> tuple[Plane, ...]:
    """The planes across axes of space at which equations jump; none where an axis is periodic, or has too many."""
    domain, out = problem.domain, []
    for axis in (domain.index(name) for name in domain.space if name not in problem.periodic):
        found: dict[int, list[float]] = {}
        for name, condition in problem.conditions.items():
            if isinstance(condition.part, Interior) and (look := _looked_at(problem, scales, name)) is not None:
                found.setdefault(_order(problem, name, axis), []).extend(_along(problem, look, name, axis))
        several = domain.dimension > 1
        across = [Plane(axis, place, m) for m, all_ in found.items() for place in _places(problem, axis, all_, several)]
        out += across if len(across) <= MOST else []
    return tuple(out)


def kinks(problem: Problem, scales: Scales | None) -> tuple[Kink, ...]:
    """The planes at which equations jump, in the coordinates of the network."""
    if scales is None or problem.inverse:
        return ()
    middle, half = zip(*scales.axes, strict=True)
    return tuple((k, (place - middle[k]) / half[k], order) for k, place, order in planes(problem.stated, scales))


@lru_cache(maxsize=8)
@x64
def switches(problem: Problem, scales: Scales) -> tuple[float, ...]:
    """The times at which equations or boundary values jump; none where there are too many."""
    domain, all_ = problem.domain, []
    if domain.time is None:
        return ()
    axis = domain.index(domain.time)
    for name, condition in problem.conditions.items():
        if isinstance(condition.part, Interior | Boundary) and (look := _looked_at(problem, scales, name)) is not None:
            for held, place in _held(problem, condition.part):
                all_ += _along(problem, look, name, axis, held, place, bends=domain.dimension == 1)
    found = _places(problem, axis, all_, domain.dimension > 1)
    return tuple(found) if len(found) <= SWITCHES else ()


def _looked_at(problem: Problem, scales: Scales, name: str) -> Callable | None:
    """A condition's residual for a few states, as a function of the point; None if its formula has nothing that jumps."""
    domain, asked = problem.domain, problem.requests[name]
    keys = [(u, key) for u, some in asked.items() for key in sorted(some, key=str)]
    sizes = dict(zip(problem.outputs, scales.unknowns, strict=True))
    half = np.array([h for _, h in scales.axes])
    natural = np.array([sizes[u] / _stretch(key, half, domain.space, domain.axes) for u, key in keys])
    rng = stream(0, "jumps", name)
    states = [rng.uniform(0.5, 1.5, len(keys)) * natural * (k > 0) for k in range(STATES)]
    normal = isinstance(problem.conditions[name].part, Boundary) and domain.shaped
    if normal or any(axes_of(problem, u) != domain.axes for u, _ in keys):
        return None

    def residual(x: Float[Array, " d"]) -> Float[Array, " states"]:
        return jnp.stack([of_derivatives(problem, name, keys, x, jnp.asarray(v)) for v in states])

    try:
        program = jax.make_jaxpr(residual)(jnp.asarray([a for a, _ in domain.bounds]))
    except Exception:  # noqa: BLE001 - an equation that cannot be looked at like this is left alone
        return None
    return residual if _names(program.jaxpr) & CUTS else None


def _stretch(key: Key, half: np.ndarray, space: tuple[str, ...], axes: tuple[str, ...]) -> float:
    """The size of x_i^k.. that belongs to a derivative."""
    if key == LAPLACIAN:
        return float(min(half[axes.index(name)] for name in space) ** 2)
    return float(np.prod(half ** np.array(key, float)))


def _names(program) -> set[str]:
    """The operations of a program and of those that it calls."""
    out = set()
    for eqn in program.eqns:
        out.add(eqn.primitive.name)
        for value in eqn.params.values():
            inner = getattr(value, "jaxpr", value)
            out |= _names(inner) if hasattr(inner, "eqns") else set()
    return out


def _order(problem: Problem, name: str, axis: int) -> int:
    """The highest derivative along an axis in a condition."""
    keys = [key for asked in problem.requests[name].values() for key in asked]
    return max((2 if key == LAPLACIAN else int(key[axis]) for key in keys), default=0)


def _held(problem: Problem, part: Interior | Boundary) -> Iterator[tuple[int | None, float]]:
    """Along which faces a condition is looked at; inside, along none."""
    domain = problem.domain
    if isinstance(part, Interior):
        yield None, 0.0
    else:
        for axis, side in part.resolve(domain):
            yield domain.index(axis), domain.bounds[domain.index(axis)][side == "upper"]


def _along(
    problem: Problem,
    residual: Callable,
    name: str,
    axis: int,
    held: int | None = None,
    place: float = 0.0,
    bends: bool = False,
) -> list[float]:
    """Where a residual jumps on lines along an axis; and, with `bends`, where its slope along it does."""
    domain, out = problem.domain, []
    lower, upper = np.array(domain.bounds).T
    count = 1 if domain.dimension == 1 else LINES
    xi = stream(0, "jumps", name, axis).uniform(0, 1, (count, domain.dimension))
    if held is not None:
        lower, upper = np.where(np.arange(len(lower)) == held, place, (lower, upper))
    points = jnp.asarray(lower + (upper - lower) * xi)
    ends = np.broadcast_to(pieces(*domain.bounds[axis]), (count, PIECES + 2))
    at_place = lambda point, k, s: residual(point.at[axis].set(s))[k]
    slope = lambda point, k, s: jax.grad(partial(at_place, point, k))(s)
    for function in (at_place, slope) if bends else (at_place,):
        over = jax.jit(jax.vmap(jax.vmap(function, in_axes=(None, None, 0)), in_axes=(0, None, 0)))
        for k in range(STATES):
            line = partial(over, points, k)
            values = np.abs(np.asarray(line(ends)))
            size = np.max(values, axis=1, keepdims=True, initial=0.0, where=np.isfinite(values))
            out += jumps(line, ends, np.where(size > 0, LEAST * size, np.inf))
    return out


def _places(problem: Problem, axis: int, found: list[float], twice: bool) -> list[float]:
    """Places that are one, as one; `twice`: only those that were found again, since others lie on no plane."""
    lower, upper = problem.domain.bounds[axis]
    near, out = SAME * (upper - lower), []
    for place in sorted(found):
        if out and place - out[-1][-1] <= near:
            out[-1].append(place)
        else:
            out.append([place])
    inside = [group for group in out if lower + 10 * near < group[0] and group[-1] < upper - 10 * near]
    return [float(np.median(group)) for group in inside if len(group) > twice * STATES]
