"""The check on Burgers' exact solution (Appendix C.1): the Cole-Hopf quadrature against a Fourier solution by DOP853.

u_t + u u_x = nu u_xx, u(x, 0) = -sin(pi x), periodic on [-1, 1]: the symbol is l_k = -nu k^2. 1024 points, as in the paper.
"""

import numpy as np

from dsgnar.problem.reference import interior_grid
from dsgnar.suite.burgers import VISCOSITY, exact
from dsgnar.suite.truth.spectral import Equation, dop853, evaluate, relative
from dsgnar.suite.truth.table import Comparison


def check(viscosity: float = VISCOSITY, points: int = 1024) -> list[Comparison]:
    """The relative l2 difference over 256 x 16 points."""
    equation = Equation.of(points, 2, 1.0, lambda k: -viscosity * k**2)
    x, t = interior_grid(-1, 1, 256), interior_grid(0, 1, 16)
    u = dop853(equation, equation.state({1: 0.5j}), t)
    there = exact(*np.meshgrid(x, t, indexing="ij"), viscosity)
    what = f"Cole-Hopf and Fourier with DOP853, {points} points"
    return [Comparison(what, relative(evaluate(u, equation.wavenumbers, x).T, there), 1e-13)]
