"""What comes out of a run: a function of the coordinates, and the run's own account."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from dsgnar.problem.inverse import axes_of
from dsgnar.problem.quantities import Quantity
from dsgnar.problem.reference import Reference
from dsgnar.solving import bands
from dsgnar.solving.abilities import ability
from dsgnar.solving.coefficients import Band, Estimated, Inference
from dsgnar.solving.correction import Correction
from dsgnar.solving.error import estimate
from dsgnar.solving.estimate import NO_ESTIMATE, Estimate, Measured
from dsgnar.solving.function import Function, named
from dsgnar.solving.quantity import Gauge
from dsgnar.solving.record import Outcome, Record
from dsgnar.solving.stop import StopReason
from dsgnar.solving.verdict import Judge


class Exports:
    """A solution for other programs (`showing/export.py`), for the eye (`showing/figures/`), and on disk (`storing/`)."""

    def to_xarray(self, counts: Any = None, **coordinates: Any) -> Any:
        """An `xarray.Dataset` over a grid. `counts` is the number of points on each axis, or on some by name.

        Coordinates given by name are used as they are: an array, or one value that cuts the domain there.
        """
        return ability("to_xarray")(self, counts, coordinates)

    def to_netcdf(self, path: Any, /, counts: Any = None, **coordinates: Any) -> None:
        """Write what `to_xarray` gives to a NetCDF file."""
        ability("to_netcdf")(self, path, counts, coordinates)

    def to_csv(self, path: Any, /, counts: Any = None, **coordinates: Any) -> None:
        """Write a grid, as in `to_xarray`, as rows of coordinates and unknowns."""
        ability("to_csv")(self, path, counts, coordinates)

    def to_vtk(self, path: Any, /, counts: Any = None, vectors: Any = None, **coordinates: Any) -> None:
        """Write a grid, as in `to_xarray`, for ParaView.

        A path that ends in .pvd gets a series over time, whose grids go into a folder beside it; one that ends in .vtr gets
        one grid, in which time, where it is not cut, is an axis like the others; one that ends in .vtu gets a mesh of a
        shape. `vectors={"velocity": ("u", "v")}` puts unknowns together, for arrows and streamlines.
        """
        ability("to_vtk")(self, path, counts, vectors or {}, coordinates)

    def export(self, path: Any) -> None:
        """Write a function that runs without dsgnar: StableHLO, for any number of points and any device.

        It takes arrays of the solution's type by axis name and returns a dictionary of unknowns; float64 needs x64 mode:

            function = jax.export.deserialize(open("burgers.stablehlo", "rb").read())
            with jax.enable_x64(True):
                function.call(x=x, t=t)["u"]

        JAX promises to read such a file for six months after the version that wrote it.
        """
        ability("export")(self, path)

    def plot(self, reference: Reference | None = None, title: str = "", **options: Any) -> Any:
        """The solution page (Appendix D of the paper) as a matplotlib figure; options as in `figures.page`."""
        return ability("plot")(self, reference, title, **options)

    def save(self, directory: Any) -> None:
        """Write a run directory, which `dsgnar.load` reads. A run that lies there is moved into a directory of its own."""
        ability("save")(self, directory)

    def summary(self) -> str:
        """How good the answer is, in words, and what would make it better (`advice.py`)."""
        return ability("summary")(self)


class Sought:
    """What an inverse problem asks for beside the unknowns of all axes."""

    @property
    def _found(self) -> Inference | None:
        outcome = getattr(self, "outcome", None)
        return None if outcome is None else outcome.inference

    @property
    def coefficients(self) -> dict[str, Estimated]:
        """The coefficients that were found, with standard errors (`coefficients.py`)."""
        return {} if self._found is None else self._found.coefficients

    @property
    def covariance(self) -> np.ndarray | None:
        """The covariance matrix of the coefficients, in their order; None where it is not known."""
        return None if self._found is None else self._found.covariance

    def band(self: Any, name: str, /, **coordinates: Any) -> Band:
        """An unknown function of fewer axes with its error bars: `solution.band("k", x=x).interval(0.95)`.

        Coordinates are those of its own axes, and broadcast.
        """
        problem, found = self.problem, self._found
        if name not in bands.functions(problem):
            known = ", ".join(bands.functions(problem)) or "there is none"
            raise ValueError(f"band takes an unknown of fewer axes ({known}), not {name!r}")
        if set(coordinates) != set(axes_of(problem, name)):
            raise ValueError(f"{name} depends on {', '.join(axes_of(problem, name))}: give these by name")
        if found is None or found.spread is None:
            raise ValueError(f"{name} has no error bars: there are no data, or the run did not end by itself")
        others = {axis: sum(problem.domain.interval(axis)) / 2 for axis in problem.domain.axes}
        points, shape = self._points(others | coordinates, True)
        made = bands.band(self.residuals, self.thetas[0], found.spread, name, points, found.freedom)
        return replace(made, found=made.found.reshape(shape), standard_error=made.standard_error.reshape(shape))


@dataclass(frozen=True, eq=False)
class Solution(Function, Sought, Exports):
    """The solution of a problem as a function of named coordinates, with an account of how it came about."""

    outcome: Outcome | None = None

    @property
    def parameters(self) -> int:
        """The number of parameters of one network."""
        return self.residuals.parameters.count

    @property
    def stop(self) -> StopReason | None:
        """Why the run ended."""
        return None if self.outcome is None else self.outcome.stop

    @property
    def converged(self) -> bool:
        """Whether the run ended because nothing more was to be gained."""
        return self.stop is not None and self.stop.converged

    @property
    def verdict(self) -> str | None:
        """Whether it is solved: "solved", "partly" or "failed" (`verdict.py`)."""
        return None if self.outcome is None else self.outcome.verdict.code

    @property
    def error_estimate(self) -> dict[str, float] | None:
        """The estimated relative l2 error of every unknown (`error.py`); None where it is not known."""
        return None if self.outcome is None else self.outcome.error_estimate

    def corrected(self) -> "Corrected":
        """The solution plus its estimated error: often the better answer."""
        if self.problem.inverse:
            raise ValueError(f"there is no correction: {NO_ESTIMATE}")
        found = self._estimate
        assert found.correction is not None
        return Corrected(self, found.correction)

    def quantity(self, quantity: Quantity) -> Measured:
        """An integral, a mean or a value at a point, with its error: `solution.quantity(mean(lambda u: u, t=1.0))`."""
        if not isinstance(quantity, Quantity):
            raise TypeError(f"quantity takes integral(...), mean(...) or value(...), not {quantity!r}")
        unknown = self.problem.inverse or (self.outcome is not None and self.outcome.estimate is None)
        return Gauge(quantity, self.residuals)(self.model, self.thetas, None if unknown else self._estimate)

    @cached_property
    def _estimate(self) -> Estimate:
        """The estimate of the error, made again where that of the run is not at hand."""
        found = None if self.outcome is None else self.outcome.estimate
        if found is None or found.correction is None:
            found = estimate(self.model, self.thetas, Judge(self.residuals))
        return found

    @property
    def history(self) -> tuple[Record, ...]:
        """A record of each iteration."""
        return () if self.outcome is None else self.outcome.history

    # --- errors -------------------------------------------------------------------------------------------------------

    def relative_l2(self, reference: Reference) -> dict[str, float]:
        """The relative l2 error of every unknown against a reference; times that the run did not get to count as zero."""
        return reference.errors(self._by_name(reference.points))

    def max_error(self, reference: Reference) -> dict[str, float]:
        """The largest absolute error of every unknown at the points of a reference."""
        return reference.max_errors(self._by_name(reference.points))

    def _by_name(self, points: np.ndarray) -> dict[str, np.ndarray]:
        values = self.counted(points)
        return {name: values[:, k] for k, name in enumerate(self.unknowns)}

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a solution holds your equations, which are functions and cannot be pickled: "
            "write it with solution.save(directory) and read it with dsgnar.load(directory, problem)"
        )


@dataclass(frozen=True, eq=False)
class Corrected:
    """A solution with its estimated error added, as a function of named coordinates."""

    solution: Solution
    correction: Correction

    def __call__(self, *, extrapolate: bool = False, **coordinates: Any) -> dict[str, np.ndarray] | np.ndarray:
        """Values at coordinates given by axis name, as those of a solution."""
        points, shape = self.solution._points(coordinates, extrapolate)
        return named(self.solution.unknowns, self.at(points), shape)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Values at points (n, d), in float64."""
        wide = replace(self.solution, thetas=self.solution.thetas.astype(np.float64))
        return wide.at(points) + self.correction.at(points)

    def relative_l2(self, reference: Reference) -> dict[str, float]:
        """The relative l2 error of every unknown against a reference."""
        values = self.at(reference.points)
        return reference.errors({name: values[:, k] for k, name in enumerate(self.solution.unknowns)})
