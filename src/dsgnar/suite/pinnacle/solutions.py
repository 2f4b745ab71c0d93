"""Solutions of the benchmark's cases: exact, or computed here by classical methods.

Each case has a table, against which a network is measured (at points that no grid of training points contains), and a
function of any points, which shows how far the benchmark's own file is from the solution: the error that a perfect solver
would score, its floor. Where there is no formula that function computes the solution again, a little coarser than the table.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dsgnar.calculus.streams import stream
from dsgnar.problem.reference import Reference, interior_grid
from dsgnar.suite import burgers, ks, truth, wave
from dsgnar.suite.pinnacle.statements import REYNOLDS, VISCOSITY
from dsgnar.suite.poisson import SAMPLE
from dsgnar.suite.truth import burgers2d, heat_longtime
from dsgnar.suite.truth.spectral import evaluate

# The mean of the cavity's stored pressure, which is 0 there, where p(0, 0) = 0. Bases of 48 and 64 agree to 3e-7.
MEAN_PRESSURE = -0.0107186


# --- exact ------------------------------------------------------------------------------------------------------------


def burgers1d(points: np.ndarray) -> np.ndarray:
    return burgers.exact(points[:, 0], points[:, 1], VISCOSITY)[:, None]


def wave_(points: np.ndarray) -> np.ndarray:
    return wave.exact(points[:, 0], points[:, 1])[:, None]


def heat_multiscale(points: np.ndarray) -> np.ndarray:
    x, y, t = points.T
    return (np.sin(20 * np.pi * x) * np.sin(np.pi * y) * np.exp(-626 / 625 * t))[:, None]


def poisson(points: np.ndarray) -> np.ndarray:
    return np.sin(np.pi / 2 * points).sum(axis=1, keepdims=True)


def burgers1d_table() -> Reference:
    return burgers.reference(VISCOSITY)


def wave_table() -> Reference:
    return wave.reference()


def heat_multiscale_table() -> Reference:
    """On 160 x 16 x 32 points: sixteen for each period in x."""
    axes = {"x": interior_grid(0, 1, 160), "y": interior_grid(0, 1, 16), "t": interior_grid(0, 5, 32)}
    exact = lambda x, y, t: {"u": heat_multiscale(np.stack([x, y, t], 1))[:, 0]}
    return Reference.on_grid(axes, exact, 1e-14, "closed form")


def poisson_table() -> Reference:
    """At random points, as in the suite."""
    points = stream(0, "reference", 5).random((SAMPLE, 5))
    return Reference(points, {"u": poisson(points)[:, 0]}, 1e-15, "closed form")


# --- computed ---------------------------------------------------------------------------------------------------------


def burgers2d_table() -> Reference:
    return truth.load("burgers2d").reference()


def heat_longtime_table() -> Reference:
    return truth.load("heat_longtime").reference()


def ks_table() -> Reference:
    return ks.reference()


def cavity_table() -> Reference:
    """The stored flow, with p(0, 0) = 0."""
    stored = truth.load("cavity").reference()
    values = {**stored.values, "p": stored.values["p"] + MEAN_PRESSURE}
    return replace(stored, values=values, accuracy=5e-6)  # of the pressure, by its mean; the velocity is finer


def burgers2d_(points: np.ndarray) -> np.ndarray:
    """On 384 x 384 points, which are 3e-3 from the stored table with its 768 x 768 (a minute or two)."""
    torus = burgers2d.Torus(384)

    def values(nodes: np.ndarray, times: np.ndarray) -> np.ndarray:
        states = burgers2d.states(torus.size, times, dividing(times, 1 / 1000))
        return np.stack([torus.at(state, *nodes.T).T for state in states], axis=1)

    return _unfolded(points, values)


def heat_longtime_(points: np.ndarray) -> np.ndarray:
    """With 95 x 95 modes, which are 3e-4 from the solution (a quarter of a minute)."""
    series = heat_longtime.Series(96)

    def values(nodes: np.ndarray, times: np.ndarray) -> np.ndarray:
        waves_x, waves_y = (series.waves(column) for column in nodes.T)
        states = heat_longtime.states(series.size, times, dividing(times, 0.02))
        found = [np.sum((waves_x @ series.coefficients(s)) * waves_y, axis=1) for s in states]
        return np.stack(found, axis=1)[..., None]

    return _unfolded(points, values)


def ks_(points: np.ndarray) -> np.ndarray:
    """With 384 points in extended precision, as the stored table (a minute)."""
    from dsgnar.suite.truth.exponential import adams
    from dsgnar.suite.truth.ks import evolution

    made = evolution()

    def values(nodes: np.ndarray, times: np.ndarray) -> np.ndarray:
        u = made.coefficients(adams, times, made.points, dividing(times, made.step))
        waves = made.equation(made.points, np.longdouble).wavenumbers
        return evaluate(u, waves, nodes[:, 0]).T[..., None]

    return _unfolded(points, values)


def cavity(points: np.ndarray) -> np.ndarray:
    """With 32 x 32 basis functions (two seconds); not at the upper corners, where the pressure is infinite."""
    from dsgnar.suite.truth.cavity import flow

    found, origin = flow(REYNOLDS, 32), np.zeros(1)
    (x, i), (y, j) = (np.unique(column, return_inverse=True) for column in points.T)
    u, v = found.velocity(x, y)
    p = found.pressure(x, y) - found.pressure(origin, origin)
    return np.stack([field[i, j] for field in (u, v, p)], axis=1)


def _unfolded(points: np.ndarray, values: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Values at points (space, time), from a function that gives (nodes, times, outputs) for distinct ones."""
    nodes, i = np.unique(points[:, :-1], axis=0, return_inverse=True)
    times, j = np.unique(points[:, -1], return_inverse=True)
    return values(nodes, times)[i.ravel(), j.ravel()]


def dividing(times: np.ndarray, largest: float) -> float:
    """A step of at most `largest` that divides the gaps between times and the first of them, where they are even."""
    gap = float(np.diff(np.append(0.0, times[times > 0])).min())
    return gap / np.ceil(gap / largest - 1e-9)
