"""Eight cases of the PINNacle benchmark (arXiv 2306.08827) on boxes, stated as its code states them.

Nothing is chosen for a case: no weights, points, hard values or known parts, which those of the suite have.

    Burgers1d-C   u_t + u u_x = (0.01/pi) u_xx,  x in [-1, 1],  t in [0, 1];   u(0) = -sin(pi x),  u(+-1, t) = 0
    Burgers2d-C   u_t + u u_x + v u_y = 0.001 lap(u), and v likewise; periodic; the initial value of `truth/burgers2d.py`
    Heat2d-MS     u_t = u_xx / (500 pi)^2 + u_yy / pi^2  on [0, 1]^2 x [0, 5];  u(0) = sin(20 pi x) sin(pi y),  u = 0 around
    Heat2d-LT     the equation of `truth/heat_longtime.py` on [0, 1]^2 x [0, 100]
    NS2d-C        the lid-driven cavity at Re = 100, p(0, 0) = 0
    Wave1d-C      u_tt = 4 u_xx on [0, 1]^2, two standing waves
    KS            Kuramoto-Sivashinsky on [0, 2 pi] x [0, 1]
    PNd           lap(u) + (pi^2/4) sum_i sin(pi x_i / 2) = 0 in [0, 1]^5 with the boundary values of sum_i sin(pi x_i / 2)

Two statements differ in words from the benchmark's, not in the solution. Burgers2d-C is posed there on [0, 4]^2; its initial
value has the period 1, so [0, 1]^2 holds all of it. KS has no boundary condition there; it is taken as periodic.
"""

import jax.numpy as jnp
import numpy as np

from dsgnar.problem import Problem, at, boundary, initial, interior
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import laplacian
from dsgnar.suite.ks import ALPHA, BETA, GAMMA
from dsgnar.suite.truth import burgers2d, heat_longtime

PI = np.pi
VISCOSITY = 0.01 / PI  # of Burgers1d-C
REYNOLDS = 100.0


def burgers1d() -> Problem:
    """Burgers' equation with a thin front."""
    return Problem(
        domain=Box(x=(-1, 1), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: u.t + u * u.x - VISCOSITY * u.xx),
            "ic": initial(lambda u, x: u + jnp.sin(PI * x)),
            "bc": boundary(lambda u: u),
        },
    )


def burgers2d_() -> Problem:
    """Burgers' equations in two dimensions, one period."""
    start, nu = burgers2d.start(), burgers2d.VISCOSITY
    return Problem(
        domain=Box(x=(0, 1), y=(0, 1), t=(0, 1)),
        unknowns=("u", "v"),
        conditions={
            "pde_u": interior(lambda u, v: u.t + u * u.x + v * u.y - nu * laplacian(u)),
            "pde_v": interior(lambda u, v: v.t + u * v.x + v * v.y - nu * laplacian(v)),
            "ic_u": initial(lambda u, x, y: u - start(x, y, jnp)[0]),
            "ic_v": initial(lambda v, x, y: v - start(x, y, jnp)[1]),
        },
        periodic=("x", "y"),
    )


def heat_multiscale() -> Problem:
    """A heat equation that conducts 250,000 times better in y than in x."""
    slow, quick = 1 / (500 * PI) ** 2, 1 / PI**2
    return Problem(
        domain=Box(x=(0, 1), y=(0, 1), t=(0, 5)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: u.t - slow * u.xx - quick * u.yy),
            "ic": initial(lambda u, x, y: u - jnp.sin(20 * PI * x) * jnp.sin(PI * y)),
            "bc": boundary(lambda u: u),
        },
    )


def heat_longtime_() -> Problem:
    """A heat equation with a source that changes sign, over a long time."""

    def source(u, x, y, t):
        swing = 1 + 2 * jnp.sin(PI * t / 4)
        return heat_longtime.STRENGTH * jnp.sin(u * u) * swing * jnp.sin(4 * PI * x) * jnp.sin(2 * PI * y)

    return Problem(
        domain=Box(x=(0, 1), y=(0, 1), t=(0, 100)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u, x, y, t: u.t - heat_longtime.DIFFUSION * laplacian(u) - source(u, x, y, t)),
            "ic": initial(lambda u, x, y: u - jnp.sin(4 * PI * x) * jnp.sin(3 * PI * y)),
            "bc": boundary(lambda u: u),
        },
    )


def cavity() -> Problem:
    """The lid-driven cavity, with the pressure fixed at a corner."""
    lid = lambda x, y: jnp.where(y >= 1, 4 * x * (1 - x), 0.0)
    return Problem(
        domain=Box(x=(0, 1), y=(0, 1)),
        unknowns=("u", "v", "p"),
        conditions={
            "momentum_x": interior(lambda u, v, p: u * u.x + v * u.y + p.x - laplacian(u) / REYNOLDS),
            "momentum_y": interior(lambda u, v, p: u * v.x + v * v.y + p.y - laplacian(v) / REYNOLDS),
            "continuity": interior(lambda u, v: u.x + v.y),
            "wall_u": boundary(lambda u, x, y: u - lid(x, y)),
            "wall_v": boundary(lambda v: v),
            "corner": at(lambda p: p, {"x": 0.0, "y": 0.0}),
        },
    )


def wave() -> Problem:
    """Two standing waves between fixed ends."""
    return Problem(
        domain=Box(x=(0, 1), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: u.tt - 4 * u.xx),
            "ic": initial(lambda u, x: u - jnp.sin(PI * x) - jnp.sin(4 * PI * x) / 2),
            "rate": initial(lambda u: u.t),
            "bc": boundary(lambda u: u),
        },
    )


def ks() -> Problem:
    """The Kuramoto-Sivashinsky equation."""
    return Problem(
        domain=Box(x=(0, 2 * PI), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: u.t + ALPHA * u * u.x + BETA * u.xx + GAMMA * u.xxxx),
            "ic": initial(lambda u, x: u - jnp.cos(x) * (1 + jnp.sin(x))),
        },
        periodic=("x",),
    )


def poisson() -> Problem:
    """Poisson's equation in five dimensions."""

    def sines(x1, x2, x3, x4, x5):
        return sum(jnp.sin(PI * x / 2) for x in (x1, x2, x3, x4, x5))

    return Problem(
        domain=Box(time=None, **{f"x{i}": (0, 1) for i in range(1, 6)}),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u, x1, x2, x3, x4, x5: laplacian(u) + PI**2 / 4 * sines(x1, x2, x3, x4, x5)),
            "bc": boundary(lambda u, x1, x2, x3, x4, x5: u - sines(x1, x2, x3, x4, x5)),
        },
    )
