"""The Poisson equation in five and in ten dimensions (Appendix C.6 of the paper), with given boundary values:

     5D    -lap(u) = pi^2 sum_i cos(pi x_i)   in [0, 1]^5,       u = sum_i cos(pi x_i),
    10D    -lap(u) = 0                        in [0, 1]^10,      u = x1 x2 + x3 x4 + x5 x6 + x7 x8 + x9 x10.

The formula for u holds on the boundary and is the exact solution. A grid is out of reach here: errors are measured at 20,000
random points, which are no training points.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from dsgnar.calculus.streams import stream
from dsgnar.networks import SPINN, GaborNet, Siren
from dsgnar.problem import Problem, boundary, interior
from dsgnar.problem.domain import Box
from dsgnar.problem.fields import laplacian
from dsgnar.problem.reference import Reference
from dsgnar.suite.base import HOLDS_IT, Benchmark, Measured, Preset
from dsgnar.suite.truth.spectral import EXTENDED, pi

SAMPLE = 20_000


def _unit_cube(dimension: int) -> Box:
    return Box(time=None, **{f"x{i + 1}": (0, 1) for i in range(dimension)})


def problem_5d() -> Problem:
    """Five dimensions: a sum of cosines."""

    def cosines(x1, x2, x3, x4, x5):
        return sum(jnp.cos(jnp.pi * x) for x in (x1, x2, x3, x4, x5))

    return Problem(
        domain=_unit_cube(5),
        unknowns=("u",),
        conditions={
            "pde": interior(
                lambda u, x1, x2, x3, x4, x5: -laplacian(u) - jnp.pi**2 * cosines(x1, x2, x3, x4, x5), weight=1e-4
            ),
            "bc": boundary(lambda u, x1, x2, x3, x4, x5: u - cosines(x1, x2, x3, x4, x5)),
        },
    )


def problem_10d() -> Problem:
    """Ten dimensions: a harmonic polynomial."""
    return Problem(
        domain=_unit_cube(10),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: -laplacian(u), weight=1e-4),
            "bc": boundary(
                lambda u, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10: (
                    u - (x1 * x2 + x3 * x4 + x5 * x6 + x7 * x8 + x9 * x10)
                )
            ),
        },
    )


def exact_5d(points, xp=np):
    """The solution at points (..., 5), in their precision; in JAX with `xp=jax.numpy`."""
    return xp.sum(xp.cos(pi(points.dtype) * points), -1)


def exact_10d(points, xp=np):
    """The solution at points (..., 10), in their precision; in JAX with `xp=jax.numpy`."""
    return xp.sum(points[..., 0::2] * points[..., 1::2], -1)


def _reference(dimension: int, exact: Callable) -> Reference:
    points = stream(0, "reference", dimension).random((SAMPLE, dimension))

    def function(**coordinates):
        columns = np.broadcast_arrays(*(np.asarray(c, EXTENDED) for c in coordinates.values()))
        return {"u": np.asarray(exact(np.stack(columns, axis=-1)), np.float64)}

    values = function(**{f"x{i + 1}": column for i, column in enumerate(points.T)})
    source = "closed form, evaluated in extended precision"
    return Reference(points, values, accuracy=1e-16, source=source, function=function)


def reference_5d() -> Reference:
    """The exact solution at 20,000 random points."""
    return _reference(5, exact_5d)


def reference_10d() -> Reference:
    """The exact solution at 20,000 random points."""
    return _reference(10, exact_10d)


_PLANE_WAVES = Preset(
    Siren(widths=(32,)), 226, "double", "plane waves", {"sketch": 170}, Measured(3.7e-16, 3), given=HOLDS_IT
)

POISSON5D = Benchmark(
    name="poisson5d",
    title="Poisson, 5D",
    about="a sum of cosines in five dimensions",
    equations=(
        r"-\Delta u = \pi^2 \sum_{i=1}^{5} \cos(\pi x_i)",
        r"u = \sum_{i=1}^{5} \cos(\pi x_i) \text{ on the boundary}",
    ),
    problem=problem_5d,
    reference=reference_5d,
    presets={
        # The solution is a sum of five plane waves, which one layer of sines holds exactly.
        "default": _PLANE_WAVES,
        "paper-double": Preset(
            GaborNet(features=1024),
            13_313,
            "double",
            "the paper's method and network, for a GPU",
            {"method": "paper", "sketch": 4000, "points": 2**15},
        ),
    },
    paper={"double": 3.03e-16},
)

POISSON10D = Benchmark(
    name="poisson10d",
    title="Poisson, 10D",
    about="a harmonic polynomial in ten dimensions",
    equations=(r"-\Delta u = 0", r"u = \sum_{i=1}^{5} x_{2i-1} x_{2i} \text{ on the boundary}"),
    problem=problem_10d,
    reference=reference_10d,
    # The solution is a sum of five products: a small rank holds it.
    presets={
        "default": Preset(
            SPINN(rank=10, widths=(10,) * 2),
            2411,
            "double",
            "double precision on a CPU",
            {"sketch": 1000},
            Measured(3.3e-12, 536),
        ),
        "large": Preset(SPINN(rank=16, widths=(12,) * 3), 5457, "double", "a larger network", {"sketch": 2200}),
        "paper-double": Preset(
            SPINN(rank=40, widths=(20,) * 3),
            17_241,
            "double",
            "the paper's method and network, for a GPU",
            {"method": "paper", "sketch": 5000, "points": 2**15},
        ),
    },
    paper={"double": 5.96e-12},
)
