"""Do the error bars hold? Burgers' viscosity from 100 values with 1 % noise, for many draws of the noise.

    u_t + u u_x = nu u_xx,  u(x, 0) = -sin(pi x),  periodic on [-1, 1],  t in [0, 1],  nu = 0.01

For each draw points and noise are new, nu begins at 0.1, and `ds.solve(problem)` has no settings. A draw is a row of the
table; draws that are there already are not repeated, so a run that was stopped goes on.

    python benchmarks/coverage.py --draws 100 --table runs/coverage.csv

A draw takes about 40 s of processor time. The last line says in how many draws the 95 % interval holds the true value.
"""

import argparse
import csv
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import dsgnar as ds
from dsgnar.suite.burgers import VISCOSITY, exact

COLUMNS = (
    "draw",
    "value",
    "standard_error",
    "low",
    "high",
    "holds",
    "misfit",
    "distance",
    "verdict",
    "solve",
    "wall",
    "cpu",
)
NOISE, COUNT = 0.01, 100


def problem(draw: int, start: float = 0.1) -> ds.Problem:
    """The equation with measurements of its exact solution."""
    rng = np.random.default_rng([18, draw])
    x, t = rng.uniform(-1, 1, COUNT), rng.uniform(0, 1, COUNT)
    values = exact(x, t) + NOISE * rng.normal(size=COUNT)
    return ds.Problem(
        domain=ds.Box(x=(-1, 1), t=(0, 1)),
        unknowns=("u",),
        coefficients={"nu": ds.Coefficient(start, positive=True)},
        conditions={
            "pde": ds.interior(lambda u, nu: u.t + u * u.x - nu * u.xx),
            "ic": ds.initial(lambda u, x: u + jnp.sin(jnp.pi * x)),
            "data": ds.data(lambda u: u, at={"x": x, "t": t}, values=values, noise=NOISE),
        },
        periodic=("x",),
    )


def measure(draw: int) -> dict:
    """One draw."""
    wall, cpu = time.perf_counter(), time.process_time()
    solution = ds.solve(problem(draw))
    found, outcome = solution.coefficients["nu"], solution.outcome
    assert outcome is not None and outcome.inference is not None
    known = found.determined and found.standard_error is not None
    low, high = found.interval(0.95) if known else (float("nan"), float("nan"))
    fit = outcome.inference.fits["data"]
    return dict(
        draw=draw, value=found.value, standard_error=found.standard_error, low=low, high=high,
        holds=int(low <= VISCOSITY <= high), misfit=fit.misfit / fit.noise, distance=outcome.inference.distance,
        verdict=solution.verdict, solve=round(outcome.seconds["solve"], 1),
        wall=round(time.perf_counter() - wall, 1), cpu=round(time.process_time() - cpu, 1),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95 % intervals.")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--table", type=Path, default=Path("runs/coverage.csv"))
    given = parser.parse_args()
    given.table.parent.mkdir(parents=True, exist_ok=True)
    if not given.table.exists():
        given.table.write_text(",".join(COLUMNS) + "\n")
    done = {int(row["draw"]) for row in csv.DictReader(given.table.open())}
    for draw in (d for d in range(given.draws) if d not in done):
        row = measure(draw)
        with given.table.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerow(row)
        print(row, flush=True)
    rows = list(csv.DictReader(given.table.open()))
    holds = [int(row["holds"]) for row in rows]
    off = np.array([(float(row["value"]) - VISCOSITY) / float(row["standard_error"]) for row in rows if row["value"]])
    print(f"{sum(holds)} of {len(holds)} intervals hold the true value ({100 * np.mean(holds):.0f} %)")
    print(f"errors over standard errors: mean {off.mean():.2f}, root mean square {np.sqrt(np.mean(off**2)):.2f}")
    print(f"processor seconds: {np.median([float(row['cpu']) for row in rows]):.0f} (median)")


if __name__ == "__main__":
    main()
