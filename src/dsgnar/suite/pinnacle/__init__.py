"""An outside measure: the cases of the PINNacle benchmark (arXiv 2306.08827; github.com/i207M/PINNacle, commit 6f8d69c)
whose statement, data and reference agree, on boxes (`statements.py`) and on other domains (`shaped.py`), and those that seek
a field (`fields.py`). None of the benchmark's files is part of this package.

Published errors are second-hand, from summaries of two papers: PINNacle's own best, and that of PELINE (2026).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dsgnar.problem import Problem
from dsgnar.problem.reference import Reference
from dsgnar.suite.pinnacle import fields, shaped, solutions, statements, surrounded
from dsgnar.suite.pinnacle.measure import File, Values, Yardstick, backwards, inner


@dataclass(frozen=True)
class Case:
    """A case: its statement, our reference, and what the benchmark compares with, a file or a formula on its grid."""

    name: str
    equation: str  # in words and signs, for the table
    problem: Callable[[], Problem]
    reference: Callable[[], Reference]
    anywhere: Values  # our solution at any points
    published: tuple[float, float]  # second-hand
    file: File | None = None
    formula: Callable[[], Yardstick] | None = None
    floor: float | None = None  # what the solution scores there, as we measured it; 0 for a formula that holds
    cost: str = ""  # of our reference, on one core
    note: str = ""

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Points of the benchmark's domain as points of the domain that is solved on."""
        problem, out = self.problem(), np.array(points, np.float64)
        for axis in problem.periodic:
            k = problem.domain.index(axis)
            lower, upper = problem.domain.bounds[k]
            out[:, k] = lower + np.mod(out[:, k] - lower, upper - lower)
        return out


def _wave_grid() -> Yardstick:
    return Yardstick.of({"x": inner(50), "t": inner(50)}, solutions.wave_)


def _heat_grid() -> Yardstick:
    return Yardstick.of({"x": inner(8), "y": inner(8), "t": backwards(313, 5.0)}, solutions.heat_multiscale)


def _poisson_grid() -> Yardstick:
    return Yardstick.of({f"x{i}": inner(8) for i in range(1, 6)}, solutions.poisson)


_ALL = (
    Case(
        "Burgers1d-C",
        "u_t + u u_x = (0.01/π) u_xx",
        statements.burgers1d,
        solutions.burgers1d_table,
        solutions.burgers1d,
        (1.45e-2, 1.34e-2),
        File("ref/burgers1d.dat", 2, 1, wide=True),
        floor=1.33e-2,
    ),
    Case(
        "Burgers2d-C",
        "u_t + u u_x + v u_y = 0.001 Δu, v likewise",
        statements.burgers2d_,
        solutions.burgers2d_table,
        solutions.burgers2d_,
        (2.60e-1, 4.13e-1),
        File("ref/burgers2d_0.dat", 3, 2, wide=True),
        cost="under ten minutes",
        note="posed on [0, 4]²; solved on [0, 1]², periodic: the initial value has the period 1, so it is the same solution",
    ),
    Case(
        "Heat2d-MS",
        "u_t = u_xx/(500π)² + u_yy/π²",
        statements.heat_multiscale,
        solutions.heat_multiscale_table,
        solutions.heat_multiscale,
        (6.21e-2, 1.27e-1),
        formula=_heat_grid,
        floor=0.0,
        note="on the benchmark's grid, x = k/9, sin(20πx) equals sin(2πx): it cannot tell the fast wave from a slow one",
    ),
    Case(
        "Heat2d-LT",
        "u_t = 0.001 Δu + 5 sin(u²) (1 + 2 sin(πt/4)) sin(4πx) sin(2πy)",
        statements.heat_longtime_,
        solutions.heat_longtime_table,
        solutions.heat_longtime_,
        (9.99e-1, 9.98e-1),
        File("ref/heat_longtime.dat", 3, 1, wide=True),
        floor=3.5e-2,
        cost="a minute and a half",
    ),
    Case(
        "NS2d-C",
        "steady Navier-Stokes, Re = 100, lid 4x(1-x), p(0, 0) = 0",
        statements.cavity,
        solutions.cavity_table,
        solutions.cavity,
        (3.60e-2, 4.40e-2),
        File("ref/lid_driven_a4.dat", 2, 3, left_out=((0.0, 1.0), (1.0, 1.0))),
        floor=5.1e-4,
        note="the file's nodes at the two upper corners are left out: the pressure is infinite there",
    ),
    Case(
        "Wave1d-C",
        "u_tt = 4 u_xx",
        statements.wave,
        solutions.wave_table,
        solutions.wave_,
        (9.79e-2, 6.47e-2),
        formula=_wave_grid,
        floor=0.0,
    ),
    Case(
        "KS",
        "u_t + (100/16) u u_x + (100/16²) u_xx + (100/16⁴) u_xxxx = 0",
        statements.ks,
        solutions.ks_table,
        solutions.ks_,
        (9.57e-1, 9.46e-1),
        File("ref/Kuramoto_Sivashinsky.dat", 2, 1),
        cost="half a minute",
        note="the benchmark states no boundary condition; periodic here",
    ),
    Case(
        "PNd",
        "Δu + (π²/4) Σ sin(πx_i/2) = 0 in 5D",
        statements.poisson,
        solutions.poisson_table,
        solutions.poisson,
        (4.67e-4, 2.37e-4),
        formula=_poisson_grid,
        floor=0.0,
    ),
    Case(
        "Poisson2d-C",
        "Δu = 0 around four discs",
        shaped.poisson_classic,
        surrounded.classic_table,
        surrounded.classic,
        (1.23e-2, 3.10e-1),
        File("ref/poisson1_cg_data.dat", 2, 1),
        cost="a second",
    ),
    Case(
        "Poisson2d-CG",
        "-Δu + 64 u = 10 (17 + x² + y²) sin(πx) sin(4πy) around four discs",
        shaped.poisson_uneven,
        surrounded.uneven_table,
        surrounded.uneven,
        (1.43e-2, 4.11e-3),
        File("ref/poisson_boltzmann2d.dat", 2, 1),
        cost="ten seconds",
    ),
    Case(
        "Poisson3d-CG",
        "-Δu + k² u = f around four balls, k = 8 below z = 1/2 and 10 above, no flux",
        shaped.poisson3d,
        surrounded.poisson3d_table,
        surrounded.poisson3d,
        (9.47e-2, 5.67e-2),
        File("ref/poisson_3d.dat", 3, 1),
        cost="under a minute",
    ),
    Case(
        "Heat2d-CG",
        "u_t = Δu around 17 discs that warm it",
        shaped.heat,
        surrounded.heat_table,
        surrounded.heat,
        (2.39e-2, 1.58e-2),
        File("ref/heat_complex.dat", 3, 1, wide=True),
        cost="two minutes",
    ),
    Case(
        "HNd",
        "u_t = Δu/5 - |x|² exp(|x|²/2 + t)/5 in the ball in 5D",
        shaped.heat_ball,
        surrounded.heat_ball_table,
        surrounded.heat_ball,
        (1.19e-4, 2.49e-4),
        formula=surrounded.heat_ball_points,
        floor=0.0,
        note="the benchmark draws its 800 points of the ball at random; these are others",
    ),
    Case(
        "PInv",
        "div(a grad u) + f = 0, a from values of u with noise 0.1 (source repaired)",
        fields.steady,
        fields.steady_table,
        fields.steady_exact,
        (2.45e-2, 1.53e-2),
        formula=fields.steady_grid,
        floor=0.0,
        note="the published figures may be for the source as it is coded, which belongs to another solution, or for u alone",
    ),
    Case(
        "HInv",
        "u_t = div(a grad u) + f, a(x, y) from values of u with noise 0.1",
        fields.moving,
        fields.moving_table,
        fields.moving_exact,
        (5.26e-2, 3.77e-2),
        formula=fields.moving_grid,
        floor=0.0,
        note="the 2,500 points of the values are drawn here, not the benchmark's",
    ),
)
CASES: dict[str, Case] = {case.name: case for case in _ALL}

__all__ = ["CASES", "Case", "File", "Yardstick"]
