"""References: the integrators have their orders, independent methods agree, and what is stored solves the equations."""

from functools import cache

import numpy as np
import pytest

from dsgnar.problem.reference import interior_grid
from dsgnar.suite import truth
from dsgnar.suite.truth import cavity, cavity_elements, cavity_spectral, kdv, ks
from dsgnar.suite.truth.exponential import adams, adams_weights, etdrk4
from dsgnar.suite.truth.spectral import EXTENDED, Equation, dop853, dop853_integrating, evaluate, relative
from dsgnar.suite.truth.table import Comparison, Table

every_stored = pytest.mark.parametrize("name", truth.STORED)


# Integrators


def test_products_are_free_of_aliases():
    """u = cos(7 x): u u_x = -3.5 sin(14 x) has no kept mode on 16 points, and one on 32."""
    for points, kept in ((16, 0.0), (32, 3.5)):
        equation = Equation.of(points, 2 * np.pi, 1.0, lambda k: 0 * k)
        rate = equation.nonlinear(equation.state({7: 0.5}))
        x = interior_grid(0, 2 * np.pi, 40)
        np.testing.assert_allclose(evaluate(rate, equation.wavenumbers, x), kept * np.sin(14 * x), atol=1e-14)


def test_adams_weights_without_stiffness_are_the_classical_ones():
    (weights,) = adams_weights(np.zeros(1), 4).T
    np.testing.assert_allclose(weights, np.array([55, -59, 37, -9]) / 24, rtol=1e-14)


def test_adams_weights_are_continuous_where_quadrature_hands_over():
    for direction in (-1, 1j):
        inside, outside = adams_weights(direction * np.array([30 - 1e-9, 30 + 1e-9]), 6).T
        np.testing.assert_allclose(inside, outside, rtol=1e-7)


EARLY = np.array([1 / 8])


@cache
def early_solution():
    return ks.evolution(points=64).coefficients(adams, EARLY, 64, 2.0**-15)


@pytest.mark.parametrize(
    ("integrator", "options", "order"),
    [(etdrk4, {}, 4), (adams, {"order": 4}, 4), (adams, {"order": 6}, 6)],
    ids=["etdrk4", "adams4", "adams6"],
)
def test_orders_of_convergence(integrator, options, order):
    """Kuramoto-Sivashinsky up to t = 1/8, on few modes: all integrators solve the same truncated system."""
    run = lambda h: ks.evolution(points=64).coefficients(integrator, EARLY, 64, h, **options)
    errors = [relative(run(h), early_solution()) for h in (2.0**-11, 2.0**-12, 2.0**-13)]
    measured = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(measured - order) < 0.5), measured


def test_integrators_agree_on_a_dispersive_equation():
    evolution = kdv.evolution(dispersion=0.1)
    at = np.array([0.5])
    exponential = evolution.on_grid(evolution.coefficients(adams, at, 64, 2.0**-13))
    for explicit in (dop853, dop853_integrating):
        other = evolution.on_grid(evolution.coefficients(explicit, at, 64, 2.0**-9, dtype=np.float64))
        assert relative(other, exponential) < 1e-13


def test_a_step_that_does_not_fit_or_blows_up_is_an_error():
    equation = Equation.of(16, 2, 1.0, lambda k: 0 * k)
    with pytest.raises(ValueError, match="not a multiple"):
        etdrk4(equation, equation.state({1: 0.5}), [0.3], 0.25)
    with pytest.raises(RuntimeError, match="try half"), np.errstate(all="ignore"):
        adams(equation, equation.state({1: 50.0}), [64.0], 1.0)


# What is stored


@every_stored
def test_stored_files_are_small_and_say_what_they_are(name):
    path = truth.DATA / f"{name}.npz"
    assert path.stat().st_size < 1_000_000
    metadata = truth.load(name).metadata
    assert {"equation", "parameters", "method", "accuracy", "agreement", "versions", "command"} <= set(metadata)
    agreement = [Comparison(*entry) for entry in metadata["agreement"]]
    assert len(agreement) >= 3 and all(c.holds for c in agreement)
    assert metadata["accuracy"] == agreement[0].measured


@pytest.mark.parametrize("name", [n for n in truth.STORED if n not in ("heat_holes", "balls")])  # at random places
def test_stored_grids_are_cell_centres(name):
    table = truth.load(name)
    intervals = {"kdv": {"x": (-1, 1)}, "ks": {"x": (0, 2 * np.pi)}, "heat_longtime": {"t": (0, 100)}}
    for axis, values in table.axes.items():
        lower, upper = intervals.get(name, {}).get(axis, (0, 1))
        np.testing.assert_array_equal(values, interior_grid(lower, upper, len(values)))
    shape = tuple(len(values) for values in table.axes.values())
    assert all(v.shape == shape and v.dtype == np.float64 for v in table.values.values())


@pytest.mark.parametrize(("module", "name"), [(kdv, "kdv"), (ks, "ks")])
def test_stored_evolutions_solve_their_equations(module, name):
    """Each of some columns of the table, carried on by ETDRK4, becomes the next one."""
    table, evolution = truth.load(name), module.evolution()
    assert table.metadata["parameters"] == evolution.parameters
    u, x, times = table.values["u"], table.axes["x"], table.axes["t"]
    equation = evolution.equation(len(x), np.float64)
    shift = np.exp(-1j * equation.wavenumbers * x[0])
    for j in (0, 40, 90, 126):
        start = np.fft.rfft(u[:, j], norm="forward")[:-1] * shift
        end = etdrk4(equation, start, [times[j + 1] - times[j]], 2.0**-13)
        # 256 points hold the solution to 1e-10, and the third or fourth derivative of that is lost within a column
        assert relative(evaluate(end, equation.wavenumbers, x)[0], u[:, j + 1]) < 2e-8


@pytest.mark.parametrize(("module", "name"), [(kdv, "kdv"), (ks, "ks")])
def test_stored_evolutions_begin_at_their_initial_values(module, name):
    table, evolution = truth.load(name), module.evolution()
    first = evolution.on_grid(evolution.coefficients(etdrk4, table.axes["t"][:1], 128, 2.0**-14))
    assert relative(first[:, 0], table.values["u"][:, 0]) < 1e-12


def test_korteweg_de_vries_keeps_its_invariants():
    """int u = 0 and int u^2 = 1 for all times; the trapezoidal rule is exact for resolved waves."""
    u = truth.load("kdv").values["u"]
    assert np.abs(u.mean(0)).max() < 1e-14
    assert np.abs((u**2).mean(0) - 0.5).max() < 1e-13


# The cavity


@pytest.fixture(scope="module")
def flows():
    return {size: cavity.flow(100.0, size) for size in (12, 24)}


def test_cavity_converges_fast_in_spite_of_its_corners(flows):
    table = truth.load("cavity")
    x, y = table.axes.values()
    errors = {size: relative(flow.velocity(x, y)[0], table.values["u"]) for size, flow in flows.items()}
    assert errors[24] < 3e-6
    assert errors[12] / errors[24] > 2**5.5


def test_cavity_has_its_boundary_values(flows):
    ends, s = np.array([0.0, 1.0]), np.linspace(0, 1, 31)
    u, v = flows[24].velocity(s, ends)
    np.testing.assert_allclose(u, np.stack([0 * s, 4 * s * (1 - s)], 1), atol=1e-13)
    np.testing.assert_allclose(v, 0, atol=1e-13)
    np.testing.assert_allclose(flows[24].velocity(ends, s), 0, atol=1e-13)


def test_cavity_satisfies_the_momentum_equations(flows):
    """By central differences of order six in the middle of the square; pressure and velocity have different sources."""
    e = 4e-3
    d1 = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * e)
    d2 = np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * e**2)
    x, y = 0.3 + e * np.arange(-3, 4), 0.6 + e * np.arange(-3, 4)
    flow = flows[24]
    (u, v), p = flow.velocity(x, y), flow.pressure(x, y)
    for w, force in ((u, d1 @ p[:, 3]), (v, p[3] @ d1)):
        transport = u[3, 3] * (d1 @ w[:, 3]) + v[3, 3] * (w[3] @ d1)
        assert abs(transport + force - (d2 @ w[:, 3] + w[3] @ d2) / 100) < 1e-4
    assert abs(d1 @ u[:, 3] + v[3] @ d1) < 1e-10


def test_finite_elements_agree_with_the_cavity():
    table = truth.load("cavity")
    x, y = table.axes.values()
    u, v = cavity_elements.solve(100.0, 8).velocity(x, y)
    assert relative(u, table.values["u"]) < 3e-4
    assert relative(v, table.values["v"]) < 3e-4


def test_corner_flow_is_what_it_is_said_to_be():
    """By differences of order four: the bare corner flow is biharmonic, with the vorticity and pressure stated."""
    e = 1e-3
    x, y = 0.2 + e * np.arange(-2, 3), 0.9 + e * np.arange(-2, 3)
    s = cavity_spectral.Singular.on(x, y)
    d1, d2 = np.array([1, -8, 0, 8, -1]) / (12 * e), np.array([-1, 16, -30, 16, -1]) / (12 * e**2)
    lap = lambda f: d2 @ f[:, 2] + f[2] @ d2
    assert abs(lap(s.psi) - s.lap[2, 2]) < 1e-6
    assert abs(lap(s.bare_lap)) < 1e-6
    # p_x = -nu omega_y and p_y = nu omega_x for omega = -lap psi
    assert abs(d1 @ s.log[:, 2] - s.bare_lap[2] @ d1) < 1e-6
    assert abs(s.log[2] @ d1 + d1 @ s.bare_lap[:, 2]) < 1e-6


# The interface


def test_tables_survive_a_file(tmp_path):
    table = Table({"x": np.arange(2.0), "t": np.arange(3.0)}, {"u": np.ones((2, 3))}, {"method": "m", "accuracy": 0.5})
    table.save(tmp_path / "table.npz")
    loaded = Table.load(tmp_path / "table.npz")
    assert list(loaded.axes) == ["x", "t"] and loaded.metadata == table.metadata
    reference = loaded.reference()
    assert reference.shape == (2, 3) and reference.accuracy == 0.5 and reference.source == "m"
    np.testing.assert_array_equal(reference.points[:3], [[0, 0], [0, 1], [0, 2]])


def test_unknown_names_are_explained():
    with pytest.raises(ValueError, match="closed forms"):
        truth.load("wave")
    with pytest.raises(ValueError, match="burgers, kdv, ks, cavity"):
        truth.check("nothing")


def test_extended_precision_is_used_where_the_machine_has_it():
    equation = ks.evolution().equation(16, EXTENDED)
    assert equation.linear.dtype == EXTENDED
    assert equation.nonlinear(equation.state({1: 0.5})).dtype == np.result_type(EXTENDED, np.complex64)


def test_burgers_quadrature_agrees_with_a_fourier_solution():
    from dsgnar.suite.truth import burgers

    (comparison,) = burgers.check(viscosity=0.05, points=256)
    assert comparison.holds, comparison


@pytest.mark.slow
@pytest.mark.parametrize("name", truth.CHECKED)
def test_every_check_holds(name):
    for comparison in truth.check(name):
        assert comparison.holds, comparison


def test_other_parameters_are_computed_with_an_honest_accuracy():
    coarse, fine = (kdv.compute(dispersion=0.1, points=n, step=h) for n, h in ((48, 2.0**-12), (64, 2.0**-13)))
    difference = relative(coarse.values["u"], fine.values["u"])
    assert difference <= 3 * coarse.metadata["accuracy"]
    assert fine.metadata["accuracy"] < 1e-10
    table = cavity.compute(reynolds=250.0, size=24)
    assert table.metadata["accuracy"] < 1e-3 and set(table.values) == {"u", "v", "p"}
