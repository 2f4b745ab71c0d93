"""A solution as a function: of arrays, and of what JAX transforms."""

import copy
import dataclasses
import pickle
import warnings
from pathlib import Path

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from small import SMALL, invented, problem

pytestmark = pytest.mark.usefixtures("shared_kernels")

NETWORK = ds.MLP(widths=(6,))  # compiles fast, and that is all that is asked of it here


def two_unknowns() -> ds.Problem:
    """Steady: a potential on a plate, and its flux."""
    return ds.Problem(
        domain=ds.Box(x=(0, 1), y=(0, 2)),
        unknowns=("u", "v"),
        conditions={"flux": ds.interior(lambda u, v: v - u.x), "edge": ds.boundary(lambda u, y: u - y)},
    )


@pytest.fixture(scope="module")
def heat(shared_kernels):
    """A network that was never trained is a function too."""
    return invented(problem(), NETWORK)


@pytest.fixture(scope="module")
def marched(shared_kernels):
    return invented(problem(), NETWORK, intervals=3)


@pytest.fixture(scope="module")
def plate(shared_kernels):
    return invented(two_unknowns(), NETWORK)


def functions(solution) -> dict:
    """All that a solution can be asked for at coordinates."""
    return {
        "values": solution,
        "derivative": solution.derivative("u", "x"),
        "residual": solution.residual(next(iter(solution.problem.conditions))),
    }


# --- of arrays --------------------------------------------------------------------------------------------------------


def test_no_points_have_no_values(heat, marched, plate):
    for solution in (heat, marched):
        for name, function in functions(solution).items():
            assert function(x=[], t=[]).shape == (0,), name
            assert function(x=[], t=0.5).shape == (0,), name
            assert function(x=np.zeros((0, 3)), t=np.zeros(3)).shape == (0, 3), name
            assert function(x=[], t=[]).dtype == solution.thetas.dtype
    nothing = plate(x=[], y=1.0)
    assert {name: values.shape for name, values in nothing.items()} == {"u": (0,), "v": (0,)}


def test_points_outside_the_domain_are_answered_with_a_warning(heat):
    for name, function in functions(heat).items():
        with pytest.warns(
            UserWarning, match=r"2 of 3 points lie outside .* first: x=0.5, t=1.5\); extrapolate=True"
        ) as said:
            values = function(x=0.5, t=[0.2, 1.5, -0.1])
        assert Path(said[0].filename) == Path(__file__), name  # it points at the line that asked
        assert values.shape == (3,) and np.all(np.isfinite(values))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(function(x=0.5, t=[0.2, 1.5, -0.1], extrapolate=True), values)


def test_the_closed_domain_is_inside_and_a_periodic_axis_has_no_outside(heat, marched, plate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for solution in (heat, marched):
            for function in functions(solution).values():
                function(x=[0.0, 1.0], t=[0.0, 1.0])
                np.testing.assert_allclose(function(x=7.3, t=0.2), function(x=0.3, t=0.2), atol=1e-10)
        plate(x=[0.0, 1.0], y=[0.0, 2.0])
        heat.at(np.array([[0.5, 9.0]]))  # what the library itself asks for is meant
    for outside in (dict(x=1.1, y=1.0), dict(x=0.5, y=-0.1)):
        with pytest.warns(UserWarning, match="1 of 1 points lie outside the domain"):
            plate(**outside)


# --- of what JAX transforms -------------------------------------------------------------------------------------------


def test_the_function_has_the_solutions_values(heat, marched):
    x, t = np.random.default_rng(0).random((2, 50))
    for solution in (heat, marched):
        np.testing.assert_allclose(solution.function(x, t), solution(x=x, t=t), rtol=1e-12)
        np.testing.assert_allclose(solution.function(t=t, x=x), solution(x=x, t=t), rtol=1e-12)
        np.testing.assert_allclose(solution.function(x, t=0.3), solution(x=x, t=0.3), rtol=1e-12)
        grid = solution.function(x[:, None], t[:4])
        assert isinstance(grid, jax.Array) and grid.shape == (50, 4) and grid.dtype == np.float64
        np.testing.assert_allclose(grid, solution(x=x[:, None], t=t[:4]), rtol=1e-12)
        assert solution.function(0.2, 0.3).shape == ()
        assert solution.function(jnp.zeros(0), 0.3).shape == (0,)


def test_the_function_can_be_transformed(heat, marched):
    x, t = np.random.default_rng(1).random((2, 20))
    for solution in (heat, marched):
        np.testing.assert_allclose(jax.jit(solution.function)(x, t), solution(x=x, t=t), rtol=1e-10)
        np.testing.assert_allclose(jax.vmap(solution.function)(x, t), solution(x=x, t=t), rtol=1e-10)
        slope = jax.jit(jax.vmap(jax.grad(solution.function, argnums=1)))(x, t)
        np.testing.assert_allclose(slope, solution.derivative("u", "t")(x=x, t=t), rtol=1e-9, atol=1e-12)
        bend = jax.jit(jax.vmap(jax.grad(jax.grad(solution.function))))(x, t)
        np.testing.assert_allclose(bend, solution.derivative("u", "xx")(x=x, t=t), rtol=1e-8, atol=1e-10)


def test_the_function_of_a_march_takes_the_network_of_the_interval(marched):
    ends = np.array([0.0, 1 / 3 - 1e-9, 1 / 3, 1 / 3 + 1e-9, 0.5, 2 / 3, 2 / 3 + 1e-9, 1.0])
    values = np.array([marched.function(0.2, t) for t in ends])
    np.testing.assert_allclose(values, marched(x=0.2, t=ends), rtol=1e-12)
    assert abs(values[2] - values[3]) > 1e-6 and abs(values[5] - values[6]) > 1e-6  # the networks differ
    assert abs(values[1] - values[2]) < 1e-6
    np.testing.assert_allclose(marched.function(0.2, jnp.asarray(ends)), values, rtol=1e-12)


def test_the_function_of_a_march_holds_no_network_for_every_point(marched):
    """It evaluated a copy of the parameters at each point: 40 GB for a million points of a network with 5,000."""
    count = 1000
    traced = jax.make_jaxpr(marched.function)(jnp.zeros(count), jnp.zeros(count))
    largest = max(v.aval.size for each in equations(traced.jaxpr) for v in each.outvars)
    assert largest < count * marched.parameters


def equations(jaxpr):
    """All equations, those of inner functions too."""
    for each in jaxpr.eqns:
        yield each
        for inner in jax.extend.core.jaxprs_in_params(each.params):
            yield from equations(inner)


def test_several_unknowns_are_a_dictionary(plate):
    x, y = np.random.default_rng(2).random((2, 9))
    values, expected = jax.jit(plate.function)(x, y), plate(x=x, y=y)
    assert list(values) == ["u", "v"]
    for name in values:
        np.testing.assert_allclose(values[name], expected[name], rtol=1e-12)
    slope = jax.grad(lambda x: plate.function(x, 1.0)["v"])(0.4)
    np.testing.assert_allclose(slope, plate.derivative("v", "x")(x=0.4, y=1.0), rtol=1e-10)


def test_the_function_knows_hard_values():
    hard = ds.Problem(
        ds.Box(x=(0, 1)),
        "u",
        {"pde": ds.interior(lambda u, x: u.xx + x)},
        hard={"u": ds.Hard(0.0, on=(ds.Boundary(),))},
    )
    solution = invented(hard, NETWORK)
    np.testing.assert_allclose(solution.function(jnp.array([0.0, 1.0])), 0.0, atol=1e-15)
    np.testing.assert_allclose(solution.function(0.3), solution(x=0.3), rtol=1e-12)


def test_the_precision_is_the_solutions_as_far_as_the_callers_mode_allows():
    single, double = (invented(problem(), NETWORK, dtype=dtype) for dtype in (np.float32, np.float64))
    assert single.function(0.2, 0.3).dtype == np.float32
    assert double.function(0.2, 0.3).dtype == np.float64
    with jax.enable_x64(False):
        values = jax.jit(double.function)(0.2, 0.3)
        assert values.dtype == np.float32
    np.testing.assert_allclose(values, double(x=0.2, t=0.3), rtol=1e-4)


def test_wrong_coordinates_of_the_function_are_named(heat):
    with pytest.raises(TypeError, match="give all coordinates, x, t; got x"):
        heat.function(0.5)
    with pytest.raises(TypeError, match="give all coordinates, x, t; got x, y"):
        heat.function(0.5, y=0.1)
    with pytest.raises(TypeError, match="given twice, or there are too many: the axes are x, t"):
        heat.function(0.5, x=0.1)
    with pytest.raises(TypeError, match="given twice, or there are too many: the axes are x, t"):
        heat.function(0.5, 0.1, 0.2)


def test_a_solution_stands_in_another_problems_residual(heat, marched):
    """The next problem starts from one solution and is driven by another."""
    follow = ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 0.5)),
        unknowns="w",
        conditions={
            "driven": ds.interior(lambda w, x, t: w.t - marched.function(x, t)),
            "start": ds.initial(lambda w, x: w - heat.function(x, 1.0)),
        },
        periodic="x",
    )
    options = SMALL | dict(network=ds.MLP(widths=(8,)), sketch=20, precision="double", warm_up=0, max_iterations=40)
    solution = ds.solve(follow, **options)
    assert solution.history[-1].loss < 0.1 * solution.history[0].loss
    x = np.linspace(0, 1, 7)
    expected = solution.derivative("w", "t")(x=x, t=0.4) - marched(x=x, t=0.4)
    np.testing.assert_allclose(solution.residual("driven")(x=x, t=0.4), expected, atol=1e-12)
    np.testing.assert_allclose(solution(x=x, t=0.0), heat(x=x, t=1.0), atol=0.2)


# --- what it says about itself ----------------------------------------------------------------------------------------


def test_a_solution_knows_how_its_run_ended(heat):
    assert heat.stop is ds.StopReason.RADIUS and heat.converged and heat.history == heat.outcome.history
    limited = invented(problem(), NETWORK, stop=ds.StopReason.ITERATIONS)
    assert limited.stop is ds.StopReason.ITERATIONS and not limited.converged
    bare = dataclasses.replace(heat, outcome=None)
    assert bare.stop is None and not bare.converged and bare.history == ()


def test_a_solution_cannot_be_pickled_and_says_how_to_keep_it(heat):
    for attempt in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"solution\.save\(directory\) and read it with dsgnar\.load\(directory"):
            attempt(heat)


def test_solutions_of_a_model_share_what_is_compiled(heat):
    """Each look at the error makes a solution of the parameters so far; it was compiled anew each time."""
    later = dataclasses.replace(heat, thetas=heat.thetas * 1.1)
    assert later.residuals.ansatz.values is heat.residuals.ansatz.values
    assert not np.array_equal(later(x=0.3, t=0.1), heat(x=0.3, t=0.1))
