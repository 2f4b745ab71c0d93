"""A heat equation with a source that changes sign, a case of the PINNacle benchmark (arXiv 2306.08827):

    u_t = 0.001 lap(u) + 5 sin(u^2) (1 + 2 sin(pi t / 4)) sin(4 pi x) sin(2 pi y)     in [0, 1]^2, t in [0, 100],
    u = 0 on the boundary,     u(x, y, 0) = sin(4 pi x) sin(3 pi y).

Sine series, `u = sum a_mn sin(m pi x) sin(n pi y)`, with the source on the grid of the series, and ETDRK4 in time. The
source depends on t, so t is one more component of the state, with t' = 1, which ETDRK4 solves exactly. It forms fronts
about 0.01 wide: 64, 96 and 128 modes per direction leave 3e-3, 3e-4 and 2e-5.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from dsgnar.problem.reference import interior_grid
from dsgnar.suite.truth.exponential import etdrk4
from dsgnar.suite.truth.spectral import Times, relative
from dsgnar.suite.truth.table import Comparison, Table

DIFFUSION, STRENGTH = 0.001, 5.0
SIZE, STEP = 192, 0.01  # with 128 modes twice the step changes the solution by 1.7e-5
GRID, TIMES = 32, 100


@dataclass(frozen=True, eq=False)
class Series:
    """The equation for size - 1 modes per direction. A state is their coefficients, flattened, and t."""

    size: int

    @property
    def linear(self) -> np.ndarray:
        m = np.arange(1, self.size)
        return np.append(-DIFFUSION * np.pi**2 * (m[:, None] ** 2 + m**2).ravel(), 0.0)

    @cached_property
    def _source(self) -> np.ndarray:
        x = np.arange(1, self.size) / self.size
        return STRENGTH * np.outer(np.sin(4 * np.pi * x), np.sin(2 * np.pi * x))

    def nonlinear(self, state: np.ndarray) -> np.ndarray:
        """The coefficients of the source, and t' = 1."""
        u = np.asarray(fft.dstn(self.coefficients(state), 1)) / 4
        source = self._source * np.sin(u * u) * (1 + 2 * np.sin(np.pi * state[-1] / 4))
        return np.append(np.asarray(fft.dstn(source, 1)).ravel() / self.size**2, 1.0)

    def start(self) -> np.ndarray:
        a = np.zeros((self.size - 1, self.size - 1))
        a[3, 2] = 1.0
        return np.append(a.ravel(), 0.0)

    def coefficients(self, state: np.ndarray) -> np.ndarray:
        """a_mn, from m = n = 1."""
        return state[:-1].reshape(self.size - 1, self.size - 1)

    def waves(self, x: np.ndarray) -> np.ndarray:
        """sin(m pi x), (points, modes)."""
        return np.sin(np.pi * np.outer(x, np.arange(1, self.size)))


def states(size: int, times: Times, step: float) -> np.ndarray:
    """The solution's states at times that are multiples of the step."""
    series = Series(size)
    return etdrk4(series, series.start(), times, step)


def on_grid(size: int, x: np.ndarray, times: Times, step: float) -> np.ndarray:
    """The solution on the grid x * x * times."""
    series = Series(size)
    waves = series.waves(x)
    return np.stack([waves @ series.coefficients(s) @ waves.T for s in states(size, times, step)], axis=-1)


def compute(size: int = SIZE, step: float = STEP) -> Table:
    """u on 32 x 32 x 100 points, rounded to single precision, which is finer than it is (two minutes)."""
    x, t = interior_grid(0, 1, GRID), interior_grid(0, 100, TIMES)
    metadata = {
        "equation": "u_t = 0.001 lap(u) + 5 sin(u^2) (1 + 2 sin(pi t / 4)) sin(4 pi x) sin(2 pi y), u = 0 at the walls",
        "parameters": {"diffusion": DIFFUSION, "strength": STRENGTH},
        "method": f"sine series, {size - 1} x {size - 1}, ETDRK4, step {step:g}",
        "accuracy": np.nan,  # `check` measures it
    }
    u = on_grid(size, x, t, step).astype(np.float32).astype(np.float64)
    return Table({"x": x, "y": x, "t": t}, {"u": u}, metadata)


def check(stored: Table) -> list[Comparison]:
    """Compare a table with fewer modes and longer steps; the first comparison is harsher than needed."""
    x, t = stored.axes["x"], stored.axes["t"]

    def compare(what: str, allowed: float, size: int, step: float) -> Comparison:
        return Comparison(what, relative(on_grid(size, x, t, step), stored.values["u"]), allowed)

    return [
        compare("159 x 159 modes", 3e-5, 160, STEP),
        compare("127 x 127 modes, twice the step", 1e-4, 128, 2 * STEP),
        compare("95 x 95 modes, twice the step", 1e-3, 96, 2 * STEP),
    ]
