"""A small problem that several tests share: heat conduction with a network of a few dozen parameters."""

import jax
import jax.numpy as jnp
import numpy as np

import dsgnar as ds
from dsgnar.networks import Inputs
from dsgnar.residuals import Residuals
from dsgnar.sampling import generator, sample

WEIGHTS = np.array([0.3, 1.7])


def problem() -> ds.Problem:
    return ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns=("u",),
        conditions={
            "heat": ds.interior(lambda u: u.t - 0.1 * u.xx),
            "start": ds.initial(lambda u, x: u - jnp.sin(2 * jnp.pi * x)),
        },
        periodic=("x",),
    )


def residuals(dtype=np.float64, widths=(6, 6)):
    """Residuals of the problem for a small network, and the network's parameters."""
    inputs = Inputs(((0.0, 1.0), (0.0, 1.0)), 1, (0,))
    return Residuals.of(problem(), ds.MLP(widths=widths).build(inputs, 1, key=jax.random.key(0), dtype=dtype))


def points(interior=40, initial=15):
    """Training points by condition."""
    p = problem()
    return {
        name: sample(c.part, p.domain, n, generator(1, name))
        for (name, c), n in zip(p.conditions.items(), (interior, initial), strict=True)
    }


def weighted(res, theta, sets, weights=WEIGHTS):
    """The weighted residual vector r(theta) of eq. 9, as a differentiable function."""
    out = []
    for (name, x), w in zip(sets.items(), weights, strict=True):
        values = jax.vmap(lambda p, name=name: res.at_point(name, theta, p))(jnp.asarray(x.astype(theta.dtype)))
        out.append(np.sqrt(w / len(x)) * values)
    return jnp.concatenate(out)
