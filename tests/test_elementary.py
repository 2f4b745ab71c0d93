"""Sine and cosine against extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dsgnar.calculus.elementary import sincos


@pytest.mark.parametrize("dtype, reach, roundoff", [(np.float64, 1e5, 2.0**-53), (np.float32, 1e3, 2.0**-24)])
def test_error_is_a_unit_of_roundoff(dtype, reach, roundoff):
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-8, np.log10(reach), 200_000)
    multiples = np.arange(-2000, 2000) * (np.pi / 4)
    v = np.concatenate([rng.choice([-1, 1], sizes.size) * sizes, multiples[np.abs(multiples) < reach], [0.0]])
    v = v.astype(dtype)
    exact = v.astype(np.longdouble)
    for found, truth in zip(jax.jit(sincos)(jnp.asarray(v)), (np.sin(exact), np.cos(exact)), strict=True):
        assert found.dtype == dtype
        assert np.abs(np.asarray(found).astype(np.longdouble) - truth).max() < 1.6 * roundoff


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_angles_keep_their_relative_accuracy(dtype):
    v = (10.0 ** np.linspace(-30, 0, 1000)).astype(dtype)
    s, _ = sincos(jnp.asarray(v))
    np.testing.assert_allclose(s, np.sin(v.astype(np.longdouble)).astype(dtype), rtol=2 * np.finfo(dtype).eps)


def test_derivatives_in_both_directions():
    v = jnp.linspace(-7.0, 7.0, 41)
    grad = jax.vmap(jax.grad(lambda x: 2 * sincos(x)[0] + 3 * sincos(x)[1]))(v)
    np.testing.assert_allclose(grad, 2 * jnp.cos(v) - 3 * jnp.sin(v), atol=1e-15)
    (_, c), (ds, dc) = jax.jvp(sincos, (v,), (jnp.ones_like(v),))
    np.testing.assert_array_equal(ds, c)
    np.testing.assert_allclose(dc, -jnp.sin(v), atol=1e-15)


def test_what_is_not_finite_stays_so():
    s, c = sincos(jnp.array([jnp.nan, jnp.inf, -jnp.inf]))
    assert not np.isfinite(s).any() and not np.isfinite(c).any()
