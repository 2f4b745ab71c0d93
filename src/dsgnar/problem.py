"""What is to be solved: a domain, the unknowns on it, and conditions (section 2.1 of the paper).

A condition `F_m u = 0` is a residual on a part of the domain. All of them together are the operator `F` of the paper;
the loss (eq. 5) weighs the mean squares of their residuals. Names of conditions are the user's own; nothing depends on
them. Everything that can be wrong about a statement is found here, before any work is done.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.constraints import Hard, check_rates, constrain
from dsgnar.domain import Boundary, Box, Face, Initial, Interior, Part, Points
from dsgnar.fields import Field, Requests, Signature, evaluate, requirements
from dsgnar.precision import x64
from dsgnar.sampling import Near, Sampling, generator, sample

# Interior conditions start with a small weight and are let in gently (section 4.2; the authors' 1e-8 to 1e-2).
INTERIOR_WEIGHT = 1e-2


@dataclass(frozen=True, eq=False)
class Condition:
    """A residual that must vanish on a part of the domain."""

    residual: Callable
    part: Part
    points: int | None = None
    weight: float | None = None
    sampling: Sampling | None = None
    near: tuple[Near, ...] = ()

    @property
    def initial_weight(self) -> float:
        if self.weight is not None:
            return self.weight
        return INTERIOR_WEIGHT if isinstance(self.part, Interior) else 1.0


def interior(residual: Callable, **options: Any) -> Condition:
    """A condition inside the domain, over all times: the equation itself.

    Options of every condition: `points` (how many), `weight` (the initial one), `sampling` ("uniform", "even", "sobol",
    "clustered") and `near` (concentrations of points, see `Near`).
    """
    return Condition(residual, Interior(), **options)


def initial(residual: Callable, **options: Any) -> Condition:
    """A condition at the first instant of time."""
    return Condition(residual, Initial(), **options)


def boundary(residual: Callable, faces: Sequence[Face] | None = None, **options: Any) -> Condition:
    """A condition on the spatial boundary over all times, or on some `faces`, such as `[("x", "lower")]`."""
    return Condition(residual, Boundary(None if faces is None else tuple(faces)), **options)


def at(residual: Callable, values: Mapping[str, Any], **options: Any) -> Condition:
    """A condition at given points, `{"x": [...], "t": 0.5}`."""
    return Condition(residual, Points(values), **options)


@dataclass(frozen=True, eq=False)
class Problem:
    """A differential equation with its conditions, checked when it is made.

    `conditions` maps names of your choice to `interior(...)`, `initial(...)`, `boundary(...)` and `at(...)`. `periodic` axes
    hold exactly through the network's input; `hard` values (`{"u": Hard(...)}`) through its output. A `known` part of an
    unknown (`{"p": lambda x, y: jnp.log(x**2 + y**2)}`), such as a singularity that no network can hold, is added to it.
    """

    domain: Box
    unknowns: tuple[str, ...]
    conditions: Mapping[str, Condition]
    periodic: tuple[str, ...] = ()
    hard: Mapping[str, Hard] = field(default_factory=dict)
    known: Mapping[str, Callable] = field(default_factory=dict)

    def __post_init__(self):
        for names in ("unknowns", "periodic"):  # one name alone will do
            given = getattr(self, names)
            object.__setattr__(self, names, (given,) if isinstance(given, str) else tuple(given))
        self._check_names()
        object.__setattr__(self, "hard", {name: self._resolve_hard(name, hard) for name, hard in self.hard.items()})
        conditions = {name: self._resolve(name, condition) for name, condition in self.conditions.items()}
        object.__setattr__(self, "conditions", conditions)
        self._check_residuals()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of unknowns, then of axes: what a residual's parameters may be called."""
        return (*self.unknowns, *self.domain.axes)

    @cached_property
    def requests(self) -> dict[str, Requests]:
        """For each condition, the derivatives that it needs."""
        return {name: self._require(name, condition)[0] for name, condition in self.conditions.items()}

    def residual(self, name: str, network: Callable, x: jax.Array, mode: Any = "taylor") -> jax.Array:
        """The residual of one condition at one point for any function `network: (d,) -> (unknowns,)`."""
        fields = evaluate(network, x, self.unknowns, self.requests[name], self.domain, mode)
        values: dict[str, Any] = fields | {axis: x[i] for i, axis in enumerate(self.domain.axes)}
        result = self._signature(name, self.conditions[name])(values)
        return jnp.asarray(result.value if isinstance(result, Field) else result, x.dtype)

    def constrained(self, network: Callable) -> Callable:
        """The network with the hard constraints and the known parts built into its output."""
        return constrain(network, self.domain, self.unknowns, self.hard, self.known)

    # --- checks -------------------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        if not self.unknowns or len(set(self.names)) != len(self.names):
            raise ValueError(f"unknowns and axes need distinct names, and at least one unknown: got {self.names}")
        if not all(name.isidentifier() for name in self.unknowns):
            raise ValueError(f"the unknowns {self.unknowns} must be names that a function can have as parameters")
        if not self.conditions:
            raise ValueError("a problem needs at least one condition, such as {'pde': interior(...)}")
        for axis in self.periodic:
            self.domain.index(axis)
            if axis == self.domain.time:
                raise ValueError(f"time ({axis!r}) cannot be periodic")
        for name, hard in self.hard.items():
            if name not in self.unknowns:
                raise ValueError(f"hard constraint on {name!r}: the unknowns are {', '.join(self.unknowns)}")
            if not isinstance(hard, Hard):
                raise TypeError(f"hard constraint on {name!r}: expected Hard(value, on=...), got {hard!r}")
        for name, part in self.known.items():
            if name not in self.unknowns:
                raise ValueError(f"known part of {name!r}: the unknowns are {', '.join(self.unknowns)}")
            if not callable(part):
                raise TypeError(f"known part of {name!r}: expected a function of the axes, got {part!r}")
            if name in self.hard:
                raise ValueError(
                    f"{name!r} has a hard constraint and a known part; let the hard value contain the part"
                )

    def _check_part(self, what: str, part: Part) -> Part:
        """The part with its faces spelt out; a face of a periodic axis is an error."""
        try:
            if isinstance(part, Points):
                part.table(self.domain)
            else:
                part.fixed(self.domain)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        if not isinstance(part, Boundary):
            return part
        faces = part.resolve(self.domain)
        if part.faces is None:
            faces = tuple(face for face in faces if face[0] not in self.periodic)
        clash = [axis for axis, _ in faces if axis in self.periodic]
        if clash or not faces:
            axis = clash[0] if clash else self.periodic[0]
            raise ValueError(f"{what}: axis {axis!r} is periodic and has no boundary; drop the condition or `periodic`")
        return Boundary(faces)

    def _resolve_hard(self, name: str, hard: Hard) -> Hard:
        return replace(hard, on=tuple(self._check_part(f"the hard constraint on {name!r}", part) for part in hard.on))

    def _resolve(self, name: str, condition: Condition) -> Condition:
        what = f"condition {name!r}"
        if not isinstance(condition, Condition):
            raise TypeError(
                f"{what}: expected interior(...), initial(...), boundary(...) or at(...), got {condition!r}"
            )
        if condition.points is not None and condition.points < 1:
            raise ValueError(f"{what}: it has no points (points={condition.points}); give it at least one")
        if condition.weight is not None and not 0 < condition.weight < math.inf:
            raise ValueError(f"{what}: its weight must be positive and finite, not {condition.weight}")
        if condition.sampling not in (None, *get_args(Sampling)):
            known = ", ".join(map(repr, get_args(Sampling)))
            raise ValueError(f"{what}: sampling must be one of {known}, not {condition.sampling!r}")
        near = (condition.near,) if isinstance(condition.near, Near) else tuple(condition.near)
        return replace(condition, part=self._check_part(what, condition.part), near=near)

    def _signature(self, name: str, condition: Condition) -> Signature:
        return Signature.of(condition.residual, self.names, f"condition {name!r}")

    @x64
    def _require(self, name: str, condition: Condition) -> tuple[Requests, Any]:
        what = f"condition {name!r}"
        signature = self._signature(name, condition)
        try:
            requests, shape = requirements(signature, self.unknowns, self.domain)
        except AttributeError as error:
            raise ValueError(f"{what}: {error}") from None
        except TypeError as error:
            raise TypeError(
                f"{what}: its residual could not be evaluated, or did not return an array: {error}"
            ) from error
        except Exception as error:
            error.add_note(f"{what}: this happened in its residual")
            raise
        if shape is None or not isinstance(shape, jax.ShapeDtypeStruct):
            raise TypeError(f"{what}: its residual returned {shape!r}, not a number; is a `return` missing?")
        if shape.shape != ():
            raise ValueError(
                f"{what}: its residual returned shape {shape.shape}, expected one number per point; "
                "state several equations as several conditions"
            )
        if not jnp.issubdtype(shape.dtype, jnp.floating):
            raise TypeError(f"{what}: its residual returned {shape.dtype}, expected real floating-point numbers")
        return requests, shape

    @x64
    def _check_residuals(self) -> None:
        """Evaluate every residual on smooth stand-ins for the unknowns: it must be finite, and not decided beforehand."""
        first, second, small = (self.constrained(_stand_in(self, *k)) for k in ((0, 1.0), (1, 1.0), (2, 0.4)))
        for name, condition in self.conditions.items():
            points = self._some_points(name, condition)
            one = self._try(name, first, points)
            dead = ~np.isfinite(one)
            if dead.any():  # sqrt(1 - u^2), say, is finite for small values
                dead &= ~np.isfinite(self._try(name, small, points))
            if dead.any():
                where = ", ".join(f"{axis}={v:.3g}" for axis, v in zip(self.domain.axes, points[dead][0], strict=True))
                raise ValueError(
                    f"condition {name!r}: its residual is NaN or infinite at {dead.sum()} of {dead.size} points, for "
                    f"instance {where}; look for a division by zero, or the root or logarithm of a negative number"
                )
            if self.hard:
                self._check_decided(name, condition, one, self._try(name, second, points))
        check_rates(self.domain, self.unknowns, dict(self.hard))

    def _some_points(self, name: str, condition: Condition) -> np.ndarray:
        try:
            return sample(condition.part, self.domain, 64, generator(0, "check", name), near=condition.near)
        except ValueError as error:
            raise ValueError(f"condition {name!r}: {error}") from None

    def _try(self, name: str, u: Callable, points: np.ndarray) -> np.ndarray:
        return np.asarray(jax.jit(jax.vmap(lambda x: self.residual(name, u, x)))(points))

    def _check_decided(self, name: str, condition: Condition, one: np.ndarray, two: np.ndarray) -> None:
        """Where a residual is the same for all networks, a hard constraint has settled it, one way or the other."""
        decided = np.isclose(one, two, rtol=1e-12, atol=1e-14)
        size = np.abs(one[decided]).max(initial=0.0)
        if size > 1e-8 or decided.all():
            verdict = f"contradicts it by up to {size:.2g}" if size > 1e-8 else "holds already"
            raise ValueError(
                f"condition {name!r} on {condition.part.describe()} is decided by a hard constraint and {verdict}; "
                "remove the condition, or correct or remove the hard constraint"
            )


def _stand_in(problem: Problem, which: int, size: float) -> Callable:
    """A smooth positive function, 1 to 2 times `size`, in place of the unknowns; periodic where the problem is."""
    rng = generator(which, "stand-in")
    shape = (len(problem.unknowns), problem.domain.dimension)
    wave, phase = rng.uniform(0.5, 1.5, shape), rng.uniform(0.0, 6.0, shape)
    lower, upper = np.asarray(problem.domain.bounds).T
    periodic = np.array([axis in problem.periodic for axis in problem.domain.axes])
    scale = np.where(periodic, 2 * np.pi, wave)

    def function(x):
        return 1.5 * size + 0.5 * size * jnp.mean(jnp.cos(scale * (x - lower) / (upper - lower) + phase), axis=1)

    return function
