"""What is shown of a run: a panel in a terminal, the same in a notebook, plain lines elsewhere."""

import io
import sys
import types

import pytest
from rich.console import Console

import dsgnar as ds
from dsgnar.march import March
from dsgnar.progress import Progress, as_html, curve, duration, rate
from dsgnar.solution import Record
from small import problem


def record(k: int) -> Record:
    look = k % 5 == 0
    return Record(
        iteration=k, interval=k // 20, stage=1, precision="single", points=96, loss=10.0**-k, mean_squares=(1.0, 1.0),
        weights=(1.0, 1.0), ratio=0.2, target=0.15, lam=10.0 ** (-2 * k), radius=0.5, accepted=True, evaluations=2,
        seconds=0.25 * k, held_out=2 * 10.0**-k if look else None, error={"u": 10.0 ** (-k / 2)} if look else None,
    )  # fmt: skip


def fake_run(iterations: int):
    parameters = types.SimpleNamespace(count=1447)
    return types.SimpleNamespace(
        history=[record(k) for k in range(1, iterations + 1)],
        problem=problem(),
        march=March((0.0, 0.5, 1.0)),
        settings=ds.Settings(sketch=700),
        residuals=types.SimpleNamespace(parameters=parameters),
        architecture=ds.MLP(),
        interruption=types.SimpleNamespace(asked=False),
    )


def shown(run, **options) -> str:
    """What a whole run writes to a console."""
    file = io.StringIO()
    progress = Progress(Console(file=file, width=100, **options), "Heat")
    history, run.history = run.history, []
    progress.started(run)
    for each in history:
        run.history.append(each)
        progress.iterated(run, each)
    progress.finished(run, None)
    return file.getvalue()


def test_a_terminal_shows_everything_in_place():
    text = shown(fake_run(23), force_terminal=True)
    assert "compiling" in text and "\x1b[1A" in text  # the cursor moves up: updated in place
    last = text[text.rindex("Heat") :]
    for part in ("interval 2 of 2 (t 0.5 to 1)", "iteration 23", "stage 1", "4.0 per second", "5.8 s", "loss", "1.00e-23",
                 "held-out loss", "2.00e-20", "error", "1.00e-10", "lambda", "1.0e-46", "ratio", "0.20", "aims at 0.15",
                 "radius", "5.00e-01", "1447 parameters", "single precision"):  # fmt: skip
        assert part in last, part
    assert "Ctrl-C" in text and "Ctrl-C" not in last


def test_elsewhere_there_are_plain_lines_now_and_then():
    lines = shown(fake_run(23), force_terminal=False).splitlines()
    assert len(lines) == 3 and "\x1b" not in "".join(lines)
    assert lines[0].startswith("Heat: MLP, 1447 parameters")
    assert lines[2] == (
        "interval 2/2  iteration 20  stage 1  loss 1.00e-20  held-out loss 2.00e-20  error 1.00e-10  "
        "lambda 1.0e-40  radius 5.00e-01  ratio 0.20  points 96  5.0 s"
    )


def test_slow_iterations_get_lines_too(monkeypatch):
    clock = iter(range(0, 10_000, 45))
    monkeypatch.setattr("dsgnar.progress.time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    assert len(shown(fake_run(8), force_terminal=False).splitlines()) == 1 + 4


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
    assert shown(fake_run(23), force_jupyter=True) == ""
    (html,) = shows
    assert "iteration 23" in html and html.startswith("<pre") and "color:" in html


def test_an_end_that_was_asked_for_is_announced():
    run = fake_run(3)
    progress = Progress(Console(file=io.StringIO()))
    progress.started(run)
    assert "Ctrl-C ends it after an iteration" in as_html(progress.view())
    run.interruption.asked = True
    assert "ends after this iteration" in as_html(progress.view())


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


def test_rates_and_durations():
    assert rate([record(k) for k in range(1, 30)]) == "4.0 per second"
    assert rate([record(1)]) == ""
    slow = [record(1), record(41)]
    assert rate(slow) == "10.0 s each"
    assert [duration(s) for s in (13.21, 245, 3753)] == ["13.2 s", "4:05", "1:02:33"]
