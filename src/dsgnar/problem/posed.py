"""Statements that have no solution, or none that depends continuously on its data, as far as their form tells.

    absent      an unknown of which no condition speaks
    clash       two values for one unknown on the same face of a box
    backward    diffusion with the wrong sign, or waves with one, from initial values on: with a u_t or a u_tt and c the
                coefficient of the highest even derivative of order p along an axis, waves exp(i k x) grow by k^p (or by its
                root) where c (-1)^(p/2) / a < 0

The last is said only where that sign is wrong for values of u of whatever size and sign: an equation may run forward for
some. Of systems it looks at equations for one unknown each; what several unknowns do together is not seen.
"""

from collections.abc import Iterator
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.jets import LAPLACIAN
from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.problem import Problem
from dsgnar.problem.sampling import sample
from dsgnar.problem.scales import of_derivatives

POINTS = 16  # of a face at which values are compared
DRAWS = 128  # of points and values at which signs are looked at
SIZES = 6.0  # powers of ten between which these values lie
DIFFERENT = 1e-3  # relative to the largest value


def absent(problem: Problem) -> Iterator[str]:
    """Unknowns that no condition asks for."""
    for unknown in problem.unknowns:
        if not any(requests.get(unknown) for requests in problem.requests.values()):
            yield f"{unknown} appears in no condition, so nothing determines it"


def clash(problem: Problem) -> Iterator[str]:
    """Values of an unknown on one face that contradict each other."""
    domain = problem.domain
    stated = [(name, on_values(problem, name), problem.conditions[name].part) for name in problem.conditions]
    plain = isinstance(domain, Box) and not domain.shaped  # the faces of shapes are parts of several surfaces
    walls = [(name, u, part) for name, u, part in stated if u and isinstance(part, Boundary) and part.where is None]
    for (first, unknown, one), (second, same, other) in combinations(walls if plain else [], 2):
        for face in sorted(set(one.resolve(domain)) & set(other.resolve(domain))) if same == unknown else ():
            points = sample(Boundary((face,)), domain, POINTS, stream(0, "clash"))
            a, b = (values(problem, name, unknown, points) for name in (first, second))
            if np.abs(a - b).max() > DIFFERENT * max(np.abs(a).max(), np.abs(b).max()):
                yield _contradicting(first, second, unknown, face, (a[0], b[0]))


def _contradicting(first: str, second: str, unknown: str, face: tuple, seen: tuple[float, float]) -> str:
    return (
        f"{first!r} and {second!r} contradict each other on the {face[1]} end of {face[0]}: {unknown} = {seen[0]:.3g} and "
        f"{seen[1]:.3g}; a boundary condition without faces= holds on all of them"
    )


def backward(problem: Problem) -> Iterator[str]:
    """Equations that cannot be followed forward in time."""
    time = problem.domain.time
    if time is None or problem.inverse:
        return
    for name, condition in problem.conditions.items():
        for unknown, keys in problem.requests[name].items() if isinstance(condition.part, Interior) else ():
            if _begins(problem, unknown):
                found = _axis_backward(problem, name, unknown, set(keys))
                if found is not None:
                    axis, order, wave = found
                    what = "bends" if wave and order > 2 else "pulls" if wave else "diffuses"
                    yield (
                        f"{name!r}: {unknown} {what} the wrong way along {axis}: its derivative of order {order} has a sign "
                        f"with which short waves grow without bound, so that initial values determine no solution; "
                        f"look at the signs ({unknown}.{'tt' if wave else 't'} - {unknown}.{axis * 2} is usual)"
                    )


def _begins(problem: Problem, unknown: str) -> bool:
    """Whether an unknown has initial values, and none at given points, such as those at the last instant."""
    stated = [c.part for name, c in problem.conditions.items() if problem.requests[name].get(unknown)]
    hard = problem.hard.get(unknown)
    stated += () if hard is None else hard.on
    return any(isinstance(p, Initial) for p in stated) and not any(isinstance(p, Points) for p in stated)


def _axis_backward(problem: Problem, name: str, unknown: str, keys: set) -> tuple[str, int, bool] | None:
    """The axis along which an equation grows short waves, the order of that derivative, and whether time's is two."""
    domain = problem.domain
    time, dimension = domain.index(str(domain.time)), domain.dimension
    whole = [key for key in keys if key != LAPLACIAN]
    along_time = [key for key in whole if key[time] and sum(key) == key[time]]
    if not along_time or len(along_time) < sum(key[time] > 0 for key in whole):
        return None  # no time, or derivatives along time and space at once
    rate = max(along_time, key=sum)
    order = max([sum(key) for key in whole if not key[time]] + [2 * (LAPLACIAN in keys)])
    if sum(rate) > 2 or order == 0 or order % 2:
        return None
    slopes = _slopes(problem, name)
    for axis in domain.space:
        i = domain.index(axis)
        pure = tuple(order * (k == i) for k in range(dimension))
        highest = slopes.get((unknown, pure), 0.0)
        highest = highest + (slopes.get((unknown, LAPLACIAN), 0.0) if order == 2 else 0.0)
        growth = np.asarray(-highest * slopes[unknown, rate] * (-1.0) ** (order // 2))
        growth = growth[np.isfinite(growth)]
        if growth.size and np.max(growth) > 0 and np.min(growth) >= 0 and np.mean(growth > 0) > 0.5:
            return axis, order, sum(rate) == 2
    return None


def _slopes(problem: Problem, name: str) -> dict[tuple, np.ndarray]:
    """The derivatives of a residual by all that it asks for, at points of the domain and values of many sizes."""
    keys = [(u, key) for u, asked in problem.requests[name].items() for key in sorted(asked, key=str)]
    rng = stream(0, "backward", name)
    points = sample(problem.conditions[name].part, problem.domain, DRAWS, rng)
    drawn = rng.choice((-1.0, 1.0), (DRAWS, len(keys))) * 10 ** rng.uniform(-SIZES, SIZES, (DRAWS, len(keys)))
    slope = jax.grad(lambda v, x: of_derivatives(problem, name, keys, x, v))
    found = np.asarray(jax.vmap(slope)(jnp.asarray(drawn), jnp.asarray(points)))
    return {key: found[:, i] for i, key in enumerate(keys)}


def on_values(problem: Problem, name: str) -> str | None:
    """The unknown on whose value alone a condition is, if it is."""
    asked = {u: keys for u, keys in problem.requests[name].items() if keys}
    zero = frozenset({(0,) * problem.domain.dimension})
    return next(iter(asked)) if len(asked) == 1 and set(asked.values()) == {zero} else None


def values(problem: Problem, name: str, unknown: str, points: np.ndarray) -> np.ndarray:
    """The value of the unknown at which a condition holds, by one step of Newton's method from zero."""
    keys = [(unknown, (0,) * problem.domain.dimension)]

    def root(x):
        residual = lambda v: of_derivatives(problem, name, keys, x, v[None])
        value, slope = jax.value_and_grad(residual)(jnp.zeros(()))
        return -value / slope

    found = np.asarray(jax.vmap(root)(jnp.asarray(points)))
    return np.where(np.isfinite(found), found, 0.0) + 0.0  # no -0
