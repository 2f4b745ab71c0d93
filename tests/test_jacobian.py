"""The sketched Jacobian equals C J (Omega S) with the full Jacobian."""

import contextvars
import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft

import dsgnar as ds
from dsgnar.calculus import choices, threads
from dsgnar.calculus.streams import stream
from dsgnar.networks import Inputs
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.residuals import Residuals
from dsgnar.optimise.sketch import SRCT, AllColumns, AllRows, Buckets, CountSketch, Groups, Table, dense
from small import WEIGHTS, weighted


@pytest.fixture(autouse=True)
def in_turn():
    """Threads that meet a shape for the first time would each compile for it."""
    with threads.in_turn():
        yield


BOX = ds.Box(x=(0, 1), t=(0, 1))
COUNTS = (40, 15)
SETS = {name: np.random.default_rng(n).random((n, 2)) for name, n in zip(("inside", "start"), COUNTS, strict=True)}


def sketching_of(conditions, dtype):
    """The sketched Jacobian of a small network, with several chunks and batches and padding in the last; and theta."""
    network = ds.MLP((5,)).build(Inputs(BOX.bounds, 1), 1, key=jax.random.key(0), dtype=dtype)
    res, theta = Residuals.of(ds.Problem(BOX, ("u",), conditions), network)
    return Jacobian(res, Buckets(12), AllColumns(), chunk=13, batch=16), theta


@functools.cache
def full(dtype):
    """What is compiled for one problem, theta, the points, and the Jacobian and residual that are to be sketched."""
    conditions = {"inside": ds.interior(lambda u: u.t + u * u.x), "start": ds.initial(lambda u, x: u - jnp.sin(x))}
    sketching, theta = sketching_of(conditions, dtype)
    r = lambda t: weighted(sketching.residuals, t, SETS)
    J, r = jax.jit(lambda t: (jax.jacobian(r)(t), r(t)))(theta)
    return sketching, theta, tuple(x.astype(dtype) for x in SETS.values()), np.asarray(J), np.asarray(r)


def columns_of(sketch, rng, d):
    """The matrix Omega S that a column sketch stands for, by its definition."""
    operator = sketch.draw(rng, d)
    if isinstance(sketch, SRCT):
        sign, order, keep = operator
        return scipy.fft.dct(np.eye(d)[:, order] * sign[order], norm="ortho")[:, keep]
    if isinstance(sketch, Groups):
        member, weight = operator
        matrix = np.zeros((d, sketch.size))
        np.add.at(matrix, (member, np.arange(sketch.size)), weight)
        return matrix
    return np.eye(d)


@pytest.mark.parametrize("columns", [AllColumns(), SRCT(9), Groups(9)], ids=repr)
@pytest.mark.parametrize("rows", [Buckets(12), CountSketch(12, 4), AllRows(), Buckets(50), Buckets(12, 3)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sketch_of_the_full_jacobian(rows, columns, dtype):
    sketching, theta, flat, J, r = full(dtype)
    sketched = sketching.resized(rows, columns)(theta, flat, WEIGHTS, stream(5))

    rng = stream(5)
    C = dense(rows.draw(rng, COUNTS), rows.rows(sum(COUNTS)))
    expected = C @ J @ columns_of(columns, rng, theta.size)
    tolerance = 3e-5 if dtype == np.float32 else 1e-13
    assert sketched.jacobian.dtype == dtype
    np.testing.assert_allclose(sketched.jacobian, expected, rtol=0, atol=tolerance * np.abs(expected).max())
    np.testing.assert_allclose(sketched.residual, C @ r, rtol=0, atol=tolerance * 10)


@pytest.mark.parametrize("sub_batch", [5, 50])
def test_sub_batches_give_the_same_sketch(sub_batch):
    """5 does not divide the batch of 16, 50 is larger than it."""
    sketching, theta, flat, _, _ = full(np.float64)
    whole = sketching.resized(CountSketch(12, 2), AllColumns())
    one, two = (j(theta, flat, WEIGHTS, stream(5)) for j in (whole, replace(whole, sub_batch=sub_batch)))
    np.testing.assert_allclose(two.jacobian, one.jacobian, rtol=0, atol=1e-14 * np.abs(one.jacobian).max())
    np.testing.assert_allclose(two.residual, one.residual, rtol=0, atol=1e-14)


@functools.cache
def with_a_hole():
    """Two conditions that are nan, value and derivative, at the first point of each; padding repeats such points."""
    hole = lambda x: jnp.where(x == 0.25, jnp.nan, 1.0)
    conditions = {"one": ds.interior(lambda u, x: u * hole(x)), "two": ds.interior(lambda u, x: (u + 1) * hole(x))}
    x = np.random.default_rng(0).random((43, 2))
    x[0, 0] = 0.25
    return *sketching_of(conditions, np.float64), (x, x[:31])


@pytest.mark.parametrize("rows", [Buckets(12), CountSketch(12, 2)], ids=repr)
def test_what_is_not_a_number_stays_in_the_buckets_of_its_own_point(rows):
    """Only buckets that hold a first point may be nan: the many slots of padding that repeat it leave no trace."""
    sketching, theta, flat = with_a_hole()
    drawn = rows.draw(stream(7), (43, 31))
    holds = (dense(drawn, rows.size)[:, [0, 43]] != 0).any(axis=1)
    assert 0 < holds.sum() <= 4
    for part in drawn:  # where padding would show: in buckets with an empty slot, or all of it in bucket 0
        reached = (part.sign == 0).any(axis=1) if isinstance(part, Table) else np.arange(rows.size) == 0
        assert (reached & ~holds).any()
    sketched = sketching.resized(rows, AllColumns())(theta, flat, WEIGHTS, stream(7))
    np.testing.assert_array_equal(np.isfinite(sketched.residual), ~holds)
    np.testing.assert_array_equal(np.isfinite(sketched.jacobian).all(axis=1), ~holds)


@pytest.mark.parametrize("rows", [AllRows(), Buckets(50)], ids=repr)
def test_the_value_of_an_empty_slot_does_not_count_whatever_it_is(rows):
    """Here some rows hold no point of a condition at all; the slot repeats the first point, which is nan."""
    sketching, theta, flat = with_a_hole()
    C = dense(rows.draw(stream(7), (43, 31)), rows.rows(74))
    sketched = sketching.resized(rows, AllColumns())(theta, flat, WEIGHTS, stream(7))
    np.testing.assert_array_equal(np.isnan(sketched.residual), (C[:, [0, 43]] != 0).any(axis=1))


def test_buckets_without_a_residual_are_rows_of_zeros():
    sketching, theta, flat, _, _ = full(np.float64)
    few = flat[0][:5], flat[1][:3]
    sketched = sketching(theta, few, WEIGHTS, stream(5))
    assert np.isfinite(sketched.jacobian).all()
    assert 0 < (np.abs(sketched.jacobian).sum(axis=1) > 0).sum() <= 8


def test_a_resized_sketch_is_that_of_its_own_size():
    first, theta, flat, _, _ = full(np.float64)
    second = first.resized(Buckets(20), AllColumns())
    own = replace(first, rows=Buckets(20))
    small, large, wanted = (
        j(theta, flat, WEIGHTS, stream(5)) for j in (first.resized(Buckets(12), Groups(9)), second, own)
    )
    assert small.jacobian.shape == (12, 9)
    np.testing.assert_array_equal(large.jacobian, wanted.jacobian)
    assert second._buckets is first._buckets  # compiled once
    assert (second.chunk, second.batch, second.sub_batch) == (13, 16, 0)


def test_shares_side_by_side_are_shares_in_turn():
    sketching, theta, flat, _, _ = full(np.float64)
    in_turn = sketching(theta, flat, WEIGHTS, stream(5))
    side_by_side = contextvars.Context().run(sketching, theta, flat, WEIGHTS, stream(5))
    np.testing.assert_array_equal(side_by_side.jacobian, in_turn.jacobian)
    np.testing.assert_array_equal(side_by_side.residual, in_turn.residual)


@pytest.mark.parametrize("rows", [1, 5, 12])
@pytest.mark.parametrize("columns", [Groups(7), AllColumns()], ids=repr)
def test_rows_that_are_made_some_at_a_time_are_the_same(rows, columns):
    """12 rows in pieces of one, of five with two in the last, and all at once."""
    sketching, theta, flat, _, _ = full(np.float64)
    whole = sketching.resized(Buckets(12), columns)
    pieces = replace(whole, wide=rows * theta.nbytes + 3)
    one, two = (j(theta, flat, WEIGHTS, stream(5)) for j in (whole, pieces))
    assert two.jacobian.shape == (12, 7 if isinstance(columns, Groups) else theta.size)
    np.testing.assert_allclose(two.jacobian, one.jacobian, rtol=0, atol=1e-14 * np.abs(one.jacobian).max())
    np.testing.assert_allclose(two.residual, one.residual, rtol=0, atol=1e-14)


def test_rows_on_another_device_are_those_on_the_host(monkeypatch):
    sketching, theta, flat, _, _ = full(np.float64)
    here = sketching(theta, flat, WEIGHTS, stream(5))
    monkeypatch.setattr(choices, "here", lambda: choices.OTHER)
    for wide in (sketching.wide, 5 * theta.nbytes):
        there = replace(sketching, wide=wide)(theta, flat, WEIGHTS, stream(5))
        assert isinstance(there.jacobian, jax.Array) and isinstance(here.jacobian, np.ndarray)
        np.testing.assert_allclose(there.jacobian, here.jacobian, rtol=0, atol=1e-14 * np.abs(here.jacobian).max())
        np.testing.assert_allclose(there.residual, here.residual, rtol=0, atol=1e-14)


def test_sizes_of_batches_are_checked():
    res = full(np.float64)[0].residuals
    for name, value in {"chunk": 0, "batch": 0, "sub_batch": -1, "wide": 0}.items():
        with pytest.raises(ValueError, match=f"{name} must be at least"):
            Jacobian(res, Buckets(12), AllColumns(), **{name: value})
