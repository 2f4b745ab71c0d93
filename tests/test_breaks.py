"""Initial values that jump, or whose slope does: where they are found, and what is added to the network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfc

import dsgnar as ds
from dsgnar.problem.breaks import Break, _breaks, initial_breaks
from dsgnar.problem.corners import Start
from dsgnar.problem.scales import estimate
from dsgnar.problem.singular import singular_parts

STRIKE, RATE, VOLATILITY = 100.0, 0.05, 0.2


def rod(initial, pde=lambda u: u.t - 0.25 * u.xx, **options):
    """A rod from -1 to 1 with insulated ends."""
    conditions = {"pde": ds.interior(pde), "ic": ds.initial(initial), "ends": ds.boundary(lambda u: u.x)}
    if "periodic" in options:
        conditions.pop("ends")
    return ds.Problem(ds.Box(x=(-1, 1), t=(0, 0.1)), ("u",), conditions, **options)


def call():
    """The value of an option on a share, by its price and the time to expiry."""
    conditions = {
        "pde": ds.interior(lambda V, S: V.t - VOLATILITY**2 / 2 * S**2 * V.SS - RATE * S * V.S + RATE * V),
        "payoff": ds.initial(lambda V, S: V - jnp.maximum(S - STRIKE, 0.0)),
        "worthless": ds.boundary(lambda V: V, faces=[("S", "lower")]),
        "far": ds.boundary(lambda V, t: V - 300 + STRIKE * jnp.exp(-RATE * t), faces=[("S", "upper")]),
    }
    return ds.Problem(ds.Box(S=(0, 300), t=(0, 1)), ("V",), conditions)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def found(problem):
    return list(_breaks(Start(problem, problem.unknowns[0]), 0, 1.0))


@pytest.mark.parametrize("jump, kink", [(1.0, 0.0), (0.0, 1.0), (2.0, -0.5)])
def test_parts_solve_the_equation(jump, kink):
    D, b, c = 0.3, 0.7, -0.4
    part = Break(0.2, jump, kink, D, 0.0, b, c)
    for x, t in ((0.25, 0.01), (-0.4, 0.2), (0.1, 1.0)):
        u_t, u_x = (jax.grad(part, i)(x, t) for i in (1, 0))
        u_xx = jax.grad(jax.grad(part))(x, t)
        assert float(u_t) == pytest.approx(float(D * u_xx + b * u_x + c * part(x, t)), rel=1e-9)


@pytest.mark.parametrize("jump, kink, power", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.5)])
def test_a_diffusivity_that_varies_counts(jump, kink, power):
    """What is left of the equation is smaller by the square root of the time than without the term for it."""
    D = lambda x: 0.3 + 0.6 * x
    left = []
    for tau in (1e-4, 1e-6):
        x = 0.7 * np.sqrt(4 * 0.3 * tau)
        part = Break(0.0, jump, kink, 0.3, 0.6, 0.0, 0.0)
        left.append(abs(jax.grad(part, 1)(x, tau) - D(x) * jax.grad(jax.grad(part))(x, tau)))
    assert np.log10(left[0] / left[1]) / 2 == pytest.approx(power, abs=0.1)


def test_jumps_and_kinks_are_found_where_they_are():
    step, kink = found(rod(lambda u, x: u - jnp.where(x < 0.2, 0.0, 1.0) - 3 * jnp.abs(x - 0.5) - jnp.sin(x)))
    assert (step.place, step.jump, step.kink) == pytest.approx((0.2, 1.0, 0.0), abs=1e-6)
    assert (kink.place, kink.jump, kink.kink) == pytest.approx((0.5, 0.0, 6.0), abs=1e-5)
    assert step.diffusivity == kink.diffusivity == pytest.approx(0.25)


def test_the_equation_at_the_strike():
    (one,) = found(call())
    assert one.place == pytest.approx(STRIKE, abs=1e-9) and one.kink == pytest.approx(1.0) and one.jump == 0
    assert (one.diffusivity, one.varies, one.drift, one.growth) == pytest.approx((200.0, 4.0, 5.0, -0.05), rel=1e-6)


def test_two_rods_that_are_brought_together():
    part = singular_parts(*(lambda p: (p, estimate(p)))(rod(lambda u, x: u - jnp.where(x < 0.0, 1.0, 3.0))))["u"]
    assert part(x=0.3, t=0.02) == pytest.approx(erfc(-0.3 / np.sqrt(4 * 0.25 * 0.02)), rel=1e-9)
    assert part(x=-0.5, t=0.0) == 0 and part(x=0.5, t=0.0) == pytest.approx(2.0)


NONE = {
    "smooth": rod(lambda u, x: u - jnp.sin(3 * x)),
    "steep": rod(lambda u, x: u - jnp.tanh(1e4 * x)),
    "a table": rod(lambda u, x: u - jnp.interp(x, jnp.linspace(-1, 1, 40), jnp.sin(jnp.arange(40.0)))),
    "periodic": rod(lambda u, x: u - jnp.abs(x), periodic=("x",)),
    "no diffusion": rod(lambda u, x: u - jnp.abs(x), pde=lambda u: u.t + u.x),
    "a jump that changes the diffusivity": rod(lambda u, x: u - jnp.where(x < 0, 1, 2.0), pde=lambda u: u.t - u * u.xx),
}


@pytest.mark.parametrize("name", NONE)
def test_nothing_where_there_is_nothing(name):
    assert initial_breaks(Start(NONE[name], "u"), 1.0, 1e-18) is None


def test_a_step_that_spreads_is_solved():
    """Two rods, so long that their ends stay as they are; the closed form is an error function."""
    solution = ds.solve(rod(lambda u, x: u - jnp.where(x < 0, 1.0, 3.0)), network=ds.MLP((8, 8)), max_iterations=30)
    x, t = np.meshgrid(np.linspace(-0.9, 0.9, 21), [0.001, 0.02])
    assert np.max(np.abs(solution(x=x, t=t) - 1 - erfc(-x / np.sqrt(t)))) < 1e-3
