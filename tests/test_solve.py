"""Whole runs, from a problem to a solution."""

import dataclasses
import json
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar import runs
from dsgnar.reference import Reference, interior_grid
from dsgnar.sketch import AllColumns
from dsgnar.statement import Statement
from small import problem

SMALL = dict(network=ds.MLP(widths=(10, 10)), points=512, max_points=512, wait=10)


def heat_reference():
    def exact(x, t):
        return {"u": np.exp(-0.1 * (2 * np.pi) ** 2 * t) * np.sin(2 * np.pi * x)}

    return Reference.on_grid({"x": interior_grid(0, 1, 40), "t": interior_grid(0, 1, 30)}, exact, 0.0, "closed form")


@pytest.fixture(scope="module")
def heat():
    with jax.enable_x64(True):
        return ds.solve(problem(), reference=heat_reference(), precision="double", max_iterations=60, **SMALL)


def test_a_small_problem_is_solved(heat):
    assert heat.relative_l2(heat_reference())["u"] < 1e-4
    assert heat.outcome.relative_l2 == heat.relative_l2(heat_reference())
    assert max(heat.outcome.held_out.values()) < 1e-2
    stages = [r.precision for r in heat.outcome.history]
    assert stages[:10] == ["single"] * 10 and stages[-1] == "double"


def test_values_and_derivatives_of_a_solution(heat):
    x = np.linspace(0, 1, 7)
    u = heat(x=x, t=0.3)
    assert u.shape == (7,) and u.dtype == np.float64
    assert heat(x=0.2, t=0.3).shape == ()
    assert heat(x=x[:, None], t=np.linspace(0, 1, 3)).shape == (7, 3)
    np.testing.assert_allclose(heat(x=0.0, t=x), heat(x=1.0, t=x), atol=1e-12)  # periodic
    h = 1e-4
    slope = (heat(x=x + h, t=0.3) - heat(x=x - h, t=0.3)) / (2 * h)
    np.testing.assert_allclose(heat.derivative("u", "x")(x=x, t=0.3), slope, atol=1e-5)
    assert heat.derivative("u", "xxt")(x=x, t=0.3).shape == (7,)


def test_many_points_are_evaluated_in_batches(heat):
    x = np.linspace(0, 1, 20001)
    values = heat(x=x, t=0.5)
    np.testing.assert_allclose(values[[0, 9000, 20000]], heat(x=x[[0, 9000, 20000]], t=0.5), rtol=1e-12)


def test_wrong_calls_of_a_solution_say_what_is_missing(heat):
    with pytest.raises(ValueError, match="x, t"):
        heat(x=0.5)
    with pytest.raises(ValueError, match="no unknown 'v'"):
        heat.derivative("v", "x")
    with pytest.raises(ValueError, match="'y' is not made of the problem's axes"):
        heat.derivative("u", "y")


def test_the_same_seed_gives_the_same_history_bit_for_bit():
    def history(seed):
        solution = ds.solve(problem(), precision="single", max_iterations=12, seed=seed, **SMALL)
        return solution.thetas.tobytes(), [dataclasses.replace(r, seconds=0.0) for r in solution.outcome.history]

    assert history(3) == history(3)
    assert history(3)[0] != history(4)[0]


@pytest.mark.parametrize("method", ["fast", "paper"])
def test_both_methods_decrease_the_loss(method):
    solution = ds.solve(problem(), method=method, max_iterations=15, **SMALL)
    history = solution.outcome.history
    assert history[-1].loss < 0.05 * history[0].loss
    assert not solution.outcome.stop.converged and solution.outcome.stop.code == "max_iterations"
    assert all(r.evaluations >= (24 if method == "paper" else 2) for r in history)


def test_a_network_of_ones_own():
    class Mine(eqx.Module):
        w: jax.Array
        v: jax.Array

        def __call__(self, x):
            features = jnp.stack([jnp.sin(2 * jnp.pi * x[0]), jnp.cos(2 * jnp.pi * x[0]), x[1]])
            return jnp.tanh(features @ self.w) @ self.v

    key = jax.random.key(0)
    network = Mine(jax.random.normal(key, (3, 12)), jax.random.normal(key, (12, 1)) / 4)
    options = SMALL | dict(network=network)
    solution = ds.solve(problem(), precision="single", max_iterations=20, **options)
    assert solution.thetas.dtype == np.float32
    assert solution.outcome.history[-1].loss < 0.1 * solution.outcome.history[0].loss


def test_a_network_that_does_not_fit_is_refused():
    class TwoOutputs(eqx.Module):
        w: jax.Array

        def __call__(self, x):
            return self.w @ x

    with pytest.raises(ValueError, match=r"\(1,\)"):
        ds.solve(problem(), network=TwoOutputs(jnp.ones((2, 2))))


def test_unknown_options_are_refused_with_the_known_ones():
    with pytest.raises(TypeError, match="no option 'learning_rate'.*precision"):
        ds.solve(problem(), learning_rate=1e-3)


def test_an_interruption_ends_the_run_with_what_there_is():
    class Impatient:
        def started(self, run): ...
        def finished(self, run, solution): ...

        def iterated(self, run, record):
            if record.iteration == 3:
                raise KeyboardInterrupt

    solution = ds.solve(problem(), observers=[Impatient()], **SMALL)
    assert solution.outcome.stop.code == "interrupted" and len(solution.outcome.history) == 3


def test_a_run_directory_can_be_read(heat, tmp_path):
    runs.write(tmp_path, heat, Statement(heat.problem, "heat", preset="mine"))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["problem"] == "heat" and result["precision"] == "double" and result["seed"] == 0
    assert set(result) == {
        "problem", "preset", "method", "precision", "seed", "relative_l2", "held_out", "iterations", "loss_evaluations",
        "stop_reason", "converged", "seconds", "parameters", "sketch", "points", "environment",
    }  # fmt: skip
    assert result["relative_l2"]["u"] == heat.outcome.relative_l2["u"]
    assert set(result["held_out"]) == set(result["points"]) == {"heat", "start"}
    assert set(result["seconds"]) == {"solve", "compile"}
    lines = (tmp_path / "history.csv").read_text().splitlines()
    assert len(lines) == result["iterations"] + 1
    for column in ("iteration", "loss", "mean_square[heat]", "weight[start]", "ratio", "target", "lambda", "radius",
                   "accepted", "evaluations", "seconds"):  # fmt: skip
        assert column in lines[0].split(",")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["network"] == {"kind": "MLP", "widths": [10, 10], "modes": None, "spacing": None}
    assert np.load(tmp_path / "solution.npz")["thetas"].tobytes() == heat.thetas.tobytes()
    assert not list(tmp_path.glob("*.partial"))


def test_points_are_drawn_where_residuals_are_large():
    run = sys.modules["dsgnar.solve"].Run(problem(), SMALL["network"], ds.Settings(adaptive=0.5, points=512))
    with jax.enable_x64(True):
        points = run.points()["heat"]
        size = np.abs(run.residuals.vector("heat", jnp.asarray(run.state.theta), points))
    assert len(points) == 512
    assert np.median(size[256:]) > 1.2 * np.median(size[:256])
    with pytest.raises(ValueError, match="adaptive must be a share"):
        ds.Settings(adaptive=1.5)


def test_the_sketch_can_grow_when_stage_two_begins():
    run = sys.modules["dsgnar.solve"].Run(problem(), SMALL["network"], ds.Settings(sketch=20, late_sketch=40))
    assert run._optimiser().jacobian.rows.size == 20
    run.plan = dataclasses.replace(run.plan, stage=2)
    assert run._optimiser().jacobian.rows.size == 40
    with pytest.raises(ValueError, match="the sketch .100000. must not exceed"):
        ds.solve(problem(), sketch=20, late_sketch=100_000, **SMALL)
    with pytest.raises(ValueError, match="method 'paper' has no late_sketch"):
        ds.Settings(method="paper", late_sketch=40)


def test_columns_are_fewer_in_stage_one_where_that_saves_time():
    run = sys.modules["dsgnar.solve"].Run(problem(), SMALL["network"], ds.Settings(sketch=20, columns=30))
    assert run.optimiser.jacobian.columns.size == 30
    assert run.late.jacobian.columns == AllColumns()

    def columns(**options):
        return ds.Settings(**options).resolve(5125).columns

    assert columns(sketch=2000, precision="double") == 2000
    assert columns(sketch=200, precision="double") == columns(sketch=2000, precision="single") == 5125
    assert columns(sketch=200, method="paper") == 200
