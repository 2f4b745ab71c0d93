"""Solution pages for every kind of problem, and figures of the method: what is drawn is what was computed."""

import dataclasses
import functools
import io

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.cli import app
from dsgnar.optimise.radius import Probes
from dsgnar.problem.reference import Reference, interior_grid
from dsgnar.showing import figures
from dsgnar.showing.colours import GREY
from dsgnar.showing.planes import planes
from dsgnar.showing.quality import Quality
from dsgnar.solving.estimate import Estimate
from dsgnar.solving.loop import advance
from dsgnar.storing import runs
from dsgnar.suite.statement import from_suite
from small import invented, problem

pytestmark = pytest.mark.filterwarnings("error:.*outside the domain")  # a warning for people who evaluate

STEADY = {"pde": ds.interior(lambda u: ds.laplacian(u)), "bc": ds.boundary(lambda u: u)}
MOVING = {"pde": ds.interior(lambda u: u.t - ds.laplacian(u)), "ic": ds.initial(lambda u: u)}


def box(*axes, conditions=STEADY, unknowns="u"):
    return ds.Problem(domain=ds.Box(**dict.fromkeys(axes, (0, 1))), unknowns=unknowns, conditions=conditions)


def on_grid(*axes, count=12):
    """A reference on a grid; the coordinates enter differently, so that exchanged axes show."""
    grid = {axis: interior_grid(0, 1, count + k) for k, axis in enumerate(axes)}
    return Reference.on_grid(
        grid, lambda **c: {"u": sum((k + 1) * v**2 for k, v in enumerate(c.values())) + 1.0}, 0, "made up"
    )


def at_random(*axes):
    points = np.random.default_rng(0).random((400, len(axes)))
    return Reference(
        points, {"u": 1 + points.sum(axis=1)}, 0, "made up", function=lambda **c: {"u": 1 + sum(c.values())}
    )


def flow():
    conditions = {
        "mass": ds.interior(lambda u, v: u.x + v.y),
        "momentum": ds.interior(lambda u, p: u * u.x + p.x),
        "wall": ds.boundary(lambda u: u),
    }
    axes = {"x": interior_grid(0, 1, 9), "y": interior_grid(0, 1, 8)}
    table = Reference.on_grid(axes, lambda x, y: {"u": x + 1, "v": y + 1, "p": x * y}, 0, "made up")
    reference = Reference(table.points, table.values, 0, "made up", table.shape, ("p",), {"velocity": ("u", "v")})
    return ds.Problem(domain=ds.Box(x=(0, 1), y=(0, 1)), unknowns=("u", "v", "p"), conditions=conditions), reference


COURSE = ["Loss", "Relative error", "Weights", "Decrease ratio", "Regularisation", "Trust-region radius"]
KINDS = {
    "a line": (box("x"), on_grid("x"), 1, ["Solution", "Absolute error", "Error over wall time", *COURSE]),
    "a line and time": (
        problem(), on_grid("x", "t"), 2,
        ["Solution $u$", "Absolute error", "Error over wall time", "Relative error over time", *COURSE],
    ),
    "a square": (
        box("x", "y"), on_grid("x", "y"), 1,
        ["Solution $u$", "Absolute error", "Error over wall time", "Relative error over space",
         "Distribution of the absolute error", *COURSE],
    ),
    "a flow": (
        *flow(), 1,
        ["Velocity and streamlines", "Solution $p$", "Error over wall time", "Absolute error $u$", "Absolute error $v$",
         "Absolute error $p$", "Relative error over space", "Distribution of the absolute error", *COURSE],
    ),
    "a square and time": (
        box("x", "y", "t", conditions=MOVING), on_grid("x", "y", "t"), 1,
        [*(f"{what}, $t$ = {t}" for what in ("Solution $u$", "Absolute error") for t in ("0.0357", "0.464", "0.964")),
         "Error over wall time", "Relative error over time", "Distribution of the absolute error", *COURSE],
    ),
    "a cube": (
        box("x", "y", "z"), None, 1,
        [*(f"{what}, {axis} = 0.5" for what in ("Solution $u$", "Residual") for axis in ("$z$", "$y$", "$x$")),
         "Held-out loss over wall time", "Residual over space", "Distribution of the residual", COURSE[0],
         "Residuals at training points", *COURSE[2:]],
    ),
    "five dimensions": (
        box("x1", "x2", "x3", "x4", "x5"), at_random("x1", "x2", "x3", "x4", "x5"), 1,
        [*["Slice of $u$"] * 3, *["Absolute error"] * 3, "Error over wall time", "Absolute error towards the boundary",
         "Distribution of the absolute error", *COURSE],
    ),
}  # fmt: skip


@functools.cache
def drawn(name):
    """A solution of a kind of problem, its reference and its page; made once, since evaluating it is compiled."""
    statement, reference, intervals, _ = KINDS[name]
    solution = invented(statement, error=reference is not None, intervals=intervals)
    return solution, reference, figures.page(solution, reference, "A title")


def panel(figure, title):
    return next(a for a in figure.axes if a.get_title(loc="left").endswith(title))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_problem_has_its_panels(name):
    _, _, figure = drawn(name)
    titles = [a.get_title(loc="left") for a in figure.axes if a.get_title(loc="left")]
    letters = [f"$\\bf{{({chr(97 + k)})}}$ " for k in range(len(titles))]
    assert titles == [a + b for a, b in zip(letters, KINDS[name][3], strict=True)]
    figure.savefig(io.BytesIO(), dpi=30)


@pytest.mark.parametrize("name", ["a line and time", "a square", "a square and time"])
def test_the_error_on_a_plane_is_that_at_its_points(name):
    solution, reference, figure = drawn(name)
    plane = planes(solution.problem.domain, reference)[-1]
    exact = reference.function(**dict(zip(solution.problem.domain.axes, plane.points.T, strict=True)))["u"]
    expected = np.abs(solution.at(plane.points)[:, 0] - exact).reshape(plane.shape)
    np.testing.assert_allclose(Quality(solution, reference).on(plane)["u"], expected, rtol=1e-12)
    titles = [a for a in figure.axes if "Absolute error" in a.get_title(loc="left")]
    mesh = titles[-1].collections[0]
    np.testing.assert_allclose(mesh.get_array().reshape(plane.shape), np.maximum(expected, mesh.norm.vmin), rtol=1e-12)


def test_slices_in_many_dimensions_use_the_closed_form():
    solution, reference, _ = drawn("five dimensions")
    plane = planes(solution.problem.domain, reference)[1]
    assert (plane.horizontal, plane.vertical) == ("x3", "x4") and set(plane.fixed.values()) == {0.5}
    expected = np.abs(solution.at(plane.points)[:, 0] - 1 - plane.points.sum(axis=1))
    np.testing.assert_allclose(Quality(solution, reference).on(plane)["u"].ravel(), expected, rtol=1e-12)


def test_a_table_without_a_closed_form_shows_no_error_on_slices():
    statement, reference, _, _ = KINDS["five dimensions"]
    table = Reference(reference.points, reference.values, 0, "made up")
    titles = [a.get_title(loc="left") for a in figures.page(invented(statement, error=True), table).axes]
    assert not any(t.endswith("Absolute error") for t in titles) and any("Distribution" in t for t in titles)


def test_the_error_over_time_is_relative_at_each_time():
    solution, reference, figure = drawn("a line and time")
    t, error = panel(figure, "Relative error over time").lines[0].get_data()
    which = np.isclose(reference.points[:, 1], t[3])
    exact = reference.values["u"][which]
    got = solution.at(reference.points[which])[:, 0]
    assert error[3] == pytest.approx(np.linalg.norm(got - exact) / np.linalg.norm(exact))


def test_without_a_reference_the_residual_is_drawn():
    solution, _, _ = drawn("a line and time")
    figure = figures.page(solution)
    plane = planes(solution.problem.domain, None)[0]
    residual = solution.residual("heat")(x=plane.points[:, 0], t=plane.points[:, 1])
    mesh = panel(figure, "Residual").collections[0]
    np.testing.assert_allclose(mesh.get_array().ravel(), np.maximum(np.abs(residual), mesh.norm.vmin), rtol=1e-9)


def test_without_a_reference_an_estimated_error_is_drawn():
    """The difference to the corrected solution: where, and over time."""
    known = Estimate({"u": 1e-3}, spread=1.0, nonlinear=0.0, rounding={"u": 1e-9})
    solution = invented(problem(), estimate=known)
    figure = figures.page(solution)
    plane = planes(solution.problem.domain, None)[0]
    missing = np.abs(solution.corrected().correction.at(plane.points)[:, 0])
    mesh = panel(figure, "Estimated error").collections[0]
    np.testing.assert_allclose(mesh.get_array().ravel(), np.maximum(missing, mesh.norm.vmin), rtol=1e-6, atol=1e-12)
    t, error = panel(figure, "Estimated error over time").lines[0].get_data()
    assert len(t) == 40 and (error > 0).all()


def test_points_of_a_reference_outside_the_domain_are_drawn_without_a_warning():
    solution, _, _ = drawn("a line")
    points = np.linspace(-0.1, 1.1, 20)[:, None]
    figure = figures.page(solution, Reference(points, {"u": points[:, 0] + 1}, 0, "made up"))
    assert len(panel(figure, "Absolute error").lines[0].get_xdata()) == 20


def test_a_pressure_is_compared_up_to_a_constant():
    solution, reference, _ = drawn("five dimensions")
    free = dataclasses.replace(reference, gauge=("u",))
    shifted = dataclasses.replace(
        free, values={"u": reference.values["u"] + 7}, function=lambda **c: {"u": 8 + sum(c.values())}
    )
    plane = planes(solution.problem.domain, reference)[0]
    np.testing.assert_allclose(
        Quality(solution, shifted).on(plane)["u"], Quality(solution, free).on(plane)["u"], rtol=1e-9, atol=1e-12
    )


def test_switches_and_interval_ends_are_marked_and_named():
    _, _, figure = drawn("a line and time")
    for title, scale in (("Loss", 1.0), ("Error over wall time", 2.0)):
        lines = [
            line
            for line in panel(figure, title).lines
            if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
        ]
        at = {line.get_linestyle(): line.get_xdata()[0] / scale for line in lines}
        assert at == {"--": 12.5, ":": 4.5, "-": 10.5}  # stage, precision, time interval
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["stage switch", "precision switch", "end of a time interval", "rejected step"]


def test_rejected_steps_are_grey_crosses_and_undamped_ones_are_shown():
    _, _, figure = drawn("a line and time")
    crosses = next(line for line in panel(figure, "Decrease ratio").lines if line.get_marker() == "x")
    assert list(crosses.get_xdata()) == [15] and crosses.get_color() == GREY
    undamped = next(line for line in panel(figure, "Regularisation").lines if line.get_marker() == "v")
    assert list(undamped.get_xdata()) == [7]


def test_velocities_are_drawn_with_streamlines():
    solution, _, figure = drawn("a flow")
    axis = panel(figure, "Velocity and streamlines")
    mesh, streams = axis.collections[0], axis.collections[1]
    plane = planes(solution.problem.domain, KINDS["a flow"][1], most=1)[0]
    np.testing.assert_allclose(mesh.get_array().ravel(), np.hypot(*solution.at(plane.points)[:, :2].T), rtol=1e-12)
    assert len(streams.get_segments()) > 10


def test_a_histogram_counts_every_point():
    _, _, figure = drawn("five dimensions")
    bars = panel(figure, "Distribution of the absolute error").patches
    assert sum(bar.get_height() for bar in bars) == pytest.approx(100, abs=0.5)


def test_drawing_leaves_the_callers_settings_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    figures.save(drawn("a line")[0], None, tmp_path / "page.pdf")
    assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_plot_gives_a_pyplot_figure():
    import matplotlib.pyplot as plt

    figure = drawn("a line")[0].plot(title="Mine")
    assert figure.number in plt.get_fignums() and figure.texts[0].get_text() == "Mine"
    plt.close(figure)


# --- the method -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    with jax.enable_x64(True):
        return figures.run_until(2, problem(), ds.MLP(widths=(5, 5)), points=64, max_points=64, precision="single")


def test_the_probe_curve_shows_the_next_step(run):
    figure = figures.probe_curve(run)
    above, below = figure.axes
    target, (_, record) = run.context.rules.target(run.state.plan), advance(run.context, run.state)
    chosen = [
        line.get_xdata()[0] for line in above.lines if line.get_linestyle() == "--" and len(line.get_xdata()) == 2
    ]
    assert chosen == [pytest.approx(record.radius, rel=1e-6)]
    probes = next(line for line in above.lines if line.get_label() == "probes")
    assert len(probes.get_xdata()) == 24
    lams = below.lines[0].get_ydata()
    assert np.all(np.diff(lams) <= 0)  # a longer step is less damped
    search = next(line for line in above.lines if line.get_label() == "bracketing search")
    iterate = dataclasses.replace(run.state.iterate, mean_squares=None)
    _, step = run.optimiser.iterate(iterate, run.points, target)
    np.testing.assert_array_equal(search.get_ydata(), [p.ratio for p in step.found.probes])
    paper = dataclasses.replace(run.optimiser, search=Probes())
    _, as_in_the_paper = paper.iterate(iterate, run.points, target)
    np.testing.assert_array_equal(probes.get_ydata(), [p.ratio for p in as_in_the_paper.found.probes[:24]])
    figure.savefig(io.BytesIO(), dpi=30)


def test_the_full_jacobian_is_drawn_beside_its_sketch(run):
    figure = figures.jacobians(run)
    full, sketched = (np.asarray(a.images[0].get_array()) for a in figure.axes[:2])
    points, theta, weight = run.points.flat, jnp.asarray(run.state.iterate.theta), run.state.iterate.weights[1]
    assert full.shape == (len(points[0]) + len(points[1]), theta.size)
    rows = jax.vmap(jax.grad(lambda th, p: run.context.residuals.at_point("start", th, p)), (None, 0))(theta, points[1])
    expected, full = np.sqrt(weight / len(points[1])) * np.abs(np.asarray(rows)), full[len(points[0]) :]
    shown = expected > 1e-3 * expected.max()
    np.testing.assert_allclose(full[shown], expected[shown], rtol=1e-3)
    assert sketched.shape[0] == run.context.settings.sketch
    figure.savefig(io.BytesIO(), dpi=30)


# --- the command ------------------------------------------------------------------------------------------------------


def test_plot_draws_a_run_directory_again(tmp_path):
    statement, directory = from_suite("burgers", "default"), tmp_path / "run"
    runs.write(directory, invented(statement.problem, error=True, intervals=2, dtype=np.float32), statement)
    result = CliRunner().invoke(app, ["plot", str(directory), "--format", "pdf"])
    assert result.exit_code == 0, result.output
    assert (directory / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_plot_says_what_is_wrong(tmp_path):
    result = CliRunner().invoke(app, ["plot", str(tmp_path)])
    assert result.exit_code == 2 and "no run in" in result.output.replace("\n", " ")


def test_reproduce_summary_keeps_its_run_and_draws_it_again(tmp_path):
    command = ["reproduce", "summary", "wave", "--preset", "single", "-q", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, [*command, "--max-seconds", "0.001"])
    assert first.exit_code == 0, first.output
    assert (tmp_path / "summary.png").stat().st_size > 10_000
    before = (tmp_path / "result.json").stat().st_mtime_ns
    again = CliRunner().invoke(app, [*command, "--max-seconds", "0.001", "--format", "svg"])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "result.json").stat().st_mtime_ns == before  # read, not solved again
    other = CliRunner().invoke(app, ["reproduce", "summary", "burgers", "-q", "--out", str(tmp_path)])
    assert other.exit_code == 2 and "holds a run of wave" in other.output
    drawn = (tmp_path / "summary.svg").read_text()
    assert drawn.count("iteration") >= 2 and "Loss" in drawn


@pytest.mark.parametrize("name", ["a line", "a line and time", "a flow", "a square and time"])
def test_the_summary_is_solution_loss_and_error(name):
    solution, reference, _ = drawn(name)
    titles = [a.get_title(loc="left") for a in figures.summary(solution, reference).axes if a.get_title(loc="left")]
    expected = [KINDS[name][3][0], "Loss", "Relative error"]
    assert titles == [f"$\\bf{{({letter})}}$ {title}" for letter, title in zip("abc", expected, strict=True)]
