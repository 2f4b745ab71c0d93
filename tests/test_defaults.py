"""What `solve(problem)` does by itself: precision, network and points that suit the problem, and other attempts."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.networks import Inputs
from dsgnar.solving import attempts, intervals, judging
from dsgnar.solving.context import Context
from dsgnar.solving.estimate import Estimate
from dsgnar.solving.settings import ENOUGH, Settings, with_options
from dsgnar.solving.stop import StopReason
from dsgnar.storing.checkpoints import decode, encode

TINY_POINTS = dict(points=64, max_points=64, held_out=64)
TINY = dict(network=ds.MLP(widths=(4,)), **TINY_POINTS)


def fin():
    """A cooling fin, in millimetres and kelvin."""
    return ds.Problem(
        ds.Box(x=(0, 80)),
        ("T",),
        {
            "balance": ds.interior(lambda T: T.xx - 1e-3 * (T - 293)),
            "base": ds.boundary(lambda T: T - 450, faces=[("x", "lower")]),
            "tip": ds.boundary(lambda T: T.x, faces=[("x", "upper")]),
        },
    )


def decay():
    return ds.Problem(
        ds.Box(t=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.t + u), "start": ds.initial(lambda u: u - 1)}
    )


def exact(x):
    m = np.sqrt(1e-3)
    return 293 + 157 * np.cosh(m * (80 - x)) / np.cosh(m * 80)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_fin_is_solved(precision):
    solution = ds.solve(fin(), precision=precision)
    x = np.linspace(0, 80, 101)
    error = np.linalg.norm(solution(x=x) - exact(x)) / np.linalg.norm(exact(x))
    assert solution.verdict == "solved" and error < (2e-6 if precision == "single" else 1e-12)


def test_precision_and_points_follow_the_problem():
    plane = ds.Problem(ds.Box(x=(0, 1), y=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.xx + u.yy - 1)})
    one, two = Context.of(fin()).settings, Context.of(plane).settings
    assert one.precision == "double" and (one.method.points, one.method.max_points) == (2048, 8192)
    assert two.precision == "double" and two.method.points == 8192
    assert (one.enough, two.enough) == (0.0, ENOUGH) and two.sought == ENOUGH and two.tol == np.inf
    asked = Context.of(plane, settings=Settings(precision="double")).settings
    assert asked.enough == 0  # who asks for double gets what it can give
    raw = Context.of(plane, settings=Settings(method="paper")).settings
    assert raw.precision == "single" and raw.enough == 0
    assert Context.of(plane, settings=Settings(tol=1e-3)).settings.sought == 1e-3
    given = Context.of(fin(), settings=Settings(precision="single", points=9000)).settings
    assert given.precision == "single" and given.method.points == given.method.max_points == 9000


def test_units_of_the_first_layer_start_all_over_the_box():
    inputs = Inputs(((-1.0, 1.0),), None, ())
    first = (
        ds.MLP(widths=(400, 4), spread=2.0).build(inputs, 1, key=jax.random.key(0), dtype=np.float64).layers[0].affine
    )
    centres = -np.asarray(first.bias) / np.asarray(first.weight)[0]
    assert np.abs(centres).max() <= 1 and np.histogram(centres, 4, (-1, 1))[0].min() > 60
    assert np.std(first.weight) == pytest.approx(2.0, rel=0.15)
    with pytest.raises(ValueError, match="spread must be a number, 0 or more"):
        ds.MLP(spread=-1.0)


# --- other attempts at a problem without time ---------------------------------------------------------------------------


def ended(context, residual_scale=1.0):
    state = context.start()
    theta = (residual_scale * state.iterate.theta).astype(state.iterate.theta.dtype)
    return dataclasses.replace(state, iterate=dataclasses.replace(state.iterate, theta=theta), stop=StopReason.STALLED)


def test_a_problem_that_is_not_solved_is_begun_again_from_other_parameters():
    context = Context.of(fin(), TINY["network"], Settings(points=64, max_points=64))
    first = ended(context)
    second = intervals.again(context, first)
    assert second.stop is None and second.cuts == 1 and second.plan.stage == 1
    assert not np.array_equal(second.iterate.theta, first.iterate.theta)
    np.testing.assert_array_equal(second.best, first.iterate.theta)
    assert second.best_residual == max(judging.here(context, first)) and second.best_stop is StopReason.STALLED
    third = intervals.again(context, dataclasses.replace(second, stop=StopReason.STALLED))
    assert intervals.again(context, dataclasses.replace(third, stop=StopReason.STALLED)) is None  # twice at most
    for stop in (StopReason.SECONDS, StopReason.INTERRUPTED, StopReason.TOLERANCE):
        assert intervals.again(context, dataclasses.replace(first, stop=stop)) is None
    never = Context.of(fin(), TINY["network"], with_options(Settings(points=64, max_points=64), {"restarts": 0}))
    assert intervals.again(never, ended(never)) is None


def test_the_best_attempt_counts_and_survives_a_checkpoint():
    context = Context.of(fin(), TINY["network"], Settings(points=64, max_points=64))
    good = dataclasses.replace(ended(context), best=np.full(context.first.shape, 0.5), best_residual=0.0)
    np.testing.assert_array_equal(attempts.settled(context, good).iterate.theta, good.best)
    bad = dataclasses.replace(good, best_residual=np.inf)
    assert attempts.settled(context, bad) is bad
    again = decode(encode(good, "run"), "run")
    np.testing.assert_array_equal(again.best, good.best)
    assert again.best_residual == 0.0


@pytest.mark.slow
def test_several_attempts_are_one_run():
    impossible = ds.Problem(
        ds.Box(x=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.x - 1), "g": ds.interior(lambda u: u.x + 1)}
    )
    solution = ds.solve(impossible, max_iterations=300, **TINY)
    assert solution.verdict == "failed"
    alone = ds.solve(impossible, max_iterations=300, restarts=0, **TINY)
    assert len(solution.history) > 2 * len(alone.history)
    assert [r.iteration for r in solution.history] == list(range(1, len(solution.history) + 1))


# --- marches ----------------------------------------------------------------------------------------------------------


def moving(**options):
    heat = ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {"f": ds.interior(lambda u: u.t - u.xx), "s": ds.initial(lambda u: u - 1), "b": ds.boundary(lambda u: u)},
    )
    return Context.of(heat, TINY["network"], Settings(points=64, max_points=64, **options).for_problem(heat))


def test_a_trapped_first_attempt_is_repeated_before_time_is_cut(monkeypatch):
    context = moving()
    monkeypatch.setattr(judging, "here", lambda context, state: (0.5,))
    first = ended(context)
    second = intervals.again(context, first)
    assert second.times == first.times and second.cuts == 1
    assert not np.array_equal(second.iterate.theta, first.iterate.theta)
    assert intervals.again(context, dataclasses.replace(second, stop=StopReason.STALLED)).times[-1] == 0.25
    late = dataclasses.replace(first, iterate=dataclasses.replace(first.iterate, iteration=150))
    assert intervals.again(context, late).times[-1] == 0.25  # it had its time


@pytest.mark.parametrize("small", [True, False])
def test_a_small_error_is_enough_whatever_residuals_are(monkeypatch, small):
    context = moving()
    monkeypatch.setattr(judging, "here", lambda context, state: (1e-3,))
    monkeypatch.setattr(judging, "concentrated", lambda context, state: False)
    monkeypatch.setattr(judging, "accurate", lambda context, state: small)
    assert (intervals.again(context, ended(context)) is None) == small


@pytest.mark.parametrize(
    ("error", "tol", "expected"),
    [(4e-7, None, True), (1e-6, None, False), (4e-7, 1e-7, False), (4e-4, 1e-3, True)],
)
def test_an_estimate_says_whether_it_is_accurate(monkeypatch, error, tol, expected):
    context = moving(tol=tol)
    found = Estimate({"u": error}, 1.0, 0.0, {"u": 0.0})
    monkeypatch.setattr(judging, "estimate", lambda *args: found)
    assert judging.accurate(context, context.start()) is expected
    assert not judging.accurate(moving(enough=0), context.start())  # as small as it gets


def test_an_interval_ends_where_its_residuals_cannot_be_seen(monkeypatch):
    monkeypatch.setattr(judging, "here", lambda context, state: (0.9e-10,))

    def stop(context, stage=2, end=0.5):
        state = context.start()
        plan, iterate = dataclasses.replace(state.plan, stage=stage), dataclasses.replace(state.iterate, iteration=5)
        return intervals.exact(context, dataclasses.replace(state, plan=plan, iterate=iterate, times=(0.0, end)))

    assert stop(moving()) is StopReason.RESIDUAL and StopReason.RESIDUAL.hands_over
    for other in (stop(moving(), stage=1), stop(moving(), end=1.0), stop(moving(tol=1e-3)), stop(moving(enough=0))):
        assert other is None
    monkeypatch.setattr(judging, "here", lambda context, state: (1.1e-10,))
    assert stop(moving()) is None


# --- rounding --------------------------------------------------------------------------------------------------------------


def test_rounding_is_no_reason_to_cut_an_interval(monkeypatch):
    decay = ds.Problem(
        ds.Box(t=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.t + u), "s": ds.initial(lambda u: u - 1)}
    )
    context = Context.of(decay, TINY["network"], Settings(points=64, max_points=64))
    monkeypatch.setattr(judging, "here", lambda context, state: (1e-3,))
    monkeypatch.setattr(judging, "local", lambda context, state: 0.0)
    assert intervals.again(context, dataclasses.replace(ended(context), stop=StopReason.FLOOR)) is None
    assert intervals.again(context, ended(context)).times[-1] == 0.5


def test_an_interval_that_still_fails_after_many_iterations_is_cut(monkeypatch):
    context = Context.of(decay(), settings=with_options(Settings(), TINY_POINTS | dict(hopeless=20)))
    state = context.start()
    late = lambda n, begun=0: dataclasses.replace(
        state,
        iterate=dataclasses.replace(state.iterate, iteration=n),
        plan=dataclasses.replace(state.plan, begun=begun),
    )
    monkeypatch.setattr(judging, "here", lambda *_: (0.5,))
    assert intervals.hopeless(context, late(20)) is StopReason.STALLED
    assert intervals.hopeless(context, late(15)) is None and intervals.hopeless(context, late(115, begun=100)) is None
    assert intervals.hopeless(context, late(21)) is None  # not looked at
    assert intervals.hopeless(context, dataclasses.replace(late(20), cuts=10)) is None
    monkeypatch.setattr(judging, "here", lambda *_: (1e-3,))
    assert intervals.hopeless(context, late(20)) is None


@pytest.mark.parametrize(("losses", "stuck"), [([0.1] * 45, True), (np.geomspace(1, 0.05, 45), False), ([0.1] * 35, False)])
def test_an_attempt_whose_loss_has_ceased_to_fall_gives_way(losses, stuck, monkeypatch):
    context = Context.of(decay(), settings=with_options(Settings(), TINY_POINTS))
    state, record = context.start(), SimpleNamespace
    now = dataclasses.replace(state.iterate, iteration=len(losses))
    state = dataclasses.replace(state, iterate=now, history=tuple(record(loss=loss) for loss in losses))
    monkeypatch.setattr(judging, "here", lambda *_: (0.5,))
    assert (intervals.hopeless(context, state) is StopReason.STALLED) == stuck
    monkeypatch.setattr(judging, "here", lambda *_: (1e-3,))
    assert intervals.hopeless(context, state) is None  # not bad enough to give up


def test_where_time_runs_out_a_fair_attempt_at_all_of_it_counts(monkeypatch):
    context = Context.of(decay(), settings=with_options(Settings(), TINY_POINTS))
    state = dataclasses.replace(context.start(), stop=StopReason.STALLED)
    monkeypatch.setattr(judging, "here", lambda *_: (1e-3,))
    monkeypatch.setattr(judging, "local", lambda *_: 0.0)
    cut = intervals.again(context, state)
    assert cut.times == (0.0, 0.5) and cut.whole is state.iterate.theta
    kept = decode(encode(cut, "run"), "run")
    assert kept.whole.tobytes() == state.iterate.theta.tobytes()
    stopped = dataclasses.replace(kept, finished=(state.iterate.theta,), times=(0.0, 0.5, 0.8), relative=(1.0, 1.0))
    settled = attempts.settled(context, stopped)
    assert settled.times == (0.0, 1.0) and settled.finished == () and settled.relative is None
    assert settled.iterate.theta.tobytes() == state.iterate.theta.tobytes()
    at_the_end = dataclasses.replace(stopped, times=(0.0, 0.5, 1.0), relative=(1e-4, 1e-4))
    assert attempts.settled(context, at_the_end) is at_the_end
    worse = dataclasses.replace(at_the_end, relative=(0.1, 0.1))  # than the attempt at all of the time
    assert attempts.settled(context, worse).times == (0.0, 1.0)
    monkeypatch.setattr(judging, "here", lambda *_: (0.05,))  # a rough one counts where nothing else was found
    rough = intervals.again(context, state)
    assert rough.whole is state.iterate.theta and attempts.settled(context, rough).times == (0.0, 1.0)
    assert attempts.settled(context, dataclasses.replace(stopped, best=None)).times == (0.0, 0.5, 0.8)
    monkeypatch.setattr(judging, "here", lambda *_: (0.5,))
    assert intervals.again(context, state).whole is None  # a failure is not kept


def test_where_time_can_be_cut_there_is_no_way_back_to_stage_1():
    settings = with_options(Settings(), TINY_POINTS)
    assert Context.of(decay(), settings=settings).rules.method.retreats == 0
    assert Context.of(decay(), settings=dataclasses.replace(settings, intervals=1)).rules.method.retreats == 2
    assert Context.of(fin(), settings=settings).rules.method.retreats == 2


def test_large_networks_have_a_smaller_share_of_rows_in_double():
    assert Settings(precision="double").resolve(3000).sketch == 900
    assert Settings(precision="double").resolve(1000).sketch == 450
    assert Settings(precision="single").resolve(3000).sketch == 1350


def test_residuals_of_a_march_are_judged_by_the_largest_terms_so_far():
    """What has decayed to 1e-9 need not be exact to its last digits."""
    decay = ds.Problem(
        ds.Box(t=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.t + u), "s": ds.initial(lambda u: u - 1)}
    )
    context = Context.of(decay, TINY["network"], Settings(points=64, max_points=64))
    state = ended(context, 1e-3)
    alone = judging.here(context, state)
    beside = judging.here(context, dataclasses.replace(state, terms=(1e6, 1e6)))
    assert alone[0] > 0 and all(b <= 1e-3 * a for a, b in zip(alone, beside, strict=True))


@pytest.mark.slow
def test_an_oscillation_with_a_boundary_layer_is_solved():
    """Of a system, with one unknown only in one equation."""
    problem = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u", "v"),
        {
            "u": ds.interior(lambda u, v: 0.01 * u.xx - u + v),
            "v": ds.interior(lambda v, x: v - jnp.cos(4 * jnp.pi * x)),
            "ends": ds.boundary(lambda u: u),
        },
    )
    solution = ds.solve(problem)
    assert solution.verdict == "solved" and max(solution.error_estimate.values()) < 1e-6
