"""Cases of the PINNacle benchmark (arXiv 2306.08827) that seek a conductivity field a from noisy values of u.

    PInv   div(a grad u) + f = 0 in [0, 1]^2;  u = sin(pi x) sin(pi y),  a = 1/(1 + x^2 + y^2 + (x-1)^2 + (y-1)^2),
           50 x 50 values of u on an even grid, its sides included.
           Repaired: the benchmark's source belongs to another solution (it has 2x + 1 and 2y + 1 for 2x - 1 and 2y - 1).
    HInv   u_t - div(a grad u) = f in [-1, 1]^2, t in [0, 1];  u = exp(-t) S T,  a(x, y) = 2 + S T,
           S = sin(pi x),  T = sin(pi y);  2,500 values of u at points of space and time.

The noise of the values has the standard deviation 0.1. a is given on the sides, and nothing else is imposed on u. The
benchmark draws its noise anew, and has a list of points for HInv; here both are drawn once, from a fixed stream.
"""

import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.streams import stream
from dsgnar.problem import Problem, Unknown, boundary, data, interior
from dsgnar.problem.domain import Box
from dsgnar.problem.reference import Reference, interior_grid
from dsgnar.suite.pinnacle.measure import Yardstick, backwards, inner

NOISE, ROOT = 0.1, 50  # the deviation; ROOT^2 values
PI = np.pi


def flux(a, u):
    """div(a grad u) in the plane."""
    return a * (u.xx + u.yy) + a.x * u.x + a.y * u.y


# --- PInv -------------------------------------------------------------------------------------------------------------


def steady_conductivity(x, y):
    return 1 / (1 + x**2 + y**2 + (x - 1) ** 2 + (y - 1) ** 2)


def steady_exact(points: np.ndarray) -> np.ndarray:
    """u and a."""
    x, y = points.T
    return np.stack([np.sin(PI * x) * np.sin(PI * y), steady_conductivity(x, y)], 1)


def steady() -> Problem:
    """The conductivity of a square with a known source."""

    def source(x, y):
        a, sx, sy = steady_conductivity(x, y), jnp.sin(PI * x), jnp.sin(PI * y)
        across = (2 * x - 1) * jnp.cos(PI * x) * sy + (2 * y - 1) * sx * jnp.cos(PI * y)
        return 2 * PI**2 * a * sx * sy + 2 * PI * a**2 * across

    x, y = (m.ravel() for m in np.meshgrid(*[np.linspace(0, 1, ROOT)] * 2, indexing="ij"))
    return Problem(
        domain=Box(x=(0, 1), y=(0, 1)),
        unknowns=("u", Unknown("a", positive=True)),
        conditions={
            "pde": interior(lambda u, a, x, y: flux(a, u) + source(x, y)),
            "sides": boundary(lambda a, x, y: a - steady_conductivity(x, y)),
            "data": data(lambda u: u, at={"x": x, "y": y}, values=_noisy(steady_exact, x, y), noise=NOISE),
        },
    )


def steady_table() -> Reference:
    """On 64 x 64 points."""
    axes = {"x": interior_grid(0, 1, 64), "y": interior_grid(0, 1, 64)}
    return Reference.on_grid(axes, lambda x, y: _named(steady_exact, x, y), 1e-15, "closed form")


def steady_grid() -> Yardstick:
    return Yardstick.of({"x": inner(50), "y": inner(50)}, steady_exact)


# --- HInv -------------------------------------------------------------------------------------------------------------


def moving_exact(points: np.ndarray) -> np.ndarray:
    """u and a."""
    x, y, t = points.T
    wave = np.sin(PI * x) * np.sin(PI * y)
    return np.stack([np.exp(-t) * wave, 2 + wave], 1)


def moving() -> Problem:
    """The conductivity of a plate that cools, with a known source."""

    def source(x, y, t):
        sx, sy, cx, cy = jnp.sin(PI * x), jnp.sin(PI * y), jnp.cos(PI * x), jnp.cos(PI * y)
        squares = 2 * sx**2 * sy**2 - cx**2 * sy**2 - sx**2 * cy**2
        return jnp.exp(-t) * ((4 * PI**2 - 1) * sx * sy + PI**2 * squares)

    rng = stream(0, "pinnacle", "points")
    x, y, t = (rng.uniform(low, 1, ROOT**2) for low in (-1, -1, 0))
    return Problem(
        domain=Box(x=(-1, 1), y=(-1, 1), t=(0, 1)),
        unknowns=("u", Unknown("a", axes=("x", "y"), positive=True)),
        conditions={
            "pde": interior(lambda u, a, x, y, t: u.t - flux(a, u) - source(x, y, t)),
            "sides": boundary(lambda a, x, y: a - 2 - jnp.sin(PI * x) * jnp.sin(PI * y)),
            "data": data(lambda u: u, at={"x": x, "y": y, "t": t}, values=_noisy(moving_exact, x, y, t), noise=NOISE),
        },
    )


def moving_table() -> Reference:
    """On 32 x 32 x 16 points."""
    axes = {"x": interior_grid(-1, 1, 32), "y": interior_grid(-1, 1, 32), "t": interior_grid(0, 1, 16)}
    return Reference.on_grid(axes, lambda x, y, t: _named(moving_exact, x, y, t), 1e-15, "closed form")


def moving_grid() -> Yardstick:
    side = 2 * inner(17) - 1
    return Yardstick.of({"x": side, "y": side, "t": backwards(71, 1.0)}, moving_exact)


# --- both -------------------------------------------------------------------------------------------------------------


def _noisy(exact, *coordinates: np.ndarray) -> np.ndarray:
    """Measured values of u; always the same."""
    noise = stream(0, "pinnacle", "noise").normal(size=len(coordinates[0]))
    return exact(np.stack(coordinates, 1))[:, 0] + NOISE * noise


def _named(exact, *coordinates) -> dict[str, np.ndarray]:
    return dict(zip(("u", "a"), exact(np.stack(coordinates, 1)).T, strict=True))
