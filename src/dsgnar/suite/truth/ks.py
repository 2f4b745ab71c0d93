"""The Kuramoto-Sivashinsky equation (Appendix C.4 of the paper)

    u_t + alpha u u_x + beta u_xx + gamma u_xxxx = 0,     u(x, 0) = cos x (1 + sin x),     periodic on [0, 2 pi].

Its symbol is l_k = beta k^2 - gamma k^4: long waves grow, short ones are damped. The flow is chaotic: small random changes
of the initial value were found 6e4 to 2e5 times larger at t = 1, and in double precision rounding alone leaves 1e-11 to
1e-10. Hence extended precision. The last modes of 384 points are below 1e-15. See `evolution.py` for the method and its
checks.
"""

from functools import partial
from typing import Any

import numpy as np

from dsgnar.suite.truth.evolution import IS_EXTENDED, Evolution
from dsgnar.suite.truth.exponential import adams
from dsgnar.suite.truth.spectral import Equation, dop853, pi
from dsgnar.suite.truth.table import Comparison, Table

ALPHA, BETA, GAMMA = 100 / 16, 100 / 16**2, 100 / 16**4


def evolution(
    alpha: float = ALPHA, beta: float = BETA, gamma: float = GAMMA, points: int = 384, step: float = 2.0**-15
) -> Evolution:
    def equation(points: int, dtype: Any) -> Equation:
        return Equation.of(points, 2 * pi(dtype), alpha, lambda k: beta * k**2 - gamma * k**4, dtype)

    return Evolution(
        text="u_t + alpha u u_x + beta u_xx + gamma u_xxxx = 0, u(x, 0) = cos(x) (1 + sin(x)), periodic on [0, 2 pi]",
        parameters={"alpha": alpha, "beta": beta, "gamma": gamma},
        equation=equation,
        initial={1: 0.5, 2: -0.25j},
        interval=(0, 2 * pi()),
        points=points,
        step=step,
    )


def compute(alpha: float = ALPHA, beta: float = BETA, gamma: float = GAMMA, **resolution: Any) -> Table:
    """The solution on 256 x 128 points of [0, 2 pi] x [0, 1]; `resolution` is `points` and `step` of the computation."""
    return evolution(alpha, beta, gamma, **resolution).table()


def check(stored: Table) -> list[Comparison]:
    """Compare a table, for its own parameters, with other computations.

    DOP853 is explicit and pays for every mode: 256 points, which hold the solution to 1e-10, have to do for it.
    """
    e = evolution(**stored.metadata["parameters"])
    n = e.points
    compare = partial(e.compare, stored)
    rounding = 0.0 if IS_EXTENDED else 1e-9
    return [
        compare(
            "twice the modes and half the step", 1e-12 + rounding, lambda t: e.coefficients(adams, t, 2 * n, e.step / 2)
        ),
        compare("ETDRK4 extrapolated", 1e-11 + rounding, lambda t: e.extrapolated(t, n, 2.0**-15)),
        compare(
            "DOP853, double precision, 256 points",
            1e-9,
            lambda t: e.coefficients(dop853, t, 256, dtype=np.float64),
        ),
    ]
