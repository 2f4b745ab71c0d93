"""Sketches: isometry in expectation, adjointness, and equality with their matrices."""

import jax
import numpy as np
import pytest

from dsgnar.calculus.streams import stream
from dsgnar.optimise.sketch import SRCT, AllColumns, AllRows, Buckets, CountSketch, Groups, dense

COUNTS = (23, 7)


def test_a_limited_depth_leaves_residuals_out_and_keeps_full_buckets():
    tables = Buckets(10, depth=4).draw(stream(0), (200, 100))
    assert [t.kept for t in tables] == [30, 10]  # 4 = 3 + 1, in proportion
    assert all((t.sign != 0).all() and len(np.unique(t.index)) == t.kept for t in tables)
    assert [t.kept for t in Buckets(10, depth=4).draw(stream(0), (25, 3))] == [25, 3]  # never more than there are


@pytest.mark.parametrize(
    "sketch", [Buckets(10), Buckets(4, 3), CountSketch(10, 1), CountSketch(10, 4), AllRows()], ids=repr
)
def test_rows_are_an_isometry_in_expectation(sketch):
    total = sum(COUNTS)
    mean = np.zeros((total, total))
    draws = 3000
    for k in range(draws):
        c = dense(sketch.draw(stream(k), COUNTS), sketch.rows(total))
        mean += c.T @ c / draws
    assert np.abs(mean - np.eye(total)).max() < 6 / np.sqrt(draws)


def test_every_residual_goes_to_one_bucket_and_buckets_are_equally_full():
    tables = Buckets(10).draw(stream(0), COUNTS)
    for table, count in zip(tables, COUNTS, strict=True):
        assert sorted(table.index[table.sign != 0]) == list(range(count))
        full = (table.sign != 0).sum(axis=1)
        assert full.max() - full.min() <= 1


def test_an_empty_slot_repeats_a_residual_of_its_own_bucket():
    (table,) = Buckets(10).draw(stream(0), (23,))
    empty = table.sign[:, 2] == 0
    assert empty.sum() == 7
    for index in table.index[empty]:
        assert index[2] in index[:2]


def test_small_conditions_do_not_always_fill_the_same_buckets():
    filled = {tuple(np.flatnonzero(Buckets(10).draw(stream(k), (3,))[0].sign[:, 0])) for k in range(20)}
    assert len(filled) > 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sketch", [SRCT(12), Groups(12), Groups(37), AllColumns()], ids=repr)
def test_lifting_is_the_adjoint_of_compressing_and_keeps_lengths(sketch, dtype):
    d, rng = 37, np.random.default_rng(0)
    operator = sketch.draw(stream(3), d)
    x = rng.normal(size=d).astype(dtype)
    compressed = np.asarray(jax.jit(sketch.apply)(operator, x))
    y = rng.normal(size=compressed.shape).astype(dtype)
    lifted = np.asarray(jax.jit(sketch.lift, static_argnums=2)(operator, y, d))
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    assert lifted.dtype == dtype
    assert compressed @ y == pytest.approx(x @ lifted, rel=tolerance, abs=tolerance)
    assert np.linalg.norm(lifted) == pytest.approx(np.linalg.norm(y), rel=tolerance)


@pytest.mark.parametrize("sketch", [SRCT(12), Groups(12)], ids=repr)
def test_column_sketches_keep_lengths_in_expectation(sketch):
    d, apply = 37, jax.jit(sketch.apply)
    x = np.random.default_rng(0).normal(size=d)
    kept = [np.sum(np.asarray(apply(sketch.draw(stream(k), d), x)) ** 2) for k in range(600)]
    assert np.mean(kept) == pytest.approx(sketch.size / d * np.sum(x**2), rel=0.05)


def test_groups_share_out_all_parameters_evenly():
    member, weight = Groups(12).draw(stream(0), 37)
    assert sorted(member[weight != 0]) == list(range(37))
    assert set(np.count_nonzero(weight, axis=0)) == {3, 4}
    assert {*np.sign(weight[weight != 0])} == {-1, 1}


@pytest.mark.parametrize("sketch", [SRCT(12), Groups(12)], ids=repr)
def test_a_sketch_wider_than_the_parameters_is_refused(sketch):
    with pytest.raises(ValueError, match="12 columns.*only 5 parameters"):
        sketch.draw(stream(0), 5)


@pytest.mark.parametrize("depth", [None, 8])
def test_conditions_of_few_residuals_have_rows_of_their_own(depth):
    sketch, counts = Buckets(40, depth), (500, 2, 250, 1)
    C = dense(sketch.draw(np.random.default_rng(0), counts), 40)
    ends, point, others = C[:, 500:502], C[:, 752:], np.concatenate([C[:, :500], C[:, 502:752]], axis=1)
    alone = np.flatnonzero(np.abs(np.concatenate([ends, point], axis=1)).sum(axis=1))
    assert len(alone) == 3 and not others[alone].any()
    assert np.abs(ends).sum() == 2 and np.abs(point).sum() == 1
    assert np.delete(np.abs(others).sum(axis=1), alone).min() > 0


def test_many_small_conditions_share_buckets_again():
    tables = Buckets(8).draw(
        np.random.default_rng(0), (3, 3, 3)
    )  # nine residuals do not fit into a quarter of eight rows
    assert all(table.kept == 3 for table in tables)
    assert Buckets(8)._alone((3, 3, 3)) == (0, 0, 0) and Buckets(8)._alone((1, 3, 100)) == (1, 0, 0)
