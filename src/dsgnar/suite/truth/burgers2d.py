"""Burgers' equations in two dimensions, a case of the PINNacle benchmark (arXiv 2306.08827), on the unit torus:

    u_t + u u_x + v u_y = nu lap(u),     v_t + u v_x + v v_y = nu lap(v),     nu = 0.001,     t in [0, 1].

The initial value is a random trigonometric polynomial,

    w = sum_{i,j < 4} A_ij sin 2 pi (i x + j y) + B_ij cos 2 pi (i x + j y),      (u, v)(0) = 2 (w_u, w_v) / M + c,

from standard normal A, B (for u, then for v) and c of NumPy's legacy generator; M is the largest w on 512^2 points of
[0, 4]^2. The benchmark solves it on [0, 4]^2, periodic: w has the period 1, so that is the same solution, sixteen times.

Fourier series in x and y, `u = sum u_kl exp(2 pi i (k x + l y))`, ETDRK4 in time. Products are formed on a grid of
size x size points and kept for |k|, |l| < size / 3, so that no alias of them remains (Orszag 1971). The fronts are about
nu / |u| wide and fill the spectrum: 384, 576 and 768 points differ by 3e-3 and 8e-4.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft

from dsgnar.problem.reference import interior_grid
from dsgnar.suite.truth.exponential import etdrk4
from dsgnar.suite.truth.spectral import Times, relative
from dsgnar.suite.truth.table import Comparison, Table

VISCOSITY = 0.001
SEED = 20220722
SIZE, STEP = 768, 1 / 2000  # points per direction: 511 x 511 modes
GRID, TIMES = 64, 10


@dataclass(frozen=True, eq=False)
class Start:
    """The initial value: its coefficients, the scale 2/M and the mean flow."""

    sines: np.ndarray  # (2, 4, 4): A of u and v
    cosines: np.ndarray  # (2, 4, 4): B of u and v
    scale: float
    mean: np.ndarray  # (2,)

    def __call__(self, x: Any, y: Any, xp: Any = np) -> Any:
        """(u, v) at one point or at arrays of one shape; in JAX with `xp=jax.numpy`."""
        return [self.scale * w + c for w, c in zip(_waves(self.sines, self.cosines, x, y, xp), self.mean, strict=True)]


def _waves(sines: np.ndarray, cosines: np.ndarray, x: Any, y: Any, xp: Any) -> list[Any]:
    angle = [(i, j, 2 * np.pi * (i * x + j * y)) for i in range(4) for j in range(4)]
    return [
        sum(A[i, j] * xp.sin(a) + B[i, j] * xp.cos(a) for i, j, a in angle) for A, B in zip(sines, cosines, strict=True)
    ]


def start() -> Start:
    """The benchmark's initial value, drawn again."""
    random = np.random.RandomState(SEED)
    draws = random.standard_normal((4, 4, 4))
    mean, grid = random.standard_normal(2), np.linspace(0, 4, 512)
    sines, cosines = draws[0::2], draws[1::2]
    largest = np.max(_waves(sines, cosines, *np.meshgrid(grid, grid, indexing="ij"), np))
    return Start(sines, cosines, float(2 / largest), mean)


@dataclass(frozen=True, eq=False)
class Torus:
    """The equations on size x size points. A state is (2, modes): u and v, each flattened, with l >= 0 only."""

    size: int
    viscosity: float = VISCOSITY

    @cached_property
    def wavenumbers(self) -> tuple[np.ndarray, np.ndarray]:
        n = self.size
        return 2 * np.pi * np.fft.fftfreq(n, 1 / n)[:, None], 2 * np.pi * np.arange(n // 2 + 1)[None]

    @property
    def linear(self) -> np.ndarray:
        k, l = self.wavenumbers
        return -self.viscosity * (k**2 + l**2).ravel()

    @cached_property
    def _kept(self) -> np.ndarray:
        k, l = self.wavenumbers
        return np.maximum(abs(k), l) < 2 * np.pi * self.size / 3

    def nonlinear(self, state: np.ndarray) -> np.ndarray:
        """The modes of -(u w_x + v w_y) for w = u, v, without aliasing."""
        modes, (k, l) = self._square(state), self.wavenumbers
        u, v = self._values(modes)
        rate = -(u * self._values(1j * k * modes) + v * self._values(1j * l * modes))
        return (np.asarray(fft.rfft2(rate, norm="forward")) * self._kept).reshape(2, -1)

    def state(self, start: Start) -> np.ndarray:
        """The modes of an initial value."""
        grid = np.arange(self.size) / self.size
        values = np.stack(start(*np.meshgrid(grid, grid, indexing="ij")))
        return np.asarray(fft.rfft2(values, norm="forward")).reshape(2, -1)

    def on_grid(self, state: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(u, v) of a state on the grid x * y."""
        (waves_x, waves_y), modes = self._waves(x, y), self._square(state)
        return np.stack([np.real(waves_x @ w @ waves_y.T) for w in modes])

    def at(self, state: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(u, v) of a state at single points."""
        (waves_x, waves_y), modes = self._waves(x, y), self._square(state)
        return np.stack([np.real(np.sum((waves_x @ w) * waves_y, axis=1)) for w in modes])

    def _waves(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k, l = self.wavenumbers
        waves_y = np.exp(1j * np.outer(y, l))
        waves_y[:, 1:-1] *= 2  # for those with l < 0, which a real function repeats
        return np.exp(1j * np.outer(x, k)), waves_y

    def _square(self, state: np.ndarray) -> np.ndarray:
        return state.reshape(2, self.size, self.size // 2 + 1)

    def _values(self, modes: np.ndarray) -> np.ndarray:
        return np.asarray(fft.irfft2(modes, (self.size, self.size), norm="forward"))


def states(size: int, times: Times, step: float) -> np.ndarray:
    """The solution's modes at times that are multiples of the step."""
    torus = Torus(size)
    return etdrk4(torus, torus.state(start()), times, step)


def _on_grid(size: int, step: float) -> dict[str, np.ndarray]:
    x, torus = interior_grid(0, 1, GRID), Torus(size)
    found = np.stack([torus.on_grid(s, x, x) for s in states(size, interior_grid(0, 1, TIMES), step)], axis=-1)
    return {"u": found[0], "v": found[1]}


def compute(size: int = SIZE, step: float = STEP) -> Table:
    """u and v on 64 x 64 x 10 points, rounded to single precision, which is finer than they are (ten minutes)."""
    rounded = {name: v.astype(np.float32).astype(np.float64) for name, v in _on_grid(size, step).items()}
    metadata = {
        "equation": "u_t + u u_x + v u_y = nu lap(u), v_t + u v_x + v v_y = nu lap(v), periodic on [0, 1]^2",
        "parameters": {"viscosity": VISCOSITY},
        "method": f"Fourier series on {size} x {size} points, a third of the modes left out, ETDRK4, step {step:g}",
        "accuracy": np.nan,  # `check` measures it
    }
    x = interior_grid(0, 1, GRID)
    return Table({"x": x, "y": x, "t": interior_grid(0, 1, TIMES)}, rounded, metadata)


def check(stored: Table) -> list[Comparison]:
    """Compare a table with coarser grids: the first comparison has three quarters of the modes, harsher than needed."""
    there = np.stack(list(stored.values.values()))

    def compare(what: str, allowed: float, size: int, step: float) -> Comparison:
        return Comparison(what, relative(np.stack(list(_on_grid(size, step).values())), there), allowed)

    return [
        compare("576 x 576 points", 1e-3, 576, STEP),
        compare("384 x 384 points", 1e-2, 384, STEP),
        compare("384 x 384 points, twice the step", 1e-2, 384, 2 * STEP),
    ]
