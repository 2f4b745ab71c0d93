"""Checks of a statement: whatever can be wrong with a problem is found before any work is done.

Each error names the condition, the axis or the unknown that it is about, and says what to do.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.problem.conditions import Condition
from dsgnar.problem.constraints import Hard, check_rates
from dsgnar.problem.domain import Boundary, Box, Part, Points
from dsgnar.problem.fields import Requests, requirements
from dsgnar.problem.mistakes import Untraceable, place_of, plainly
from dsgnar.problem.region import Region
from dsgnar.problem.sampling import Near, Sampling, sample
from dsgnar.problem.signature import Signature

if TYPE_CHECKING:
    from dsgnar.problem.problem import Problem


def check_statement(problem: "Problem") -> None:
    """Types and names, without looking into any condition."""
    if not isinstance(problem.domain, Box):
        raise TypeError(f"domain: expected a Box or a shape, such as Box(x=(0, 1), t=(0, 1)), got {problem.domain!r}")
    _check_mapping("conditions", problem.conditions, "{'pde': interior(...)}")
    _check_mapping("hard", problem.hard, "{'u': Hard(value, on=...)}")
    _check_mapping("known", problem.known, "{'u': lambda x, t: ...}")
    _check_names(problem)
    for name, hard in problem.hard.items():
        if name not in problem.unknowns:
            raise ValueError(f"hard constraint on {name!r}: the unknowns are {', '.join(problem.unknowns)}")
        if not isinstance(hard, Hard):
            raise TypeError(f"hard constraint on {name!r}: expected Hard(value, on=...), got {hard!r}")
    for name, part in problem.known.items():
        if name not in problem.unknowns:
            raise ValueError(f"known part of {name!r}: the unknowns are {', '.join(problem.unknowns)}")
        if not callable(part):
            raise TypeError(f"known part of {name!r}: expected a function of the axes, got {part!r}")
        if name in problem.hard:
            raise ValueError(f"{name!r} has a hard constraint and a known part; let the hard value contain the part")


def _check_mapping(option: str, given: Any, example: str) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{option}: expected a dict with a name for each, such as {example}, got {type(given).__name__}"
        )


def _check_names(problem: "Problem") -> None:
    if not problem.unknowns or len(set(problem.names)) != len(problem.names):
        raise ValueError(f"unknowns and axes need distinct names, and at least one unknown: got {problem.names}")
    if not all(isinstance(name, str) and name.isidentifier() for name in problem.unknowns):
        raise ValueError(f"the unknowns {problem.unknowns} must be names that a function can have as parameters")
    if not problem.conditions:
        raise ValueError("a problem needs at least one condition, such as {'pde': interior(...)}")
    for axis in problem.periodic:
        problem.domain.index(axis)
        if axis == problem.domain.time:
            raise ValueError(f"time ({axis!r}) cannot be periodic")
        if isinstance(problem.domain, Region) and axis in problem.domain.shape.axes:
            raise ValueError(f"axis {axis!r} cannot be periodic: it belongs to a shape; only a whole Box can repeat itself")


def resolve_hard(name: str, hard: Hard, domain: Box, periodic: tuple[str, ...]) -> Hard:
    """A hard constraint with the faces of its parts spelt out."""
    what = f"the hard constraint on {name!r}"
    return replace(hard, on=tuple(_resolve_part(what, part, domain, periodic) for part in hard.on))


def resolve_condition(name: str, condition: Condition, domain: Box, periodic: tuple[str, ...]) -> Condition:
    """A condition with its options checked and the faces of its part spelt out."""
    what = f"condition {name!r}"
    if not isinstance(condition, Condition):
        known = "interior(...), initial(...), boundary(...) or at(...), or measured data(...)"
        raise TypeError(f"{what}: expected {known}, got {condition!r}")
    _check_points(what, condition.points)
    _check_weight(what, condition.weight)
    if condition.sampling not in (None, *get_args(Sampling)):
        known = ", ".join(map(repr, get_args(Sampling)))
        raise ValueError(f"{what}: sampling must be one of {known}, not {condition.sampling!r}")
    near = (condition.near,) if isinstance(condition.near, Near) else tuple(condition.near)
    if not all(isinstance(concentration, Near) for concentration in near):
        raise TypeError(f"{what}: near must be Near(...) or several of them, not {condition.near!r}")
    return replace(condition, part=_resolve_part(what, condition.part, domain, periodic), near=near)


def _check_points(what: str, points: Any) -> None:
    if points is None:
        return
    if isinstance(points, bool) or not isinstance(points, int | np.integer):
        raise TypeError(f"{what}: points must be a whole number such as points=1000, not {points!r}")
    if points < 1:
        raise ValueError(f"{what}: it has no points (points={points}); give it at least one")


def _check_weight(what: str, weight: Any) -> None:
    if weight is None:
        return
    try:
        size = math.nan if isinstance(weight, str) else float(weight)
    except (TypeError, ValueError):
        size = math.nan
    if not 0 < size < math.inf:
        raise ValueError(
            f"{what}: its weight must be positive and finite, not {weight!r}; write weight=1.0, for example"
        )


def _resolve_part(what: str, part: Part, domain: Box, periodic: tuple[str, ...]) -> Part:
    """The part with its faces spelt out; a face of a periodic axis is an error."""
    if not isinstance(part, Part):
        raise TypeError(f"{what}: its part must be Interior(), Initial(), Boundary() or Points(...), not {part!r}")
    try:
        if isinstance(part, Points):
            part.table(domain)
        else:
            part.fixed(domain)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    if not isinstance(part, Boundary):
        return part
    if isinstance(domain, Region) or part.where is not None:
        return _resolve_picked(what, part, domain, periodic)
    faces = part.resolve(domain)
    if part.faces is None:
        faces = tuple(face for face in faces if face[0] not in periodic)
    clash = [axis for axis, _ in faces if axis in periodic]
    if clash or not faces:
        axis = clash[0] if clash else periodic[0]
        raise ValueError(f"{what}: axis {axis!r} is periodic and has no boundary; drop the condition or `periodic`")
    return Boundary(faces)


def _resolve_picked(what: str, part: Boundary, domain: Box, periodic: tuple[str, ...]) -> Boundary:
    """A part of the boundary that names or `where` pick: at least one point must belong to it."""
    try:
        part.resolve(domain)
        if not isinstance(domain, Region):
            part = replace(part, faces=tuple(face for face in part.resolve(domain) if face[0] not in periodic))
        sample(part, domain, 1, stream(0, "part"))
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    return part


@x64
def required(signature: Signature, unknowns: tuple[str, ...], domain: Box, part: Part | None = None) -> Requests:
    """The derivatives that a residual asks for. It must return one real number."""
    what = signature.what
    try:
        with plainly():
            requests, shape = requirements(signature, unknowns, domain, part)
    except Untraceable:
        raise
    except AttributeError as error:
        raise ValueError(f"{what}: {error}{place_of(error)}") from None
    except ValueError as error:
        raise ValueError(f"{what}: {error}{place_of(error)}") from error
    except TypeError as error:
        problem = "its residual could not be evaluated, or did not return an array"
        raise TypeError(f"{what}: {problem}: {error}{place_of(error)}") from error
    except Exception as error:
        error.add_note(f"{what}: this happened in its residual")
        raise
    if shape is None or not isinstance(shape, jax.ShapeDtypeStruct):
        if isinstance(shape, tuple | list):
            hint = f"{len(shape)} values; state several equations as several conditions"
        else:
            hint = f"{shape!r}, not a number; is a `return` missing?"
        raise TypeError(f"{what}: its residual returned {hint}")
    if shape.shape != ():
        raise ValueError(
            f"{what}: its residual returned shape {shape.shape}, expected one number per point; "
            "state several equations as several conditions"
        )
    if not jnp.issubdtype(shape.dtype, jnp.floating):
        hints = {
            "complex128": "; state real and imaginary parts as two unknowns with two conditions",
            "bool": "; a residual is the difference of both sides, such as u.t - u.xx, not a comparison",
        }
        hint = hints.get(str(shape.dtype), "")
        raise TypeError(f"{what}: its residual returned {shape.dtype}, expected real floating-point numbers{hint}")
    return requests


@x64
def check_residuals(problem: "Problem") -> None:
    """Evaluate every residual on smooth stand-ins for the unknowns: it must be finite, and not decided beforehand."""
    first, second, small = (problem.constrained(_stand_in(problem, *k)) for k in ((0, 1.0), (1, 1.0), (2, 0.4)))
    for name, condition in problem.conditions.items():
        points = _some_points(problem, name, condition)
        one = _try(problem, name, first, points)
        dead = ~np.isfinite(one)
        if dead.any():  # sqrt(1 - u^2), say, is finite for small values
            dead &= ~np.isfinite(_try(problem, name, small, points))
        if dead.any():
            where = ", ".join(f"{axis}={v:.3g}" for axis, v in zip(problem.domain.axes, points[dead][0], strict=True))
            raise ValueError(
                f"condition {name!r}: its residual is NaN or infinite at {dead.sum()} of {dead.size} points, for "
                f"instance {where}; look for a division by zero, or the root or logarithm of a negative number"
            )
        if problem.hard and condition.measured is None:
            _check_decided(name, condition, one, _try(problem, name, second, points))
    check_rates(problem.domain, problem.outputs, dict(problem.hard))


def _some_points(problem: "Problem", name: str, condition: Condition) -> Float[np.ndarray, "n d"]:
    try:
        return sample(condition.part, problem.domain, 64, stream(0, "check", name), near=condition.near)
    except ValueError as error:
        raise ValueError(f"condition {name!r}: {error}") from None


def _try(problem: "Problem", name: str, u: Callable, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    with plainly():
        return np.asarray(jax.jit(jax.vmap(lambda x: problem.residual(name, u, x)))(points))


def _check_decided(name: str, condition: Condition, one: Float[np.ndarray, " n"], two: Float[np.ndarray, " n"]) -> None:
    """Where a residual is the same for all networks, a hard constraint has settled it, one way or the other."""
    decided = np.isclose(one, two, rtol=1e-12, atol=1e-14)
    size = np.abs(one[decided]).max(initial=0.0)
    if size > 1e-8 or decided.all():
        verdict = f"contradicts it by up to {size:.2g}" if size > 1e-8 else "holds already"
        raise ValueError(
            f"condition {name!r} on {condition.part.describe()} is decided by a hard constraint and {verdict}; "
            "remove the condition, or correct or remove the hard constraint"
        )


def _stand_in(problem: "Problem", which: int, size: float) -> Callable:
    """A smooth positive function, 1 to 2 times `size`, in place of the unknowns; periodic where the problem is."""
    rng = stream(which, "stand-in")
    shape = (len(problem.outputs), problem.domain.dimension)
    starts = jnp.asarray([coefficient.start for coefficient in problem.coefficients.values()])
    wave, phase = rng.uniform(0.5, 1.5, shape), rng.uniform(0.0, 6.0, shape)
    lower, upper = np.asarray(problem.domain.bounds).T
    periodic = np.array([axis in problem.periodic for axis in problem.domain.axes])
    scale = np.where(periodic, 2 * np.pi, wave)

    def function(x):
        values = 1.5 * size + 0.5 * size * jnp.mean(jnp.cos(scale * (x - lower) / (upper - lower) + phase), axis=1)
        return jnp.concatenate([values[: len(problem.unknowns)], starts]) if starts.size else values

    return function
