"""Where a statement jumps: planes that a network is told of, and times at which an interval ends."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfc

import dsgnar as ds
from dsgnar.calculus.spaces import Polynomials, polynomials, waves
from dsgnar.networks.kinks import Across, further
from dsgnar.problem.jumps import Plane, jumps, pieces, planes, switches
from dsgnar.problem.onsets import Onset
from dsgnar.problem.responses import Medium
from dsgnar.problem.scales import estimate
from dsgnar.problem.singular import singular_parts
from dsgnar.solving import judging
from dsgnar.solving.context import Context
from dsgnar.solving.model import build, default_network
from dsgnar.solving.rough import Rough
from dsgnar.solving.verdict import Judged
from dsgnar.storing.configuration import architecture_of

KINKS = ((0, 0.25, 2),)


def rod(equation, unit=1.0, **more):
    conditions = {
        "heat": ds.interior(equation),
        "start": ds.initial(lambda u: u),
        "ends": ds.boundary(more.pop("ends", lambda u: u)),
    }
    return ds.Problem(ds.Box(x=(0, 4 * unit), t=(0, 2)), ("u",), conditions, **more)


def plate(equation):
    conditions = {"law": ds.interior(equation), "sides": ds.boundary(lambda u: u)}
    return ds.Problem(ds.Box(x=(0, 1), y=(0, 1)), ("u",), conditions)


def circuit(drive):
    law, start = ds.interior(lambda v, t: v.t + v - drive(t)), ds.initial(lambda v: v)
    return ds.Problem(ds.Box(t=(0, 5)), ("v",), {"law": law, "start": start})


def on(problem, find):
    return find(problem, estimate(problem))


# --- where they are -----------------------------------------------------------------------------------------------------


def test_jumps_of_a_function_are_found_by_halving():
    steps = lambda x: np.where(x < 0.3, 0.0, 1.0) + np.where(x > np.pi, 2.0, 0.0) + np.tanh(1e3 * (x - 1))
    assert jumps(steps, pieces(0, 4), 1e-3) == pytest.approx([0.3, np.pi], abs=1e-12)
    both = lambda x: np.stack([steps(x[0]), np.where(x[1] < 2, 0.0, 1.0)])
    assert sorted(jumps(both, np.stack([pieces(0, 4)] * 2), 1e-3)) == pytest.approx([0.3, 2, np.pi], abs=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 3e5])
def test_a_heater_on_a_part_of_a_rod(unit):
    a, b = 0.3 * unit, 2.5 * unit
    heated = rod(lambda u, x: u.t - unit**2 * u.xx - 1e4 * jnp.where((x > a) & (x < b), 1.0, 0.0), unit)
    found = on(heated, planes)
    assert [plane.place for plane in found] == pytest.approx([a, b]) and {plane[::2] for plane in found} == {(0, 2)}
    assert on(heated, switches) == ()


def test_a_small_patch_and_layers_of_a_medium():
    inside = lambda x, y: (x > 0.2) & (x < 0.4) & (y > 0.5)
    found = on(plate(lambda u, x, y: ds.laplacian(u) + jnp.where(inside(x, y), 1.0, 0.0)), planes)
    assert [(p.axis, p.order) for p in found] == [(0, 2), (0, 2), (1, 2)]
    assert [p.place for p in found] == pytest.approx([0.2, 0.4, 0.5])
    media = on(plate(lambda u, x, y: u.xx + jnp.where(y < 0.25, 1, 9.0) * u.d("y", 4)), planes)
    assert media == (Plane(1, pytest.approx(0.25), 4),)


def test_switches_in_the_equation_and_at_walls():
    assert on(rod(lambda u, t: u.t - u.xx - jnp.where(t < 0.5, 1.0, 0.0)), switches) == pytest.approx((0.5,))
    wall = rod(lambda u, t: u.t - u.xx, ends=lambda u, t: u - jnp.where(t > 1.5, 3.0, 0.0))
    assert on(wall, switches) == pytest.approx((1.5,)) and on(wall, planes) == ()
    assert on(circuit(lambda t: jnp.sign(jnp.sin(2 * t))), switches) == pytest.approx((np.pi / 2, np.pi, 1.5 * np.pi))


def test_in_one_variable_ramps_end_intervals_too():
    assert on(circuit(lambda t: jnp.clip(t, 0, 2)), switches) == pytest.approx((2.0,))
    assert on(rod(lambda u, t: u.t - u.xx - jnp.clip(t, 0, 1)), switches) == ()


NOWHERE = {
    "smooth": rod(lambda u, x: u.t - u.xx - jnp.sin(3 * x)),
    "steep": rod(lambda u, x: u.t - u.xx - jnp.tanh(1e4 * (x - 1))),
    "a source that moves": rod(lambda u, x, t: u.t - u.xx - jnp.where(x < t, 1.0, 0.0)),
    "a round patch": plate(lambda u, x, y: ds.laplacian(u) + jnp.where((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.04, 1.0, 0.0)),
    "a law of the unknown": rod(lambda u, x: u.t - u.xx - jnp.where(u.value > 0.5, 1.0, 0.0)),
    "a table": rod(lambda u, x: u.t - u.xx - jnp.floor(10 * x)),
    "periodic": rod(lambda u, x: u.t - u.xx - jnp.where(x < 1, 1.0, 0.0), ends=lambda u: u, periodic=())
    and ds.Problem(
        ds.Box(x=(0, 1), t=(0, 1)),
        ("u",),
        {"heat": ds.interior(lambda u, x: u.t - u.xx - jnp.where(x < 0.5, 1.0, 0.0)), "start": ds.initial(lambda u: u)},
        periodic=("x",),
    ),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_nothing_where_there_is_nothing(name):
    assert on(NOWHERE[name], planes) == on(NOWHERE[name], switches) == ()


# --- what is made of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_one_derivative_of_a_feature_jumps_and_those_below_do_not(order):
    across = Across(((1, 0.25, order),))
    f = lambda z: across(jnp.array([0.0, z]))[0]
    with jax.enable_x64(True):
        for m in range(order + 1):
            left, right = f(0.25 - 1e-12), f(0.25 + 1e-12)
            assert float(jnp.abs(right - left)) == pytest.approx(2 * np.prod(np.r_[1.0, 1:order + 1]) / 1.25**order
                                                                 if m == order else 0.0, abs=1e-9)  # fmt: skip
            f = jax.grad(f)
        assert float(jnp.abs(across(jnp.array([0.0, -1.0]))[0])) == pytest.approx(1.0)


def test_further_inputs_stand_behind_each_other():
    assert further(None, (), 1) is None and further(None, [(0, 0.5, 2)], 1).size == 1
    with pytest.raises(ValueError, match="no axis 2; the problem's axes are 0 to 1"):
        further(None, [(2, 0.5, 2)], 2)
    with pytest.raises(ValueError, match="kinks must be triples"):
        ds.MLP(kinks=(0.5,))


def test_the_default_networks_are_told_and_remember_it():
    problem = plate(lambda u, x, y: ds.laplacian(u) + jnp.where(y < 0.75, 1.0, 0.0))
    scales = estimate(problem)
    chosen = default_network(problem, scales)
    assert chosen.kinks == ((1, pytest.approx(0.5), 2),)
    assert build(chosen, problem, "double", 0, scales=scales).layers[0].affine.weight.shape[0] == 3
    stored = json.loads(json.dumps({"network": {"kind": "MLP", **dataclasses.asdict(chosen)}}))
    assert architecture_of(stored) == chosen
    assert ds.MLP().kinks == () and default_network(problem, None).kinks == ()


def test_time_intervals_end_where_a_switch_is():
    problem = circuit(lambda t: jnp.where(t < 1.25, 1.0, 0.0))
    context = Context.of(problem, ds.MLP((6, 6)))
    assert 0 < context.start().times[-1] <= 1.25 + 1e-12
    several = Context.of(rod(lambda u, t: u.t - u.xx - jnp.where(t < 0.5, 1.0, 0.0)), ds.MLP((6, 6)))
    assert several.start().times == (0, pytest.approx(0.5))


def test_before_a_switch_nothing_may_happen_but_rounding(monkeypatch):
    """Ground at rest until a mat is switched on: residuals of 1e-14 were as large as their terms, so time was cut."""
    problem = rod(lambda u, t: u.t - u.xx - jnp.where(t > 0.5, 1.0, 0.0))
    context = Context.of(problem, ds.MLP((6, 6)))
    tiny = tuple(Judged(1e-14 * size, 1e-14 * size) for size in context.settings.scales.conditions)
    monkeypatch.setattr(judging, "_judged", lambda context, state: tiny)
    start = context.start()
    assert max(judging.here(context, start)) == pytest.approx(1e-6)
    whole = dataclasses.replace(start, times=(0.0, 2.0))
    assert max(judging.here(context, whole)) == 1.0


def test_a_wall_with_a_heating_foil():
    """T'' = -6 between 0.3 and 0.5: parabola inside, straight lines outside."""
    problem = ds.Problem(
        ds.Box(x=(0, 1)),
        ("T",),
        {
            "balance": ds.interior(lambda T, x: T.xx + 6 * jnp.where((x > 0.3) & (x < 0.5), 1.0, 0.0)),
            "ends": ds.boundary(lambda T: T),
        },
    )
    solution = ds.solve(problem, max_iterations=80, points=2048, max_points=2048)
    x = np.linspace(0, 1, 101)
    ramp = lambda s: np.maximum(x - s, 0) ** 2 / 2
    exact = 6 * (ramp(0.5) - ramp(0.3)) + 6 * x * (0.7**2 - 0.5**2) / 2
    assert solution.verdict == "solved" and np.max(np.abs(solution(x=x) - exact)) < 1e-9
    assert "equations jump at x = 0.3 and 0.5" in solution.summary()


def test_a_square_wave():
    problem = circuit(lambda t: jnp.where(t < 1.0, 1.0, 0.0))
    solution = ds.solve(problem)
    t = np.linspace(0, 5, 101)
    exact = np.where(t < 1, 1 - np.exp(-t), (1 - np.exp(-1)) * np.exp(1 - t))
    assert solution.verdict == "solved" and np.max(np.abs(solution(t=t) - exact)) < 1e-7
    assert 1.0 in np.round(solution.march.times, 9) and "intervals end where equations jump: t = 1" in solution.summary()


# --- sources that set in ------------------------------------------------------------------------------------------------


def test_a_source_that_sets_in():
    """v solves v_t = D v_zz + q (z > 0) from zero on: its residual is the jump, at all distances and times."""
    part = Onset(0.5, 3.0, 0.4, np.inf)
    with jax.enable_x64(True):
        for z in (-0.3, -1e-3, 1e-3, 0.2):
            for tau in (1e-4, 0.3):
                x = 0.5 + z
                rate, bend = jax.grad(part, 1)(x, tau), jax.grad(jax.grad(part))(x, tau)
                assert rate - 0.4 * bend == pytest.approx(3.0 * (z > 0), abs=1e-8)
            assert abs(part(0.5 + z, 1e-18)) < 1e-12


def test_what_a_statement_says_of_it():
    heated = rod(lambda u, x: 2 * u.t - 0.5 * u.xx + u - 6 * jnp.where(x > 1, 1.0, 0.0))
    scales = estimate(heated)
    part = singular_parts(heated, scales)["u"]
    exact = Onset(1.0, 3.0, 0.25, np.inf)
    assert part(x=1.2, t=0.05) == pytest.approx(float(exact(1.2, 0.05)), rel=1e-6)
    smooth = rod(lambda u, x: u.t - u.xx - jnp.sin(np.pi * x / 2))
    assert singular_parts(smooth, estimate(smooth)) == {}
    media = rod(lambda u, x: u.t - jnp.where(x < 1, 1.0, 2.0) * u.xx - jnp.sin(np.pi * x / 4))
    assert singular_parts(media, estimate(media)) == {}  # the diffusivity jumps, too


# --- spaces for rough solutions and errors ---------------------------------------------------------------------------------


SPACES = {
    "polynomials": polynomials(30, (False, True), (), KINKS),
    "waves": waves(30, (False, True), np.random.default_rng(0), KINKS),
}


@pytest.mark.parametrize("name", SPACES)
def test_functions_that_bend_and_their_derivatives(name):
    space = SPACES[name]
    xi = np.random.default_rng(1).uniform(-1, 1, (40, 2))
    xi = xi[np.abs(xi[:, 0] - 0.25) > 1e-3]
    assert space.size == 30 and space.derivative(xi, (0, 0)).shape == (len(xi), 30)
    for order in ((1, 0), (2, 0), (3, 0), (0, 1), (1, 1)):
        below = (order[0] - 1, order[1]) if order[0] else (0, order[1] - 1)
        step = 1e-5 * np.array([order[0] > 0, order[0] == 0])
        slope = (space.derivative(xi + step, below) - space.derivative(xi - step, below)) / 2e-5
        exact = space.derivative(xi, order)
        np.testing.assert_allclose(exact, slope, atol=1e-6 * np.abs(exact).max())
    across = np.array([[0.25 - 1e-9, 0.3], [0.25 + 1e-9, 0.3]])
    assert np.ptp(space.derivative(across, (1, 0)), axis=0).max() < 1e-6
    assert np.ptp(space.derivative(across, (2, 0)), axis=0)[1] > 0.1


def test_a_rough_solution_bends_too():
    """u'' = 2 on one half, 0 on the other: five functions hold it."""
    problem = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {"law": ds.interior(lambda u, x: u.xx - jnp.where(x < 0.5, 2.0, 0.0)), "ends": ds.boundary(lambda u: u)},
    )
    rough = Rough(problem, estimate(problem), 12)
    assert rough.solve(rough.polynomials(12)).left < 1e-10
    assert rough.solve(Polynomials.of(12, rough.periodic)).left > 1e-2


def test_a_wall_that_is_switched():
    """Hot from t = 0 to 1/2: two steps, each an error function in a long rod; warm air instead: two fluxes."""
    hot = lambda u, t: u - jnp.where(t < 0.5, 1.0, 0.0)
    rod_of = lambda wall: ds.Problem(
        ds.Box(x=(0, 20), t=(0, 1)),
        ("u",),
        {
            "heat": ds.interior(lambda u: u.t - 0.3 * u.xx),
            "start": ds.initial(lambda u: u),
            "left": ds.boundary(wall, faces=[("x", "lower")]),
            "right": ds.boundary(lambda u: u, faces=[("x", "upper")]),
        },
    )
    step = lambda x, t: erfc(x / np.sqrt(1.2 * t)) if t > 0 else 0.0
    problem = rod_of(hot)
    part = singular_parts(problem, estimate(problem))["u"]
    for x, t in ((0.2, 0.3), (0.4, 0.501), (0.1, 0.9)):
        assert float(part(x=x, t=t)) == pytest.approx(step(x, t) - step(x, t - 0.5), abs=1e-6)
    heated = rod_of(lambda u, t: u.x - 2 * u + jnp.where(t < 0.5, 3.0, 0.0))
    part = singular_parts(heated, estimate(heated))["u"]
    flux = lambda t: Medium(0.3).flux(2.0, jnp.asarray(0.1), jnp.asarray(t), 1.0)
    assert float(part(x=0.1, t=0.8)) == pytest.approx(3 * float(flux(0.8) - flux(0.3)), rel=1e-5)


def test_hot_walls_of_a_medium_that_changes_are_left_alone():
    problem = rod(lambda u: u.t - (1 + u * u) * u.xx, ends=lambda u, t: u - jnp.where(t < 0.5, 0.0, 1.0))
    assert singular_parts(problem, estimate(problem)) == {}
