"""Any units: sizes are found, and a change of units changes nothing."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dsgnar as ds
from dsgnar.problem.scales import estimate, power_of_two
from dsgnar.solving.context import Context

# L, T, U: the units of length, time and the unknown.


def heat(L=1.0, T=1.0, U=1.0):
    k = 0.1 * L * L / T
    return ds.Problem(
        ds.Box(x=(0, L), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t - k * u.xx),
            "ic": ds.initial(lambda u, x: u - U * jnp.sin(jnp.pi * (x / L))),
            "bc": ds.boundary(lambda u: u),
        },
    )


def wave(L=1.0, T=1.0, U=1.0):
    c2 = (L / T) ** 2
    return ds.Problem(
        ds.Box(x=(-L, L), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.tt - c2 * u.xx),
            "ic": ds.initial(lambda u, x: u - U * jnp.exp(jnp.sin(jnp.pi * (x / L)))),
            "rate": ds.initial(lambda u: u.t),
        },
        periodic=("x",),
    )


def burgers(L=1.0, T=1.0, U=1.0):
    speed, viscosity = L / (T * U), 0.05 * L * L / T
    return ds.Problem(
        ds.Box(x=(-L, L), t=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.t + speed * u * u.x - viscosity * u.xx),
            "ic": ds.initial(lambda u, x: u + U * jnp.sin(jnp.pi * (x / L))),
        },
        periodic=("x",),
    )


def plate(L=1.0, T=1.0, U=1.0):
    """An elliptic problem with mixed conditions; the second axis has the unit T."""
    return ds.Problem(
        ds.Box(x=(0, L), y=(0, T)),
        ("u",),
        {
            "pde": ds.interior(lambda u, x: L * L * u.xx + T * T * u.yy + 100 * U * jnp.sin(3 * (x / L))),
            "left": ds.boundary(lambda u: u - U, faces=[("x", "lower")]),
            "right": ds.boundary(lambda u: L * u.x + u, faces=[("x", "upper")]),
            "sides": ds.boundary(lambda u: T * u.y, faces=[("y", "lower"), ("y", "upper")]),
        },
    )


def predator(L=1.0, T=1.0, U=1.0):
    """Two animals, of the units U and L."""
    return ds.Problem(
        ds.Box(t=(0, T)),
        ("u", "v"),
        {
            "prey": ds.interior(lambda u, v: T * u.t - 1.5 * u + u * (v / L)),
            "predator": ds.interior(lambda u, v: T * v.t + 3 * v - (u / U) * v),
            "first prey": ds.initial(lambda u: u - 2 * U),
            "first predator": ds.initial(lambda v: v - L),
        },
    )


PROBLEMS = [heat, burgers, *(pytest.param(make, marks=pytest.mark.slow) for make in (wave, plate, predator))]
RUN = dict(network=ds.MLP(widths=(8, 8)), points=256, max_points=256, held_out=256, max_iterations=6, sketch=30)


def course(problem, **options):
    """The course of a short run: its history without times, and the parameters."""
    solution = ds.solve(problem, **RUN | options)
    records = [dataclasses.replace(r, seconds=0.0) for r in solution.history]
    return records, solution.thetas.tobytes(), solution.outcome.relative_residuals


@pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)
def test_units_that_are_powers_of_two_change_no_bit(make):
    up, down = (2.0**40, 2.0**-40) if make in (heat, plate, predator) else (2.0**-40, 2.0**40)
    assert course(make()) == course(make(L=up, T=down, U=up**0.5))


@pytest.mark.parametrize("make", PROBLEMS, ids=lambda make: make.__name__)
def test_other_units_change_sizes_by_at_most_a_power_of_two(make):
    plain, other = estimate(make()), estimate(make(L=3.7e-3, T=8.1e4, U=290.0))
    for j, unit in enumerate((290.0, 3.7e-3)[: len(plain.unknowns)]):
        assert 0.5 <= other.unknowns[j] / (unit * plain.unknowns[j]) <= 2
    for size in (*other.unknowns, *other.conditions):
        assert size == power_of_two(size)


@pytest.mark.slow
@pytest.mark.parametrize("make", [heat, burgers, wave], ids=lambda make: make.__name__)
def test_in_any_units_errors_are_those_of_other_seeds(make):
    """At the floor of single precision errors scatter with every change of rounding; units add nothing to that."""

    def error(seed, *units):
        run = dict(precision="single", network=ds.MLP(widths=(12,) * 3), points=1024, max_points=4096)
        solution = ds.solve(make(*units), seed=seed, **run)
        assert solution.verdict == "solved"
        return max(solution.error_estimate.values())

    plain = [error(seed) for seed in range(3)]
    for units in ((3.7e-3, 8.1e4, 290.0), (57.0, 0.031, 1.3e-3)):
        assert min(plain) / 2 <= error(0, *units) <= 2 * max(plain)


def test_a_chip_in_si_units_is_solved_and_people_see_their_own_units():
    L, T, U = 1e-3, 1e-6, 300.0
    solution = ds.solve(heat(L, T, U), network=ds.MLP(widths=(16, 16)), points=1024, max_points=1024)
    x, t = np.linspace(0, L, 11), np.full(11, 0.4 * T)
    exact = U * np.exp(-0.1 * np.pi**2 * 0.4) * np.sin(np.pi * x / L)
    assert solution.verdict == "solved"
    np.testing.assert_allclose(solution(x=x, t=t), exact, atol=1e-3 * U)
    slope = U * np.exp(-0.1 * np.pi**2 * 0.4) * np.pi / L
    assert solution.derivative("u", "x")(x=0.0, t=0.4 * T) == pytest.approx(slope, rel=1e-2)
    residual = solution.residual("pde")(x=x, t=t)
    assert np.abs(residual).max() < 1e-2 * U / T and np.abs(residual).max() > 1e-12 * U / T
    assert solution.outcome.held_out["pde"] < 1e-2 * U / T


def test_sizes_come_from_values_from_sources_and_from_other_terms():
    assert estimate(heat(U=300.0)).unknowns == (256.0,)
    source = ds.Problem(
        ds.Box(x=(0, 1)), ("u",), {"pde": ds.interior(lambda u: u.xx + 1e6), "bc": ds.boundary(lambda u: u)}
    )
    (size,) = estimate(source).unknowns
    assert 1e4 < size < 1e6  # u = 1e6 x (1 - x) / 2
    flow = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1)),
        ("u", "p"),
        {
            "momentum": ds.interior(lambda u, p: u * u.x + p.x / 1e3),
            "inlet": ds.boundary(lambda u: u - 10.0, faces=[("x", "lower")]),
        },
    )
    u, p = estimate(flow).unknowns
    assert u == 8.0 and 1e4 < p < 1e6  # a density of 1e-3 and a speed of 10
    assert estimate(flow, {"p": 3.0}).unknowns == (8.0, 4.0)
    with pytest.raises(ValueError, match="scales: there is no unknown 'q'"):
        estimate(flow, {"q": 1.0})


@pytest.mark.parametrize(
    ("size", "power"), [(1.0, 1.0), (1.4, 1.0), (1.5, 2.0), (300.0, 256.0), (0.0, 1.0), (math.nan, 1.0)]
)
def test_powers_of_two(size, power):
    assert power_of_two(size) == power


def swing() -> tuple[ds.Problem, np.ndarray, np.ndarray]:
    """A damped pendulum, and its angle at some times."""
    pendulum = ds.Problem(
        ds.Box(t=(0, 5)),
        ("u", "v"),
        {
            "angle": ds.interior(lambda u, v: u.t - v),
            "speed": ds.interior(lambda u, v: v.t + 9.81 * jnp.sin(u) + 0.5 * v),
            "start": ds.initial(lambda u: u - 2.0),
            "rest": ds.initial(lambda v: v),
        },
    )
    slopes = lambda t, y: [y[1], -9.81 * np.sin(y[0]) - 0.5 * y[1]]
    t = np.linspace(0.01, 4.99, 50)
    return pendulum, t, solve_ivp(slopes, (0, 5), [2.0, 0.0], rtol=1e-12, atol=1e-12, t_eval=t).y[0]


def test_ordinary_differential_equations_are_solved():
    pendulum, t, exact = swing()
    solution = ds.solve(pendulum, points=512, max_points=1024)
    assert solution.verdict == "solved" and solution.march.times[-1] == 5
    np.testing.assert_allclose(solution(t=t)["u"], exact, atol=1e-3)
    assert solution.parameters < 1000  # an ODE does not get a network for a PDE


@pytest.mark.slow
def test_time_intervals_are_found_on_the_way():
    pendulum, t, exact = swing()
    solution = ds.solve(pendulum, network=ds.MLP(widths=(8, 8)), points=512, max_points=1024)
    assert solution.verdict == "solved" and solution.march.count > 1 and solution.march.times[-1] == 5
    np.testing.assert_allclose(solution(t=t)["u"], exact, atol=1e-5)


def test_conditions_that_contradict_each_other_are_not_called_solved():
    contradiction = ds.Problem(
        ds.Box(x=(0, 1)),
        ("u",),
        {
            "pde": ds.interior(lambda u: u.xx),
            "one": ds.boundary(lambda u: u - 1, faces=[("x", "lower")]),
            "two": ds.boundary(lambda u: u - 2, faces=[("x", "lower")]),
        },
    )
    solution = ds.solve(contradiction, points=256, max_points=256, max_iterations=60)
    assert solution.verdict == "failed"
    assert solution.outcome.relative_residuals["two"] > 1e-2
    assert "failed: some conditions do not hold" in solution.summary()


def test_sizes_of_stiff_kinetics():
    """Robertson's reactions: B is 1e-5 because of its square, and C follows from it. To first order B was 0.25, C 1.7e7."""
    problem = ds.Problem(
        ds.Box(t=(0, 40)),
        ("A", "B", "C"),
        {
            "a": ds.interior(lambda A, B, C: A.t + 0.04 * A - 1e4 * B * C),
            "b": ds.interior(lambda A, B, C: B.t - 0.04 * A + 1e4 * B * C + 3e7 * B**2),
            "c": ds.interior(lambda B, C: C.t - 3e7 * B**2),
            "A0": ds.initial(lambda A: A - 1),
            "B0": ds.initial(lambda B: B),
            "C0": ds.initial(lambda C: C),
        },
    )
    A, B, C = estimate(problem).unknowns
    assert A == 1.0 and 1e-6 < B < 1e-4 and 0.05 < C < 2


def test_an_unknown_between_two_equations_has_a_size_between_what_they_say():
    """A wave packet in a wide trap: one equation asks for an imaginary part of 8, the other for one of 0.05."""
    packet = lambda x: jnp.pi**-0.25 * jnp.exp(-((x - 1.5) ** 2) / 2)
    problem = ds.Problem(
        ds.Box(x=(-8, 8), t=(0, 6)),
        ("u", "v"),
        {
            "re": ds.interior(lambda u, v, x: u.t + v.xx / 2 - x**2 * v / 2),
            "im": ds.interior(lambda u, v, x: v.t - u.xx / 2 + x**2 * u / 2),
            "u0": ds.initial(lambda u, x: u - packet(x)),
            "v0": ds.initial(lambda v: v),
        },
    )
    assert all(0.1 < size < 2 for size in estimate(problem).unknowns)


def reactor(walls=300.0):
    """Heat that a reaction of Arrhenius' law sets free: exp(-E/T) has no value for temperatures about zero."""
    return ds.Problem(
        ds.Box(x=(0, 0.02), t=(0, 600)),
        ("T",),
        {
            "pde": ds.interior(lambda T: T.t - 2e-7 * T.xx - 1e3 * jnp.exp(-3000 / T)),
            "T0": ds.initial(lambda T, x: T - walls - 25 * jnp.sin(jnp.pi * x / 0.02)),
            "walls": ds.boundary(lambda T: T - walls),
        },
    )


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_temperature_begins_where_its_law_has_values(precision):
    scales = estimate(reactor())
    (level,) = scales.levels
    assert 300 < level * scales.unknowns[0] < 320
    assert scales.conditions[0] < 10  # not exp(1000)
    context = Context.of(reactor(), ds.MLP(widths=(30,) * 4), ds.Settings(precision=precision))
    state = context.start()
    assert np.isfinite(context.residuals.kernel(jnp.asarray(state.iterate.theta), context.collocation.held_out(state))).all()
    assert estimate(heat()).levels == ()  # nothing has to begin anywhere


def test_levels_are_the_same_in_other_units():
    kelvin, m = reactor(), 2.0**10
    other = ds.Problem(
        ds.Box(x=(0, 0.02), t=(0, 600)),
        ("T",),
        {
            "pde": ds.interior(lambda T: T.t - 2e-7 * T.xx - m * 1e3 * jnp.exp(-3000 * m / T)),
            "T0": ds.initial(lambda T, x: T - m * (300 + 25 * jnp.sin(jnp.pi * x / 0.02))),
            "walls": ds.boundary(lambda T: T - m * 300),
        },
    )
    assert estimate(kelvin).levels == estimate(other).levels


@pytest.mark.parametrize("half", [0.3, 1e6])
def test_poles_of_a_law_do_not_set_the_size_of_its_equation(half):
    """a/(a + 0.3) has a pole at a = -0.3, which stand-ins come near and no concentration does."""
    problem = ds.Problem(
        ds.Box(x=(0, 1), y=(0, 1), t=(0, 6)),
        ("a", "b"),
        {
            "prey": ds.interior(lambda a, b: a.t - 0.01 * ds.laplacian(a) - a * (1 - a) + a * b / (a + half)),
            "hunters": ds.interior(lambda a, b: b.t - 0.01 * ds.laplacian(b) - 0.9 * a * b / (a + half) + 0.4 * b),
            "a0": ds.initial(lambda a, x, y: a - 0.5 - 0.3 * jnp.cos(jnp.pi * x) * jnp.cos(2 * jnp.pi * y)),
            "b0": ds.initial(lambda b, y: b - 0.4 - 0.2 * jnp.cos(jnp.pi * y)),
        },
    )
    assert max(estimate(problem).conditions[:2]) <= 2
