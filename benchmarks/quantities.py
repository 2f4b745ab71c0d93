"""Quantities with closed forms: true errors against error bars, on problems of several kinds.

    python benchmarks/quantities.py                         all of them, tol=1e-3 about the first quantity of each
    python benchmarks/quantities.py annulus --tol 1e-6 --seed 1
"""

import argparse
import time

import jax.numpy as jnp
import numpy as np

import dsgnar as ds
from dsgnar.suite import burgers as shock

pi = np.pi


def heat():
    """A rod that cools: the heat through its upper end."""
    T = 0.2
    conditions = {
        "pde": ds.interior(lambda u: u.t - u.xx),
        "start": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
        "ends": ds.boundary(lambda u: u),
    }
    wall, left = ds.Boundary([("x", "upper")]), np.exp(-(pi**2) * T)
    return ds.Problem(ds.Box(x=(0, 1), t=(0, T)), ("u",), conditions), {
        "flux through an end, over time": (ds.integral(lambda u: -u.n, on=wall), (1 - left) / pi),
        "flux at t = 0.1": (ds.integral(lambda u: -u.n, on=wall, t=0.1), pi * np.exp(-(pi**2) * 0.1)),
        "mean": (ds.mean(lambda u: u), 2 / pi * (1 - left) / pi**2 / T),
    }


def burgers():
    """The steepest slope of a front, and its energy, which nobody trained for."""
    x, w = np.polynomial.legendre.leggauss(400)
    x, w = (x - 1) / 2, w / 2
    h, u = 2e-4, lambda x: float(shock.exact(x, 1.0))
    slope = (8 * (u(h) - u(-h)) - u(2 * h) + u(-2 * h)) / (12 * h)
    return shock.problem(), {
        "slope of the front": (ds.value(lambda u: u.x, x=0.0, t=1.0), slope),
        "energy at t = 1": (ds.integral(lambda u: u**2, t=1.0), float(2 * w @ shock.exact(x, np.ones_like(x)) ** 2)),
        "value": (ds.value(lambda u: u, x=0.5, t=0.7), float(shock.exact(0.5, 0.7))),
    }


def annulus():
    """Between two cylinders: the heat that the inner one gives off."""
    shape = ds.Ball(x=0, y=0, radius=1.0, name="outer") - ds.Ball(x=0, y=0, radius=0.3, name="inner")
    conditions = {
        "pde": ds.interior(lambda u: ds.laplacian(u)),
        "hot": ds.boundary(lambda u: u - 1, on="inner"),
        "cold": ds.boundary(lambda u: u, on="outer"),
    }
    log = np.log(1 / 0.3)
    mean = ((1 - 0.3**2) / 2 - 0.3**2 * log) / log / (1 - 0.3**2)
    return ds.Problem(shape, ("u",), conditions), {
        "heat given off": (ds.integral(lambda u: -u.n, on=ds.Boundary(on="outer")), 2 * pi / log),
        "through the inner wall": (ds.integral(lambda u: u.n, on=ds.Boundary(on="inner")), 2 * pi / log),
        "mean": (ds.mean(lambda u: u), mean),
    }


def plate():
    """A square with one hot edge; by symmetry a quarter of its heat is in the middle."""
    conditions = {
        "pde": ds.interior(lambda u: ds.laplacian(u)),
        "hot": ds.boundary(lambda u: u - 1, [("y", "upper")]),
        "cold": ds.boundary(lambda u: u, [("x", "lower"), ("x", "upper"), ("y", "lower")]),
    }
    return ds.Problem(ds.Box(x=(0, 1), y=(0, 1)), ("u",), conditions), {
        "temperature in the middle": (ds.value(lambda u: u, x=0.5, y=0.5), 0.25),
        "mean": (ds.mean(lambda u: u), 0.25),
    }


def pendulum():
    """An oscillator over several periods, in time intervals."""
    conditions = {
        "law": ds.interior(lambda u: u.tt + 4 * u + u.t / 5),
        "start": ds.initial(lambda u: u - 1),
        "rest": ds.initial(lambda u: u.t),
    }
    T, a, b = 10.0, 0.1, np.sqrt(4 - 0.01)
    u = lambda t: np.exp(-a * t) * (np.cos(b * t) + a / b * np.sin(b * t))
    v = lambda t: -4 / b * np.exp(-a * t) * np.sin(b * t)
    return ds.Problem(ds.Box(t=(0, T)), ("u",), conditions), {
        "work of friction": (ds.integral(lambda u: u.t**2 / 5), 2 - (v(T) ** 2 / 2 + 2 * u(T) ** 2)),
        "integral": (ds.integral(lambda u: u), -(v(T) - v(0) + (u(T) - 1) / 5) / 4),
    }


PROBLEMS = {f.__name__: f for f in (heat, burgers, annulus, plate, pendulum)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PROBLEMS), choices=[*PROBLEMS, []])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, help="of three layers; the default network where it is left out")
    parser.add_argument("--max-seconds", type=float, default=100.0)
    given = parser.parse_args()
    for name in given.names:
        problem, quantities = PROBLEMS[name]()
        start = time.perf_counter()
        first = next(iter(quantities.values()))[0]
        network = None if given.width is None else ds.MLP(widths=(given.width,) * 3)
        limits = dict(tol=given.tol, quantity=first, seed=given.seed, max_seconds=given.max_seconds)
        solution = ds.solve(problem, network=network, **limits)
        met, seconds = solution.outcome.tolerance_met, time.perf_counter() - start
        times = f"{solution.march.count} intervals, {len(solution.history)} iterations, {seconds:.0f} s"
        print(f"{name}: {solution.verdict}, tolerance {'met' if met else 'not met'}, {solution.error_estimate}, {times}")
        for words, (quantity, exact) in quantities.items():
            found = solution.quantity(quantity)
            bar, after = ("unknown", "") if found.error is None else (f"{found.error:.1e}", f"{found.corrected - exact:.1e}")
            print(f"| {name} | {words} | {found} | {found.value - exact:.1e} | {bar} | {after} |", flush=True)


if __name__ == "__main__":
    main()
