"""Error bars of unknown functions of fewer axes."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.networks.composed import own
from dsgnar.showing.figures.page import page
from dsgnar.showing.report.fits import charts, tables
from dsgnar.solving import bands
from dsgnar.solving.coefficients import Account, Band
from dsgnar.solving.context import Context
from dsgnar.solving.inference import infer
from dsgnar.solving.stop import StopReason
from dsgnar.storing.inferred import from_json, to_json

pytestmark = pytest.mark.usefixtures("shared_kernels")

NOISE = 0.05
PLACES = np.linspace(0, 0.5, 21)  # none beyond


def direct(noise=NOISE, positive=False, end=False, axes="x"):
    """A function k that is measured itself on one half of its axis; `end`: and known at x = 1."""
    rng = np.random.default_rng(0)
    values = 2 + np.sin(PLACES) + NOISE * rng.normal(size=PLACES.size)
    known = {"end": ds.boundary(lambda k: k - 2.84, faces=[("x", "upper")])} if end else {}
    return ds.Problem(
        domain=ds.Box(x=(0, 1), t=(0, 1)),
        unknowns=("u", ds.Unknown("k", axes=axes, positive=positive)),
        conditions={
            "pde": ds.interior(lambda u, k: u.t + k * u),
            "start": ds.initial(lambda u: u - 1),
            "data": ds.data(lambda k: k, at={"x": PLACES, "t": 0.5}, values=values, noise=noise),
            **known,
        },
    )


def ended(problem, shift=0.3):
    """A solution that somebody claims to have found, with its error bars."""
    context = Context.of(problem, ds.MLP(widths=(4,)))
    rng = np.random.default_rng(1)
    state, theta = context.start(), np.asarray(context.first, np.float64)
    theta = theta + shift * rng.normal(size=theta.size)
    found = infer(context.residuals, theta, 1e-4, context.collocation.measured(state))
    return context, theta, found


def band(context, theta, found, **at):
    x = np.atleast_1d(at["x"])
    points = np.stack([x, np.full(x.shape, 0.5)], 1)
    return bands.band(context.residuals, theta, found.spread, "k", points, found.freedom)


@pytest.mark.parametrize("positive", [False, True])
def test_a_function_that_is_measured_itself_has_the_error_bars_of_linear_regression(positive):
    context, theta, found = ended(direct(positive=positive))
    count, numbers = own(context.residuals.parameters.network(jnp.asarray(theta)))
    ansatz = context.residuals.ansatz
    assert 300 < count == len(found.spread) < 350 and numbers == 0

    def k(last, x):
        return ansatz.network(jnp.concatenate([theta[:-count], last]))(jnp.array([x, 0.5]))[1]

    slopes = np.asarray(jax.vmap(jax.grad(k), (None, 0))(jnp.asarray(theta[-count:]), jnp.asarray(PLACES)))
    everywhere = np.linspace(0, 1, bands.PLACES)
    size = np.abs(jax.vmap(k, (None, 0))(jnp.asarray(theta[-count:]), everywhere))
    size = size if positive else max(np.sqrt(np.mean(size**2)), ansatz.scales.unknowns[1])
    steep = np.linalg.norm(jax.vmap(jax.grad(k), (None, 0))(jnp.asarray(theta[-count:]), everywhere), axis=1) / size
    rho = bands.PRIOR / np.median(steep)
    covariance = np.linalg.inv(slopes.T @ slopes / NOISE**2 + np.eye(count) / rho**2)
    expected = np.sqrt(np.einsum("ni,ij,nj->n", slopes, covariance, slopes))
    got = band(context, theta, found, x=PLACES)
    np.testing.assert_allclose(got.standard_error, expected, rtol=1e-5)
    np.testing.assert_allclose(got.found, [k(jnp.asarray(theta[-count:]), x) for x in PLACES], rtol=1e-12)


def test_a_function_is_less_certain_where_there_are_no_data_and_certain_where_it_is_given():
    near, far = band(*ended(direct()), x=[0.25, 1.0]).standard_error
    assert near < NOISE < far / 2
    assert band(*ended(direct(end=True)), x=1.0).standard_error < 0.1 * NOISE


def test_a_function_that_nothing_depends_on_is_not_determined():
    problem = direct()
    conditions = dict(problem.conditions) | {"data": ds.data(lambda u: u, {"x": [0.5], "t": [0.5]}, [1.0], 1e3)}
    problem = ds.Problem(domain=problem.domain, unknowns=problem.unknowns, conditions=conditions)
    context, theta, found = ended(problem)
    assert found.functions["k"] == Account(None, None, 1.0)
    assert not band(context, theta, found, x=0.5).determined.any()


def test_estimated_noise_widens_bands():
    context, theta, found = ended(direct(noise=None))
    fit = found.fits["data"]
    assert found.freedom == fit.freedom < 21 and fit.noise > fit.misfit
    known = ended(direct(noise=fit.noise))
    assert band(*known, x=0.2).freedom == math.inf and band(context, theta, found, x=0.2).freedom == fit.freedom
    ratio = band(context, theta, found, x=0.2).standard_error / band(*known, x=0.2).standard_error
    assert ratio == pytest.approx(1, rel=0.05)


def test_bands_and_accounts():
    plain = Band(np.array([1.0, 2.0]), np.array([0.1, math.inf]))
    low, high = plain.interval(0.95)
    assert low[0] == pytest.approx(1 - 0.195996, rel=1e-5) and (low[1], high[1]) == (-math.inf, math.inf)
    assert np.isnan(plain.value[1]) and plain.determined.tolist() == [True, False]
    low, high = Band(np.array([2.0, 2.0]), np.array([1.5, math.inf]), positive=True).interval()
    assert low[0] * high[0] == pytest.approx(4) and (low[1], high[1]) == (0, math.inf)
    assert str(Account(0.0123, 0.05, 0.0)) == "standard error 1.2 % (median; 5 % at most)"
    assert str(Account(0.01, 0.05, 0.2, "x from 0.8 to 1")).endswith("not determined on 20 % of its axes: x from 0.8 to 1")
    assert str(Account(None, None, 1.0)) == "not determined anywhere"


@pytest.fixture(scope="module")
def solved(shared_kernels):
    """A run that began at its end."""
    with jax.enable_x64(True):
        context, theta, _ = ended(direct(positive=True, end=True))
        state = context.start()
        state = dataclasses.replace(state, iterate=dataclasses.replace(state.iterate, theta=theta))
        return context.solution(state, StopReason.STALLED)


def test_a_solution_has_bands_which_are_kept(solved, tmp_path):
    x = np.linspace(0, 1, 7).reshape(1, 7)
    found = solved.band("k", x=x)
    assert found.found.shape == (1, 7) and found.positive
    np.testing.assert_allclose(found.found, solved(x=x, t=0.1)["k"])
    assert (found.standard_error[0, :4] < NOISE).all()
    assert "k: standard error" in solved.summary()
    solved.save(tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["functions"]["k"]["undetermined"] == solved.outcome.inference.functions["k"].undetermined
    again = ds.load(tmp_path / "run", direct(positive=True, end=True))
    np.testing.assert_array_equal(again.band("k", x=x).standard_error, found.standard_error)
    assert again.summary() == solved.summary()
    kept = to_json(solved.outcome.inference)
    assert from_json(json.loads(json.dumps(kept)), {}).functions == solved.outcome.inference.functions


def test_what_has_no_band_says_so(solved):
    for name, at, message in (("u", dict(x=0, t=0), "fewer axes"), ("k", dict(x=0, t=0), "depends on x")):
        with pytest.raises(ValueError, match=message):
            solved.band(name, **at)
    stopped = dataclasses.replace(solved, outcome=None)
    with pytest.raises(ValueError, match="did not end by itself"):
        stopped.band("k", x=0.5)


def test_bands_are_drawn(solved):
    titles = [axis.get_title("left") for axis in page(solved).axes]
    assert any("with its 95 % band" in title for title in titles)
    assert [chart for chart in charts(solved) if chart.name == "band-k"]
    assert "Functions" in tables(solved.outcome.inference)
