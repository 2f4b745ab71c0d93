"""The sketched Jacobian equals C J (Omega S) with the full Jacobian."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dsgnar import jacobian as module
from dsgnar.jacobian import Jacobian
from dsgnar.sampling import generator
from dsgnar.sketch import SRCT, AllColumns, AllRows, Buckets, CountSketch, Groups, dense
from small import WEIGHTS, points, residuals, weighted


@pytest.mark.parametrize("columns", [AllColumns(), SRCT(9), Groups(9)], ids=repr)
@pytest.mark.parametrize("rows", [Buckets(12), CountSketch(12, 4), AllRows(), Buckets(50), Buckets(12, 3)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sketch_of_the_full_jacobian(rows, columns, dtype, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 13)  # several chunks, with padding
    monkeypatch.setattr(module, "ROW_BATCH", 16)
    res, theta = residuals(dtype)
    sets = points()
    flat = tuple(x.astype(dtype) for x in sets.values())
    sketched = Jacobian(res, rows, columns)(theta, flat, WEIGHTS, generator(5))

    counts = tuple(len(x) for x in sets.values())
    rng = generator(5)
    c = dense(rows.draw(rng, counts), rows.rows(sum(counts)))
    column = columns.draw(rng, theta.size)
    full = jax.jacobian(lambda t: weighted(res, t, sets))(theta)
    expected = columns.apply(column, jnp.asarray(c.astype(dtype)) @ full)
    scale = float(jnp.abs(expected).max())
    tolerance = 3e-5 if dtype == np.float32 else 1e-13
    assert sketched.jacobian.dtype == dtype
    np.testing.assert_allclose(sketched.jacobian, expected, rtol=0, atol=tolerance * scale)
    np.testing.assert_allclose(
        sketched.residual, c @ np.asarray(weighted(res, theta, sets)), rtol=0, atol=tolerance * 10
    )


def test_not_a_number_in_padding_does_no_harm():
    """Padded slots evaluate the first point again; their sign 0 must silence whatever comes out."""
    res, theta = residuals()
    sets = points(5, 3)
    flat = tuple(sets.values())
    sketched = Jacobian(res, Buckets(12), AllColumns())(theta, flat, WEIGHTS, generator(5))
    assert np.isfinite(sketched.jacobian).all()
    assert (np.abs(sketched.jacobian).sum(axis=1) > 0).sum() <= 8


def test_a_resized_sketch_is_that_of_its_own_size():
    res, theta = residuals()
    flat = tuple(points().values())
    first = Jacobian(res, Buckets(12), Groups(9))
    second = first.resized(Buckets(20), AllColumns())
    small, large, own = (
        j(theta, flat, WEIGHTS, generator(5)) for j in (first, second, Jacobian(res, Buckets(20), AllColumns()))
    )
    assert small.jacobian.shape == (12, 9)
    np.testing.assert_array_equal(large.jacobian, own.jacobian)
    assert second._buckets is first._buckets  # compiled once
