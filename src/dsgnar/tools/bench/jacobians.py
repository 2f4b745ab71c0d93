"""Table 2 of the paper: the time to build Jacobians of N residuals of Burgers' equation by d parameters.

    naive        jax.jacfwd or jax.jacrev of all residuals at once
    sub          b' = 4 columns (fwd) or rows (rev) at a time
    macro        the same within b = 2^12 points at a time
    countsketch  the paper's "CS + rev": rows by reverse mode, compressed to s rows by CountSketch with 4 hashes
    buckets      what `fast` does instead: gradients of s bucket sums

The first three end with all N x d numbers, the others with s x d, and no column sketch (as in the paper). Only the equation
itself is taken, at N points, in single precision. Each cell is measured in its own process, with limits of time and memory,
and stored at once; a stored cell is not measured again.

The paper does not say which networks have 104,003 and 252,503 parameters. The networks here have exactly as many.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.networks import MLP, Inputs
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.sketch import AllColumns, Buckets, CountSketch
from dsgnar.problem.sampling import sample
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.suite import burgers
from dsgnar.tools.bench import isolated, machine

SUB, MACRO = 4, 2**12  # b' and b
FULL = ("naive-fwd", "naive-rev", "sub-fwd", "sub-rev", "macro-fwd", "macro-rev")
SKETCHED = ("countsketch", "buckets")
COLUMNS = (*FULL, *SKETCHED)
FILE, EARLIER = "jacobians.json", "table1.json"  # where cells are stored, and where they were before


@dataclass(frozen=True)
class Size:
    """A row of the table."""

    points: int
    parameters: int
    widths: tuple[int, ...]
    sketch: int
    paper: tuple[str, ...] = ()  # the paper's times on an H100, column by column; it has no buckets


_OOM = ("OOM",) * 6
_SMALL, _LARGE, _LARGEST = (16,) * 6, (159, 160, 160, 161, 160), (249, 250, 250, 251, 250)
# The caption names s = 10,000 for the large networks; for the small one 700 is what the paper solves Burgers with.
ROWS = (
    Size(2**12, 1447, _SMALL, 700, ("0.019", "0.101", "0.021", "0.001", "0.021", "0.001", "0.001")),
    Size(2**14, 1447, _SMALL, 700, ("OOM", "OOM", "0.077", "0.002", "0.080", "0.003", "0.003")),
    Size(2**16, 1447, _SMALL, 700, ("OOM", "OOM", "OOM", "0.006", "0.320", "0.010", "0.011")),
    Size(2**18, 1447, _SMALL, 700, ("OOM", "OOM", "OOM", "0.030", "1.302", "0.039", "0.041")),
    Size(2**20, 1447, _SMALL, 700, ("OOM", "OOM", "OOM", "OOM", "5.205", "0.153", "0.163")),
    Size(2**20, 104_003, _LARGE, 10_000, (*_OOM, "3.127")),
    Size(2**20, 252_503, _LARGEST, 10_000, (*_OOM, "7.799")),
)
QUICK = (Size(2**8, 115, (8, 8), 40), Size(2**9, 115, (8, 8), 40))


@dataclass(frozen=True)
class Limits:
    """Of each cell."""

    seconds: float
    gibibytes: float | None
    repeats: int = 3


@dataclass(frozen=True)
class Cell:
    """What was measured, or why it was not."""

    points: int
    parameters: int
    column: str
    ended: str  # as in `isolated`
    first: float | None = None  # seconds of the first call, which compiles
    seconds: tuple[float, ...] = ()  # of the calls after it
    peak: float = 0.0  # GiB
    limits: dict[str, Any] = field(default_factory=dict)
    message: str = ""

    def __str__(self) -> str:
        if self.seconds:
            return f"{np.median(self.seconds):.3g} s, {self.peak:.2g} GiB"
        if self.first is not None:
            return f"{self.first:.3g} s with compiling, {self.peak:.2g} GiB"
        reason = {"memory": "> {gibibytes:.3g} GiB", "time": "> {seconds:.0f} s"}.get(self.ended, self.ended)
        return reason.format(**self.limits)


def table(
    directory: Path, limits: Limits, sizes: Sequence[Size] = ROWS, columns: Sequence[str] = COLUMNS
) -> Iterator[tuple[Size, Cell]]:
    """Measure the cells that are missing, and store each at once."""
    unknown = [column for column in columns if column not in COLUMNS]
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r}; there are {', '.join(COLUMNS)}")
    stored = Store.of(directory / FILE)
    for size in sizes:
        for column in columns:
            cell = stored.get(size, column)
            if cell is None or _may_go_further(cell, limits):
                cell = measure(size, column, limits)
                stored.put(cell)
            yield size, cell


def _may_go_further(cell: Cell, limits: Limits) -> bool:
    """Whether to try again: a cell that hit a limit, with a larger one; a failed cell in any case."""
    before = Limits(**cell.limits)
    if cell.ended == "memory":
        return before.gibibytes is not None and (limits.gibibytes is None or limits.gibibytes > 1.1 * before.gibibytes)
    if cell.ended == "time":
        return limits.seconds > before.seconds
    return cell.ended == "failed"


def measure(size: Size, column: str, limits: Limits) -> Cell:
    """One cell, in its own process."""
    cell = partial(Cell, size.points, size.parameters, column, limits=dataclasses.asdict(limits))
    rows = size.points if column in FULL else size.sketch
    least = 4 * rows * size.parameters / 2**30
    if limits.gibibytes is not None and least > limits.gibibytes:
        return cell("memory", message=f"the result alone takes {least:.1f} GiB")
    outcome = isolated.call(
        calls, size.points, size.widths, size.sketch, column, limits.repeats,
        seconds=limits.seconds, gibibytes=limits.gibibytes,
    )  # fmt: skip
    first, *seconds = outcome.values or [None]
    return cell(outcome.ended, first, tuple(seconds), round(outcome.peak, 3), message=outcome.message)


@dataclass(frozen=True)
class Store:
    """Cells in a file, by size and column."""

    path: Path
    cells: dict[tuple[int, int, str], Cell]

    @classmethod
    def of(cls, path: Path) -> "Store":
        path.parent.mkdir(parents=True, exist_ok=True)
        known = next((p for p in (path, path.with_name(EARLIER)) if p.exists()), None)
        if known is None:
            return cls(path, {})
        data, here = json.loads(known.read_text()), machine.key(machine.describe())
        if data["machine"] != here:
            raise ValueError(f"{known} was measured on another machine ({data['machine']}); give another directory")
        cells = [Cell(**{**cell, "seconds": tuple(cell["seconds"])}) for cell in data["cells"]]
        return cls(path, {(cell.points, cell.parameters, cell.column): cell for cell in cells})

    def get(self, size: Size, column: str) -> Cell | None:
        return self.cells.get((size.points, size.parameters, column))

    def put(self, cell: Cell) -> None:
        self.cells[cell.points, cell.parameters, cell.column] = cell
        here = machine.describe()
        data = {"machine": machine.key(here), "environment": here}
        data["cells"] = [dataclasses.asdict(cell) for cell in self.cells.values()]
        write_atomically(self.path, (json.dumps(data, indent=1) + "\n").encode())


def markdown(measured: Sequence[tuple[Size, Cell]]) -> str:
    """The table: seconds and peak memory here, and under them the paper's seconds on an H100."""
    columns = [column for column in COLUMNS if any(cell.column == column for _, cell in measured)]
    lines = ["| N | d | s | " + " | ".join(columns) + " |", "|---" * (len(columns) + 3) + "|"]
    for size in dict.fromkeys(size for size, _ in measured):
        cells = {cell.column: cell for other, cell in measured if other == size}
        known = dict(zip(COLUMNS, (f"{t} s" if t != "OOM" else t for t in size.paper), strict=False))
        texts = [f"{cells.get(c, '')}<br>(H100: {known[c]})" if c in known else f"{cells.get(c, '')}" for c in columns]
        exponent = f"2^{size.points.bit_length() - 1}"
        lines.append(f"| {exponent} | {size.parameters:,} | {size.sketch:,} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


# --- what is timed ----------------------------------------------------------------------------------------------------


@x64
def builder(points: int, widths: Sequence[int], sketch: int, column: str) -> Callable[[], Any]:
    """A function that builds the Jacobian of a column once, and waits for it."""
    problem = burgers.problem()
    problem = dataclasses.replace(problem, conditions={"pde": problem.conditions["pde"]})
    inputs = Inputs(problem.domain.bounds, 1, (0,))
    network = MLP(tuple(widths)).build(inputs, 1, key=jax.random.key(0), dtype=np.float32)
    residuals, theta = Residuals.of(problem, network)
    part = problem.conditions["pde"].part
    x = sample(part, problem.domain, points, stream(0, "jacobians")).astype(np.float32)
    if column in SKETCHED:
        rows = CountSketch(sketch) if column == "countsketch" else Buckets(sketch)
        jacobian = Jacobian(residuals, rows, AllColumns())
        return lambda: jax.block_until_ready(jacobian(theta, (x,), np.ones(1), stream(0, "sketch")).jacobian)
    x = jnp.asarray(x)
    build = jax.jit(partial(_FULL[column], partial(residuals.at_point, "pde")))
    if not column.startswith("macro"):
        return lambda: build(theta, x).block_until_ready()
    return lambda: _macro(build, theta, x, column)


def calls(points: int, widths: Sequence[int], sketch: int, column: str, repeats: int) -> Iterator[float]:
    """Seconds of the first call, and of `repeats` more."""
    build = x64(builder(points, widths, sketch, column))
    for _ in range(repeats + 1):
        start = time.perf_counter()
        build()
        yield time.perf_counter() - start


def _all(residual: Callable, x: jax.Array) -> Callable:
    return lambda theta: jax.vmap(partial(residual, theta))(x)


def _naive_fwd(residual: Callable, theta: jax.Array, x: jax.Array) -> jax.Array:
    return jax.jacfwd(_all(residual, x))(theta)


def _naive_rev(residual: Callable, theta: jax.Array, x: jax.Array) -> jax.Array:
    return jax.jacrev(_all(residual, x))(theta)


def _sub_fwd(residual: Callable, theta: jax.Array, x: jax.Array) -> jax.Array:
    """The transposed Jacobian: columns come as rows."""

    def column(i):
        return jax.jvp(_all(residual, x), (theta,), (jnp.zeros_like(theta).at[i].set(1),))[1]

    return jax.lax.map(column, jnp.arange(theta.size), batch_size=SUB)


def _sub_rev(residual: Callable, theta: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.map(partial(jax.grad(residual), theta), x, batch_size=SUB)


_FULL = {
    "naive-fwd": _naive_fwd,
    "naive-rev": _naive_rev,
    "sub-fwd": _sub_fwd,
    "sub-rev": _sub_rev,
    "macro-fwd": _sub_fwd,
    "macro-rev": _sub_rev,
}


def _macro(build: Callable, theta: jax.Array, x: jax.Array, column: str) -> np.ndarray:
    """The whole Jacobian on the host, from macro-batches."""
    out = np.empty((x.shape[0], theta.size), np.float32)
    for start in range(0, x.shape[0], MACRO):
        block = np.asarray(build(theta, x[start : start + MACRO]))
        out[start : start + MACRO] = block.T if column == "macro-fwd" else block
    return out
