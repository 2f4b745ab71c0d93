"""The Kuramoto-Sivashinsky equation (Appendix C.4 of the paper), a model of chaos in space and time, periodic in x:

    u_t + alpha u u_x + beta u_xx + gamma u_xxxx = 0,     x in [0, 2 pi],  t in [0, 1],     u(x, 0) = cos x (1 + sin x),
    alpha = 100/16,  beta = 100/16^2,  gamma = 100/16^4.

With x' = 16 x and t' = 100 t this is u_t' + u u_x' + u_x'x' + u_x'x'x'x' = 0 on a circle of length 32 pi up to t' = 100.
Small errors at t = 0 are about 10^5 times larger at t = 1. The reference is a Fourier solution in extended precision,
stored with its checks (`references/ks.py`).
"""

import jax.numpy as jnp
import numpy as np

from dsgnar import references
from dsgnar.domain import Box
from dsgnar.networks import Siren
from dsgnar.problem import Problem, initial, interior
from dsgnar.problems.base import Benchmark, Measured, Preset
from dsgnar.reference import Reference

ALPHA, BETA, GAMMA = 100 / 16, 100 / 16**2, 100 / 16**4


def problem(alpha: float = ALPHA, beta: float = BETA, gamma: float = GAMMA) -> Problem:
    """The equation with its initial value; periodic in x."""
    return Problem(
        domain=Box(x=(0, 2 * np.pi), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "pde": interior(lambda u: u.t + alpha * u * u.x + beta * u.xx + gamma * u.xxxx, weight=1e-3),
            "ic": initial(lambda u, x: u - jnp.cos(x) * (1 + jnp.sin(x)), sampling="even"),
        },
        periodic=("x",),
    )


def reference(alpha: float = ALPHA, beta: float = BETA, gamma: float = GAMMA) -> Reference:
    """The solution on a grid of 256 x 128 points: stored for the paper's parameters, else computed (half a minute)."""
    if (alpha, beta, gamma) == (ALPHA, BETA, GAMMA):
        return references.load("ks").reference()
    from dsgnar.references.ks import compute

    return compute(alpha, beta, gamma).reference()


# Shorter as the flow becomes turbulent: with 16 equal intervals this network left losses of 5e-21 in the first, 1e-14 in the
# seventh and 1e-10 from the ninth on, and the error ended at 2.2e-4. The first ones could be shorter again: the error in the
# fourth is 1e-6 now, and was 6e-8 at that time.
_TIMES = (0.09, 0.18, 0.26, 0.34, 0.41, 0.48, 0.54, 0.586, 0.632, 0.678, 0.724, 0.77, 0.816, 0.862, 0.908, 0.954)

# Double: the chaos would turn single precision's 1e-7 into 1e-2.
_DOUBLE = Preset(
    Siren(widths=(30,) * 4),
    "double",
    "double precision on a CPU",
    {"sketch": 1300, "intervals": _TIMES, "max_points": 2**15},
    Measured(8.5e-5, 2790),
)

KS = Benchmark(
    name="ks",
    title="Kuramoto-Sivashinsky",
    equations=(r"u_t + \alpha\,u\,u_x + \beta\,u_{xx} + \gamma\,u_{xxxx} = 0", r"u(x, 0) = \cos(x)\,(1 + \sin(x))"),
    problem=problem,
    reference=reference,
    presets={
        "default": _DOUBLE,
        "double": _DOUBLE,
        "large": Preset(Siren(widths=(40,) * 4), "double", "a larger network", {"sketch": 1800, "intervals": 16}),
        "paper-double": Preset(
            Siren(widths=(70,) * 4),
            "double",
            "the paper's configuration, for a GPU",
            {"sketch": 5000, "points": 2**15, "intervals": 16},
        ),
    },
    paper={"double": 5.12e-7},
)
