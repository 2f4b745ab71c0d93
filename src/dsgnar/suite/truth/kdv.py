"""The Korteweg-de Vries equation (Appendix C.2 of the paper)

    u_t + eta u u_x + mu^2 u_xxx = 0,     u(x, 0) = cos(pi x),     periodic on [-1, 1].

Its symbol is l_k = i mu^2 k^3. Waves are carried and not damped, so that stability bounds the step; the last modes
of 384 points are near 1e-15 up to t = 1. See `evolution.py` for the method and its checks.
"""

from functools import partial
from typing import Any

import numpy as np

from dsgnar.suite.truth.evolution import Evolution
from dsgnar.suite.truth.exponential import adams
from dsgnar.suite.truth.spectral import Equation, dop853_integrating
from dsgnar.suite.truth.table import Comparison, Table


def evolution(
    nonlinearity: float = 1.0, dispersion: float = 0.022, points: int = 384, step: float = 2.0**-16
) -> Evolution:
    def equation(points: int, dtype: Any) -> Equation:
        return Equation.of(points, 2, nonlinearity, lambda k: 1j * dtype(dispersion) ** 2 * k**3, dtype)

    return Evolution(
        text="u_t + eta u u_x + mu^2 u_xxx = 0, u(x, 0) = cos(pi x), periodic on [-1, 1]",
        parameters={"nonlinearity": nonlinearity, "dispersion": dispersion},
        equation=equation,
        initial={1: 0.5},
        interval=(-1, 1),
        points=points,
        step=step,
    )


def compute(nonlinearity: float = 1.0, dispersion: float = 0.022, **resolution: Any) -> Table:
    """The solution on 256 x 128 points of [-1, 1] x [0, 1]; `resolution` is `points` and `step` of the computation."""
    return evolution(nonlinearity, dispersion, **resolution).table()


def check(stored: Table) -> list[Comparison]:
    """Compare a table, for its own parameters, with other computations.

    `adams` is not stable with twice the modes, hence ETDRK4 there. DOP853's error control lets modes at the edge of
    stability grow to 1e-11; the bound on its step prevents that.
    """
    e = evolution(**stored.metadata["parameters"])
    n = e.points
    compare = partial(e.compare, stored)
    return [
        compare("twice the modes, ETDRK4 extrapolated", 1e-13, lambda t: e.extrapolated(t, 2 * n, 2.0**-15)),
        compare("half the step", 1e-13, lambda t: e.coefficients(adams, t, n, e.step / 2)),
        compare(
            "DOP853 with integrating factor, double precision",
            1e-11,
            lambda t: e.coefficients(dop853_integrating, t, n, 2.0**-13, dtype=np.float64),
        ),
    ]
