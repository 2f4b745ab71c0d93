"""A solution for other programs: tables on grids (xarray, NetCDF, CSV), ParaView, and a function without dsgnar.

A grid is the product of one coordinate array per axis. Give coordinates by name, as when calling the solution: an array,
or one value that cuts the domain there. Every other axis gets `counts` evenly spaced values; by default at most 201, and
about a million points in all.
"""

import base64
import importlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.precision import x64
from dsgnar.calculus.version import VERSION
from dsgnar.problem.domain import Box
from dsgnar.problem.meshing import mesh
from dsgnar.problem.region import Region
from dsgnar.showing.unstructured import unstructured
from dsgnar.solving.solution import Solution

Counts = int | Mapping[str, int]
Grid = dict[str, np.ndarray]  # an array for every axis of the domain, 0-dimensional where the domain is cut

PER_AXIS, IN_ALL = 201, 1_000_000
CHUNK = 65_536  # rows of a CSV file made at once
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def grid(domain: Box, counts: Counts | None, coordinates: Mapping[str, Any]) -> Grid:
    """A coordinate array for each axis of the domain."""
    asked = counts if isinstance(counts, Mapping) else {}
    for axis in (*asked, *coordinates):
        domain.index(axis)
    free = [axis for axis in domain.axes if axis not in coordinates]
    usual = counts if isinstance(counts, int) else min(PER_AXIS, max(2, int(IN_ALL ** (1 / max(1, len(free))))))
    out = {}
    for axis in domain.axes:
        if axis in free:
            out[axis] = np.linspace(*domain.interval(axis), _at_least_two(axis, asked.get(axis, usual)))
        else:
            out[axis] = np.asarray(coordinates[axis], np.float64)
            if out[axis].ndim > 1 or not out[axis].size:
                raise ValueError(
                    f"axis {axis!r}: give one value or a one-dimensional array, not shape {out[axis].shape}"
                )
    return out


def _at_least_two(axis: str, count: int) -> int:
    if count < 2:
        raise ValueError(
            f"axis {axis!r}: a grid needs at least 2 points; to cut the domain give a coordinate, {axis}=0.5"
        )
    return count


def on_grid(solution: Solution, axes: Grid) -> dict[str, np.ndarray]:
    """Values of every unknown on a grid; axes that are cut have no dimension."""
    shape = tuple(a.size for a in axes.values())
    values = np.concatenate([_inside(solution, points) for points in _chunks(axes)])
    lengths = tuple(a.size for a in axes.values() if a.ndim)
    assert len(values) == math.prod(shape)
    return {name: values[:, k].reshape(lengths) for k, name in enumerate(solution.unknowns)}


def _inside(solution: Solution, points: np.ndarray) -> np.ndarray:
    """Values at points, nan outside of a shape."""
    values, domain = solution.at(points), solution.problem.domain
    return np.where(domain.contains(points)[:, None], values, np.nan) if domain.shaped else values


def _chunks(axes: Grid) -> Iterator[np.ndarray]:
    """The points of a grid (n, d), last axis fastest, a bounded number at a time."""
    flat = [a.ravel() for a in axes.values()]
    shape = tuple(map(len, flat))
    total = math.prod(shape)
    for start in range(0, total, CHUNK):
        index = np.unravel_index(np.arange(start, min(start + CHUNK, total)), shape)
        yield np.stack([a[i] for a, i in zip(flat, index, strict=True)], axis=1)


# --- tables -----------------------------------------------------------------------------------------------------------


def to_xarray(solution: Solution, counts: Counts | None, coordinates: Mapping[str, Any]) -> Any:
    """An `xarray.Dataset` with a variable for each unknown."""
    xarray = _need("xarray", "to_xarray")
    axes = grid(solution.problem.domain, counts, coordinates)
    dimensions = tuple(axis for axis, a in axes.items() if a.ndim)
    variables = {name: (dimensions, values) for name, values in on_grid(solution, axes).items()}
    return xarray.Dataset(variables, coords=dict(axes), attrs=_attributes(solution))


def to_netcdf(solution: Solution, path: str | Path, counts: Counts | None, coordinates: Mapping[str, Any]) -> None:
    """A NetCDF-4 file of what `to_xarray` gives."""
    _need("netCDF4", "to_netcdf")
    to_xarray(solution, counts, coordinates).to_netcdf(path, engine="netcdf4")


def to_csv(solution: Solution, path: str | Path, counts: Counts | None, coordinates: Mapping[str, Any]) -> None:
    """A row for each point, of a shape those inside: coordinates, then unknowns, with all digits."""
    axes = grid(solution.problem.domain, counts, coordinates)
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join((*axes, *solution.unknowns)) + "\n")
        for points in _chunks(axes):
            if solution.problem.domain.shaped:
                points = points[solution.problem.domain.contains(points)]
            for x, u in zip(points.tolist(), solution.at(points).tolist(), strict=True):
                file.write(",".join(map(repr, (*x, *u))) + "\n")


def _attributes(solution: Solution) -> dict[str, Any]:
    out: dict[str, Any] = {"source": f"dsgnar {VERSION}"}
    if solution.outcome is not None:
        out |= {"precision": solution.outcome.settings.precision, "stop_reason": solution.outcome.stop.code}
        out |= {f"held_out_{name}": value for name, value in solution.outcome.held_out.items()}
    return out


def _need(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"{what} needs {module}; install it with: pip install 'dsgnar[export]'") from None


# --- ParaView ---------------------------------------------------------------------------------------------------------


def to_vtk(
    solution: Solution,
    path: str | Path,
    counts: Counts | None,
    vectors: Mapping[str, tuple[str, ...]],
    coordinates: Mapping[str, Any],
) -> None:
    """A rectilinear grid (.vtr), a mesh of a shape (.vtu), or a series of them over time (.pvd)."""
    path, domain = Path(path), solution.problem.domain
    for name, members in vectors.items():
        if not set(members) <= set(solution.unknowns) or not 1 <= len(members) <= 3:
            raise ValueError(f"the vector {name!r} needs one to three of the unknowns {', '.join(solution.unknowns)}")
    axes = grid(domain, counts, coordinates)
    if path.suffix == ".vtr":
        path.write_bytes(_rectilinear(solution, axes, vectors))
    elif path.suffix == ".vtu":
        path.write_bytes(_meshed(solution, axes, vectors))
    elif path.suffix == ".pvd" and domain.time is not None:
        _series(solution, path, axes, domain.time, vectors)
    elif path.suffix == ".pvd":
        raise ValueError("a .pvd file is a series over time, and this problem has no time: write a .vtr file")
    else:
        known = ".vtr (one grid), .vtu (a shape) or .pvd (a series over time)"
        raise ValueError(f"ParaView files end in {known}, not {path.suffix!r}")


def _series(solution: Solution, path: Path, axes: Grid, time: str, vectors: Mapping[str, tuple[str, ...]]) -> None:
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for k, t in enumerate(np.atleast_1d(axes[time])):
        write, suffix = (_meshed, "vtu") if solution.problem.domain.shaped else (_rectilinear, "vtr")
        file = folder / f"{k:04d}.{suffix}"
        file.write_bytes(write(solution, axes | {time: np.asarray(t)}, vectors))
        entries.append(f'<DataSet timestep="{float(t)!r}" file={quoteattr(f"{folder.name}/{file.name}")}/>')
    path.write_text(_document("Collection", f"<Collection>{''.join(entries)}</Collection>"), encoding="utf-8")


def _meshed(solution: Solution, axes: Grid, vectors: Mapping[str, tuple[str, ...]]) -> bytes:
    """A mesh of a shape, at one time and one value of every parameter."""
    domain = solution.problem.domain
    if not isinstance(domain, Region):
        raise ValueError("a .vtu file holds the mesh of a shape, and this domain is a box: write a .vtr file")
    space, further = domain.shape.axes, domain.axes[len(domain.shape.axes) :]
    for axis, a in axes.items():
        if (axis in space) != bool(a.ndim):
            what = f"cut it, {axis}={domain.interval(axis)[0]:g} for example" if axis in further else "do not cut it"
            raise ValueError(f"axis {axis!r}: a .vtu file holds the whole shape and nothing else: {what}")
    found = mesh(domain.shape, {axis: axes[axis].size for axis in space})
    points = np.hstack([found.nodes, np.broadcast_to([float(axes[a]) for a in further], (len(found.nodes), len(further)))])
    values = solution.at(points)
    return unstructured(found, _with_vectors({n: values[:, k] for k, n in enumerate(solution.unknowns)}, vectors))


def _with_vectors(arrays: dict[str, np.ndarray], vectors: Mapping[str, tuple[str, ...]]) -> dict[str, np.ndarray]:
    out = dict(arrays)
    for name, members in vectors.items():
        columns = [arrays[m] for m in members]
        out[name] = np.stack([*columns, *[np.zeros_like(columns[0])] * (3 - len(columns))], axis=1)
    return out


def _rectilinear(solution: Solution, axes: Grid, vectors: Mapping[str, tuple[str, ...]]) -> bytes:
    kept = [a for a in axes.values() if a.ndim]
    if not 1 <= len(kept) <= 3:
        names = ", ".join(axis for axis, a in axes.items() if a.ndim)
        raise ValueError(f"a VTK grid has one to three axes, not {names or 'none'}: cut the others, x4=0.5 for example")
    unknowns = on_grid(solution, axes)
    arrays = {name: unknowns[name].ravel(order="F") for name in unknowns}  # VTK: the first axis is fastest
    arrays = _with_vectors(arrays, vectors)
    kept += [np.zeros(1)] * (3 - len(kept))
    extent = " ".join(f"0 {a.size - 1}" for a in kept)
    data = "".join(_data_array(name, values) for name, values in arrays.items())
    coordinates = "".join(_data_array(axis, a) for axis, a in zip("xyz", kept, strict=True))
    body = f'<RectilinearGrid WholeExtent="{extent}"><Piece Extent="{extent}">'
    body += f"<PointData>{data}</PointData><Coordinates>{coordinates}</Coordinates></Piece></RectilinearGrid>"
    return _document("RectilinearGrid", body).encode()


def _data_array(name: str, values: np.ndarray) -> str:
    kind = "Float32" if values.dtype == np.float32 else "Float64"
    payload = values.astype("<f4" if kind == "Float32" else "<f8").tobytes()
    text = base64.b64encode(len(payload).to_bytes(8, "little") + payload).decode()
    components = values.shape[1] if values.ndim == 2 else 1
    attributes = f'type="{kind}" Name={quoteattr(name)} NumberOfComponents="{components}" format="binary"'
    return f"<DataArray {attributes}>{text}</DataArray>"


def _document(kind: str, body: str) -> str:
    attributes = 'version="1.0" byte_order="LittleEndian" header_type="UInt64"'
    return f'<?xml version="1.0"?>\n<VTKFile type="{kind}" {attributes}>{body}</VTKFile>\n'


# --- a function without dsgnar ----------------------------------------------------------------------------------------


@x64
def export(solution: Solution, path: str | Path) -> None:
    """The solution as a StableHLO function of named coordinate arrays, for any number of points and any device."""
    _need("flatbuffers", "export")
    domain, dtype = solution.problem.domain, solution.thetas.dtype
    (count,) = jax.export.symbolic_shape("n")
    columns = {axis: jax.ShapeDtypeStruct((count,), dtype) for axis in domain.axes}
    exported = jax.export.export(jax.jit(_function(solution)), platforms=PLATFORMS)(**columns)
    Path(path).write_bytes(exported.serialize(vjp_order=1))


def _function(solution: Solution):
    """Named coordinate arrays -> dictionary of unknowns, with the parameters as constants."""
    domain, thetas = solution.problem.domain, jnp.asarray(solution.thetas)
    starts = jnp.asarray((-jnp.inf, *solution.march.times[1:-1]), thetas.dtype)  # of the time intervals
    time = 0 if domain.time is None else domain.index(domain.time)
    local, count = solution.residuals.ansatz.local, len(solution.thetas)
    places = jnp.asarray([solution.model.place(k) if local else (0.0, 0.0) for k in range(count)], thetas.dtype)

    def function(**columns: jax.Array) -> dict[str, jax.Array]:
        points = jnp.stack([columns[axis] for axis in domain.axes], axis=1)

        def piece(values, of):
            theta, start, place = of
            begun = points[:, time, None] > start
            network = solution.residuals.network(theta, place if solution.residuals.ansatz.local else None)
            return jnp.where(begun, jax.vmap(network)(points), values), None

        nothing = jnp.full((points.shape[0], len(solution.unknowns)), jnp.nan, thetas.dtype)
        values = jax.lax.scan(piece, nothing, (thetas, starts, places))[0]
        return {name: values[:, i] for i, name in enumerate(solution.unknowns)}

    return function
