"""Measurements: an observable of the unknowns, its values at given points, and their noise.

With the observable h(u), values y_i at points x_i and the standard deviations sigma_i of their errors, the misfit is

    chi^2 = sum_i ((h(u)(x_i) - y_i) / sigma_i)^2.

Its minimum among the solutions of the equations is the most likely answer. Where `noise` is None, all sigma_i are the same
and estimated from what the fit leaves over.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dsgnar.problem.conditions import Condition
from dsgnar.problem.domain import Points

if TYPE_CHECKING:
    from dsgnar.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Measurements:
    """Values in the order of the points, and the standard deviation of each; None: the same for all, and not known."""

    values: Float[np.ndarray, " n"]
    noise: Float[np.ndarray, " n"] | None

    @property
    def precision(self) -> Float[np.ndarray, " n"]:
        """1 / sigma_i, up to a factor that makes its mean square one."""
        if self.noise is None:
            return np.ones_like(self.values)
        return self.typical / self.noise

    @property
    def typical(self) -> float:
        """The standard deviation of all of them together, such that chi^2 = n (misfit / typical)^2; NaN if not known."""
        return math.nan if self.noise is None else float(1 / np.sqrt(np.mean(1 / self.noise**2)))

    @property
    def size(self) -> float:
        """The root mean square of the values."""
        return float(np.sqrt(np.mean(self.values**2)))


def data(
    observable: Callable,
    at: Mapping[str, Any],
    values: Any,
    noise: float | Sequence[float] | np.ndarray | None = None,
) -> Condition:
    """Measured `values` of an observable of the unknowns, such as `lambda u: u`, at points `{"x": [...], "t": [...]}`.

    `noise` is the standard deviation of the values: a number, one for each value, or None if it is not known. Data are
    weighted by their noise, and equations far more, so the answer is the solution of the equations that fits best.
    """
    if not isinstance(at, Mapping):
        raise TypeError(f"data: the points are a dict such as {{'x': [0.5], 't': [1.0]}}, not {type(at).__name__}")
    try:
        points = {axis: np.asarray(given, np.float64) for axis, given in at.items()}
        shape = np.broadcast_shapes(*(p.shape for p in points.values()))
        y = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"data: points and values must be numbers whose shapes agree: {error}") from None
    if y.shape != shape:
        raise ValueError(
            f"data: there are values of shape {y.shape} for points of shape {shape}; give one for each point"
        )
    if not y.size or not np.isfinite(y).all():
        raise ValueError(f"data: {(~np.isfinite(y)).sum()} of {y.size} values are not finite; leave those out")
    return Condition(observable, Points(points), measured=Measurements(y.ravel(), _deviations(noise, shape)))


def _deviations(noise: Any, shape: tuple[int, ...]) -> Float[np.ndarray, " n"] | None:
    if noise is None:
        return None
    try:
        given = np.broadcast_to(np.asarray(noise, np.float64), shape).ravel()
    except (TypeError, ValueError):
        raise ValueError(f"data: noise must be a number, one for each value {shape}, or None; not {noise!r}") from None
    if not ((given > 0) & np.isfinite(given)).all():
        raise ValueError("data: noise is a standard deviation and must be positive; None: it is estimated")
    return given.copy()


def with_data(condition: Condition, table: Mapping[str, np.ndarray], axes: Sequence[str], what: str) -> Condition:
    """The condition with other measurements: a table with a column for each axis, `value`, and perhaps `noise`."""
    if condition.measured is None:
        raise ValueError(f"{what}: the condition is not made by ds.data(...), so it takes no data")
    missing = [name for name in (*axes, "value") if name not in table]
    if missing:
        raise ValueError(f"{what}: it has the columns {', '.join(table)}; {', '.join(missing)} is missing")
    made = data(condition.residual, {axis: table[axis] for axis in axes}, table["value"], table.get("noise"))
    noise = condition.measured.noise
    if "noise" not in table and noise is not None and np.ptp(noise) == 0 and made.measured is not None:
        kept = replace(made.measured, noise=np.full(made.measured.values.size, noise[0]))
        return replace(made, measured=kept)
    return made


def with_files(problem: "Problem", files: Mapping[str, Path | str]) -> "Problem":
    """The problem with the data of some conditions read from files (`read_data`)."""
    changed = dict(problem.conditions)
    for name, path in files.items():
        if name not in changed:
            raise ValueError(
                f"data {name}={path}: there is no condition {name!r}; the problem has {', '.join(changed)}"
            )
        changed[name] = with_data(changed[name], read_data(path), problem.domain.axes, f"data {name}={path}")
    return replace(problem, conditions=changed)


# --- files ------------------------------------------------------------------------------------------------------------


def read_data(path: Path | str) -> dict[str, np.ndarray]:
    """Columns by name from a file: .csv with a header, .npz, or .nc (netCDF, with xarray), whose grids are spread out."""
    path = Path(path)
    readers = {".csv": _csv, ".npz": _npz, ".nc": _netcdf}
    if path.suffix not in readers:
        raise ValueError(f"{path}: data are read from {', '.join(readers)} files")
    try:
        columns = readers[path.suffix](path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    lengths = {name: len(column) for name, column in columns.items()}
    if not columns or len(set(lengths.values())) != 1 or not next(iter(lengths.values())):
        raise ValueError(f"{path}: its columns must be of one length, and not empty: {lengths}")
    return columns


def _csv(path: Path) -> dict[str, np.ndarray]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    if not rows:
        raise ValueError(f"{path} is empty; its first line names the columns, such as x,t,value,noise")
    names, out = [name.strip() for name in rows[0]], []
    for number, row in enumerate(rows[1:], 2):
        try:
            out.append([float(cell) for cell in row])
        except ValueError:
            raise ValueError(f"{path}, row {number}: {row} are not all numbers") from None
        if len(row) != len(names):
            raise ValueError(f"{path}, row {number}: it has {len(row)} entries, and the header {len(names)}")
    return dict(zip(names, np.array(out, np.float64).reshape(-1, len(names)).T, strict=True))


def _npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name], np.float64).ravel() for name in file.files}
    except (ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{path} is no archive of numbers: {error}") from None


def _netcdf(path: Path) -> dict[str, np.ndarray]:
    try:
        import xarray
    except ImportError:
        raise ValueError(f"{path}: netCDF files need xarray; install it with: pip install 'dsgnar[export]'") from None
    with xarray.open_dataset(path) as dataset:
        frame = dataset.to_dataframe().reset_index().dropna()
    return {str(name): frame[name].to_numpy(np.float64) for name in frame.columns}
