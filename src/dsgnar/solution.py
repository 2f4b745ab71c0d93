"""What comes out of a run: a function that can be evaluated, differentiated and compared, and the run's own account."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.config import Settings
from dsgnar.fields import Field, evaluate
from dsgnar.march import March
from dsgnar.networks import Architecture
from dsgnar.precision import x64
from dsgnar.problem import Problem
from dsgnar.reference import Reference
from dsgnar.residuals import Residuals
from dsgnar.stages import StopReason

BATCH = 8192  # points evaluated at once


@dataclass(frozen=True)
class Record:
    """One iteration: everything that the paper plots."""

    iteration: int
    interval: int  # of time, from 0
    stage: int
    precision: str
    points: int  # of all conditions together
    loss: float  # before the step
    mean_squares: tuple[float, ...]  # of each condition, after it
    weights: tuple[float, ...]
    ratio: float
    target: float
    lam: float
    radius: float
    accepted: bool
    evaluations: int  # of the loss
    seconds: float  # of solving, since the start
    held_out: float | None  # the loss on held-out points, where it was looked at
    error: dict[str, float] | None  # against a reference, where there is one and it was looked at

    def row(self, conditions: tuple[str, ...]) -> dict[str, Any]:
        """The record as a row of history.csv: a column for each condition's mean square and weight."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("mean_squares", "weights"):
                label = "mean_square" if f.name == "mean_squares" else "weight"
                out.update({f"{label}[{name}]": v for name, v in zip(conditions, value, strict=True)})
            elif f.name == "error":
                out["error"] = None if value is None else max(value.values())
                out.update({f"error[{name}]": v for name, v in (value or {}).items()})
            else:
                out["lambda" if f.name == "lam" else f.name] = value
        return out


@dataclass(frozen=True, eq=False)
class Outcome:
    """A run's account of itself."""

    settings: Settings
    history: tuple[Record, ...]
    stop: StopReason
    seconds: dict[str, float]
    held_out: dict[str, float]  # root mean square residual of each condition on held-out points; of the worst interval
    points: dict[str, int]
    relative_l2: dict[str, float] | None

    @property
    def loss_evaluations(self) -> int:
        return sum(record.evaluations for record in self.history)


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of a problem as a function of named coordinates."""

    problem: Problem
    architecture: Architecture | Callable
    residuals: Residuals
    thetas: np.ndarray  # (intervals, parameters): a network for each time interval; one where there was no marching
    march: March
    outcome: Outcome | None = None

    @property
    def unknowns(self) -> tuple[str, ...]:
        return self.problem.unknowns

    @property
    def parameters(self) -> int:
        """The number of parameters of one network."""
        return self.residuals.parameters.count

    def __call__(self, **coordinates: Any) -> dict[str, np.ndarray] | np.ndarray:
        """Values at coordinates given by axis name; arrays broadcast. One unknown: an array; several: a dictionary."""
        points, shape = self._points(coordinates)
        values = self.at(points)
        out = {name: values[:, k].reshape(shape) for k, name in enumerate(self.unknowns)}
        return out[self.unknowns[0]] if len(out) == 1 else out

    @x64
    def at(self, points: np.ndarray) -> np.ndarray:
        """Values (n, unknowns) at points (n, d), in batches of bounded memory."""
        return self._batches(self._values, points)

    def derivative(self, unknown: str, orders: str) -> Callable[..., np.ndarray]:
        """The exact derivative of an unknown as a function of coordinates: `derivative("u", "xx")(x=0.5, t=1.0)`."""
        if unknown not in self.unknowns:
            raise ValueError(f"there is no unknown {unknown!r}; the problem has {', '.join(self.unknowns)}")
        asked: set = set()

        def note(key):
            asked.add(key)
            return jnp.zeros(())

        try:
            getattr(Field(unknown, self.problem.domain, note), orders).value  # noqa: B018 - the access notes the index
        except AttributeError as error:
            raise ValueError(str(error)) from None
        requests = {unknown: frozenset(asked)}

        @jax.jit
        def at_points(theta, x):
            def one(point):
                fields_ = evaluate(
                    self.residuals.network(theta),
                    point,
                    self.unknowns,
                    requests,
                    self.problem.domain,
                    self.residuals.mode,
                )
                return getattr(fields_[unknown], orders).value

            return jax.vmap(one)(x)

        @x64
        def function(**coordinates: Any) -> np.ndarray:
            points, shape = self._points(coordinates)
            return self._batches(at_points, points).reshape(shape)

        return function

    def residual(self, condition: str) -> Callable[..., np.ndarray]:
        """The residual of a condition as a function of coordinates: `residual("pde")(x=0.5, t=1.0)`."""
        if condition not in self.problem.conditions:
            names = ", ".join(self.problem.conditions)
            raise ValueError(f"there is no condition {condition!r}; the problem has {names}")

        @x64
        def function(**coordinates: Any) -> np.ndarray:
            points, shape = self._points(coordinates)
            return self._batches(partial(self.residuals.vector, condition), points).reshape(shape)

        return function

    def relative_l2(self, reference: Reference) -> dict[str, float]:
        """The relative l2 error of every unknown against a reference."""
        return reference.errors(self._by_name(reference.points))

    def max_error(self, reference: Reference) -> dict[str, float]:
        """The largest absolute error of every unknown at the points of a reference."""
        return reference.max_errors(self._by_name(reference.points))

    def _by_name(self, points: np.ndarray) -> dict[str, np.ndarray]:
        values = self.at(points)
        return {name: values[:, k] for k, name in enumerate(self.unknowns)}

    # --- for other programs (`export.py`) and for the eye (`figures/`) ------------------------------------------------

    def to_xarray(self, counts: Any = None, **coordinates: Any) -> Any:
        """An `xarray.Dataset` over a grid. `counts` is the number of points on each axis, or on some by name.

        Coordinates given by name are used as they are: an array, or one value that cuts the domain there.
        """
        from dsgnar import export

        return export.to_xarray(self, counts, coordinates)

    def to_netcdf(self, path: Any, /, counts: Any = None, **coordinates: Any) -> None:
        """Write what `to_xarray` gives to a NetCDF file."""
        from dsgnar import export

        export.to_netcdf(self, path, counts, coordinates)

    def to_csv(self, path: Any, /, counts: Any = None, **coordinates: Any) -> None:
        """Write a grid, as in `to_xarray`, as rows of coordinates and unknowns."""
        from dsgnar import export

        export.to_csv(self, path, counts, coordinates)

    def to_vtk(self, path: Any, /, counts: Any = None, vectors: Any = None, **coordinates: Any) -> None:
        """Write a grid, as in `to_xarray`, for ParaView.

        A path that ends in .pvd gets a series over time, whose grids go into a folder beside it; one that ends in .vtr gets
        one grid, in which time, where it is not cut, is an axis like the others. `vectors={"velocity": ("u", "v")}` puts
        unknowns together, for arrows and streamlines.
        """
        from dsgnar import export

        export.to_vtk(self, path, counts, vectors or {}, coordinates)

    def export(self, path: Any) -> None:
        """Write a function that runs without dsgnar: StableHLO, for any number of points and any device.

        It takes arrays of the solution's type by axis name and returns a dictionary of unknowns; float64 needs x64 mode:

            function = jax.export.deserialize(open("burgers.stablehlo", "rb").read())
            with jax.enable_x64(True):
                function.call(x=x, t=t)["u"]

        JAX promises to read such a file for six months after the version that wrote it.
        """
        from dsgnar import export

        export.export(self, path)

    def plot(self, reference: Reference | None = None, title: str = "", **options: Any) -> Any:
        """The solution page (Appendix D of the paper) as a matplotlib figure; options as in `figures.page`."""
        from dsgnar import figures

        return figures.show(self, reference, title, **options)

    def save(self, directory: Any) -> None:
        """Write a run directory, which `dsgnar.load` reads. A run that lies there is moved into a directory of its own."""
        from dsgnar import runs

        runs.make_room(Path(directory))
        runs.write(Path(directory), self)

    def summary(self) -> str:
        """How good the answer is, in words, and what would make it better (`advice.py`)."""
        from dsgnar import advice

        return advice.summary(self)

    @cached_property
    def _values(self) -> Callable:
        return jax.jit(lambda theta, x: jax.vmap(self.residuals.network(theta))(x))

    def _points(self, coordinates: dict[str, Any]) -> tuple[np.ndarray, tuple[int, ...]]:
        axes = self.problem.domain.axes
        if set(coordinates) != set(axes):
            raise ValueError(
                f"give all coordinates by name: {', '.join(axes)} (got {', '.join(coordinates) or 'none'})"
            )
        columns = np.broadcast_arrays(*(np.asarray(coordinates[axis], np.float64) for axis in axes))
        return np.stack([c.ravel() for c in columns], axis=1), columns[0].shape

    def _batches(self, kernel: Callable, points: np.ndarray) -> np.ndarray:
        """`kernel(theta, points)` for all points, each with the parameters of its time interval."""
        if self.march.count == 1:
            return self._of_piece(kernel, self.thetas[0], points)
        piece = self.march.piece(points[:, self.problem.domain.axes.index(self.problem.domain.time)])
        order = np.argsort(piece, kind="stable")
        counts = np.bincount(piece, minlength=self.march.count)
        parts = np.split(points[order], np.cumsum(counts)[:-1])
        values = [self._of_piece(kernel, t, p) for t, p in zip(self.thetas, parts, strict=True) if len(p)]
        return np.concatenate(values)[np.argsort(order, kind="stable")]

    @staticmethod
    def _of_piece(kernel: Callable, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
        count = len(points)
        size = BATCH if count > BATCH else max(1, 2 ** math.ceil(math.log2(max(count, 1))))  # few shapes to compile
        padded = np.concatenate([points, np.repeat(points[:1], -count % size, axis=0)]).astype(theta.dtype)
        blocks = [kernel(jnp.asarray(theta), jnp.asarray(b)) for b in padded.reshape(-1, size, points.shape[1])]
        return np.concatenate([np.asarray(block) for block in blocks])[:count]
