"""Whole runs, from a problem to a solution."""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.optimise.sketch import AllColumns
from dsgnar.solving.context import Context
from dsgnar.solving.model import Model
from dsgnar.storing import runs
from dsgnar.suite.statement import Statement
from small import NETWORK, SMALL, heat_reference, problem

pytestmark = pytest.mark.usefixtures("shared_kernels")


@pytest.fixture(scope="module")
def heat(shared_kernels):
    return ds.solve(problem(), reference=heat_reference(), precision="double", max_iterations=100, **SMALL)


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
    solution = ds.solve(problem(), method=method, max_iterations=25, **SMALL)
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
    options = SMALL | dict(network=network, sketch=22)
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


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_is_built(monkeypatch):
    """Whatever is refused is refused before a network is built, let alone compiled."""

    def build(*_):
        raise AssertionError("work has begun")

    monkeypatch.setattr(Model, "of", build)


@pytest.mark.usefixtures("nothing_is_built")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(settings={}), TypeError, "`settings` must be a dsgnar.Settings, not dict; or pass options by name"),
        (dict(settings={"seed": 3}), TypeError, "`settings` must be a dsgnar.Settings, not dict"),
        (dict(observers=ds.Progress()), TypeError, r"`observers` must be a list, such as .*, not Progress"),
        (dict(seed=-1), ValueError, "seed must be an integer, 0 or more: -1"),
        (dict(points=1e3), ValueError, "points must be a positive integer: 1000.0"),
        (dict(learning_rate=1e-3), TypeError, "no option 'learning_rate'.*precision"),
        (dict(max_iteration=5), TypeError, r"no option 'max_iteration' \(did you mean max_iterations"),
        (dict(hash=1), TypeError, r"no option 'hash' \(did you mean hashes"),
    ],
)
def test_wrong_options_are_refused_with_what_to_do(options, error, message):
    with pytest.raises(error, match=message):
        ds.solve(problem(), **options)


@pytest.mark.usefixtures("nothing_is_built")
def test_only_problems_are_solved():
    with pytest.raises(TypeError, match="takes a dsgnar.Problem, not str 'burgers'.*solved by `dsgnar solve burgers`"):
        ds.solve("burgers")
    with pytest.raises(TypeError, match="takes a dsgnar.Problem, not function"):
        ds.solve(lambda u: u.t - u.xx)


def table(points=((0.1, 0.2), (0.3, 0.4)), values=(1.0, 2.0), name="u", **options) -> ds.Reference:
    return ds.Reference(points, {name: values}, 0.0, "made up", **options)


@pytest.mark.usefixtures("nothing_is_built")
@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (table(name="v"), ValueError, "its values are for 'v', but the problem has the unknowns u; rename it"),
        (table(values=(1.0, np.nan)), ValueError, "1 of 2 numbers in its values of 'u' are NaN or infinite"),
        (table(points=((0.1, 0.2), (np.inf, 0.4))), ValueError, "1 of 4 numbers in its points are NaN or infinite"),
        (table(values=(1.0, 1j)), TypeError, "its values of 'u' are complex; give their real part"),
        (table(values=("a", "b")), TypeError, "its values of 'u' must be an array of numbers"),
        (table(values=(1.0, 2.0, 3.0)), ValueError, r"its values of 'u' have shape \(3,\), but there are 2 points"),
        (table(points=((0.1,), (0.3,))), ValueError, "one column for each of the axes x, t"),
        (table(gauge=("p",)), ValueError, "its gauge names 'p'"),
        (table(groups={"velocity": ("u", "v")}), ValueError, "its group 'velocity' contains 'v'"),
        (table(shape=(3, 3)), ValueError, "has 9 points, but there are 2"),
        (ds.Reference([[0.1, 0.2]], {}, 0.0, "made up"), TypeError, "its values must be a dict of arrays"),
        (lambda x, t: x, TypeError, "expected a Reference.*got function; Reference.on_grid makes one"),
        ({"u": np.ones(3)}, TypeError, "expected a Reference.*got dict"),
        (np.ones(3), TypeError, "expected a Reference.*got ndarray"),
    ],
)
def test_a_reference_that_cannot_be_compared_is_refused_at_once(reference, error, message):
    with pytest.raises(error, match=f"^reference: .*{message}"):
        ds.solve(problem(), reference=reference)


# --- a run on disk, and its parts -------------------------------------------------------------------------------------


def test_a_run_directory_can_be_read(heat, tmp_path):
    runs.write(tmp_path, heat, Statement(heat.problem, "heat", preset="mine"))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["problem"] == "heat" and result["precision"] == "double" and result["seed"] == 0
    assert set(result) == {
        "problem", "preset", "method", "precision", "seed", "relative_l2", "held_out", "iterations", "loss_evaluations",
        "stop_reason", "converged", "verdict", "relative_residuals", "error_estimate", "error_checks", "tol",
        "tolerance_met", "seconds", "parameters", "sketch", "points", "environment",
    }  # fmt: skip
    assert result["relative_l2"]["u"] == heat.outcome.relative_l2["u"]
    assert set(result["held_out"]) == set(result["points"]) == {"heat", "start"}
    assert set(result["seconds"]) == {"solve", "compile", "estimate"}
    lines = (tmp_path / "history.csv").read_text().splitlines()
    assert len(lines) == result["iterations"] + 1
    for column in ("iteration", "loss", "mean_square[heat]", "weight[start]", "ratio", "target", "lambda", "radius",
                   "accepted", "evaluations", "seconds"):  # fmt: skip
        assert column in lines[0].split(",")
    config = json.loads((tmp_path / "config.json").read_text())
    plain = {"modes": None, "spacing": None, "spread": 0.0, "holes": False, "kinks": []}
    assert config["network"] == {"kind": "MLP", "widths": [10, 10], **plain}
    assert np.load(tmp_path / "solution.npz")["thetas"].tobytes() == heat.thetas.tobytes()
    assert not list(tmp_path.glob("*.partial"))


def test_points_are_drawn_where_residuals_are_large():
    context = Context.of(problem(), NETWORK, ds.Settings(adaptive=0.5, points=512, intervals=1))
    state = context.start()
    points = context.collocation.training(state)["heat"]
    size = np.abs(context.residuals.vector("heat", jnp.asarray(state.iterate.theta), points))
    assert len(points) == 512
    assert np.median(size[256:]) > 1.2 * np.median(size[:256])
    with pytest.raises(ValueError, match="adaptive must be a share"):
        ds.Settings(adaptive=1.5)


def test_the_sketch_can_grow_when_stage_two_begins():
    context = Context.of(problem(), NETWORK, ds.Settings(sketch=20, late_sketch=40))
    plan = context.start().plan
    assert context.optimiser(plan).jacobian.rows.size == 20
    for stage in (2, 3):
        assert context.optimiser(dataclasses.replace(plan, stage=stage)).jacobian.rows.size == 40
    with pytest.raises(ValueError, match="the sketch .100000. must not exceed"):
        ds.solve(problem(), **SMALL | dict(late_sketch=100_000))


def test_columns_are_fewer_in_stage_one_where_that_saves_time():
    early, late = Context.of(problem(), NETWORK, ds.Settings(sketch=20, columns=30)).optimisers
    assert early.jacobian.columns.size == 30
    assert late.jacobian.columns == AllColumns()

    def columns(**options):
        return ds.Settings(**options).resolve(5125).columns

    assert columns(sketch=2000, precision="double") == 2000
    assert columns(sketch=200, precision="double") == columns(sketch=2000, precision="single") == 5125
    assert columns(sketch=200, method="paper") == 200
