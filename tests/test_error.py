"""The estimate of the error, and solving to a tolerance."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dsgnar as ds
from dsgnar.calculus.precision import x64
from dsgnar.calculus.spaces import Polynomials, Waves
from dsgnar.cli import assigning
from dsgnar.problem.reference import interior_grid
from dsgnar.solving import judging, tolerance
from dsgnar.solving.context import Context
from dsgnar.solving.correction import FULL, HALF, ROUNDING, LeastSquares
from dsgnar.solving.error import estimate
from dsgnar.solving.estimate import SPREAD, Estimate, with_error
from dsgnar.solving.settings import Settings
from dsgnar.solving.verdict import Judge, Verdict

# --- spaces -----------------------------------------------------------------------------------------------------------

SPACES = [
    Polynomials.of(15, (False, False)),
    Polynomials.of(15, (True, False)),
    Waves.of(15, (False, False), np.random.default_rng(0)),
    Waves.of(15, (True, False), np.random.default_rng(0)),
]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("order", [(1, 0), (0, 1), (2, 0), (1, 2)])
def test_derivatives_of_a_space_agree_with_differences(space, order):
    xi = np.random.default_rng(1).uniform(-0.9, 0.9, (7, 2))
    axis = 0 if order[0] else 1
    lower = tuple(n - (i == axis) for i, n in enumerate(order))
    step = np.zeros(2)
    step[axis] = 1e-5
    differences = (space.derivative(xi + step, lower) - space.derivative(xi - step, lower)) / 2e-5
    np.testing.assert_allclose(space.derivative(xi, order), differences, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("space", [SPACES[1], SPACES[3]])
def test_functions_are_periodic_where_the_axis_is(space):
    left, right = (np.array([[x, 0.3]]) for x in (-1.0, 1.0))
    for order in ((0, 0), (1, 0), (2, 1)):
        np.testing.assert_allclose(space.derivative(left, order), space.derivative(right, order), atol=1e-9)


def test_polynomials_are_independent_and_begin_with_the_smooth_ones():
    space = Polynomials.of(120, (False,) * 3)
    assert space.size == 120 == len({tuple(d) for d in space.degrees})
    assert (np.diff(space.degrees.sum(axis=1)) >= 0).all()
    xi = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    assert np.linalg.matrix_rank(space.derivative(xi, (0, 0, 0))) == 120


def test_least_squares_in_half_of_the_columns_and_in_all():
    rng = np.random.default_rng(0)
    matrix, b = rng.normal(size=(50, 8)), rng.normal(size=(50, 3))
    fit = LeastSquares.of(matrix, b, 4)
    (half, left), (full, least), (rounding, _) = map(fit.solution, (HALF, FULL, ROUNDING))
    assert left == pytest.approx(np.linalg.norm(matrix @ half - b[:, 0]), rel=1e-9)
    assert least == pytest.approx(np.linalg.norm(matrix @ full - b[:, 1]), rel=1e-9)
    np.testing.assert_allclose(half[:4], np.linalg.lstsq(matrix[:, :4], b[:, 0])[0], rtol=1e-9)
    assert not half[4:].any()
    np.testing.assert_allclose(full, np.linalg.lstsq(matrix, b[:, 1])[0], rtol=1e-9)
    np.testing.assert_allclose(rounding, np.linalg.lstsq(matrix, b[:, 2])[0], rtol=1e-9)
    sides = matrix @ fit.rough
    np.testing.assert_allclose(sides.T @ sides, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(matrix[:, :4].T @ sides, 0, atol=1e-9)


# --- estimates --------------------------------------------------------------------------------------------------------


def oscillator(end=3.0):
    return ds.Problem(
        ds.Box(t=(0, end)),
        ("u",),
        {
            "equation": ds.interior(lambda u: u.tt + 4 * jnp.sin(u)),
            "start": ds.initial(lambda u: u - 1),
            "rate": ds.initial(lambda u: u.t),
        },
    )


def reaction(hard=False):
    """u'' = 6 u^2, whose solution is (1 + x)^-2."""
    conditions = {"equation": ds.interior(lambda u: u.xx - 6 * u**2)}
    exact = lambda x: (1 + x) ** -2.0
    if not hard:
        return ds.Problem(ds.Box(x=(0, 1)), ("u",), conditions | {"ends": ds.boundary(lambda u, x: u - exact(x))})
    return ds.Problem(
        ds.Box(x=(0, 1)), ("u",), conditions, hard={"u": ds.Hard(lambda x: 1 - 0.75 * x, on=(ds.Boundary(),))}
    )


def reference():
    exact = lambda x: {"u": (1 + x) ** -2.0}
    return ds.Reference.on_grid({"x": interior_grid(0, 1, 200)}, exact, 1e-15, "closed form")


SMALL = dict(network=ds.MLP(widths=(6, 6), spread=2.0), points=256, max_points=256)


@pytest.fixture(scope="module")
def solved():
    return ds.solve(reaction(), reference=reference(), **SMALL)


def moved(solution, by):
    """A solution that is wrong by about so much."""
    rng = np.random.default_rng(0)
    thetas = solution.thetas * (1 + by * rng.normal(size=solution.thetas.shape))
    return dataclasses.replace(solution, thetas=thetas.astype(solution.thetas.dtype), outcome=None)


def estimated(solution):
    return estimate(solution.model, solution.thetas, Judge(solution.residuals))


@pytest.mark.parametrize("by", [1e-3, 1e-5, 1e-7])
def test_the_estimate_is_the_error_over_orders_of_magnitude(solved, by):
    wrong = moved(solved, by)
    true, found = wrong.relative_l2(reference())["u"], estimated(wrong)
    assert true > 0.01 * by  # else the test would show nothing
    assert found.known and 0.5 < true / found.errors["u"] < 2


def test_the_estimate_is_part_of_an_outcome(solved):
    true = solved.outcome.relative_l2["u"]
    assert solved.error_estimate == solved.outcome.estimate.errors
    assert true < 1e-8 and 0.2 < true / solved.error_estimate["u"] < 5


def test_a_corrected_solution_is_better(solved):
    wrong = moved(solved, 1e-4)
    better = wrong.corrected()
    before, after = wrong.relative_l2(reference())["u"], better.relative_l2(reference())["u"]
    assert after < 1e-3 * before
    assert better(x=0.5).shape == () and abs(better(x=0.5) - 1.5**-2) < 1e-2 * before


def test_hard_values_have_no_error():
    solution = moved(ds.solve(reaction(hard=True), **SMALL), 1e-3)
    found, true = estimated(solution), solution.relative_l2(reference())["u"]
    assert found.known and 0.5 < true / found.errors["u"] < 2
    assert np.abs(found.correction.at(np.array([[0.0], [1.0]]))).max() < 1e-3 * true


def test_in_a_march_the_wrong_interval_is_found():
    """Where two intervals do not fit together, the error is that of the wrong one."""
    whole = ds.solve(oscillator(), intervals=3, max_iterations=150, **SMALL)
    thetas = whole.thetas.copy()
    thetas[0] *= 1 + 1e-4 * np.random.default_rng(0).normal(size=thetas[0].shape)
    found = estimated(dataclasses.replace(whole, thetas=thetas))
    right, t = estimated(whole), np.linspace(0, 3, 301)[:, None]
    error = np.abs(found.correction.at(t))[:, 0]
    true = np.abs(whole.at(t) - dataclasses.replace(whole, thetas=thetas).at(t))[:, 0]
    assert max(right.errors.values()) < 1e-2 * true.max()  # so that `true` is the error
    np.testing.assert_allclose(error[:100], true[:100], atol=0.05 * true.max())
    assert error[110:].max() < 0.05 * true.max()  # the later intervals were right, and are known to be


def test_in_a_march_errors_are_handed_on():
    """An interval that starts wrongly makes all later ones wrong, although they satisfy the equation."""
    start = lambda value: ds.Problem(
        ds.Box(t=(0, 2)),
        ("u",),
        {"equation": ds.interior(lambda u: u.t - u), "start": ds.initial(lambda u: u - value)},
    )
    wrong = ds.solve(start(1 + 1e-5), intervals=2, **SMALL)  # u = (1 + 1e-5) e^t
    right = ds.solve(start(1.0), intervals=2, max_iterations=1, **SMALL)
    found = estimated(dataclasses.replace(wrong, model=dataclasses.replace(right.model, march=wrong.march)))
    t = np.linspace(0, 2, 50)[:, None]
    true = np.exp(t) - wrong.at(t)
    np.testing.assert_allclose(found.correction.at(t), true, atol=1e-2 * np.abs(true).max())


def test_rounding_counts_in_single_precision(solved):
    single = dataclasses.replace(solved, thetas=solved.thetas.astype(np.float32))
    found, true = estimated(single), single.relative_l2(reference())["u"]
    assert found.rounding["u"] > 1e-9 and 0.3 < true / found.errors["u"] < 3


def test_an_estimate_that_spaces_disagree_about_is_unknown(solved):
    found = Estimate({"u": 1e-3}, SPREAD * 1.01, 0.0, {"u": 0.0})
    outcome = dataclasses.replace(solved.outcome, estimate=found)
    assert not found.known and outcome.error_estimate is None
    assert "unknown (estimates differ" in dataclasses.replace(solved, outcome=outcome).summary()


def test_a_problem_too_nonlinear_for_its_error_is_unknown(solved):
    """Far from the solution the linearised equation says nothing, and that is noticed."""
    assert [estimated(moved(solved, by)).known for by in (1e-3, 30.0)] == [True, False]


def test_nothing_is_estimated_where_equations_do_not_hold():
    solution = ds.solve(reaction(), max_iterations=1, **SMALL)
    assert solution.verdict == "failed" and solution.error_estimate is None
    assert "unknown, since the problem is not solved" in solution.summary()


@pytest.mark.parametrize(
    ("verdict", "error", "tol", "expected"),
    [
        (Verdict.SOLVED, 1e-3, math.inf, Verdict.SOLVED),
        (Verdict.SOLVED, 0.1, math.inf, Verdict.PARTLY),
        (Verdict.PARTLY, 1e-6, math.inf, Verdict.PARTLY),
        (Verdict.PARTLY, 1e-4, 1e-3, Verdict.SOLVED),
        (Verdict.SOLVED, 0.1, 0.2, Verdict.PARTLY),
    ],
)
def test_an_error_changes_a_verdict(verdict, error, tol, expected):
    assert with_error(verdict, Estimate({"u": error}, 1.0, 0.0, {"u": 0.0}), tol) is expected
    assert with_error(verdict, Estimate({"u": error}, 100.0, 0.0, {"u": 0.0}), tol) is verdict


def test_an_estimate_is_kept_on_disk(solved, tmp_path):
    solved.save(tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["error_estimate"] == solved.error_estimate and result["tol"] is None
    assert set(result["error_checks"]) == {"known", "errors", "spread", "nonlinear", "rounding", "beyond", "unseen"}
    again = ds.load(tmp_path, solved.problem)
    assert again.error_estimate == solved.error_estimate
    assert again.corrected()(x=0.5) == pytest.approx(float(solved.corrected()(x=0.5)), rel=1e-12)


# --- tolerances -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_a_run_stops_at_its_tolerance(tol):
    loose = ds.solve(reaction(), reference=reference(), tol=tol, **SMALL)
    assert loose.stop.code == "tolerance_met" and loose.verdict == "solved" and loose.outcome.tolerance_met
    assert 1e-12 < loose.outcome.relative_l2["u"] < tol
    assert f"tolerance {tol:g} met" in loose.summary()


def test_an_estimate_is_looked_at_where_the_loss_falls(solved, monkeypatch):
    """Beside the cheap iterations of a small network an estimate at every fifth of them would be most of the time."""
    context = Context.of(solved.problem, solved.model.network, Settings(tol=1e-9, intervals=1))
    state, looked = context.start(), []
    monkeypatch.setattr(judging, "here", lambda *_: (0.0,))
    monkeypatch.setattr(judging, "estimate", lambda *_: looked.append(1))

    def look(iteration, losses, stage=2):
        plan = dataclasses.replace(state.plan, stage=stage, losses=losses)
        iterate = dataclasses.replace(state.iterate, iteration=iteration)
        looked.clear()
        judging.estimated(context, dataclasses.replace(state, plan=plan, iterate=iterate))
        return bool(looked)

    falling, flat = (1.0, 0.9, 0.8, 0.7, 0.6, 0.1), (1.0,) * 6
    assert look(40, falling) and look(40, flat[:3]) and look(40, ())
    assert not look(40, flat) and not look(41, falling) and not look(40, falling, stage=1)


def test_what_cannot_be_reached_is_said_and_the_best_is_returned():
    tiny = dict(network=ds.MLP(widths=(2,)), points=64, max_points=64, max_iterations=40)
    solution = ds.solve(reaction(), tol=1e-12, **tiny)
    assert solution.outcome.tolerance_met is False
    assert "1e-12 not met" in solution.summary()
    assert solution.parameters > 7  # wider networks were tried


def test_a_tolerance_below_rounding_is_explained():
    solution = ds.solve(reaction(), tol=1e-18, **SMALL)
    assert solution.outcome.tolerance_met is False and solution.outcome.hidden
    assert "tolerance 1e-18 not met: rounding alone makes" in solution.summary()
    assert solution.model.network == SMALL["network"]  # a larger one would not help
    assert not Estimate({"u": 1e-9}, 1.0, 0.0, {"u": 1e-16}).hidden(1e-12)


def test_levels_grow():
    found = list(tolerance.levels(reaction(), None, Settings(tol=1e-6)))
    assert [level.precision for _, level in found] == ["double"] * 3
    assert [network.widths[0] for network, _ in found] == [12, 18, 24]
    assert [level.points for _, level in found] == [2048, 4096, 8192]
    plane = ds.Problem(ds.Box(x=(0, 1), y=(0, 1)), ("u",), {"f": ds.interior(lambda u: u.xx + u.yy - 1)})
    for tol in (1e-2, 1e-6):
        assert {level.precision for _, level in tolerance.levels(plane, None, Settings(tol=tol))} == {"double"}
    given = list(tolerance.levels(plane, None, Settings(tol=1e-4, precision="single", points=100)))
    assert {(level.precision, level.points) for _, level in given} == {("single", 100)}


def test_a_network_of_your_own_is_not_widened():
    own = jax.tree_util.Partial(lambda x: x[:1])
    assert len(list(tolerance.levels(reaction(), own, Settings(tol=1e-6)))) == 1


def pair():
    """u'' = 6 u^2 once more, with its slope."""
    return ds.Problem(
        ds.Box(x=(0, 1)),
        ("u", "v"),
        {
            "slope": ds.interior(lambda u, v: u.x - v),
            "equation": ds.interior(lambda u, v: v.x - 6 * u**2),
            "ends": ds.boundary(lambda u, x: u - (1 + x) ** -2.0),
        },
    )


def test_every_unknown_may_have_its_tolerance(tmp_path):
    solution = ds.solve(pair(), tol={"u": 1e-5, "v": 0.1}, max_iterations=200, **SMALL)
    settings, outcome = solution.outcome.settings, solution.outcome
    assert settings.tol == 1e-5 and settings.looser == pytest.approx({"u": 1.0, "v": 1e4})
    assert outcome.tolerance_met and "tolerance u 1e-05, v 0.1 met" in solution.summary()
    solution.save(tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["tol"] == pytest.approx({"u": 1e-5, "v": 0.1}) and result["tolerance_met"] is True
    again = ds.load(tmp_path / "run", pair(), network=SMALL["network"])
    assert again.outcome.settings.looser == settings.looser and again.outcome.tolerance_met


def test_a_run_can_be_resumed_with_other_tolerances(tmp_path):
    early = ds.solve(pair(), max_iterations=2, observers=[ds.RunDirectory(tmp_path)], **SMALL)
    assert early.outcome.tolerance_met is None
    later = ds.resume(tmp_path, pair(), network=SMALL["network"], max_iterations=3, tol={"u": 1e-3, "v": 1e-6})
    settings = later.outcome.settings
    assert settings.tol == 1e-6 and settings.looser == pytest.approx({"u": 1e3, "v": 1.0}) and len(later.history) == 3


def test_looser_tolerances_are_met_by_larger_errors():
    found = Estimate({"u": 1e-6, "v": 1e-3}, 1.0, 0.0, {"u": 0.0, "v": 0.0})
    assert found.meets(1e-5, {"u": 1.0, "v": 1e3}) and not found.meets(1e-5, {"u": 1.0, "v": 1e2})
    assert not found.meets(1e-5)
    assert with_error(Verdict.PARTLY, found, 1e-5, {"u": 1.0, "v": 1e3}) is Verdict.SOLVED
    assert with_error(Verdict.PARTLY, found, 1e-5, {"u": 1.0, "v": 1e4}) is Verdict.PARTLY  # 0.1 is too much to be right


@pytest.mark.parametrize(
    ("tol", "message"),
    [({"u": 1e-6}, r"each unknown \(u, v\), not for u"), ({"u": 1e-6, "p": 1e-3}, "not for u, p"), ({}, "empty mapping")],
)
def test_tolerances_name_all_unknowns(tol, message):
    with pytest.raises(ValueError, match=message):
        ds.solve(pair(), tol=tol)


@pytest.mark.parametrize(
    ("text", "expected"), [("1e-6", 1e-6), ("u=1e-6,p=1e-3", {"u": 1e-6, "p": 1e-3}), ("u=1e-6, v=2", {"u": 1e-6, "v": 2})]
)
def test_the_command_line_takes_tolerances(text, expected):
    assert assigning.tolerance(text) == expected


@pytest.mark.parametrize("text", ["small", "u=", "u=1e-6,v", "u=1e-6,u=1e-3"])
def test_the_command_line_refuses_other_tolerances(text):
    with pytest.raises(ValueError, match="--tol"):
        assigning.tolerance(text)


def test_a_tolerance_that_single_precision_cannot_reach_is_refused():
    with pytest.raises(ValueError, match=r"tol=1e-09 is below what single precision can reach.*precision='double'"):
        ds.solve(reaction(), tol=1e-9, precision="single")


@pytest.mark.parametrize("tol", [0.0, -1.0, 1.0, "small"])
def test_a_tolerance_is_a_small_number(tol):
    with pytest.raises(ValueError, match="tol must be a number between 0 and 1"):
        ds.solve(reaction(), tol=tol)


@x64
def test_the_judge_sees_what_residuals_are(solved):
    """Derivatives put into the equation give the residual that the optimiser sees."""
    judge, x = Judge(solved.residuals), np.linspace(0, 1, 40)[:, None]
    value, nothing, slopes = judge.linearised("equation", solved.thetas[0], x)
    np.testing.assert_allclose(value, solved.residual("equation")(x=x[:, 0]), atol=1e-11)
    assert not nothing.any()
    u = solved.at(x)[:, 0]
    np.testing.assert_allclose(slopes[:, judge.keys.index(("u", (0,)))], -12 * u, rtol=1e-9)
    np.testing.assert_allclose(slopes[:, judge.keys.index(("u", (2,)))], 1.0)
