"""Kill -9 at any moment: the run directory can be read, and resuming ends as if nothing had happened.

Runs are processes forked from one that has imported dsgnar, and take compiled kernels from a cache: a whole run takes
about a second, so that there can be many.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import time

import numpy as np
import pytest

from dsgnar import checkpoints, configuration, runs
from dsgnar.keeper import RunDirectory
from test_checkpoints import account

FILE = """
import jax.numpy as jnp
import dsgnar as ds

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns=("u",),
    conditions={
        "heat": ds.interior(lambda u: u.t - 0.1 * u.xx),
        "start": ds.initial(lambda u, x: u - jnp.sin(2 * jnp.pi * x)),
    },
    periodic=("x",),
)
network = ds.MLP(widths=(6,))
settings = dict(points=64, max_points=64, max_iterations=12, intervals=3)
"""


def command(messages: str, *args: str) -> None:
    """What the `dsgnar` command does, without the figure at the end, which takes longer than the run."""
    from dsgnar import figures
    from dsgnar.cli import main

    figures.save = lambda solution, reference, path, title="": path.write_bytes(b"")
    sys.stderr = open(messages, "w")  # noqa: SIM115 - until the process ends
    sys.argv = ["dsgnar", *args]
    main()


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts a command in a process of its own."""
    cache = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv("JAX_COMPILATION_CACHE_DIR", str(cache))
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    patch.setenv("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dsgnar.cli"])

    def start(*args, messages=os.devnull):
        process = context.Process(target=command, args=tuple(map(str, (messages, *args))))
        process.start()
        return process

    yield start
    patch.undo()


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """A run that nobody disturbs, how many seconds it takes, and its file."""
    home = tmp_path_factory.mktemp("whole")
    file = home / "heat.py"
    file.write_text(FILE)
    solving(start, file, home / "first").join()  # fills the cache
    process = solving(start, file, home / "run")
    began = started(home / "run", process)
    process.join()
    assert process.exitcode == 3
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
    described = runs.read_config(directory)
    _, complaints = checkpoints.latest(directory, configuration.fingerprint(described))
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
    process.join()
    assert process.exitcode == 3
    assert account(directory) == account(expected)
    return any(hits)


def test_killed_runs_are_resumed_to_the_same_result(start, whole, tmp_path):
    for moment in (0.1, 0.5):
        check(start, whole, tmp_path / str(moment), moment)


@pytest.mark.slow
def test_twenty_random_moments(start, whole, tmp_path):
    moments = np.random.default_rng(0).random((20, 2))
    hits = [check(start, whole, tmp_path / str(k), *pair) for k, pair in enumerate(moments)]
    assert sum(hits) >= 10  # the others had ended already


def test_a_signal_to_end_is_obeyed_and_the_run_can_go_on(start, whole, tmp_path):
    expected, duration, file = whole
    process = solving(start, file, tmp_path)
    began = started(tmp_path, process)
    while not (tmp_path / checkpoints.CURRENT).exists() and time.monotonic() - began < 60:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    assert process.exitcode == 3
    assert runs.read_result(tmp_path)["stop_reason"] == "interrupted"
    last = start("resume", tmp_path, "--quiet")
    last.join()
    assert account(tmp_path) == account(expected)


def test_two_processes_do_not_share_a_directory(start, whole, tmp_path):
    expected, _, _ = whole
    directory, messages = tmp_path / "run", tmp_path / "messages"
    shutil.copytree(expected, directory)
    holder = RunDirectory(directory)
    holder.hold()
    second = start("resume", directory, "--quiet", messages=messages)
    second.join()
    assert second.exitcode == 1
    assert f"in use by another run (process {os.getpid()})" in messages.read_text()
    holder.release()
    third = start("resume", directory, "--quiet", messages=messages)
    third.join()
    assert third.exitcode == 3 and "has ended" in messages.read_text()
