"""How much sooner one Taylor-mode pass is than nested differentiation.

For each problem the mean square of the residual and its gradient with respect to the parameters are computed in both ways
on the same points, in the batches that training uses. The table shows run times (the least of several, with the two
ways taking turns, so that a busy machine hits both), compile times, and the ratio nested/Taylor.

    Burgers          u_t + u u_x - nu u_xx                   MLP 16 x 6, float32
    KdV              u_t + u u_x + mu^2 u_xxx                Siren 40 x 4, float64
    KS               u_t + a u u_x + b u_xx + c u_xxxx       Siren 40 x 4, float64
    10D Laplacian    laplacian(u) - f                        MLP 40 x 3 and SPINN of rank 40, float64

Takes about two minutes on two cores: python benchmarks/derivatives.py [--points 8192] [--repeats 10]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from dsgnar.domain import Box
from dsgnar.fields import laplacian
from dsgnar.networks import MLP, SPINN, Architecture, Inputs, Siren
from dsgnar.precision import x64
from dsgnar.problem import Problem, interior
from dsgnar.problems import burgers
from dsgnar.residuals import Residuals
from dsgnar.sampling import generator, sample


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
        return {mode: Residuals.of(self.problem, network, mode)[0] for mode in ("nested", "taylor")}, Residuals.of(
            self.problem, network
        )[1]


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
def measure(case: Case, points: int, repeats: int) -> dict[str, dict[str, tuple[float, float]]]:
    """(compile, run) seconds by quantity, then by mode."""
    both, theta = case.residuals()
    x = sample(case.problem.conditions["pde"].part, case.problem.domain, points, generator(0, case.name))
    out: dict[str, dict[str, tuple[float, float]]] = {}
    for quantity in ("loss", "gradient"):
        executables, compile_times = {}, {}
        for mode, residuals in both.items():
            (batches, count), *_ = residuals.device_points(dict.fromkeys(case.problem.conditions, x), theta.dtype)

            def loss(theta, batches, count=count, residuals=residuals):
                parts = ((batches, count),) + ((batches[:1, :1], 1),) * (len(case.problem.conditions) - 1)
                return residuals.kernel(theta, parts)[0]

            function = loss if quantity == "loss" else jax.grad(loss)
            executables[mode], compile_times[mode] = compiled(function, theta, batches)
        runs = [{mode: seconds(run, theta, batches) for mode, run in executables.items()} for _ in range(repeats + 1)]
        out[quantity] = {mode: (compile_times[mode], min(r[mode] for r in runs[1:])) for mode in both}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=8192)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="only the cases whose name contains this")
    options = parser.parse_args()
    table = Table(title=f"Nested and Taylor-mode derivatives, {options.points:,} points")
    for column in ("problem and network", "of", "nested", "Taylor", "ratio", "compile nested", "compile Taylor"):
        table.add_column(column, justify="left" if column in ("problem and network", "of") else "right")
    for case in cases():
        if options.only.lower() not in case.name.lower():
            continue
        for quantity, times in measure(case, options.points, options.repeats).items():
            (nested_compile, nested), (taylor_compile, taylor) = times["nested"], times["taylor"]
            table.add_row(
                case.name, quantity, f"{1e3 * nested:.1f} ms", f"{1e3 * taylor:.1f} ms", f"{nested / taylor:.2f}",
                f"{nested_compile:.1f} s", f"{taylor_compile:.1f} s",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
