"""Summaries: what a run reached, the floor of the precision, and what would help, rule by rule."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.solving import advice
from dsgnar.solving.stop import StopReason
from small import invented, problem

FLOOR = {"heat": 1e-8, "start": 1e-8}


def told(held_out=1e-2, trained=1e-2, dtype=np.float64, **changed) -> list[str]:
    """Advice for a run that ended with these root mean squares, far above a floor of 1e-8."""
    solution = invented(problem(), dtype=dtype, held_out=dict.fromkeys(FLOOR, held_out), **changed)
    last = dataclasses.replace(solution.outcome.history[-1], mean_squares=(trained**2,) * 2)
    outcome = dataclasses.replace(solution.outcome, history=(*solution.outcome.history[:-1], last))
    return advice.advise(dataclasses.replace(solution, outcome=outcome), FLOOR)


def test_single_precision_at_its_floor_asks_for_double():
    assert told(2e-8, 2e-8, np.float32) == ["single-precision floor reached: use precision='double'"]


def test_double_precision_at_its_floor_is_the_end():
    (sentence,) = told(2e-8, 2e-8)
    assert sentence.startswith("double-precision floor reached")


def test_a_run_that_stopped_at_the_floor_is_there_unless_its_points_were_too_few():
    assert told(2e-7, 2e-7, np.float32, stop=StopReason.FLOOR) == told(2e-8, 2e-8, np.float32)
    assert told(2e-7, 2e-8, np.float32, stop=StopReason.FLOOR)[0].startswith("too few points")


def test_the_single_precision_beginning_of_a_double_run_is_no_floor():
    solution = invented(problem(), stop=StopReason.ITERATIONS)
    early = dataclasses.replace(solution, thetas=solution.thetas.astype(np.float32))
    assert advice.advise(early, FLOOR) == ["not converged: raise max_iterations (now 2000), or resume"]


@pytest.mark.parametrize(
    ("stop", "sentence"),
    [
        (StopReason.ITERATIONS, "not converged: raise max_iterations (now 2000), or resume"),
        (StopReason.INTERRUPTED, "not converged: resume"),
        (StopReason.FAILED, "no usable step: start with a smaller radius (0.1)"),
    ],
)
def test_a_run_that_did_not_end_by_itself(stop, sentence):
    (said,) = told(stop=stop)
    assert said.startswith(sentence)


def test_a_limit_of_time_is_named():
    settings = dataclasses.replace(invented(problem()).outcome.settings, max_seconds=60.0)
    assert told(stop=StopReason.SECONDS, settings=settings) == ["not converged: raise max_seconds (now 60), or resume"]


def test_residuals_that_are_larger_between_the_points_ask_for_points():
    (sentence,) = told(held_out=1e-2, trained=1e-3)
    assert sentence.startswith("too few points: the residual of 'heat' is 10.0 times")
    assert "max_points (now 65536)" in sentence


@pytest.mark.parametrize(
    ("stop", "how"),
    [
        (StopReason.RADIUS, "radius collapsed"),
        (StopReason.STALLED, "loss stalled"),
        (StopReason.REJECTED, "steps were rejected"),
    ],
)
def test_an_end_above_the_floor_asks_for_a_larger_network_or_marching(stop, how):
    (sentence,) = told(stop=stop)
    assert (
        sentence == f"{how} well above the floor (residuals 1e+06 times): a larger network or sketch, "
        "points where residuals are large (adaptive=0.5), or time marching (intervals=4)"
    )


def failing(conditions, **options):
    """Advice for a problem on a line that cannot be solved as it is stated."""
    line = ds.Problem(ds.Box(x=(0, 1)), ("u",), conditions)
    run = dict(points=128, max_points=128, held_out=128, restarts=0) | options
    solution = ds.solve(line, network=ds.MLP(widths=(6,)), **run)
    assert solution.verdict == "failed"
    return " | ".join(advice.advise(solution, advice.floors(solution)))


def ends(**options):
    return {
        "left": ds.boundary(lambda u: u, faces=[("x", "lower")], **options),
        "right": ds.boundary(lambda u: u - 1, faces=[("x", "upper")]),
    }


def test_conditions_that_contradict_each_other_are_named():
    straight = {"pde": ds.interior(lambda u: u.xx)}
    both = {"other right": ds.boundary(lambda u: u - 2, faces=[("x", "upper")])}
    said = failing(straight | ends() | both)
    assert "do not hold together" in said and "'right'" in said and "'other right'" in said


def test_a_condition_that_was_weighted_away_is_named():
    fight = {"pde": ds.interior(lambda u: u.xx), "slope": ds.interior(lambda u: u.x - 2)}
    said = failing(fight | ends(weight=1e-9))
    assert "the weight of 'left' is far below" in said


def test_a_network_that_is_too_small_is_told_to_grow():
    waves = {"pde": ds.interior(lambda u, x: u.xx - 1e4 * jnp.sin(100 * x))}
    said = failing(waves | ends())
    assert "'pde'" in said and "larger network" in said


def test_an_error_that_is_small_enough_needs_no_other_advice():
    (said,) = told(stop=StopReason.TOLERANCE)
    assert said == "the error is small enough: tol= or enough=0 goes further"


@pytest.mark.parametrize("stop", StopReason)
def test_there_is_advice_for_every_end(stop):
    assert told(stop=stop)


def test_marching_is_not_proposed_twice():
    assert told(intervals=2)[0].endswith("points where residuals are large (adaptive=0.5)")


def test_training_residuals_of_a_march_are_those_of_its_worst_interval():
    history = invented(problem(), intervals=2).outcome.history  # mean squares fall from 1e-1 to 1e-20, ten records each
    np.testing.assert_allclose(advice.training(history, (1.0, 1.0)), [1e-5, 1e-5])


# --- the floor --------------------------------------------------------------------------------------------------------


def test_the_floor_is_the_rounding_of_the_residual():
    """It agrees with the difference between float32 and float64 residuals at the same parameters."""
    single = invented(problem(), dtype=np.float32, network=ds.MLP(widths=(10, 10)))
    floor = advice.floors(single)
    double = dataclasses.replace(single, thetas=single.thetas.astype(np.float64))
    points = np.random.default_rng(1).random((500, 2)).astype(np.float32).astype(np.float64)
    rounding = single.residual("heat")(x=points[:, 0], t=points[:, 1]) - double.residual("heat")(
        x=points[:, 0], t=points[:, 1]
    )
    assert 1 / 3 < floor["heat"] / np.sqrt(np.mean(rounding**2)) < 3
    ratio = floor["heat"] / advice.floors(double)["heat"]
    assert 2**27 < ratio < 2**31  # the unit roundoffs differ by 2^29


def test_the_loss_of_root_mean_squares_is_that_of_the_run():
    outcome = invented(problem()).outcome
    assert advice.weighted(outcome, {"heat": 0.2, "start": 0.1}) == pytest.approx(0.5 * (0.2**2 + 0.1**2))


def test_a_summary_says_it_all():
    text = invented(problem(), error=True).summary()
    for part in (
        "solved: all conditions hold; the largest residual is 1.0e-08 of its terms (heat)",
        "stopped: the trust-region radius fell below its minimum",
        "20 iterations, 60 loss evaluations, 40.0 s (+ 2.0 s compiling)",
        "heat   residual   1.0e-10  (",
        "start  violation  1.0e-10  (",
        "loss on held-out points 1.0e-20; the floor of double precision is ",
        "relative l2 error: u 5.00e-01",
        "advice: ",
    ):
        assert part in text, text


def test_a_solution_without_an_account_says_so():
    solution = dataclasses.replace(invented(problem()), outcome=None)
    assert "without an account" in solution.summary()


def test_the_largest_error_and_the_relative_one():
    solution = invented(problem())
    points = np.random.default_rng(0).random((50, 2))
    values = solution.at(points)[:, 0]
    off = values.copy()
    off[7] += 0.25
    reference = ds.Reference(points, {"u": off}, 0.0, "made up")
    assert solution.max_error(reference)["u"] == pytest.approx(0.25)
    assert solution.relative_l2(reference)["u"] == pytest.approx(0.25 / np.linalg.norm(off))
    gauged = ds.Reference(points, {"u": values + 3.0}, 0.0, "made up", gauge=("u",), groups={"all": ("u",)})
    assert solution.max_error(gauged)["u"] < 1e-12 and solution.max_error(gauged)["all"] < 1e-12
