"""Estimates of the error against true ones, in seconds: solutions that are wrong by construction, without a solve.

    python benchmarks/estimates.py                 all of them, a few minutes
    python benchmarks/estimates.py transport5,heat

Two kinds of solutions. Of a linear problem, the one of least squares in random functions of one direction, sin(w . x + b) or
tanh(w . x + b): its residual is as small as these functions allow, as after training, and its error is what they leave. Of
waves, the exact solution with errors that travel as it does, of known frequencies and slowly changing amplitudes.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import development
import engineer
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import outsider
import textbook
import unseen
from numpy.polynomial import polynomial

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.solving.error import estimate
from dsgnar.solving.linearised import COLUMNS, Equation
from dsgnar.solving.model import Model
from dsgnar.solving.solution import Solution
from dsgnar.solving.verdict import Judge

pi, LIGHT, WALLS = jnp.pi, 299792458.0, 0.3
TANH = [np.array([0.0, 1.0])]  # derivatives of tanh as polynomials in tanh
for _ in range(4):
    TANH.append(polynomial.polymul(polynomial.polyder(TANH[-1]), np.array([1.0, 0.0, -1.0])))


@dataclass(frozen=True, eq=False)
class Ridges:
    """Random functions of one direction, as a space."""

    w: np.ndarray
    b: np.ndarray
    kind: str

    @property
    def size(self) -> int:
        return len(self.b)

    def derivative(self, xi, order):
        total, z = sum(order), xi @ self.w.T + self.b
        values = polynomial.polyval(np.tanh(z), TANH[total]) if self.kind == "tanh" else np.sin(z + np.pi / 2 * total)
        return np.prod(self.w ** np.array(order), axis=1) * values


class Layer(eqx.Module):
    """A sum of such functions, as a network."""

    w: jax.Array
    b: jax.Array
    c: jax.Array
    centre: tuple = eqx.field(static=True)
    half: tuple = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def __call__(self, x):
        z = self.w @ ((x - jnp.array(self.centre)) / jnp.array(self.half)) + self.b
        return (jnp.tanh(z) if self.kind == "tanh" else jnp.sin(z)) @ self.c


def at(problem: ds.Problem, network) -> Solution:
    """A solution of a problem with a network as it is."""
    model, theta = Model.of(problem, network, "double")
    return Solution(model, np.asarray(theta, np.float64)[None])


def least_squares(problem: ds.Problem, count: int, space: float, time: float, kind: str, seed: int) -> Solution:
    """The solution in so many random functions, which vary so fast along axes of space and along time."""
    domain, rng = problem.domain, np.random.default_rng(seed)
    fast = np.array([time if axis == domain.time else space for axis in domain.axes])
    w = rng.uniform(-fast, fast, (count, domain.dimension))
    if kind == "tanh":
        b = -np.sum(w * rng.uniform(-1, 1, w.shape), axis=1)
    else:
        b = rng.uniform(0, 2 * np.pi, count)
        w = np.where([axis in problem.periodic for axis in domain.axes], np.pi * np.round(w / np.pi), w)
    box = tuple(zip(*(((lower + upper) / 2, (upper - lower) / 2) for lower, upper in domain.bounds), strict=True))
    layer = lambda c: Layer(*map(jnp.asarray, (w, b, c)), *box, kind)
    nothing = at(problem, layer(np.zeros((count, len(problem.unknowns)))))
    enough = math.ceil(count * len(problem.unknowns) / COLUMNS)
    equation = Equation(nothing.model, nothing.thetas, Judge(nothing.residuals), richer=enough)
    _, piece, _ = equation.solve(domain, Ridges(w, b, kind), equation.rows[0], None)
    return at(problem, layer(piece.coefficients))


class Wrong(eqx.Module):
    """Errors a_n A_n(t) e_n(x, t) beside an exact solution, where every e_n solves the equations and A_n is slow."""

    name: str = eqx.field(static=True)
    a: jax.Array
    n: jax.Array
    slow: jax.Array
    phase: jax.Array

    def __call__(self, x):
        sizes = lambda t: self.a * (jnp.sin(self.slow * t + self.phase) - jnp.sin(self.phase))
        return WAVES[self.name](x, sizes, self.n, 3 * self.phase)


def _ring(x, sizes, n, phase):
    p = 2 * pi * (x[0] - x[1])
    return jnp.stack([jnp.exp(jnp.sin(p)) + jnp.sum(sizes(x[1]) * jnp.sin(n * p + phase))])


def _hump(x, sizes, n, phase):
    away, p = jnp.mod(x[0] - 2 * x[1], 10.0) - 5, 2 * pi * (x[0] - 2 * x[1]) / 10
    return jnp.stack([jnp.exp(-(away**2) / (2 * 0.4**2)) + jnp.sum(sizes(x[1]) * jnp.sin(n * p + phase))])


def _cavity(x, sizes, n, _):
    kx, kt = pi * x[0] / WALLS, pi * LIGHT * x[1] / WALLS
    every, a = jnp.append(n, jnp.array([1.0, 3.0])), jnp.append(sizes(kt), jnp.array([1.0, 0.5]))
    e = jnp.sum(a * jnp.sin(every * kx) * jnp.cos(every * kt))
    b = -jnp.sum(a * jnp.cos(every * kx) * jnp.sin(every * kt))
    return 150.0 * jnp.stack([e, b / LIGHT])


WAVES: dict[str, Callable] = {"transport5": _ring, "hump": _hump, "cavity_modes": _cavity}


def travelling(problem: ds.Problem, name: str, first: int, last: int, seed: int, slow: float, coarse: float) -> Solution:
    """Waves with errors of these numbers of periods or half-waves; and one of two, `coarse` times as large."""
    rng, n = np.random.default_rng(seed), np.arange(first, last + 1.0)
    a, drift, phase = 1e-4 * rng.normal(size=n.size), slow * rng.uniform(0.5, 1, n.size), rng.uniform(0, 2 * np.pi, n.size)
    if coarse:
        a, n = np.append(a, 1e-4 * coarse), np.append(n, 2.0)
        drift, phase = np.append(drift, slow), np.append(phase, 0.0)
    return at(problem, Wrong(name, *map(jnp.asarray, (a, n, drift, phase))))


# problem, and what is wrong with its solution: functions, their frequencies and kind, and a seed; or modes of errors
RIDGES = [
    ("transport5", 800, 20, 30, "sin", 0), ("transport5", 1300, 12, 40, "sin", 0), ("transport5", 1000, 10, 36, "sin", 1),
    ("acoustics", 600, 10, 20, "sin", 0), ("heat", 80, 4, 4, "tanh", 0), ("heat", 150, 4, 4, "tanh", 1),
    ("helmholtz", 250, 12, 12, "sin", 0), ("helmholtz", 400, 6, 6, "tanh", 0), ("helmholtz14", 700, 18, 18, "sin", 0),
    ("poisson_robin", 120, 4, 4, "tanh", 0), ("anisotropic", 150, 4, 4, "tanh", 1), ("black_scholes", 300, 6, 4, "tanh", 0),
    ("telegraph", 300, 6, 8, "tanh", 0), ("telegraph", 150, 5, 6, "sin", 0), ("heat_fast_wave", 400, 36, 6, "sin", 0),
    ("heat2d", 500, 6, 4, "sin", 1),
]  # fmt: skip
MODES = [
    ("transport5", 4, 4, 0, 1.0, 0.0), ("transport5", 1, 12, 0, 3.0, 0.0), ("hump", 1, 10, 0, 1.0, 0.0),
    ("cavity_modes", 1, 8, 0, 1.0, 0.0), ("cavity_modes", 5, 9, 1, 1.0, 0.0), ("cavity_modes", 12, 14, 1, 0.5, 0.5),
    ("cavity_modes", 14, 17, 2, 1.0, 0.2),
]  # fmt: skip


@x64
def compared(what: str, solution: Solution, reference: ds.Reference) -> str:
    """A row: the true error, the estimate, and its checks."""
    true, begun = solution.relative_l2(reference), time.process_time()
    found = estimate(solution.model, solution.thetas, Judge(solution.residuals))
    ratios = [true[name] / error for name, error in found.errors.items() if error > 0]
    worst = max(ratios, key=lambda ratio: abs(math.log(ratio)))
    cells = f"{max(true.values()):.1e}", f"{found.largest:.1e}" if found.known else "unknown", f"{worst:.2f}"
    checks = f"{found.spread:.2f}", f"{found.beyond:.2f}", f"{time.process_time() - begun:.1f}"
    return f"| {what} | {' | '.join((*cells, *checks))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Estimates of the error against true ones, without a solve.")
    parser.add_argument("names", nargs="?")
    chosen = parser.parse_args().names
    known = {module.__name__: module for module in (development, unseen, engineer, textbook, outsider)}

    find = lambda name: next(getattr(module, name) for module in known.values() if hasattr(module, name))
    wanted = lambda name: chosen is None or name in chosen.split(",")
    print("| solution | true error | estimate | ratio | spread | beyond | seconds |\n|---|---|---|---|---|---|---|")
    for name, count, space, speed, kind, seed in filter(lambda row: wanted(row[0]), RIDGES):
        problem, reference = find(name)()
        solution = x64(least_squares)(problem, count, space, speed, kind, seed)
        print(compared(f"{name}, {count} {kind}", solution, reference), flush=True)
    for name, first, last, seed, slow, coarse in filter(lambda row: wanted(row[0]), MODES):
        problem, reference = find(name)()
        solution = x64(travelling)(problem, name, first, last, seed, slow, coarse)
        beside = " and a coarse one" if coarse else ""
        print(compared(f"{name}, errors {first} to {last}{beside}", solution, reference), flush=True)


if __name__ == "__main__":
    main()
