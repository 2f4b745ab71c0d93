"""Evaluating networks: in batches of bounded memory for NumPy, and as one function for JAX."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dsgnar.solving.model import Model

BATCH = 8192  # points evaluated at once
FEW = 8  # fewer points are filled up to a power of it: another shape costs more than so many points
ROWS = 512  # where derivatives are evaluated


def by_interval(
    model: Model, thetas: Float[np.ndarray, "intervals parameters"], kernel: Callable, points: Float[np.ndarray, "n d"]
) -> np.ndarray:
    """`kernel(theta, points)` for all points, each with the parameters of its time interval."""
    march, domain = model.march, model.problem.domain
    if march.count == 1 or domain.time is None or not len(points):
        return _in_batches(kernel, thetas[0], located(model, points, 0))
    piece = march.piece(points[:, domain.index(domain.time)])
    order = np.argsort(piece, kind="stable")
    counts = np.bincount(piece, minlength=march.count)
    parts = np.split(points[order], np.cumsum(counts)[:-1])
    placed = [located(model, p, k) for k, p in enumerate(parts)]
    values = [_in_batches(kernel, t, p) for t, p in zip(thetas, placed, strict=True) if len(p)]
    return np.concatenate(values)[np.argsort(order, kind="stable")]


def located(model: Model, points: Float[np.ndarray, "n d"], k: int) -> Float[np.ndarray, "n more"]:
    """Points of time interval k as residuals want them: with their interval, where they carry it."""
    if not model.residuals.ansatz.local:
        return points
    place = model.place(k)
    return np.concatenate([points, np.broadcast_to(place, (len(points), len(place)))], axis=1)


def _in_batches(kernel: Callable, theta: np.ndarray, points: np.ndarray) -> np.ndarray:
    count = len(points)
    if not count:  # a point whose value is thrown away tells the shape of the values
        points = np.zeros((1, points.shape[1]))
        return _in_batches(kernel, theta, points)[:0]
    size = min(BATCH, FEW ** math.ceil(math.log(count, FEW) - 1e-9))  # few shapes to compile
    padded = np.concatenate([points, np.repeat(points[:1], -count % size, axis=0)]).astype(theta.dtype)
    blocks = [kernel(jnp.asarray(theta), jnp.asarray(b)) for b in padded.reshape(-1, size, points.shape[1])]
    return np.concatenate([np.asarray(block) for block in blocks])[:count]


def in_rows(kernel: Callable, *arrays: np.ndarray) -> np.ndarray:
    """A kernel over rows in batches of one size, so that it is compiled once; in float64."""
    count = len(arrays[0])
    padded = [np.concatenate([a, np.repeat(a[-1:], -count % ROWS, axis=0)]).astype(np.float64) for a in arrays]
    done = [kernel(*(jnp.asarray(a[k : k + ROWS]) for a in padded)) for k in range(0, count, ROWS)]
    return np.concatenate([np.asarray(part) for part in done])[:count]


def function_of(model: Model, thetas: Float[np.ndarray, "intervals parameters"]) -> Callable[..., Any]:
    """The solution as a function of coordinates that JAX can transform."""
    domain, unknowns, march = model.problem.domain, model.problem.unknowns, model.march

    local = model.residuals.ansatz.local
    places = jnp.asarray([model.place(k) for k in range(march.count)]) if local else None

    def at_point(theta: jax.Array, x: jax.Array) -> jax.Array:
        where = None if places is None else places.astype(x.dtype)
        if march.count == 1 or domain.time is None:
            return model.residuals.network(theta[0], None if where is None else where[0])(x)
        piece = jnp.searchsorted(jnp.asarray(march.times[1:-1], x.dtype), x[domain.index(domain.time)], side="left")
        # Every interval's value, and then the right one: parameters that are looked up would be copied for each point.
        of_interval = jax.vmap(
            lambda one, place: model.residuals.network(one, place)(x), (0, None if where is None else 0)
        )
        return of_interval(theta, where)[piece]

    at_points = jax.jit(jax.vmap(at_point, in_axes=(None, 0)), inline=True)

    def function(*given: Any, **named: Any) -> Any:
        coordinates = dict(zip(domain.axes, given, strict=False)) | named
        if len(given) > len(domain.axes) or len(given) + len(named) != len(coordinates):
            raise TypeError(
                f"a coordinate is given twice, or there are too many: the axes are {', '.join(domain.axes)}"
            )
        if set(coordinates) != set(domain.axes):
            raise TypeError(f"give all coordinates, {', '.join(domain.axes)}; got {', '.join(coordinates) or 'none'}")
        theta = jnp.asarray(thetas)
        columns = jnp.broadcast_arrays(*(jnp.asarray(coordinates[axis], theta.dtype) for axis in domain.axes))
        points = jnp.stack([c.ravel() for c in columns], axis=-1)
        values = at_points(theta, points)[:, : len(unknowns)].reshape(*columns[0].shape, len(unknowns))
        if domain.time is not None and march.times[-1] < domain.interval(domain.time)[1]:  # the run ended before
            now = columns[domain.index(domain.time)]
            missing = (now > march.times[-1]) & (now <= domain.interval(domain.time)[1])
            values = jnp.where(missing[..., None], jnp.nan, values)
        out = {name: values[..., k] for k, name in enumerate(unknowns)}
        return out[unknowns[0]] if len(out) == 1 else out

    return function
