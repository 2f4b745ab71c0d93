"""A travelling, fading wave: u_t + c u_x = nu u_xx on [-1, 1], periodic in x, u(x, 0) = sin(pi x).

Solve it with `dsgnar solve FILE`, then change it into your own problem. Only `problem` must be there.
"""

import jax.numpy as jnp
import numpy as np

import dsgnar as ds

c, nu = 1.0, 0.05

# The equations: residuals that must vanish. Their parameters are unknowns and axes, by name; u.x, u.xx, u.xt are
# derivatives. ds.initial(...) holds at the first instant, ds.boundary(...) on the boundary, ds.at(...) at given points.
problem = ds.Problem(
    domain=ds.Box(x=(-1, 1), t=(0, 1)),
    unknowns=("u",),
    conditions={
        "equation": ds.interior(lambda u: u.t + c * u.x - nu * u.xx),
        "start": ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x)),
    },
    periodic=("x",),
)

# Everything below may be left out.

title = "Travelling wave"  # for figures and reports
equations = (r"u_t + c\,u_x = \nu\,u_{xx}", r"u(x, 0) = \sin(\pi x)")  # for reports, as LaTeX

# The network: ds.MLP, ds.Siren, ds.GaborNet, ds.SPINN, or an Equinox module of your own. Wider layers represent more.
network = ds.MLP(widths=(12, 12, 12))

# Settings of the solver (see ds.Settings); options of the command line come before them.
settings = dict(precision="single", points=2048)


# Known values to compare with, where there are any: the error is then shown along the way.
def reference():
    """The exact solution on a grid."""

    def exact(x, t):
        return {"u": np.exp(-nu * np.pi**2 * t) * np.sin(np.pi * (x - c * t))}

    grid = {"x": np.linspace(-1, 1, 101), "t": np.linspace(0, 1, 51)}
    return ds.Reference.on_grid(grid, exact, accuracy=1e-15, source="closed form")
