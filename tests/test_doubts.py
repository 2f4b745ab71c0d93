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


def test_a_pulse_that_has_hardly_begun_fits():
    pulse = ds.boundary(lambda u, t: u - 5 * jnp.exp(-(((t - 0.5) / 0.1) ** 2)))
    assert stated(pde=HEAT, ic=ds.initial(lambda u: u), bc=pulse) == []


def test_an_unknown_without_conditions():
    (doubt,) = stated(unknowns=("u", "v"), pde=HEAT, ic=START, bc=ENDS)
    assert doubt == "v appears in no condition, so nothing determines it"


def test_two_values_on_one_face():
    plane, pde = ds.Box(x=(0, 1), y=(0, 1)), ds.interior(lambda u: ds.laplacian(u))
    hot = ds.boundary(lambda u: 2 * (u - 1), faces=[("x", "lower")])
    (doubt,) = stated(plane, pde=pde, cold=ENDS, hot=hot)
    assert doubt.startswith("'cold' and 'hot' contradict each other on the lower end of x: u = 0 and 1")
    rest = ds.boundary(lambda u: u, faces=[("x", "upper"), ("y", "lower"), ("y", "upper")])
    again = ds.boundary(lambda u: u - 1, faces=[("x", "lower"), ("x", "lower")])
    assert stated(plane, pde=pde, cold=rest, hot=hot, again=again) == []


@pytest.mark.parametrize(
    ("law", "ends"),
    [
        (lambda u: u.t + 0.1 * u.xx, (lambda u: u,)),
        (lambda u: -3 * u.t - ds.laplacian(u) + u**3, (lambda u: u,)),
        (lambda u, x: u.t + (1 + x) * (1 + u**2) * u.xx, (lambda u: u,)),
        (lambda u: u.t + u.xx - u.xxxx, (lambda u: u, lambda u: u.n)),
        (lambda u: u.tt + u.xx, (lambda u: u,)),
        (lambda u: u.tt - u.xxxx, (lambda u: u, lambda u: u.n)),
    ],
)
def test_equations_that_run_backward(law, ends):
    ends = {f"end {k}": ds.boundary(end) for k, end in enumerate(ends)}
    rate = {"rate": ds.initial(lambda u: u.t)} if "tt" in law.__code__.co_names else {}
    (doubt,) = stated(pde=ds.interior(law), ic=START, **rate, **ends)
    assert doubt.startswith("'pde': u ") and "the wrong way along x" in doubt


@pytest.mark.parametrize(
    "law",
    [
        lambda u: u.t - u.xx,
        lambda u: u.t + u.x * u - 0.1 * u.xx,
        lambda u: u.t - (u - 0.5) * u.xx,  # forward for some values
        lambda u, x: u.t - (x - 0.5) * u.xx,
        lambda u: u.t + u.xxx,
        lambda u: u.t + u.xx + u.xxxx,
        lambda u: u.tt - u.xx + 0.1 * u.t,
        lambda u: u.tt + u.xxxx,
        lambda u: u.tt - u.xx - u.xxt,
        lambda u: u.tt - u.xx + u.xxtt,
    ],
)
def test_equations_that_run_forward(law):
    assert not [doubt for doubt in stated(pde=ds.interior(law), ic=START, bc=ENDS) if "wrong way" in doubt]


def test_values_at_the_last_instant_may_run_backward():
    last = ds.at(lambda u: u, {"x": [0.2, 0.5, 0.8], "t": 1.0})
    assert stated(pde=ds.interior(lambda u: u.tt + u.xx), ic=START, bc=ENDS, last=last) == []


def test_solve_warns():
    problem = ds.Problem(BOX, ("u",), {"pde": HEAT, "bc": ENDS})
    with pytest.warns(UserWarning, match="no initial condition"):
        solution = ds.solve(
            problem, network=ds.MLP(widths=(4,)), points=32, max_points=32, held_out=32, max_iterations=1
        )
    assert len(solution.history) == 1  # a doubt is no error
