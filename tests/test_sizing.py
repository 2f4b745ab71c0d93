"""Sizes of unknowns that change during a run."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.problem import scales
from dsgnar.solving import intervals, sizing
from dsgnar.solving.context import Context
from dsgnar.solving.loop import run
from dsgnar.solving.settings import with_options
from dsgnar.solving.stop import StopReason
from dsgnar.storing.checkpoints import decode, encode
from dsgnar.storing.directory import RunDirectory

TINY = dict(points=64, max_points=64, held_out=64)


def growth(rate=1.0):
    """u' = rate u from 1."""
    return ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),  # in one variable sizes are foreseen
        ("u",),
        {"pde": ds.interior(lambda u: u.t - rate * u), "ic": ds.initial(lambda u: u - 1)},
    )


def grown(factor, **options):
    """A context, and a state whose values are some times those of a network that has just been made."""
    context = Context.of(growth(), ds.MLP(widths=(4,)), with_options(ds.Settings(), TINY | options))
    theta = context.first.copy()
    inner = context.residuals.parameters.network(jnp.asarray(theta))
    output = inner.output.weight.size + inner.output.bias.size
    points = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    size = np.sqrt(np.mean([float(inner(jnp.asarray(x))[0]) ** 2 for x in points]))
    theta[-output:] *= factor / size
    state = context.start()
    return context, replace(state, iterate=replace(state.iterate, theta=theta), stop=StopReason.STALLED)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, None), (2.0, None), (0.01, None), (16.0, 16.0), (1e9, 64.0)])
def test_sizes_that_are_far_too_small_are_noticed(factor, expected):
    context, state = grown(factor)
    assert context.settings.scales.unknowns == (1.0,)
    found = sizing.outgrown(context, state)
    assert found == (None if expected is None else (expected,))


def test_sizes_change_a_few_times_and_not_without_scales():
    context, state = grown(16.0)
    assert sizing.outgrown(context, replace(state, resized=sizing.TIMES)) is None
    raw = Context.of(growth(), ds.MLP(widths=(4,)), with_options(ds.Settings(), TINY | dict(scaled=False)))
    assert sizing.outgrown(raw, state) is None


def test_a_march_that_outgrows_its_sizes_begins_again():
    context, state = grown(16.0)
    later = replace(state, finished=(state.iterate.theta,), times=(0.0, 0.5, 1.0), relative=(1.0, 1.0), cuts=1)
    anew = intervals.again(context, later)
    assert anew.sizes == (16.0,) and anew.resized == 1 and anew.cuts == 2
    assert anew.finished == () and anew.times == (0.0, 0.25) and anew.relative is None and anew.stop is None
    again = decode(encode(anew, "run"), "run")
    assert again.sizes == anew.sizes and again.resized == 1
    other = sizing.resized(context, anew.sizes)
    assert (
        other.settings.scales == scales.estimate(growth(), {"u": 16.0}) and other.settings.scales.conditions[1] == 16.0
    )
    assert sizing.resized(other, anew.sizes) is other and sizing.resized(context, None) is context


def test_a_run_in_new_sizes_is_read_back(tmp_path, monkeypatch):
    """Without the sizes that were found the parameters on disk would mean another function."""
    monkeypatch.setattr(
        intervals, "outgrown", lambda context, state: None if state.resized or state.stop is None else (8.0,)
    )
    problem = growth(rate=3.0)
    too_small = dict(interval_goal=1e-12, intervals=1, restarts=1, scales={"u": 1.0})
    context = Context.of(problem, ds.MLP(widths=(3,)), with_options(ds.Settings(), TINY | too_small))
    solution = run(context, context.start(), [RunDirectory(tmp_path / "run")])
    assert solution.outcome.settings.scales.unknowns == (8.0,)
    t = np.linspace(0, 1, 21)
    back = ds.load(tmp_path / "run", problem)
    np.testing.assert_array_equal(back(x=0.5, t=t), solution(x=0.5, t=t))
    as_begun = replace(solution, model=context.model)
    np.testing.assert_allclose(8 * as_begun(x=0.5, t=t), solution(x=0.5, t=t), rtol=1e-12)  # and not the same function
    (tmp_path / "run" / "result.json").unlink()  # as if the run had been killed: its last checkpoint counts
    assert ds.load(tmp_path / "run", problem).outcome.settings.scales.unknowns == (8.0,)


def test_a_fair_attempt_is_not_begun_again_in_other_sizes(monkeypatch):
    """A pressure that nothing fixes may have any mean: a Stokes flow at 2e-4 was thrown away for it, and time ran out."""
    context, state = grown(16.0)
    monkeypatch.setattr(intervals.judging, "here", lambda context, state: (5e-3, 5e-3))
    anew = intervals.again(context, replace(state, times=(0.0, 1.0)))
    assert anew is None or anew.sizes is None


@pytest.mark.parametrize(("residual", "fair"), [(5e-3, True), (5e-2, False)])
def test_nor_is_one_at_all_of_the_time_for_a_shorter_one_that_fails(monkeypatch, residual, fair):
    """An epidemic was at 1.7e-3 when half of the time, which failed, asked for other sizes: u = 0 came back."""
    context, state = grown(16.0)
    monkeypatch.setattr(intervals.judging, "here", lambda context, state: ((1.0, residual)[state.times[-1] == 1.0],) * 2)
    part = replace(state, times=(0.0, 0.5), cuts=1)
    assert intervals.again(context, part).sizes == (16.0,)
    anew = intervals.again(context, replace(part, whole=state.iterate.theta))
    assert (anew.sizes is None and anew.whole is not None) if fair else anew.sizes == (16.0,)
