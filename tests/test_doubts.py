"""Statements that seem to determine nothing, or contradict themselves."""

import jax.numpy as jnp
import pytest

import dsgnar as ds
from dsgnar.problem.doubts import doubts
from dsgnar.suite import SUITE

BOX = ds.Box(x=(0, 1), t=(0, 1))
HEAT = ds.interior(lambda u: u.t - u.xx)
START = ds.initial(lambda u, x: u - jnp.sin(jnp.pi * x))
ENDS = ds.boundary(lambda u: u)


def stated(box=BOX, unknowns=("u",), periodic=(), hard=None, **conditions):
    return doubts(ds.Problem(box, unknowns, conditions, periodic=periodic, hard=hard or {}))


def test_a_whole_statement_leaves_no_doubt():
    assert stated(pde=HEAT, ic=START, bc=ENDS) == []
    assert stated(pde=HEAT, ic=START, periodic=("x",)) == []
    assert stated(pde=HEAT, bc=ENDS, hard={"u": ds.Hard(lambda x: jnp.sin(jnp.pi * x), on=(ds.Initial(),))}) == []


def test_missing_initial_conditions():
    (doubt,) = stated(pde=HEAT, bc=ENDS)
    assert doubt.startswith("u has a time derivative of order 1 and no initial condition")
    (doubt,) = stated(pde=ds.interior(lambda u: u.tt - u.xx), ic=START, bc=ENDS)
    assert "order 2 and 1 initial condition: state u at the first instant and its rate" in doubt


def test_missing_boundary_conditions():
    (doubt,) = stated(pde=HEAT, ic=START)
    assert "u has a derivative of order 2 along x and no boundary condition at the ends of x" in doubt
    (doubt,) = stated(pde=HEAT, ic=START, left=ds.boundary(lambda u: u, faces=[("x", "lower")]))
    assert "order 2 along x and 1 boundary condition at" in doubt
    plane = ds.Box(x=(0, 1), y=(0, 1))
    (doubt,) = stated(
        plane,
        pde=ds.interior(lambda u: ds.laplacian(u)),
        sides=ds.boundary(lambda u: u, faces=[("x", "lower"), ("x", "upper")]),
    )
    assert "along y" in doubt


def test_values_at_points_may_take_the_place_of_conditions():
    assert stated(pde=HEAT, data=ds.at(lambda u: u - 1, {"x": [0.1, 0.5], "t": 0.5})) == []


def test_a_condition_without_an_unknown():
    (doubt,) = stated(pde=HEAT, ic=START, bc=ENDS, odd=ds.interior(lambda x: x))
    assert "condition 'odd' depends on no unknown" in doubt


def test_values_that_differ_at_a_corner():
    (doubt,) = stated(pde=HEAT, ic=ds.initial(lambda u, x: 2 * (u - 3 - x)), bc=ds.boundary(lambda u: u - 3))
    assert doubt.startswith("'ic' and 'bc' differ at x=1, t=0: u = 4 and 3; if that is not meant, change one of them")


@pytest.mark.parametrize("name", ["burgers", "cavity", "kdv", "wave", "poisson5d"])
def test_the_suite_leaves_no_doubt(name):
    assert doubts(SUITE[name].problem()) == []


def test_solve_warns():
    problem = ds.Problem(BOX, ("u",), {"pde": HEAT, "bc": ENDS})
    with pytest.warns(UserWarning, match="no initial condition"):
        solution = ds.solve(
            problem, network=ds.MLP(widths=(4,)), points=32, max_points=32, held_out=32, max_iterations=1
        )
    assert len(solution.history) == 1  # a doubt is no error
