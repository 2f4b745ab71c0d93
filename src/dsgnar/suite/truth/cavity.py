"""The lid-driven cavity: velocity and pressure on a grid, and how they are checked (Appendix C.7).

u u_x + v u_y + p_x = lap(u) / Re, u v_x + v v_y + p_y = lap(v) / Re, u_x + v_y = 0 in the unit square; the lid y = 1
moves at 4 x (1 - x), the other walls rest. The table comes from `cavity_spectral.py`; the pressure has zero mean over the
table. Checks: half the basis functions, and finite elements in other variables (`cavity_elements.py`), which must find the
same extreme velocities on the centre lines.
"""

import numpy as np
from scipy.optimize import minimize_scalar

from dsgnar.problem.reference import interior_grid
from dsgnar.suite.truth import cavity_elements, cavity_spectral
from dsgnar.suite.truth.cavity_elements import ElementFlow
from dsgnar.suite.truth.cavity_spectral import Flow
from dsgnar.suite.truth.spectral import relative
from dsgnar.suite.truth.table import Comparison, Table

SIZE = 96  # basis functions per direction
GRID = 100  # points per direction, as in the paper's reference
CELLS = 16  # finite elements per direction


def flow(reynolds: float, size: int) -> Flow:
    """The flow, approached through smaller Reynolds numbers (doubling) and bases, where a Newton step is cheap."""
    start, small = None, min(size, 32)
    for number in reynolds / 2.0 ** np.arange(max(0, np.ceil(np.log2(reynolds / 100))), -1, -1):
        start = cavity_spectral.solve(float(number), small, start).coefficients
    return cavity_spectral.solve(reynolds, size, start)


def compute(reynolds: float = 100.0, size: int = SIZE) -> Table:
    """u, v and p on 100 x 100 points; the accuracy is that of the worse velocity, against two thirds of the basis."""
    values = _on_grid(flow(reynolds, size))
    coarser = _on_grid(flow(reynolds, 2 * size // 3))
    metadata = {
        "equation": "steady Navier-Stokes in the unit square, lid y = 1 at u = 4 x (1 - x)",
        "parameters": {"reynolds": reynolds},
        "method": f"Legendre-Galerkin in the stream function, {size} x {size}, corner singularities taken out",
        "accuracy": max(relative(coarser[name], values[name]) for name in ("u", "v")),
        "extrema": extrema(flow(reynolds, size // 2)),
    }
    grid = interior_grid(0, 1, GRID)
    return Table({"x": grid, "y": grid}, values, metadata)


def _on_grid(flow: Flow) -> dict[str, np.ndarray]:
    grid = interior_grid(0, 1, GRID)
    u, v = flow.velocity(grid, grid)
    p = flow.pressure(grid, grid)
    return {"u": u, "v": v, "p": p - p.mean()}


def extrema(flow: Flow | ElementFlow) -> dict[str, float]:
    """The least u on x = 1/2, and the greatest and least v on y = 1/2."""
    half = np.array([0.5])
    u = lambda y: flow.velocity(half, np.atleast_1d(y))[0][0]
    v = lambda x: flow.velocity(np.atleast_1d(x), half)[1][:, 0]
    return {"least u": _least(u), "greatest v": -_least(lambda x: -v(x)), "least v": _least(v)}


def _least(f) -> float:
    s = np.linspace(0, 1, 201)
    best = s[np.argmin(f(s))]
    found = minimize_scalar(lambda z: float(f(z)[0]), bounds=(best - 0.005, best + 0.005), method="bounded")
    return float(found.fun)  # type: ignore[attr-defined]


def check(stored: Table) -> list[Comparison]:
    """Compare a table, for its own parameters, with half the basis and with finite elements."""
    reynolds, grid = stored.metadata["parameters"]["reynolds"], stored.axes["x"]
    half = flow(reynolds, SIZE // 2)
    values = _on_grid(half)
    elements = cavity_elements.solve(reynolds, CELLS)
    u, v = elements.velocity(grid, grid)
    ours, theirs = extrema(half), extrema(elements)
    both = lambda u, v: np.stack([u, v])
    velocity = both(stored.values["u"], stored.values["v"])
    return [
        Comparison("half the basis, velocity", relative(both(values["u"], values["v"]), velocity), 1e-7),
        Comparison("half the basis, pressure", relative(values["p"], stored.values["p"]), 1e-5),
        Comparison("finite elements, velocity", relative(both(u, v), velocity), 1e-5),
        *(
            Comparison(f"finite elements, {name} on the centre line", abs(theirs[name] / ours[name] - 1), 1e-5)
            for name in ours
        ),
    ]
