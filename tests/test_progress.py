"""What is shown of a run: a panel in a terminal, the same in a notebook, plain lines elsewhere."""

import io
import sys
import types
from dataclasses import replace
from functools import cache

import pytest
from rich.console import Console

import dsgnar as ds
from dsgnar.showing.progress import Progress, as_html, curve, panel, rate
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interruption
from dsgnar.solving.observers import View
from dsgnar.solving.record import Record
from small import problem


def record(k: int) -> Record:
    look = k % 5 == 0
    return Record(
        iteration=k, interval=k // 20, stage=1, precision="single", points=96, loss=10.0**-k, mean_squares=(1.0, 1.0),
        weights=(1.0, 1.0), ratio=0.2, target=0.15, lam=10.0 ** (-2 * k), radius=0.5, accepted=True, evaluations=2,
        seconds=0.25 * k, held_out=2 * 10.0**-k if look else None, error={"u": 10.0 ** (-k / 2)} if look else None,
    )  # fmt: skip


@cache
def context() -> Context:
    return Context.of(problem(), ds.MLP(widths=(4,)), ds.Settings(sketch=7, intervals=2, precision="single"))


def view(iterations: int, interruption: Interruption | None = None) -> View:
    """A run after a number of invented iterations."""
    history = tuple(record(k) for k in range(1, iterations + 1))
    times = context().march.times[: 2 + iterations // 20]
    return View(context(), replace(context().start(), history=history, times=times), interruption or Interruption())


def count() -> int:
    return context().residuals.parameters.count


def shown(iterations: int, **options) -> str:
    """What a whole run writes to a console."""
    file = io.StringIO()
    progress = Progress(Console(file=file, width=100, **options), "Heat")
    progress.started(view(0))
    for k in range(1, iterations + 1):
        progress.iterated(view(k), record(k))
    progress.finished(view(iterations), None)
    return file.getvalue()


def test_a_terminal_shows_everything_in_place():
    text = shown(23, force_terminal=True)
    assert "compiling" in text and "\x1b[1A" in text  # the cursor moves up: updated in place
    last = text[text.rindex("Heat") :]
    for part in ("time interval 2 of 2: 0.5 ≤ t ≤ 1, about 3.8 s left", "iteration 23", "stage 1", "4.0 iterations/s",
                 "5.8 s", "loss", "1.00e-23", "held-out loss", "2.00e-20", "error", "1.00e-10", "lambda", "1.0e-46", "ratio",
                 "0.20", "target 0.15", "radius", "5.00e-01", f"{count()} parameters", "sketch 7", "single precision",
                 "method fast"):  # fmt: skip
        assert part in last, part
    assert "Ctrl-C" in text and "Ctrl-C" not in last


def test_a_terminal_says_that_the_error_is_being_estimated():
    file = io.StringIO()
    progress = Progress(Console(file=file, width=100, force_terminal=True), "Heat")
    progress.started(view(0))
    progress.iterated(view(3), record(3))
    before = Console(width=100).render_str(str(file.getvalue())).plain
    progress.concluding()
    after = Console(file=io.StringIO(), width=100, record=True)
    after.print(progress.view())
    progress.finished(view(3), None)
    assert "estimating the error" in after.export_text() and "estimating the error" not in before


def test_a_run_tells_its_observers_that_iterations_are_over():
    """Before the estimate, which may take half a minute, and once."""
    told = []

    class Noting:
        started = staticmethod(lambda run: told.append("started"))
        iterated = staticmethod(lambda run, record: None)
        concluding = staticmethod(lambda: told.append("concluding"))
        finished = staticmethod(lambda run, solution: told.append("finished"))

    ds.solve(problem(), network=ds.MLP(widths=(4,)), points=64, max_iterations=2, intervals=1, observers=[Noting()])
    assert told == ["started", "concluding", "finished"]


def test_elsewhere_there_are_plain_lines_now_and_then():
    lines = shown(23, force_terminal=False).splitlines()
    assert len(lines) == 3 and "\x1b" not in "".join(lines)
    assert lines[0] == f"Heat: MLP, {count()} parameters, sketch 7, single precision, method fast"
    assert lines[2] == (
        "interval 2/2  iteration 20  stage 1  loss 1.00e-20  held-out loss 2.00e-20  error 1.00e-10  "
        "lambda 1.0e-40  radius 5.00e-01  ratio 0.20  points 96  5.0 s"
    )


def test_slow_iterations_get_lines_too(monkeypatch):
    clock = iter(range(0, 10_000, 45))
    monkeypatch.setattr("dsgnar.showing.progress.time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    assert len(shown(8, force_terminal=False).splitlines()) == 1 + 4


def test_a_notebook_shows_one_output_that_is_replaced(monkeypatch):
    shows: list[str] = []

    class Handle:
        def update(self, content):
            shows[-1] = content

    def display(content, display_id):
        assert display_id
        shows.append(content)
        return Handle()

    fake = types.ModuleType("IPython.display")
    fake.HTML, fake.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    assert shown(23, force_jupyter=True) == ""
    (html,) = shows
    assert "iteration 23" in html and html.startswith("<pre") and "color:" in html


def test_a_request_to_stop_is_announced():
    interruption = Interruption()
    progress = Progress(Console(file=io.StringIO()))
    progress.started(view(3, interruption))
    assert "Ctrl-C stops the run after the current iteration" in as_html(progress.view())
    interruption.ask()
    assert "stopping after this iteration" in as_html(progress.view())


def test_before_a_run_there_is_nothing_to_show():
    assert as_html(Progress(Console(file=io.StringIO())).view()).count("iteration") == 0


def test_the_precision_in_force_is_named_where_it_is_another():
    run = view(2)
    assert as_html(panel(run)).count("precision") == 1
    double = replace(run, context=replace(context(), settings=replace(context().settings, precision="double")))
    assert "stage 1   single precision" in as_html(panel(double)) and "double precision, method" in as_html(
        panel(double)
    )


def test_the_estimated_error_is_shown_beside_its_tolerance():
    run = view(2)
    history = (run.history[0], replace(run.history[1], estimate=3e-5))
    settings = replace(context().settings, tol=1e-6)
    html = as_html(
        panel(View(replace(context(), settings=settings), replace(run.state, history=history), Interruption()))
    )
    assert "estimated error" in html and "3.00e-05" in html and "tolerance 1e-06" in html
    assert "estimated error" not in as_html(panel(run)) and "tolerance" not in as_html(panel(run))


def test_another_attempt_is_announced():
    alone = Context.of(problem(), ds.MLP(widths=(4,)), ds.Settings(sketch=7, intervals=1, precision="single"))
    state = replace(alone.start(), history=(record(1),), cuts=1)
    assert "attempt 2" in as_html(panel(View(alone, state, Interruption())))


def test_a_step_without_a_ratio_and_an_undamped_one_are_shown():
    run = view(2)
    last = replace(run.history[-1], ratio=float("nan"), lam=0.0)
    html = as_html(panel(replace(run, state=replace(run.state, history=(run.history[0], last)))))
    assert "nan" not in html and "0.0e+00" in html


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([1.0, 1e-7], "█▁"),
        ([1e-7, 1e-3, 1.0], "▁▅█"),
        ([1.0, float("nan"), 0.0, 1e-7], "█  ▁"),
        ([2.0, 2.0], "▁▁"),
        ([float("nan")], ""),
        ([], ""),
        ([10.0**-k for k in range(80)], "".join(c * 5 for c in "█▇▆▅▄▃▂▁")),
    ],
)
def test_curves_are_logarithmic(values, line):
    drawn = curve(values)
    assert len(drawn) == len(line)
    assert drawn == line or len(values) == 80 and sorted(drawn, reverse=True) == list(drawn)


def test_rates():
    assert rate([record(k) for k in range(1, 30)]) == "4.0 iterations/s"
    assert rate([record(1)]) == ""
    assert rate([record(1), record(41)]) == "10.0 s per iteration"


@pytest.mark.parametrize("network", [None, ds.MLP((4,))])
def test_the_look_at_a_problem_is_announced(network):
    """It takes seconds. Where a person chose the network there is none."""
    file = io.StringIO()
    line = ds.Problem(ds.Box(x=(0, 1)), ("u",), {"pde": ds.interior(lambda u: u.xx - 1), "ends": ds.boundary(lambda u: u)})
    ds.solve(line, network=network, observers=[Progress(Console(file=file), "Line")], max_iterations=1, points=64)
    assert ("Line: looking at the problem" in file.getvalue()) == (network is None)
