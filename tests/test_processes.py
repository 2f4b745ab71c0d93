"""Several processes that solve one problem together, on loopback: the same result, and an end whatever happens to one.

Every process here has a limit of time, and belongs to a group of its own that is gone when its test has ended.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dsgnar as ds
import small
from dsgnar.calculus.team import Alone, TeamError
from dsgnar.optimise.optimiser import State
from dsgnar.solving.context import Context
from dsgnar.solving.settings import with_options
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.solving.together import asked_to_end
from dsgnar.storing import checkpoints
from dsgnar.tools import greeting, processes
from dsgnar.tools.bench.exchange import Sizes
from dsgnar.tools.joining import free_port
from dsgnar.tools.launching import Launched

LIMIT = 240  # seconds for any of them
PROBLEM = """
import dsgnar as ds

problem = ds.Problem(
    domain=ds.Box(x=(0, 1), t=(0, 1)),
    unknowns=("u",),
    conditions={"pde": ds.interior(lambda u: u.t + u.x), "start": ds.initial(lambda u, x: u - x)},
)
network = ds.MLP(widths=(6,))
settings = dict(
    points=64, max_points=64, held_out=64, max_iterations=12, intervals=1, stall=0, warm_up=0, single_above=float("inf")
)
"""
WITH_US = """
import os
from dsgnar.tools.processes import end_with
end_with(os.getppid())
"""  # gone soon after the tests, even if these are killed
QUIET = """
from dsgnar.showing import figures
figures.save = lambda solution, reference, path, title="": path.write_bytes(b"")  # takes longer than the run
from dsgnar.cli import main
main()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a problem, and with a cache of compiled kernels for all tests."""
    home = tmp_path_factory.mktemp("processes")
    (home / "mine.py").write_text(PROBLEM)
    return home


@contextmanager
def started(home, *arguments, code=QUIET, **more):
    """A command in a process, with more in its environment; whatever is left of it at the end is ended."""
    here = {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_US + code, *map(str, arguments)],
        cwd=home, env=os.environ | here | {"DSGNAR_CACHE": str(home / "cache")} | more, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def done(process, seconds=LIMIT) -> str:
    return process.communicate(timeout=seconds)[0]


def command(home, *arguments, code=0):
    with started(home, *arguments) as process:
        said = done(process)
        assert process.returncode == code, said
        return said


def history(directory) -> np.ndarray:
    """Losses, lambdas and radii of a run."""
    lines = [line.split(",") for line in (directory / "history.csv").read_text().splitlines()]
    columns = [lines[0].index(name) for name in ("loss", "lambda", "radius")]
    return np.array([[float(line[k]) for k in columns] for line in lines[1:]])


def children(pid) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return sorted(map(int, found.split()))


def gone(pids, seconds=20) -> bool:
    """Whether processes are gone, or soon are."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.1)
    return False


# --- what is said, and no hang ----------------------------------------------------------------------------------------


def test_a_port_in_use_and_a_coordinator_that_is_not_there(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address, nobody = f"127.0.0.1:{taken.getsockname()[1]}", f"127.0.0.1:{free_port()}"
        options = "solve", "mine.py", "--processes", 2, "--patience", 2
        with (
            started(home, *options, "--process-id", 0, "--coordinator", address) as in_use,
            started(home, *options, "--process-id", 1, "--coordinator", nobody) as wrong,
        ):
            said = done(in_use)
            assert in_use.returncode == 2 and "process 0 cannot listen there (Address already in use)" in said
            said = done(wrong)
            assert wrong.returncode == 2 and f"{nobody}: nobody answers there after 2 s" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "burgers", "--process-id", "0"], "belong to --coordinator"),
        (["solve", "burgers", "--coordinator", "nowhere"], "write HOST:PORT"),
        (["solve", "burgers", "--coordinator", "localhost:5", "--processes", "2"], "--process-id I"),
        (["solve", "burgers", "--coordinator", "localhost:5", "--distributed"], "leave out --coordinator"),
        (["launch", "--", "list"], "launch starts `solve` or `resume`, not 'list'"),
        (["launch", "--", "solve", "burgers", "--distributed"], "leave out --distributed"),
        (["launch", "--", "solve", "burgers", "--process-id=1"], "leave out --process-id"),
        (["launch", "--", "solve", "burgers", "--patience", "9"], "write it before the --"),
    ],
)
def test_wrong_calls(arguments, message):
    from typer.testing import CliRunner

    from dsgnar.cli import app

    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and message in result.output.replace("\n", " ")


def test_a_wrong_name_is_said_once(home):
    said = command(home, "launch", "--processes", 2, "--", "solve", "burgerz", code=2)
    assert said.startswith("dsgnar: there is no problem 'burgerz'") and said.count("\n") == 1


def test_processes_of_one_machine_have_as_many_threads_of_blas_each(monkeypatch):
    seen = []
    monkeypatch.setattr(processes, "cores", lambda: [0, 1, 2, 3, 4])
    monkeypatch.setattr(processes, "start", lambda arguments, cores, environment, output=None: seen.append(environment))
    Launched(["solve", "mine.py"], 2, 9.0).folder.cleanup()
    assert [environment["OPENBLAS_NUM_THREADS"] for environment in seen] == ["2", "2"]


class Pair(Alone):
    """One of two processes; the numbers of the other are given."""

    size = 2

    def __init__(self, others=None):
        self.others, self.said = others, []

    def total(self, values):
        self.said.append(values)
        return values + (values if self.others is None else self.others)


@pytest.mark.parametrize("change", [dict(stop=StopReason.FLOOR), dict(times=(0.0, 0.5)), dict(cuts=1)])
def test_processes_that_decide_otherwise_are_found_out(change):
    plan = Context.of(small.problem(), small.NETWORK, with_options(ds.Settings(), small.SIZES)).rules.start()
    state = RunState(State(np.ones(3), np.ones(2), 0.1), plan)
    here = Pair()
    assert not asked_to_end(here, state, False) and asked_to_end(here, state, True)
    with pytest.raises(TeamError, match="different numbers in iteration 0"):
        asked_to_end(Pair(here.said[0]), replace(state, **change), False)


def test_a_process_that_is_alone_says_so(home):
    options = "solve", "mine.py", "--processes", 2, "--process-id", 0, "--patience", 2
    with started(home, *options, "--coordinator", f"127.0.0.1:{free_port()}") as process:
        said = done(process)
        assert process.returncode == 2 and "--processes 2: process 1 did not come within 2 s" in said


def met(*calls) -> list[str]:
    """What processes hear that find each other in threads: (how many there are, which one it is) each."""
    port = free_port()

    def come(call):
        count, number = call
        try:
            if number == 0:
                greeting.receive("127.0.0.1", port, count, 2.0)
            else:
                greeting.greet("127.0.0.1", port, count, number, 2.0)
        except greeting.JoinError as error:
            return str(error)
        return "welcome"

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(come, calls))


def test_processes_find_each_other_or_hear_what_is_wrong():
    assert met((3, 2), (3, 0), (3, 1)) == ["welcome"] * 3
    assert set(met((2, 0), (3, 2))) == {"--processes: process 0 was started with 2, and process 2 with 3"}
    assert set(met((3, 0), (3, 1), (3, 1))) == {
        "--process-id: two processes were started with 1; each needs a number of its own"
    }
    assert set(met((3, 0), (3, 2))) == {"--processes 3: process 1 did not come within 2 s; start all of them"}


def test_strangers_are_not_taken_for_processes():
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(lambda: stranger.accept()[0].sendall(b"HTTP/1.1 400 Bad Request\r\n"))
            with pytest.raises(greeting.JoinError, match="another program answers there"):
                greeting.greet("127.0.0.1", port, 2, 1, 2.0)
            answered.result()
    port = free_port()
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(greeting.receive, "127.0.0.1", port, 2, 10.0)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\n")
                assert stranger.recv(10) == b""
                break
        greeting.greet("127.0.0.1", port, 2, 1, 5.0)
        waiting.result()


# --- the same result --------------------------------------------------------------------------------------------------


def test_two_processes_end_as_one(home):
    command(home, "solve", "mine.py", "--out", "one", "--quiet", code=3)
    said = command(home, "launch", "--processes", 2, "--", "solve", "mine.py", "--out", "two", code=3)
    assert "2 processes, 2 devices" in said and "Gloo" not in said and said.count("written to two/") == 1
    np.testing.assert_allclose(history(home / "two"), history(home / "one"), rtol=1e-6)
    result = json.loads((home / "two" / "result.json").read_text())
    assert result["environment"]["processes"] == "2" and result["iterations"] == 12


def test_a_process_that_dies_ends_the_other_and_the_run_is_continued_by_one(home):
    settings = "--set", "max_iterations=100000", "--set", "wait=100000"
    directory = home / "killed"
    arguments = "launch", "--processes", 2, "--", "solve", "mine.py", *settings, "--out", directory
    with started(home, *arguments, "--checkpoint-every", 0) as process:
        end = time.monotonic() + LIMIT
        while not (directory / checkpoints.PREVIOUS).exists():
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        first, second = children(process.pid)
        os.kill(second, signal.SIGKILL)
        said = done(process, 60)
    assert process.returncode == 128 + signal.SIGKILL
    # The other notices at its next exchange, or, as happened once in a dozen runs on a busy machine, is ended after 10 s.
    assert "process 0: another process has ended" in said or "noticed within 10 s" in said
    assert "process 1 of 2 was ended by signal 9" in said
    assert gone([first, second])
    before = checkpoints.decode((directory / checkpoints.CURRENT).read_bytes(), _run(directory)).iterate.iteration
    said = command(home, "resume", directory, "--max-iterations", before + 3, code=3)
    assert "began on 2 devices and continues on 1: the result is equal to rounding, not bit for bit" in said
    assert len(history(directory)) == before + 3


def _run(directory) -> str:
    from dsgnar.storing import runs

    return runs.identity(directory)


def test_the_model_of_what_is_sent():
    """By hand: 3 processes, two of which send 4 of 10 rows of 7 + 1 numbers; 2 x 6 + 5 x 4 + 5 numbers summed in a ring."""
    sizes = Sizes(processes=3, rows=10, columns=7, parameters=1, itemsize=4, batches=6, evaluations=2, tried=4)
    assert sizes.collected == 2 * 4 * 8 * 4 and sizes.reduced == 2 * 8 * (12 + 20 + 5) * 2
    assert sizes.exchanges == 2 * 2 + 2 + 4 + 2
    assert Sizes(1, 10, 7, 1, 4, 6, 2, 4).sent() == 0


# --- slow -------------------------------------------------------------------------------------------------------------


@contextmanager
def pair(home, *arguments, other=()):
    """Two processes that were started by hand."""
    place = "--coordinator", f"127.0.0.1:{free_port()}", "--processes", 2
    first, second = (*arguments, *place, "--process-id", 0), (*arguments, *place, *other, "--process-id", 1)
    with started(home, *first) as one, started(home, *second) as two:
        yield one, two


@pytest.mark.slow
def test_processes_with_other_problems_or_settings(home):
    with pair(home, "solve", "mine.py", "--out", "unequal", other=("--seed", 5)) as (one, two):
        assert "same settings, and process 1 has another" in done(one) and "same settings" in done(two)
        assert one.returncode == two.returncode == 1
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "mine.py").write_text(PROBLEM + "# changed\n")
    code = "import os; os.chdir('elsewhere')\n" + QUIET
    place = "--coordinator", f"127.0.0.1:{free_port()}", "--processes", 2, "--out", home / "unequal"
    with (
        started(home, "solve", "mine.py", *place, "--process-id", 0) as one,
        started(home, "solve", "mine.py", *place, "--process-id", 1, code=code) as two,
    ):
        assert "same problem, and process 1 has another" in done(one) and "same problem" in done(two)
    with pair(home, "solve", "mine.py", other=("--set", "wait=x")) as (one, two):
        assert "process 1 failed at reading the problem" in done(one) and "wait must be" in done(two)
    assert not (home / "unequal").exists()


def slurm(number: int) -> dict[str, str]:
    """What SLURM tells process `number` of two; Open MPI tells the same by other names."""
    job = 100_000 + os.getpid() % 4096  # JAX makes the port from it
    told = dict(JOB_ID=job, STEP_NODELIST="localhost", NTASKS=2, PROCID=number, LOCALID=number)
    return {f"SLURM_{name}": str(value) for name, value in told.items()}


def open_mpi(number: int) -> dict[str, str]:
    uri = f"{(os.getpid() % 4096) << 12}.0;tcp://127.0.0.1:34911"
    told = dict(WORLD_SIZE=2, WORLD_RANK=number, WORLD_LOCAL_RANK=number)
    return {"OMPI_MCA_orte_hnp_uri": uri} | {f"OMPI_COMM_{name}": str(value) for name, value in told.items()}


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", [slurm, open_mpi])
def test_processes_of_a_job_find_each_other(home, scheduler):
    directory = scheduler.__name__
    arguments = "solve", "mine.py", "--distributed", "--out", directory, "--patience", 60
    with started(home, *arguments, **scheduler(0)) as one, started(home, *arguments, **scheduler(1)) as two:
        said = done(one)
        done(two)
    assert one.returncode == two.returncode == 3 and "2 processes, 2 devices" in said
    assert len(history(home / directory)) == 12
    with started(home, *arguments[:-1], 4, **scheduler(0)) as alone:
        assert "waited 4 s for the other processes of this job" in done(alone) and alone.returncode == 1


@pytest.mark.slow
def test_a_process_that_hangs_ends_the_other(home):
    arguments = "solve", "mine.py", "--set", "max_iterations=100000", "--set", "wait=100000", "--out", "hangs"
    with pair(home, *arguments, "--patience", 5, "--checkpoint-every", 0) as (one, two):
        end = time.monotonic() + LIMIT
        while not (home / "hangs" / checkpoints.PREVIOUS).exists():
            assert time.monotonic() < end and one.poll() is None
            time.sleep(0.05)
        two.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        assert "has waited for another one for 5 s" in done(one, 60)
        assert one.returncode == 1 and time.monotonic() - began < 15


@pytest.mark.slow
def test_ctrl_c_to_one_ends_all_after_the_same_iteration(home):
    arguments = "solve", "mine.py", "--set", "max_iterations=100000", "--set", "wait=100000", "--out", "asked"
    with pair(home, *arguments, "--checkpoint-every", 0) as (one, two):
        end = time.monotonic() + LIMIT
        while not (home / "asked" / checkpoints.PREVIOUS).exists():
            assert time.monotonic() < end and one.poll() is None
            time.sleep(0.05)
        two.send_signal(signal.SIGTERM)
        assert "continue with: dsgnar resume asked" in done(one, 60)
        done(two, 60)
        assert one.returncode == two.returncode == 3


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_burgers_in_several_processes(home, count):
    if not (home / "burgers").exists():
        command(home, "solve", "burgers", "--out", "burgers", "--quiet")
    several = f"burgers-{count}"
    command(home, "launch", "--processes", count, "--", "solve", "burgers", "--out", several, "--quiet")
    np.testing.assert_allclose(history(home / several)[:30], history(home / "burgers")[:30], rtol=1e-3)
    errors = [
        json.loads((home / name / "result.json").read_text())["relative_l2"]["u"] for name in ("burgers", several)
    ]
    assert errors[1] == pytest.approx(errors[0], rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_burgers_in_double_precision_in_several_processes(home, count):
    """With 1,000 rows the first process borrows the cores of the others, and more threads of BLAS round differently."""
    settings = "points=4096", "max_points=4096", "sketch=1000", "warm_up=0", "single_above=inf", "intervals=1"
    chosen = [word for one in settings for word in ("--set", one)]
    run = "solve", "burgers", "--preset", "double", *chosen, "--max-iterations", 30, "--quiet", "--out"
    if not (home / "double").exists():
        command(home, *run, "double", code=3)
    several = f"double-{count}"
    command(home, "launch", "--processes", count, "--", *run, several, code=3)
    np.testing.assert_allclose(history(home / several), history(home / "double"), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_what_is_sent_is_what_the_model_says(count):
    """Beside the model there is framing, some hundred bytes an exchange and process."""
    script = Path(__file__).parent.parent / "benchmarks" / "processes.py"
    command = [sys.executable, script, "burgers-single", "--processes", str(count), "--iterations", "3"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment, check=True).stdout
    assert 1.0 <= float(said.splitlines()[-1].split("|")[-2]) < 1.02
