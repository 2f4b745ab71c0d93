"""Reference tables of periodic evolution equations: the part that Korteweg-de Vries and Kuramoto-Sivashinsky share.

The table is made by `adams` of order 6 in extended precision. It is compared with computations on twice the modes, with
half the step, with ETDRK4 extrapolated from two steps, `u_h/2 + (u_h/2 - u_h) / 15`, and with DOP853 in double precision,
which is of another family and in another arithmetic. The first comparison in a module's list is the accuracy that its
table states.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsgnar.problem.reference import interior_grid
from dsgnar.suite.truth.exponential import ORDER, adams, etdrk4
from dsgnar.suite.truth.spectral import EXTENDED, Equation, evaluate, relative
from dsgnar.suite.truth.table import Comparison, Table

# Rounding of the stored doubles themselves: a smaller difference means nothing.
FLOOR = 1e-15
IS_EXTENDED = np.finfo(EXTENDED).eps < 1e-18


@dataclass(frozen=True)
class Evolution:
    """An equation, `equation(points, dtype)`, with its initial modes, evaluation grid and resolution."""

    text: str
    parameters: dict[str, float]
    equation: Callable[[int, Any], Equation]
    initial: dict[int, complex]
    interval: tuple[float, float]
    points: int
    step: float
    grid: tuple[int, int] = (256, 128)

    @property
    def x(self) -> np.ndarray:
        return interior_grid(*self.interval, self.grid[0])

    @property
    def times(self) -> np.ndarray:
        return interior_grid(0, 1, self.grid[1])

    def table(self) -> Table:
        """The table. Its accuracy is estimated from the next lower even order and from the size of the last modes."""
        u = self.coefficients(adams, self.times, self.points, self.step)
        lower = self.coefficients(adams, self.times, self.points, self.step, order=ORDER - 2)
        tail = float(np.abs(u[:, -len(u[0]) // 16 :]).max() / np.abs(u).max())
        metadata = {
            "equation": self.text,
            "parameters": self.parameters,
            "method": f"Fourier series, {self.points} points, exponential Adams-Bashforth of order {ORDER}, "
            f"step {self.step:g}, extended precision",
            "accuracy": max(relative(self.on_grid(lower), self.on_grid(u)), tail, FLOOR),
        }
        return Table({"x": self.x, "t": self.times}, {"u": self.on_grid(u)}, metadata)

    def coefficients(
        self, integrator: Callable, times: np.ndarray, points: int, *args: Any, dtype: Any = EXTENDED, **options: Any
    ) -> np.ndarray:
        """Fourier coefficients at the times, as rows."""
        equation = self.equation(points, dtype)
        return integrator(equation, equation.state(self.initial), times, *args, **options)

    def on_grid(self, u: np.ndarray) -> np.ndarray:
        """The function with coefficients `u` (times, modes) as an array (x, t)."""
        return evaluate(u, self.equation(2 * u.shape[1], EXTENDED).wavenumbers, self.x).T

    def extrapolated(self, times: np.ndarray, points: int, step: float) -> np.ndarray:
        """ETDRK4 with `step` and half of it, extrapolated to order five."""
        coarse, fine = (self.coefficients(etdrk4, times, points, h) for h in (step, step / 2))
        return fine + (fine - coarse) / 15

    def compare(
        self, stored: Table, what: str, allowed: float, solve: Callable[[np.ndarray], np.ndarray]
    ) -> Comparison:
        """The difference between a table and what `solve` finds at eight of its times, from early to last."""
        some = np.arange(self.grid[1] // 8 - 1, self.grid[1], self.grid[1] // 8)
        difference = relative(self.on_grid(solve(self.times[some])), stored.values["u"][:, some])
        return Comparison(what, max(difference, FLOOR), allowed)
