"""Points: on the right part, reproducible, spread as asked, and held-out ones apart from training ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsgnar.calculus.streams import stream
from dsgnar.problem.domain import Boundary, Box, Initial, Interior, Points
from dsgnar.problem.sampling import Near, held_out, prefer, sample

PLANE = Box(x=(-1, 3), y=(0, 0.5), t=(2, 5))
LINE = Box(x=(0, 1))
LOWER, UPPER = np.asarray(PLANE.bounds).T
LID = Boundary((("y", "upper"),))
PARTS = {"interior": Interior(), "initial": Initial(), "boundary": Boundary(), "lid": LID}
METHODS = ["uniform", "even", "sobol"]
every_part = pytest.mark.parametrize("part", PARTS)
every_method = pytest.mark.parametrize("method", METHODS)


def draw(part, count=100, seed=0, domain=PLANE, **options):
    return sample(PARTS.get(part, part), domain, count, stream(seed, "test"), **options)


@every_part
@every_method
@pytest.mark.parametrize("count", [1, 2, 7, 64, 100])
def test_points_lie_on_their_part(part, method, count):
    points = draw(part, count, method=method)
    assert points.shape == (count, 3) and points.dtype == np.float64
    assert PLANE.contains(points).all()
    if part == "initial":
        assert (points[:, 2] == 2).all()
    if part == "lid":
        assert (points[:, 1] == 0.5).all()
    if part == "boundary":
        on = [(points[:, i] == PLANE.bounds[i][side]) for i in (0, 1) for side in (0, 1)]
        assert np.any(on, axis=0).all()


@every_method
def test_the_faces_of_a_boundary_share_the_points(method):
    points = draw("boundary", 402, method=method)
    counts = np.array([(points[:, i] == PLANE.bounds[i][side]).sum() for i in (0, 1) for side in (0, 1)])
    assert (counts >= 100).all()
    if method != "even":  # whose points lie on edges, too
        assert sorted(counts) == [100, 100, 101, 101]


@every_part
@every_method
def test_points_fill_their_part(part, method):
    points = draw(part, 512, method=method)
    for i in range(3):
        if np.ptp(points[:, i]):
            unit = (points[:, i] - LOWER[i]) / (UPPER[i] - LOWER[i])
            assert abs(unit.mean() - 0.5) < 0.06
            assert unit.min() < 0.1 and unit.max() > 0.9


def test_even_points_include_the_ends():
    np.testing.assert_allclose(draw(Interior(), 5, domain=LINE, method="even")[:, 0], [0, 0.25, 0.5, 0.75, 1])
    lattice = draw("lid", 16, method="even")
    np.testing.assert_allclose(np.unique(lattice[:, 0]), np.linspace(-1, 3, 4))
    np.testing.assert_allclose(np.unique(lattice[:, 2]), np.linspace(2, 5, 4))
    assert len(np.unique(draw("interior", 50, method="even"), axis=0)) == 50


def test_sobol_points_are_spread_better_than_random_ones():
    """Every one of 256 equal boxes along x and t holds exactly one of 256 points."""
    points = draw("lid", 256, method="sobol")
    cells = np.floor((points - LOWER) / (UPPER - LOWER) * [16, 1, 16])[:, [0, 2]]
    assert len(np.unique(cells, axis=0)) == 256
    random = np.floor((draw("lid", 256) - LOWER) / (UPPER - LOWER) * [16, 1, 16])[:, [0, 2]]
    assert len(np.unique(random, axis=0)) < 200


@every_method
def test_concentration_near_a_face_and_a_corner(method):
    points = draw("interior", 1000, method=method, near=(Near((("y", "upper"),), 0.1, 0.4),))
    assert len(points) == 1000
    close = (points[:, 1] >= 0.45).mean()
    assert 0.4 <= close <= 0.4 + 0.6 * 0.2
    corner = Near((("x", "lower"), ("y", "upper")), width=0.05, share=0.3)
    points = draw("interior", 1000, method=method, near=(corner, Near((("t", "lower"),), 0.1, 0.3)))
    assert ((points[:, 0] <= -0.8) & (points[:, 1] >= 0.475)).sum() >= 300
    assert (points[:, 2] <= 2.3).sum() >= 300
    assert PLANE.contains(points).all()


def test_concentration_on_a_boundary_takes_the_faces_that_are_near():
    points = draw("boundary", 100, near=(Near((("x", "lower"),), 0.1, 0.5),))
    assert (points[:, 0] <= -0.6).sum() >= 50
    with pytest.raises(ValueError, match="no piece of the face y=upper lies near the faces of the concentration"):
        draw("lid", near=(Near((("y", "lower"),), 0.1, 0.5),))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Near((("x", "lower"),), width=0.0), "the width 0.0 must lie between 0 and 1"),
        (lambda: Near((("x", "lower"),), share=1.0), "the share 1.0 must lie between 0 and 1"),
        (lambda: Near((("x", "left"),)), r"faces are \(\(axis, 'lower' or 'upper'\), ..\), not"),
        (lambda: Near(("x", "lower")), "faces are"),
        (lambda: Near(()), "faces are"),
        (
            lambda: draw("interior", method="random"),
            "sampling must be one of uniform, even, sobol, clustered, not 'random'",
        ),
        (lambda: draw("interior", near=(Near((("z", "lower"),)),)), "there is no axis 'z'; the domain has x, y, t"),
        (lambda: draw("interior", near=(Near((("x", "lower"),), share=0.6),) * 2), "add up to more than 1"),
        (lambda: draw(Initial(), domain=LINE), "the domain has no time axis"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@every_part
@every_method
def test_one_seed_is_one_set_of_points(part, method):
    first, again, other = (draw(part, 50, seed, method=method) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert method == "even" or np.any(first != other)


def test_purposes_have_streams_of_their_own():
    draws = [stream(0, *purpose).random() for purpose in [(), ("a",), ("b",), ("a", 1), ("a", 2), (1,)]]
    assert len(set(draws)) == 6
    assert stream(1, "a").random() != stream(0, "a").random() == stream(0, "a").random()


@every_part
@every_method
def test_held_out_points_are_no_training_points_in_either_precision(part, method):
    training = draw(part, 500, method=method)
    for dtype in (np.float32, np.float64):
        points = held_out(PARTS[part], PLANE, 300, stream(0, "held out"), training, dtype)
        assert points.shape == (300, 3) and PLANE.contains(points).all()
        taken = set(map(tuple, training.astype(dtype).tolist()))
        assert not taken & set(map(tuple, points.astype(dtype).tolist()))
    both = [held_out(PARTS[part], PLANE, 300, stream(0, "held out"), training, d) for d in (np.float32, np.float64)]
    np.testing.assert_array_equal(*both)  # one seed, one set of points, up to rounding


@every_part
def test_held_out_points_of_uniform_density_do_not_depend_on_the_method(part):
    """Even and Sobol points are uniform; independent ones are their fair test."""
    training = draw(part, 500)
    ask = lambda **options: held_out(PARTS[part], PLANE, 300, stream(0, "h"), training, np.float32, **options)
    for method in METHODS:
        np.testing.assert_array_equal(ask(method=method, periodic=("x",)), ask())
    assert np.any(ask(method="clustered") != ask())


@pytest.mark.parametrize("clash", [False, True])
def test_held_out_points_of_a_clustered_condition_are_clustered(clash):
    """Also those that replace points which are training points."""
    domain = Box(x=(-1, 3), t=(0, 2))
    same = stream(0 if clash else 1)
    training = sample(Interior(), domain, 20_000, same, "clustered", periodic=("x",))
    options = {"method": "clustered", "periodic": ("x",)}
    points = held_out(Interior(), domain, 20_000, stream(0), training, np.float64, **options)
    x, t = (points[:, 0] + 1) / 4, points[:, 1] / 2
    for share in (0.01, 0.1, 0.5, 0.9):
        assert np.mean(x < share) == pytest.approx(share, abs=0.015)
        assert np.mean(t < share) == pytest.approx(2 / np.pi * np.arcsin(np.sqrt(share)), abs=0.015)


@pytest.mark.parametrize("clashes", [3, 1000])
def test_points_held_out_anew_keep_their_concentrations(clashes):
    """Three points in two concentrations of one half each would round to four."""
    near = (Near((("x", "lower"),), 0.1, 0.5), Near((("y", "upper"),), 0.1, 0.5))
    training = draw("interior", 1000, near=near)[:clashes]
    points = held_out(Interior(), PLANE, 1000, stream(0, "test"), training, np.float64, near)
    assert not set(map(tuple, training.tolist())) & set(map(tuple, points.tolist()))
    assert (points[:500, 0] <= -0.6).all() and (points[500:, 1] >= 0.45).all()


@given(bits=st.integers(2, 5), seed=st.integers(0, 100))
def test_held_out_points_stay_apart_where_rounding_leaves_few_points(bits, seed):
    """On an interval of 2^bits + 1 numbers of float32, some of which are training points."""
    domain = Box(x=(1.0, 1.0 + 2.0**bits * 2.0**-23))
    training = sample(Interior(), domain, 3, stream(seed, "training"))
    points = held_out(Interior(), domain, 40, stream(seed, "held out"), training, np.float32)
    assert not np.isin(points.astype(np.float32), training.astype(np.float32)).any()


def test_a_part_too_small_to_hold_points_out_gives_those_that_it_has():
    tiny = Box(x=(1.0, 1.0 + 2.0**-23))
    training = np.array([[1.0], [1.0 + 2.0**-23]])
    points = held_out(Interior(), tiny, 5, stream(0), training, np.float32)
    assert points.shape == (5, 1) and tiny.contains(points).all()
    ends = sample(Boundary(), LINE, 4, stream(0))
    np.testing.assert_array_equal(held_out(Boundary(), LINE, 4, stream(1), ends, np.float64), ends)
    given_points = Points({"x": [0.25, 0.5]})
    np.testing.assert_array_equal(held_out(given_points, LINE, 9, stream(0), ends, np.float64), [[0.25], [0.5]])


def test_zero_has_one_sign():
    domain = Box(x=(0, 1e-300), y=(0, 1))
    part = Boundary((("x", "lower"), ("y", "lower")))
    training = sample(part, domain, 50, stream(0))
    flipped = np.where(training == 0, -0.0, training)
    points = held_out(part, domain, 50, stream(0), flipped, np.float64)
    assert not set(map(tuple, training.tolist())) & set(map(tuple, points.tolist()))


def test_given_points():
    points = draw(Points({"t": 3, "x": [-1, 0, 3], "y": 0.5}))
    np.testing.assert_array_equal(points, [[-1, 0.5, 3], [0, 0.5, 3], [3, 0.5, 3]])
    grid = draw(Points({"x": np.zeros((2, 1)), "y": np.full((1, 3), 0.1), "t": 2.0}))
    assert grid.shape == (6, 3)


def test_clustered_points_follow_the_arcsine_law_on_axes_that_are_not_periodic():
    domain = Box(x=(-1, 3), t=(0, 2))
    points = sample(Interior(), domain, 20_000, stream(0), "clustered", periodic=("x",))
    x, t = (points[:, 0] + 1) / 4, points[:, 1] / 2
    for share in (0.01, 0.1, 0.5, 0.9):
        assert np.mean(x < share) == pytest.approx(share, abs=0.015)
        assert np.mean(t < share) == pytest.approx(2 / np.pi * np.arcsin(np.sqrt(share)), abs=0.015)
    both = sample(Interior(), domain, 20_000, stream(0), "clustered")
    assert np.mean(both[:, 0] < -0.96) == pytest.approx(2 / np.pi * np.arcsin(0.1), abs=0.01)


def test_large_entries_are_preferred():
    size = np.r_[np.ones(900), np.full(100, 81.0)]
    chosen = prefer(size, 50, stream(0))
    assert len(set(chosen)) == 50 and np.mean(chosen >= 900) > 0.75  # 90 % of the weight, less what is used up
    for nothing in (np.zeros(10), np.full(10, np.nan), np.r_[1.0, np.zeros(9)]):
        assert len(set(prefer(nothing, 5, stream(0)))) == 5
