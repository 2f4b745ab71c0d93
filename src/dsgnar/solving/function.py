"""A trained network as a function: evaluated at arrays of coordinates, differentiated, put into the equations."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dsgnar.calculus.precision import x64
from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import Field, evaluate
from dsgnar.solving.evaluation import by_interval, function_of
from dsgnar.solving.march import March
from dsgnar.solving.model import Model


@dataclass(frozen=True, eq=False)
class Function:
    """Unknowns as functions of named coordinates."""

    model: Model
    thetas: Float[
        np.ndarray, "intervals parameters"
    ]  # a network for each time interval; one where there was no marching

    @property
    def problem(self) -> Problem:
        return self.model.problem

    @property
    def unknowns(self) -> tuple[str, ...]:
        return self.problem.unknowns

    @property
    def residuals(self) -> Residuals:
        return self.model.residuals

    @property
    def march(self) -> March:
        return self.model.march

    @property
    def covered(self) -> Box:
        """The domain, as far in time as the run got."""
        domain, time = self.problem.domain, self.problem.domain.time
        if self.reached is None or time is None:
            return domain
        return domain.with_interval(time, (domain.interval(time)[0], self.reached))

    # --- values -------------------------------------------------------------------------------------------------------

    def __call__(
        self, *, extrapolate: bool | Literal["nan"] = False, **coordinates: Any
    ) -> dict[str, np.ndarray] | np.ndarray:
        """Values at coordinates given by axis name; arrays broadcast. One unknown: an array; several: a dictionary.

        Points outside the domain are answered with a warning; `extrapolate=True` says that they are meant, and
        `extrapolate="nan"` that they have no value.
        """
        points, shape = self._points(coordinates, bool(extrapolate))
        values = self.at(points)
        if extrapolate == "nan":
            values = np.where(_within(self.problem, points)[:, None], values, np.nan)
        return named(self.unknowns, values, shape)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The solution as a JAX function of its coordinates, `function(x, t)`, for `jax.jit`, `jax.grad` and `jax.vmap`.

        It can stand in another problem's residual. Coordinates come in the order of the domain's axes, or by name; the
        result is a number or array for one unknown, and a dictionary for several. A solution in double precision is
        evaluated in double inside JAX's x64 mode.
        """
        return function_of(self.model, self.thetas)

    def at(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n unknowns"]:
        """Values at points, in batches of bounded memory; nan at times that the run did not get to."""
        return self._batches(self.residuals.ansatz.values, points)[:, : len(self.unknowns)]

    def counted(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n unknowns"]:
        """Values for a comparison: what the run did not get to counts as zero."""
        return np.where(unreached(self.model, points)[:, None], 0.0, self.at(points))

    def derivative(self, unknown: str, orders: str) -> Callable[..., np.ndarray]:
        """The exact derivative of an unknown as a function of coordinates: `derivative("u", "xx")(x=0.5, t=1.0)`."""
        if unknown not in self.unknowns:
            raise ValueError(f"there is no unknown {unknown!r}; the problem has {', '.join(self.unknowns)}")
        domain, asked = self.problem.domain, set()

        def note(key):
            asked.add(key)
            return jnp.zeros(())

        try:
            getattr(Field(unknown, domain, note), orders).value  # noqa: B018 - the access notes the index
        except AttributeError as error:
            raise ValueError(str(error)) from None
        requests = {unknown: frozenset(asked)}

        @jax.jit
        def at_points(theta, x):
            def one(point):
                ansatz, mode = self.residuals.ansatz, self.residuals.mode
                network, x = ansatz.network(theta, ansatz.place(point)), ansatz.coordinates(point)
                fields = evaluate(network, x, self.problem.outputs, requests, domain, mode)
                return getattr(fields[unknown], orders).value

            return jax.vmap(one)(x)

        return self._of_coordinates(at_points)

    def residual(self, condition: str) -> Callable[..., np.ndarray]:
        """The residual of a condition as a function of coordinates: `residual("pde")(x=0.5, t=1.0)`."""
        if condition not in self.problem.conditions:
            names = ", ".join(self.problem.conditions)
            raise ValueError(f"there is no condition {condition!r}; the problem has {names}")
        ansatz = self.residuals.ansatz
        size = ansatz.size(condition)

        def physical(theta, x):
            place = ansatz.place(x.T)
            stretch = ansatz.stretch(condition, None if place is None else place.T)
            return size / stretch * self.residuals.vector(condition, theta, x)

        return self._of_coordinates(physical)

    # --- how ----------------------------------------------------------------------------------------------------------

    def _of_coordinates(self, kernel: Callable) -> Callable[..., np.ndarray]:
        """`kernel(theta, points)` as a function of named coordinates."""

        def function(*, extrapolate: bool = False, **coordinates: Any) -> np.ndarray:
            points, shape = self._points(coordinates, extrapolate)
            return self._batches(kernel, points).reshape(shape)

        return function

    @x64
    def _batches(self, kernel: Callable, points: np.ndarray) -> np.ndarray:
        values = by_interval(self.model, self.thetas, kernel, points)
        missing = unreached(self.model, points)
        return np.where(missing.reshape(-1, *[1] * (values.ndim - 1)), np.nan, values) if missing.any() else values

    @property
    def reached(self) -> float | None:
        """The time that a march got to, if that is not the last one."""
        time = self.problem.domain.time
        if time is None or self.march.times[-1] >= self.problem.domain.interval(time)[1]:
            return None
        return self.march.times[-1]

    def _points(self, coordinates: dict[str, Any], extrapolate: bool) -> tuple[np.ndarray, tuple[int, ...]]:
        domain = self.problem.domain
        if set(coordinates) != set(domain.axes):
            got = ", ".join(coordinates) or "none"
            raise ValueError(f"give all coordinates by name: {', '.join(domain.axes)} (got {got})")
        columns = np.broadcast_arrays(*(np.asarray(coordinates[axis], np.float64) for axis in domain.axes))
        points = np.stack([c.ravel() for c in columns], axis=1)
        if not extrapolate:
            _warn_outside(self.model, points)
        return points, columns[0].shape


def unreached(model: Model, points: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Which points of the domain lie at times that the run did not get to."""
    domain, march = model.problem.domain, model.march
    if domain.time is None:
        return np.zeros(len(points), bool)
    t = points[:, domain.index(domain.time)]
    return (t > march.times[-1]) & (t <= domain.interval(domain.time)[1])


def named(unknowns: tuple[str, ...], values: np.ndarray, shape: tuple[int, ...]) -> dict[str, np.ndarray] | np.ndarray:
    """Values (n, unknowns) as people want them: an array for one unknown, a dictionary for several."""
    out = {name: values[:, k].reshape(shape) for k, name in enumerate(unknowns)}
    return out[unknowns[0]] if len(out) == 1 else out


def _within(problem: Problem, points: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Which points lie in the domain."""
    inside = points.copy()
    for axis in problem.periodic:  # there is no outside along these
        inside[:, problem.domain.index(axis)] = problem.domain.interval(axis)[0]
    return problem.domain.contains(inside)


def _warn_outside(model: Model, points: np.ndarray) -> None:
    domain, missing = model.problem.domain, np.count_nonzero(unreached(model, points))
    if missing:
        warnings.warn(
            f"{missing} of {len(points)} points lie beyond {domain.time}={model.march.times[-1]:g}, where the run ended: "
            "the solution is nan there",
            stacklevel=4,  # the line that asked
        )
    outside = np.flatnonzero(~_within(model.problem, points))
    if outside.size:
        where = ", ".join(f"{axis}={value:g}" for axis, value in zip(domain.axes, points[outside[0]], strict=True))
        warnings.warn(
            f"{outside.size} of {len(points)} points lie outside the domain, where nothing was trained (the first: "
            f"{where}); extrapolate=True if that is meant",
            stacklevel=4,
        )
