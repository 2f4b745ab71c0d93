"""Cases of the PINNacle benchmark (arXiv 2306.08827) on domains that are not boxes, stated as its code states them.

    Poisson2d-C    lap(u) = 0 in [-1/2, 1/2]^2 without four discs;  u = 1 outside, u = 0 on the circles
    Poisson2d-CG   -lap(u) + 64 u = 10 (17 + x^2 + y^2) sin(pi x) sin(4 pi y) in [-1, 1]^2 without four discs;
                   u = 0.2 outside, u = 1 on the circles
    Poisson3d-CG   -lap(u) + k^2 u = f in [0, 1]^3 without four balls, k = 8 below z = 1/2 and 10 above;  du/dn = 0
    Heat2d-CG      u_t = lap(u) in [-8, 8] x [-12, 12] without 17 discs, t in [0, 3];  u(0) = 0,
                   du/dn = 5 - u on the large circles, 1 - u on the small ones, 0.1 - u outside
    HNd            u_t = lap(u)/5 - |x|^2 exp(|x|^2/2 + t)/5 in the unit ball of five dimensions, t in [0, 1];
                   du/dn = exp(1/2 + t),  u(0) = exp(|x|^2/2)

Nothing is chosen for a case: no weights, points, hard values or known parts.
"""

import jax.numpy as jnp
import numpy as np

from dsgnar.problem import Problem, boundary, initial, interior
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import laplacian
from dsgnar.problem.shapes import Ball, Shape

PI = np.pi
FOUR = tuple((x, y, 0.1) for x in (-0.3, 0.3) for y in (-0.3, 0.3))  # discs of Poisson2d-C: centre and radius
UNEVEN = ((0.5, 0.5, 0.2), (0.4, -0.4, 0.4), (-0.2, -0.7, 0.1), (-0.6, 0.5, 0.3))  # of Poisson2d-CG
BALLS = ((0.4, 0.3, 0.6, 0.2), (0.6, 0.7, 0.6, 0.2), (0.2, 0.8, 0.7, 0.1), (0.6, 0.2, 0.3, 0.1))  # of Poisson3d-CG
LARGE = (*((x, y, 1.0) for x in (-4, 4) for y in (-9, -3, 3, 9)), (0, 0, 1.0), (0, -6, 1.0), (0, 6, 1.0))  # Heat2d-CG
SMALL = tuple((x, y, 0.4) for x in (-3.2, 3.2) for y in (-6, 0, 6))
SIZES = tuple(f"x{i}" for i in range(1, 6))  # axes of HNd


def without(solid: Box | Shape, discs: tuple[tuple[float, ...], ...], name: str) -> Shape:
    """A box or what is left of it without discs or balls."""
    out = solid.as_shape()
    for *centre, radius in discs:
        out = out - Ball(radius=radius, name=name, **dict(zip(out.axes, centre, strict=True)))
    return out


def poisson_classic() -> Problem:
    """Laplace's equation around four discs."""
    return Problem(
        domain=without(Box(x=(-0.5, 0.5), y=(-0.5, 0.5)), FOUR, "circles"),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: laplacian(u)),
            "outside": boundary(lambda u: u - 1, on="box"),
            "circles": boundary(lambda u: u, on="circles"),
        },
    )


def poisson_uneven() -> Problem:
    """A screened Poisson equation around four discs of different sizes."""

    def source(x, y):
        return 10 * (17 + x**2 + y**2) * jnp.sin(PI * x) * jnp.sin(4 * PI * y)

    return Problem(
        domain=without(Box(x=(-1, 1), y=(-1, 1)), UNEVEN, "circles"),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u, x, y: -laplacian(u) + 64 * u - source(x, y)),
            "outside": boundary(lambda u: u - 0.2, on="box"),
            "circles": boundary(lambda u: u - 1, on="circles"),
        },
    )


def poisson3d() -> Problem:
    """A screened Poisson equation around four balls, with no flux through any surface."""

    def source(x, y, z):
        s = x**2 + y**2 + z**2
        a, b, c = jnp.sin(PI * x), jnp.sin(10 * PI * y), jnp.sin(5 * PI * z)
        return 20 * jnp.exp(a + b + c) * (s - 1) / (s + 1) + 100 * a * b * c

    return Problem(
        domain=without(Box(x=(0, 1), y=(0, 1), z=(0, 1)), BALLS, "balls"),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u, x, y, z: -laplacian(u) + jnp.where(z < 0.5, 64.0, 100.0) * u - source(x, y, z)),
            "flux": boundary(lambda u: u.n),
        },
    )


def heat() -> Problem:
    """Heat in a plate with 17 round holes that warm it."""
    plate = without(without(Box(x=(-8, 8), y=(-12, 12)), LARGE, "large"), SMALL, "small")
    return Problem(
        domain=plate.over(t=(0, 3)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: u.t - laplacian(u)),
            "ic": initial(lambda u: u),
            "large": boundary(lambda u: u.n - (5 - u), on="large"),
            "small": boundary(lambda u: u.n - (1 - u), on="small"),
            "outside": boundary(lambda u: u.n - (0.1 - u), on="box"),
        },
    )


def heat_ball() -> Problem:
    """The heat equation in a ball of five dimensions."""

    def squared(x1, x2, x3, x4, x5):
        return x1**2 + x2**2 + x3**2 + x4**2 + x5**2

    def equation(u, x1, x2, x3, x4, x5, t):
        s = squared(x1, x2, x3, x4, x5)
        return u.t - laplacian(u) / 5 + s * jnp.exp(s / 2 + t) / 5

    return Problem(
        domain=Ball(radius=1, **dict.fromkeys(SIZES, 0.0)).over(t=(0, 1)),
        unknowns=("u",),
        conditions={
            "pde": interior(equation),
            "ic": initial(lambda u, x1, x2, x3, x4, x5: u - jnp.exp(squared(x1, x2, x3, x4, x5) / 2)),
            "flux": boundary(lambda u, t: u.n - jnp.exp(0.5 + t)),
        },
    )
