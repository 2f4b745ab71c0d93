"""Reweighting and the rules that decide what is in force when."""

import dataclasses
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsgnar as ds
from dsgnar.optimise.optimiser import State, Step
from dsgnar.optimise.weights import Reweighting
from dsgnar.solving.loop import ends_soon
from dsgnar.solving.method import Method
from dsgnar.solving.settings import Settings
from dsgnar.solving.stages import Rising, Schedule
from dsgnar.solving.stop import StopReason


@given(st.lists(st.floats(1e-12, 1e3), min_size=2, max_size=5), st.integers(0, 10))
def test_weights_keep_mean_one_and_move_towards_equal_losses(mean_squares, seed):
    weights = np.random.default_rng(seed).uniform(0.1, 2, len(mean_squares))
    weights /= weights.mean()
    ms = np.array(mean_squares)
    new = Reweighting(exponent=0.05, floor=0.0)(ms, weights)
    assert new.mean() == pytest.approx(1.0)
    order = np.argsort(weights * ms)
    assert np.all(np.diff((new / weights)[order]) <= 1e-12)  # the larger the loss, the more its weight falls


def test_repeated_reweighting_equalises():
    ms, weights = np.array([1e-3, 1.0, 30.0]), np.ones(3)
    for _ in range(300):
        weights = Reweighting()(ms, weights)
    assert weights * ms == pytest.approx(np.full(3, (weights * ms).mean()), rel=1e-3)


def test_weights_survive_losses_that_are_zero_or_not_finite():
    weights = np.array([0.5, 1.5])
    np.testing.assert_array_equal(Reweighting()(np.array([np.nan, 1.0]), weights), weights)
    np.testing.assert_array_equal(Reweighting()(np.zeros(2), weights), weights)


def valley(noise, seed=0, n=160, lowest=100):
    rng = np.random.default_rng(seed)
    k = np.arange(n)
    return tuple(10.0 ** (-25 + 0.2 * np.abs(k - lowest) + noise * rng.standard_normal(n)))


@pytest.mark.parametrize("seed", range(5))
def test_the_switch_fires_after_the_minimum_of_lambda(seed):
    lams = valley(0.5, seed)
    rule = Rising(wait=0, window=30)
    fired = next(k for k in range(len(lams)) if rule(lams[:k]))
    assert 105 <= fired <= 135


def test_the_switch_waits_and_does_not_fire_on_noise_around_a_fall():
    rng = np.random.default_rng(1)
    falling = tuple(10.0 ** (-0.2 * np.arange(150) + rng.standard_normal(150)))
    rule = Rising(wait=80, window=30)
    assert not any(rule(falling[:k]) for k in range(150))
    assert not rule(valley(0.0)[100:150])  # rising, but before the wait is over
    assert not rule((1e-5,) * 100)  # constant


@pytest.mark.parametrize("nothing", [np.nan, 0.0, np.inf])
def test_an_iteration_without_a_lambda_does_not_switch(nothing):
    """nan counted as 1 and 0 as 1e-300: one of them at the end, or at the start, of a falling window was a rise."""
    falling = tuple(10.0 ** (-20 - 0.05 * np.arange(29)))
    rule = Rising(wait=0, window=30)
    assert not rule((*falling, nothing))
    assert not rule((nothing, *falling))
    assert not rule((*falling[:10], nothing, *falling[11:25], nothing, *falling[26:], nothing))


def test_the_switch_fires_although_some_iterations_have_no_lambda():
    rising = 10.0 ** (-25 + 0.2 * np.arange(30.0))
    rule = Rising(wait=0, window=30)
    assert rule(tuple(rising))
    rising[[0, 7, 8, 20, 29]] = [np.nan, 0.0, np.nan, np.nan, 0.0]
    assert rule(tuple(rising))
    rising[4:] = np.nan  # too few to tell
    assert not rule(tuple(rising))


def step(loss=1.0, lam=1.0, accepted=True, ratio=0.5, problem=""):
    return Step(loss, ratio, 0.2, lam, 1.0, accepted, 3, problem)


def state(radius=1.0, iteration=100, failures=0):
    return State(np.zeros(3), np.ones(2), radius, iteration, np.ones(2), failures=failures)


def chosen(**settings) -> Method:
    """The method that settings choose."""
    return Settings(**settings).chosen_method()


FAST = chosen(max_points=2**14)
RULES = Schedule(FAST, "single")
PAPER_RULES = Schedule(chosen(method="paper"), "single")


def switches_at(rules, lams):
    """After how many iterations stage 1 ends; None if it does not."""
    plan = rules.start()
    for k, lam in enumerate(lams, 1):
        plan, _, _ = rules.after(plan, state(iteration=k), step(lam=lam), None)
        if plan.stage == 2:
            return k
    return None


def test_stage_one_goes_on_until_lambda_has_fallen():
    """Lambda that rises from 1e-6 is noise: Burgers' equation with a sharp front ended at 7e-5 instead of 1e-7."""
    rules = Schedule(chosen(precision="double", method=dataclasses.replace(ds.FAST, fallen=1e-10)), "double")
    method, low = rules.method, valley(0.0, n=400, lowest=50)
    assert method.wait <= switches_at(rules, low) <= method.wait + method.window
    assert switches_at(rules, 1e19 * np.array(low[:190])) is None  # down to 1e-6, and up again
    assert switches_at(rules, 1e-6 * 1.01 ** np.arange(400)) == method.long_wait
    assert switches_at(rules, np.array([1e-12, *1e-6 * 1.01 ** np.arange(399)])) == method.long_wait  # one is chance
    for name in ("fast", "paper"):
        other = Schedule(chosen(method=name, precision="double"), "double")
        assert switches_at(other, 1e-6 * 1.01 ** np.arange(400)) == other.method.wait


@pytest.mark.parametrize(("fallen_loss", "loss", "stage"), [(1e-3, 1e-4, 2), (1e-3, 1e-2, 1), (1.0, 1e-4, 1)])
def test_stage_two_begins_while_there_is_time(fallen_loss, loss, stage):
    rules = Schedule(chosen(precision="double", method=dataclasses.replace(ds.FAST, fallen_loss=fallen_loss)), "double")
    plan = dataclasses.replace(rules.start(), lams=(1.0,) * 11, losses=(1.0,) * 11)
    at = partial(rules.after, plan, state(iteration=12), step(lam=1.0, loss=loss), None, lambda: False)
    assert at(False).plan.stage == 1 and at(True).plan.stage == stage


def test_lambda_that_came_near_and_has_risen_far_ends_the_long_wait():
    """Two solitons: lambda turned round at 3e-10, and stage 1 went on for another 150 iterations."""
    rules = Schedule(chosen(precision="double", method=dataclasses.replace(ds.FAST, fallen=1e-10)), "double")
    down, up = np.logspace(-3, -9.5, 60), np.logspace(-9.5, -6, 140)
    assert 60 < switches_at(rules, np.concatenate([down, up])) < 150
    little = np.concatenate([down, np.full(140, 10**-9.5) * 1.01 ** np.arange(140)])  # by a factor of four
    assert switches_at(rules, little) == rules.method.long_wait


@pytest.mark.parametrize("gap, grows", [(1.0, False), (1.2, True)])
def test_points_are_added_at_the_end_only_if_those_there_are_fitted(gap, grows):
    """A loss that is the same at new points is what the network can do: more points would not change it."""
    plan = dataclasses.replace(plan_in_stage(RULES, 3), retreats=FAST.retreats, gaps=(gap,) * FAST.gaps)
    after, _, stop = RULES.after(plan, state(radius=1e-9), step(loss=1e-12), gap)
    assert (after.points > plan.points) == grows
    assert stop is None  # another sketch is tried first


def plan_in_stage(rules, stage):
    return dataclasses.replace(rules.start(), stage=stage, radius_at_switch=0.7, loss_at_switch=1e-3)


def test_stage_two_hands_over_to_stage_three_which_knows_the_gradient():
    plan, after, stop = RULES.after(plan_in_stage(RULES, 2), state(radius=1e-9), step(loss=1e-12), None)
    assert stop is None and plan.stage == 3 and plan.points == FAST.points
    assert after.radius > FAST.minimum_radius
    assert RULES.exact(plan) and not RULES.exact(plan_in_stage(RULES, 2))


def test_the_target_rises_in_stage_two():
    targets = targets_of_stage_two(RULES)
    assert targets[0] == 0.5 and targets[-1] == 0.8 == FAST.targets[1]
    assert np.all(np.diff(targets) >= 0)
    assert RULES.target(plan_in_stage(RULES, 1)) == FAST.targets[0]
    assert set(targets_of_stage_two(PAPER_RULES)) == {0.5}


def test_the_paper_has_the_target_of_stage_two_at_once():
    """Whatever it is: it was reached by way of 0.5."""
    rules = Schedule(chosen(method="paper", targets=(0.2, 0.8)), "single")
    assert set(targets_of_stage_two(rules)) == {0.8}
    assert rules.target(plan_in_stage(rules, 1)) == 0.2


def targets_of_stage_two(rules):
    """Of the first iterations, until the ramp of `fast` is over and beyond."""
    plans = (dataclasses.replace(plan_in_stage(rules, 2), lams=(1e-9,) * k) for k in range(2 * FAST.ramp))
    return [rules.target(plan) for plan in plans]


@pytest.mark.parametrize("stage", [2, 3])
def test_a_loss_that_is_down_to_rounding_ends_the_run(stage):
    stop = RULES.after(plan_in_stage(RULES, stage), state(radius=1e-9), step(loss=1e-13), None, lambda: True)[2]
    assert stop is StopReason.FLOOR and stop.converged
    going_on = RULES.after(plan_in_stage(RULES, stage), state(), step(loss=1e-13), None, lambda: True)[2]
    assert going_on is None


def test_a_switch_that_came_too_early_is_taken_back():
    plan, after, stop = RULES.after(plan_in_stage(RULES, 3), state(radius=1e-9), step(loss=0.9e-3), None)
    assert stop is None and plan.stage == 1 and plan.retreats == 1
    assert after.radius == 0.7


def test_a_stage_three_that_ran_its_course_gets_more_points_and_then_stops():
    plan, after, stop = RULES.after(plan_in_stage(RULES, 3), state(radius=1e-9), step(loss=1e-12), None)
    assert stop is None and plan.stage == 3 and plan.points == FAST.max_points
    for _ in range(FAST.tries):
        plan, after, stop = RULES.after(plan, state(radius=1e-9), step(loss=1e-12), None)
        assert stop is None and after.radius > FAST.minimum_radius
    assert RULES.after(plan, state(radius=1e-9), step(loss=1e-12), None)[2] is StopReason.RADIUS


def test_points_are_added_when_the_held_out_gap_opens():
    def after(*gaps, stage=1):
        plan = plan_in_stage(RULES, stage)
        for gap in gaps:
            plan = RULES.after(plan, state(), step(), gap)[0]
        return plan.points

    assert after(1.05, 1.05, 1.05, 1.05) == FAST.points
    assert after(3.0, 1.0) == FAST.points  # too few to tell
    assert after(2.0, 1.2, 1.5) == FAST.max_points
    assert after(3.1, stage=2) == FAST.max_points  # wide at once, where the loss falls fast
    assert after(2.9, stage=2) == after(3.1) == FAST.points


def test_the_paper_has_neither_rule():
    early = plan_in_stage(PAPER_RULES, 2)
    assert PAPER_RULES.after(early, state(radius=1e-9), step(loss=0.9e-3), 99.0)[2] is StopReason.RADIUS


def test_double_precision_begins_in_single():
    for method, at_large_lambda in (("paper", "double"), ("fast", "single")):
        rules = Schedule(chosen(method=method, precision="double"), "double")
        assert rules.start().precision == "single"
        assert rules.after(rules.start(), state(iteration=9), step(lam=1e-20), None)[0].precision == "single"
        assert rules.after(rules.start(), state(iteration=10), step(lam=1e-20), None)[0].precision == "double"
        assert rules.after(rules.start(), state(iteration=10), step(lam=1.0), None)[0].precision == at_large_lambda


def test_persistent_failure_is_reported():
    stop = RULES.after(RULES.start(), state(failures=10), step(accepted=False, ratio=np.nan), None)[2]
    assert stop is StopReason.FAILED and not stop.converged and "not finite" in stop.sentence


def rejected(rules, stage, loss=1e-12):
    """What ten rejections in a row lead to, with a radius far above its minimum."""
    return rules.after(
        plan_in_stage(rules, stage), state(failures=10), step(loss=loss, accepted=False, ratio=-0.2), None
    )


def test_rejections_in_a_row_are_not_called_a_radius_that_collapsed():
    for rules, stage in ((RULES, 1), (PAPER_RULES, 1), (PAPER_RULES, 2)):
        assert rejected(rules, stage).stop is StopReason.REJECTED
        one_less = rules.after(plan_in_stage(rules, stage), state(failures=9), step(accepted=False, ratio=-0.2), None)
        assert one_less.stop is None
    assert not StopReason.REJECTED.converged and "rejected" in StopReason.REJECTED.sentence
    assert StopReason.REJECTED.hands_over  # a march goes on: other points, another network
    assert not StopReason.REJECTED.is_limit  # there is nothing to resume
    both = RULES.after(RULES.start(), state(radius=1e-9, failures=10), step(accepted=False, ratio=-0.2), None)
    assert both.stop is StopReason.RADIUS  # where that is what happened


def test_rejections_in_a_row_lead_to_what_a_collapsed_radius_leads_to():
    plan, after, stop = rejected(RULES, 2)
    assert stop is None and plan.stage == 3 and after.failures == 0
    plan, after, stop = rejected(RULES, 3)
    assert stop is None and plan.stage == 3 and plan.points == FAST.max_points and after.failures == 0
    plan, after, stop = rejected(RULES, 3, loss=0.9e-3)  # the loss has hardly fallen since the switch
    assert stop is None and plan.stage == 1 and plan.retreats == 1 and after.radius == 0.7
    at_floor = RULES.after(plan_in_stage(RULES, 2), state(failures=10), step(accepted=False), None, lambda: True)
    assert at_floor.stop is StopReason.FLOOR
    all_points = dataclasses.replace(plan_in_stage(RULES, 3), points=FAST.max_points, tries=FAST.tries)
    last = RULES.after(all_points, state(failures=10), step(loss=1e-12, accepted=False), None)
    assert last.stop is StopReason.REJECTED


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (dict(precision="half"), "precision"),
        (dict(method="slow"), "method"),
        (dict(sketch=0), "sketch"),
        (dict(targets=(0.1, 1.5)), "targets"),
        (dict(minimum_radius=-1.0), "minimum_radius"),
    ],
)
def test_settings_are_checked(bad, message):
    with pytest.raises(ValueError, match=message):
        Settings(**bad)


def test_a_sketch_larger_than_the_network_is_refused():
    with pytest.raises(ValueError, match="sketch .500. must not exceed .* .100."):
        Settings(sketch=500).resolve(100)


def test_a_stall_soon_after_the_switch_is_taken_back_too():
    stalled = dataclasses.replace(plan_in_stage(RULES, 3), losses=(0.9e-3,) * (FAST.stall + 1))
    plan, after, stop = RULES.after(stalled, state(), step(loss=0.9e-3), None)
    assert stop is None and plan.stage == 1 and plan.retreats == 1 and after.radius == 0.7


def undamped(rules, lams, precision="single", first=1.0):
    plan = dataclasses.replace(rules.start(), lams=lams, losses=(first,) * len(lams), precision=precision)
    return rules.after(plan, state(), dataclasses.replace(step(loss=1e-3), lam=0.0), None).plan.stage


def test_stage_one_ends_where_steps_need_no_damping():
    falling = tuple(10.0 ** -np.arange(20))
    assert undamped(RULES, (*falling, 1e-15, 0.0)) == 2
    assert undamped(RULES, (*falling, 1e-12, 0.0)) == 1  # one of the last three was damped
    assert undamped(RULES, (1e-15,) * 5) == 1  # too early: the first steps of a run may need none
    assert undamped(PAPER_RULES, (*falling, 1e-15, 0.0)) == 1
    double = Schedule(chosen(precision="double"), "double")
    assert undamped(double, (*falling, 1e-29, 0.0)) == 1  # in single precision it means nothing
    assert undamped(double, (*falling, 1e-29, 0.0), "double") == 2
    lower = Schedule(dataclasses.replace(FAST, fallen_loss=0.01), "single")
    assert undamped(lower, (*falling, 1e-15, 0.0)) == 2
    assert undamped(lower, (*falling, 1e-15, 0.0), first=0.09) == 1  # the loss has not fallen far enough


@pytest.mark.parametrize(
    ("limit", "times", "soon"), [(30.0, (0.0, 1.0), True), (90.0, (0.0, 1.0), False), (30.0, (0.0, 0.5), False)]
)
def test_a_limit_is_near_where_twenty_iterations_do_not_fit(limit, times, soon):
    records = tuple(SimpleNamespace(seconds=float(k)) for k in range(1, 21))
    run = SimpleNamespace(
        history=records, times=times, seconds=SimpleNamespace(solve=20.0), interval=0,
        iterate=SimpleNamespace(iteration=20), plan=SimpleNamespace(begun=0),
    )  # fmt: skip
    context = SimpleNamespace(
        settings=SimpleNamespace(max_seconds=limit), problem=SimpleNamespace(inverse=False),
        collocation=SimpleNamespace(marching=True), march=SimpleNamespace(times=(0.0, 1.0)),
    )  # fmt: skip
    assert ends_soon(context, run) is soon
    early = SimpleNamespace(**vars(run) | {"plan": SimpleNamespace(begun=15)})
    assert not ends_soon(context, early)
