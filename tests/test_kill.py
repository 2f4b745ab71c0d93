"""Signals to real processes. Kill -9 at any moment: the run directory can be read, and resuming ends as if nothing had
happened. Ctrl-C and SIGTERM end a run safely, and then the program that asked for it.

Processes are forked from one that has imported dsgnar (but not started JAX), and take compiled kernels from a cache: a whole
run takes about a second, so that there can be many.
"""

import multiprocessing
import os
import runpy
import shutil
import signal
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import dsgnar as ds
from dsgnar.storing import checkpoints, runs
from dsgnar.storing.directory import RunDirectory
from test_checkpoints import account

PROBLEM = """
import dsgnar as ds

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns=("u",),
    conditions={"pde": ds.interior(lambda u: u.t + u.x), "start": ds.initial(lambda u, x: u - x)},
)
network = ds.MLP(widths=(6,))
settings = dict(points=64, max_points=64, held_out=64, max_iterations=12, intervals=3)
"""
SCRIPT = (
    PROBLEM
    + """
for name in ("first", "second"):
    ds.solve(problem, network=network, observers=[ds.RunDirectory(name, every=0)], **settings)
"""
)
PATIENCE = 120  # seconds that a process may take; they take about two


def command(messages: str, *args: str) -> None:
    """What the `dsgnar` command does, without the figure at the end, which takes longer than the run."""
    from dsgnar.cli import main
    from dsgnar.showing import figures

    figures.save = lambda solution, reference, path, title="": path.write_bytes(b"")
    _prepare(messages)
    sys.argv = ["dsgnar", *args]
    main()


def script(messages: str, file: str) -> None:
    """What `python FILE` does."""
    _prepare(messages)
    os.chdir(os.path.dirname(file))
    runpy.run_path(file, run_name="__main__")


def _prepare(messages: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in whatever was started in the background
    sys.stdout = sys.stderr = open(messages, "w")  # noqa: SIM115 - until the process ends


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a command in its own process."""
    cache = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache))
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    patch.setenv("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dsgnar.cli"])

    def start(*args, messages=os.devnull, target=command):
        process = context.Process(target=target, args=tuple(map(str, (messages, *args))))
        process.start()
        return process

    yield start
    patch.undo()


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """A run that nobody disturbs, how many seconds it takes, and its file."""
    home = tmp_path_factory.mktemp("whole")
    file = home / "transport.py"
    file.write_text(PROBLEM)
    assert ended(solving(start, file, home / "first")) == 3  # fills the cache
    process = solving(start, file, home / "run")
    began = started(home / "run", process)
    assert ended(process) == 3
    assert account(home / "first") == account(home / "run")
    return home / "run", time.monotonic() - began, file


def solving(start, file, directory):
    return start("solve", file, "--out", directory, "--checkpoint-every", "0", "--quiet")


def started(directory, process) -> float:
    """Wait until there is a run in the directory; when that was."""
    while not (directory / "config.json").exists():
        assert process.is_alive(), "the run ended before it began"
        time.sleep(0.001)
    return time.monotonic()


def ended(process) -> int:
    """Wait for the end of a process; its exit code."""
    process.join(PATIENCE)
    assert not process.is_alive(), "it hangs"
    return process.exitcode


def kill(process, seconds) -> bool:
    """Kill a process after so many seconds, unless it ends by itself."""
    process.join(seconds)
    alive = process.is_alive()
    if alive:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return alive


def readable(directory) -> None:
    """The configuration is whole, and so is every checkpoint."""
    _, complaints = checkpoints.latest(directory, runs.identity(directory))
    assert not complaints


def check(start, whole, directory, *moments: float) -> bool:
    """Kill a run, and the resumed ones, at moments of its duration, and let the last one end; whether a kill hit."""
    expected, duration, file = whole
    process, hits = solving(start, file, directory), []
    started(directory, process)
    for moment in moments:
        hits.append(kill(process, moment * duration))
        readable(directory)
        process = start("resume", directory, "--checkpoint-every", "0", "--quiet")
    assert ended(process) == 3
    assert account(directory) == account(expected)
    return any(hits)


def test_killed_runs_are_resumed_to_the_same_result(start, whole, tmp_path):
    check(start, whole, tmp_path, 0.1, 0.5)


@pytest.mark.slow
def test_twenty_random_moments(start, whole, tmp_path):
    moments = np.random.default_rng(0).random((20, 2))
    hits = [check(start, whole, tmp_path / str(k), *pair) for k, pair in enumerate(moments)]
    assert sum(hits) >= 10  # the others had ended already


def checkpointed(directory, process, after=None) -> int:
    """Wait for a checkpoint that is newer than another one; when it was written."""
    path, begun = directory / checkpoints.CURRENT, time.monotonic()
    while time.monotonic() - begun < PATIENCE:
        with suppress(FileNotFoundError):  # it is just being replaced
            written = path.stat().st_mtime_ns
            if written != after:
                return written
        assert process.is_alive(), "the run ended too early"
        time.sleep(0.001)
    raise AssertionError("there was no checkpoint")


def test_signals_end_a_run_which_can_be_continued(start, whole, tmp_path):
    """The first Ctrl-C, and SIGTERM, end the run of a command after its iteration, with a summary."""
    expected, _, file = whole
    directory, messages = tmp_path / "run", tmp_path / "messages"
    process, last = start("solve", file, "--out", directory, "--checkpoint-every", 0, messages=messages), None
    for number in (signal.SIGINT, signal.SIGTERM):
        last = checkpointed(directory, process, last)
        os.kill(process.pid, number)
        assert ended(process) == 3
        assert runs.read_result(directory)["stop_reason"] == "interrupted"
        said = messages.read_text()
        assert "stopped: the run was interrupted" in said and f"continue with: dsgnar resume {directory}" in said
        last = (directory / checkpoints.CURRENT).stat().st_mtime_ns
        process = start("resume", directory, "--checkpoint-every", 0, messages=messages)
    assert ended(process) == 3
    assert account(directory) == account(expected)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_a_script_and_not_only_its_current_run(number, start, whole, tmp_path):
    file, messages = tmp_path / "script.py", tmp_path / "messages"
    file.write_text(SCRIPT)
    process = start(file, messages=messages, target=script)
    checkpointed(tmp_path / "first", process)
    os.kill(process.pid, number)
    code = ended(process)
    assert runs.read_result(tmp_path / "first")["stop_reason"] == "interrupted"  # the run is safe
    assert not (tmp_path / "second").exists()  # and no other one began
    if number == signal.SIGTERM:
        assert code == 128 + signal.SIGTERM
    else:
        assert code == 1 and "Interrupted: the run was interrupted" in messages.read_text()  # a KeyboardInterrupt
    assert issubclass(ds.Interrupted, KeyboardInterrupt)


def test_two_processes_do_not_share_a_directory(start, whole, tmp_path):
    expected, _, _ = whole
    directory, messages = tmp_path / "run", tmp_path / "messages"
    shutil.copytree(expected, directory)
    holder = RunDirectory(directory)
    holder.hold()
    assert ended(start("resume", directory, "--quiet", messages=messages)) == 1
    assert f"in use by another run (process {os.getpid()})" in messages.read_text()
    holder.release()
    assert ended(start("resume", directory, "--quiet", messages=messages)) == 3
    assert "has ended" in messages.read_text()
