"""How much sooner one Taylor-mode pass is than nested differentiation.

For each problem the mean square of the residual and its gradient by the parameters are computed in both ways, on the same
points, batch by batch as in training. The table shows run times (the least of several; the two ways take turns, so
that a busy machine hits both), their ratio nested/Taylor, and the times to compile.

    Burgers          u_t + u u_x - nu u_xx                   MLP 16 x 6, float32
    KdV              u_t + u u_x + mu^2 u_xxx                Siren 40 x 4, float64
    KS               u_t + a u u_x + b u_xx + c u_xxxx       Siren 40 x 4, float64
    10D Laplacian    laplacian(u) - f                        MLP 40 x 3 and SPINN of rank 40, float64

Compiling the nested gradient of the SPINN takes minutes; it is left out unless asked for.

    python benchmarks/derivatives.py [--points 8192] [--repeats 10] [--only KS] [--all]
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.networks import MLP, SPINN, Architecture, Inputs, Siren
from dsgnar.optimise.residuals import BATCH, Residuals
from dsgnar.problem import Problem, interior
from dsgnar.problem.domain import Box, Interior
from dsgnar.problem.fields import laplacian
from dsgnar.problem.sampling import sample
from dsgnar.suite import burgers

Times = tuple[float, float]


@dataclass(frozen=True)
class Case:
    """A problem, a network for it, and a precision."""

    name: str
    problem: Problem
    network: Architecture
    dtype: type = np.float64

    def residuals(self) -> tuple[dict[str, Residuals], jax.Array]:
        """The residuals in both ways, and the parameters."""
        domain = self.problem.domain
        time_axis = None if domain.time is None else domain.index(domain.time)
        inputs = Inputs(domain.bounds, time_axis, tuple(map(domain.index, self.problem.periodic)))
        network = self.network.build(inputs, 1, key=jax.random.key(0), dtype=self.dtype)
        taylor, theta = Residuals.of(self.problem, network, "taylor")
        return {"nested": Residuals.of(self.problem, network, "nested")[0], "taylor": taylor}, theta


def line(residual: Callable) -> Problem:
    """An equation on a periodic line."""
    return Problem(Box(x=(-1, 1), t=(0, 1)), ("u",), {"pde": interior(residual)}, periodic=("x",))


def cases() -> list[Case]:
    cube = Problem(
        Box(**{f"x{i}": (0, 1) for i in range(1, 11)}), ("u",), {"pde": interior(lambda u, x1: laplacian(u) - x1)}
    )
    return [
        Case("Burgers, MLP 16x6, float32", burgers.problem(), MLP((16,) * 6), np.float32),
        Case("KdV, Siren 40x4", line(lambda u: u.t + u * u.x + 0.022**2 * u.xxx), Siren((40,) * 4)),
        Case("KS, Siren 40x4", line(lambda u: u.t + 5 * u * u.x + 0.5 * u.xx + 0.005 * u.xxxx), Siren((40,) * 4)),
        Case("10D Laplacian, MLP 40x3", cube, MLP((40,) * 3)),
        Case("10D Laplacian, SPINN rank 40", cube, SPINN(40)),
    ]


def loss(residuals: Residuals, theta: jax.Array, batch: jax.Array) -> jax.Array:
    """The mean square of the equation's residual over one batch."""
    return jnp.mean(jax.vmap(partial(residuals.at_point, "pde", theta))(batch) ** 2)


def mean_over_batches(quantity: str, residuals: Residuals) -> Callable:
    """The loss over all batches, or its gradient, as a function of `theta` and the batches."""
    function = partial(loss, residuals) if quantity == "loss" else jax.grad(partial(loss, residuals))
    return lambda theta, batches: jnp.mean(jax.lax.map(partial(function, theta), batches), axis=0)


def compiled(function: Callable, *args) -> tuple[Callable, float]:
    """The compiled function, and how long that took."""
    start = time.perf_counter()
    executable = jax.jit(function).lower(*args).compile()
    return executable, time.perf_counter() - start


def seconds(executable: Callable, *args) -> float:
    start = time.perf_counter()
    jax.block_until_ready(executable(*args))
    return time.perf_counter() - start


@x64
def measure(case: Case, quantity: str, points: int, repeats: int, modes: tuple[str, ...]) -> dict[str, Times]:
    """(run, compile) seconds by mode."""
    both, theta = case.residuals()
    x = sample(Interior(), case.problem.domain, points, stream(0, "benchmark"))
    batches = jnp.asarray(x.astype(case.dtype).reshape(-1, BATCH, x.shape[1]))
    programs = {mode: compiled(mean_over_batches(quantity, both[mode]), theta, batches) for mode in modes}
    runs = [{mode: seconds(run, theta, batches) for mode, (run, _) in programs.items()} for _ in range(repeats + 1)]
    return {mode: (min(run[mode] for run in runs[1:]), programs[mode][1]) for mode in modes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=8192, help=f"a multiple of {BATCH}")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="only the cases whose name contains this")
    parser.add_argument("--all", action="store_true", help="also what takes minutes to compile")
    options = parser.parse_args()
    table = Table(title=f"Derivatives at {options.points:,} points: milliseconds, and seconds to compile")
    for column in ("problem and network", "of", "nested", "Taylor", "ratio", "compile nested", "compile Taylor"):
        table.add_column(column, justify="left" if column in ("problem and network", "of") else "right")
    for case in (c for c in cases() if options.only.lower() in c.name.lower()):
        for quantity in ("loss", "gradient"):
            skip = isinstance(case.network, SPINN) and quantity == "gradient" and not options.all
            modes = ("taylor",) if skip else ("nested", "taylor")
            times = measure(case, quantity, options.points, options.repeats, modes)
            run, compiling = times["taylor"]
            nested, nested_compiling = times.get("nested", (math.nan, math.nan))
            numbers = (1e3 * nested, 1e3 * run, nested / run, nested_compiling, compiling)
            table.add_row(case.name, quantity, *("-" if math.isnan(n) else f"{n:.1f}" for n in numbers))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
