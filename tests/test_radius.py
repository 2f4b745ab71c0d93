"""Searches for the radius with the target ratio, on curves whose answer is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import pchip_interpolate

from dsgnar.optimise.radius import Bracket, Probe, Probes, invert, monotone


def curve(ratio, limit=math.inf):
    """An evaluation function from a formula for the ratio; steps are never longer than `limit`."""

    def evaluate(radius: float) -> Probe:
        r = min(radius, limit)
        value = ratio(r)
        return Probe(r, 1.0, value, 1.0 - 0.1 * value, None, None, limit=radius > limit)

    return evaluate


def falling(middle):
    return curve(lambda r: 1.0 - (r / middle) ** 2)


@given(st.floats(-1.2, 1.2), st.sampled_from([0.1, 0.2, 0.5, 0.8]))
def test_bracket_finds_the_target_wherever_it_starts(offset, target):
    root = math.sqrt(1 - target)
    found = Bracket()(falling(1.0), root * 10**offset, target)
    assert abs(found.best.ratio - target) <= 0.25 * target
    assert len(found.probes) <= 9


@given(st.floats(-0.4, 0.4), st.sampled_from([0.1, 0.2, 0.5, 0.8]))
def test_probes_find_the_target_inside_their_span(offset, target):
    root = math.sqrt(1 - target)
    found = Probes()(falling(1.0), root * 10**offset, target)
    assert found.best.ratio == pytest.approx(target, abs=0.05)  # ratios below zero are cut off before interpolation
    assert len(found.probes) == 25


@pytest.mark.parametrize(("start", "end"), [(0.01, 0.03), (100.0, 100.0 / 3)])
def test_probes_stay_in_their_span(start, end):
    assert Probes()(falling(1.0), start, 0.5).best.radius == pytest.approx(end)
    wider = end * 5 / 3 if start < 1 else end * 3 / 5
    assert Probes(span=5.0)(falling(1.0), start, 0.5).best.radius == pytest.approx(wider)


def test_a_flat_curve_above_the_target_is_followed_outwards():
    assert Bracket()(curve(lambda r: 0.9), 1.0, 0.5).best.ratio == 0.9
    assert Probes()(curve(lambda r: 0.9), 1.0, 0.5).best.radius == pytest.approx(3.0)


def test_beyond_the_initial_radius_growth_is_limited():
    search = Bracket(free=1.0)
    assert search(curve(lambda r: 0.9), 2.0, 0.5).best.radius == pytest.approx(6.0)
    assert search(curve(lambda r: 0.9), 1e-4, 0.5).best.radius == pytest.approx(1.0)
    assert search(falling(10.0), 2.0, 0.5).best.radius == pytest.approx(6.0)
    assert search(falling(1.0), 2.0, 0.5).best.ratio == pytest.approx(0.5, rel=0.25)


def test_how_far_a_radius_may_grow_in_one_iteration_can_be_set():
    assert Bracket(free=1.0, reach=5.0)(curve(lambda r: 0.9), 2.0, 0.5).best.radius == pytest.approx(10.0)


@pytest.mark.parametrize("search", [Bracket(), Bracket(greedy=True), Probes()], ids=repr)
def test_a_step_of_length_zero_is_found_and_does_not_decrease(search):
    found = search(curve(lambda r: math.nan, limit=0.0), 1.0, 0.5)
    assert found.best.radius == 0.0 and not found.best.decreases(1.0)


def test_the_undamped_step_ends_the_search():
    found = Bracket()(curve(lambda r: 0.9, limit=1.5), 1.0, 0.5)
    assert found.best.radius <= 1.5
    assert len(found.probes) <= 3


def test_a_curve_that_is_never_positive_gives_its_shortest_step():
    found = Bracket(smallest=1e-3)(curve(lambda r: -1.0), 1.0, 0.5)
    assert not found.best.decreases(1.0)
    assert found.best.radius == min(p.radius for p in found.probes) >= 1e-3


def test_a_greedy_search_takes_the_smallest_loss_and_does_not_chase_a_ratio_out_of_reach():
    """The ratio stays at 0.4 however short the step, as when the sketch is noisy; the longest step gains most."""

    def evaluate(radius):
        return Probe(radius, 1.0, 0.4 if radius <= 1 else -0.1, 1.0 - 0.1 * radius if radius <= 1 else 1.1, None, None)

    patient, greedy = (Bracket(greedy=g, smallest=1e-6)(evaluate, 1.0, 0.8) for g in (False, True))
    assert greedy.best.radius == 1.0 and len(greedy.probes) == 2
    assert len(patient.probes) == 9
    found = Bracket(greedy=True)(falling(1.0), 3.0, 0.5)
    assert found.best.loss == min(p.loss for p in found.probes)


def test_losses_that_are_not_finite_count_as_too_far():
    found = Bracket()(curve(lambda r: math.nan if r > 0.3 else 0.5 - r / 100), 1.0, 0.5)
    assert found.best.radius <= 0.3
    assert found.best.ratio == pytest.approx(0.5, rel=0.25)


def test_monotone_and_inverse_against_scipy():
    ratios = monotone([0.9, 0.95, 0.7, math.nan, 0.4, -0.2])
    np.testing.assert_array_equal(ratios, [0.9, 0.9, 0.7, 0.0, 0.0, 0.0])
    radii = np.geomspace(1, 9, 6)
    clean = np.array([0.9, 0.8, 0.7, 0.4, 0.3, 0.1])
    expected = np.exp(pchip_interpolate(clean[::-1], np.log(radii[::-1]), 0.5))
    assert invert(clean, radii, 0.5) == pytest.approx(float(expected), rel=1e-12)
    assert radii[2] < invert(np.array([0.9, 0.9, 0.7, 0.4, 0.4, 0.0]), radii, 0.6) < radii[3]
