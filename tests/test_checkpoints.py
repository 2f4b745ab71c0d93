"""Checkpoints are whole or refused, execute nothing, and a run goes on from them bit for bit."""

import dataclasses
import errno
import hashlib
import json
import math
import os
import pickle
import shutil
import signal
import threading
import warnings

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsgnar as ds
from dsgnar.optimise.optimiser import State
from dsgnar.solving import context
from dsgnar.solving.clock import Seconds
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interruption
from dsgnar.solving.loop import run
from dsgnar.solving.method import METHODS
from dsgnar.solving.record import Record
from dsgnar.solving.stages import Plan
from dsgnar.solving.state import RunState
from dsgnar.solving.stop import StopReason
from dsgnar.storing import checkpoints, files, runs
from dsgnar.storing.checkpoints import CURRENT, PREVIOUS, REFUSED, CheckpointError, decode, encode
from small import RAW, problem

SMALL = dict(
    network=ds.MLP(widths=(6, 6)), points=64, max_points=256, held_out=64, wait=4, window=3, max_iterations=14
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("shared_kernels")

numbers = st.floats(width=64)
tuples = st.lists(numbers, max_size=3).map(tuple)
optional = st.none() | numbers
records = st.builds(
    Record, iteration=st.integers(0, 9), interval=st.just(0), stage=st.just(1), precision=st.just("single"),
    points=st.just(64), loss=numbers, mean_squares=tuples, weights=tuples, ratio=numbers, target=numbers, lam=numbers,
    radius=numbers, accepted=st.booleans(), evaluations=st.just(2), seconds=numbers, held_out=optional,
    error=st.none() | st.dictionaries(st.sampled_from(["u", "array", "[x]"]), numbers, min_size=1),
)  # fmt: skip
arrays = st.tuples(st.lists(numbers, max_size=4), st.sampled_from([np.float32, np.float64])).map(
    lambda pair: np.array(pair[0], np.float64).clip(-1e30, 1e30).astype(pair[1])
)
whole = st.builds(
    RunState,
    iterate=st.builds(State, arrays, arrays, numbers, mean_squares=st.none() | arrays, lam=optional),
    plan=st.builds(Plan, st.sampled_from(["single", "double"]), st.integers(1, 9), gaps=tuples, lams=tuples),
    evaluated=st.booleans(),
    history=st.lists(records, max_size=2).map(tuple),
    seconds=st.builds(Seconds, numbers, numbers),
    finished=st.lists(arrays, max_size=2).map(tuple),
    worst=st.none() | tuples,
    unfinished=st.none() | st.sampled_from(StopReason),
    stop=st.none() | st.sampled_from(StopReason),
)


def looks(value):
    """A value that can be compared: arrays by their bits, nan equal to itself."""
    if dataclasses.is_dataclass(value):
        return [looks(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return [looks(v) for v in value] if isinstance(value, tuple) else repr(value)


def example(seconds=1.0) -> RunState:
    return RunState(State(np.arange(5.0), np.ones(2), 0.1), Plan("double", 64), seconds=Seconds(seconds, 0.0))


# --- the file ---------------------------------------------------------------------------------------------------------


@given(whole)
def test_a_state_is_read_as_it_was_written(state):
    assert looks(decode(encode(state, "run"), "run")) == looks(state)


@given(whole, st.data())
def test_any_byte_changed_or_cut_off_is_noticed(state, data):
    content = encode(state, "run")
    place = data.draw(st.integers(0, len(content) - 1))
    changed = bytearray(content)
    changed[place] ^= data.draw(st.integers(1, 255))
    for wrong in (bytes(changed), content[:place], content + b"\0"):
        with pytest.raises(CheckpointError):
            decode(wrong, "run")


def test_every_single_byte_counts():
    content = encode(example(), "run")
    for place in range(len(content)):
        with pytest.raises(CheckpointError):
            decode(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :], "run")
        with pytest.raises(CheckpointError):
            decode(content[:place], "run")


@given(st.binary(max_size=200))
def test_any_other_file_is_refused(content):
    for wrong in (content, checkpoints.MAGIC + content, checkpoints.MAGIC + checkpoints.VERSION + content):
        with pytest.raises(CheckpointError):
            decode(wrong, "run")


class Bomb:
    """Executes code when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("executed",))


def sealed(body: bytes) -> bytes:
    """A file with a correct checksum, as somebody could craft it."""
    return checkpoints.MAGIC + checkpoints.VERSION + hashlib.sha256(body).digest() + body


def with_header(header: dict, rest: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return sealed(len(text).to_bytes(8, "little") + text + rest)


def test_a_crafted_file_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    good = json.loads(encode(example(), "run")[len(checkpoints.MAGIC) + 2 + 32 + 8 :].split(b"}]}")[0] + b"}]}")
    state = good["state"]

    def but(**changes):
        return good | {"state": state | changes}

    crafted = {
        "of objects": good | {"arrays": [{"dtype": "|O", "shape": [1]}] * 3},
        "named": but(iterate=state["iterate"] | {"theta": {"__reduce__": ["os.mkdir", "executed"]}}),
        "word": but(stop="__import__"),
        "huge": good | {"arrays": [{"dtype": "<f8", "shape": [10**15]}] * 3},
        "larger than any integer": good | {"arrays": [{"dtype": "<f8", "shape": [10**30]}] * 3},
        "negative": good | {"arrays": [{"dtype": "<f8", "shape": [-1]}] * 3},
        "from the end": but(iterate=state["iterate"] | {"theta": {"[array]": -1}}),
        "extra": but(plan=state["plan"] | {"__class__": "os"}),
        "missing": but(plan={"precision": "single"}),
        "not a number": but(seconds={"solve": "0", "compile": 0.0}),
        "not a truth value": but(evaluated=1),
        "not a list": but(history={}),
        "no state": {"run": "run", "arrays": []},
        "no arrays": good | {"arrays": []},
    }
    deep = sealed((10**6).to_bytes(8, "little") + b"[" * 10**6)
    for content in (bomb, sealed(bomb), deep, *(with_header(header, bomb * 9) for header in crafted.values())):
        with pytest.raises(CheckpointError):
            decode(content, "run")
    assert not list(tmp_path.iterdir())
    decode(with_header(good, bomb * 9), "run")  # only what was changed above is wrong


def test_a_checkpoint_of_the_first_format_is_refused_with_what_to_do():
    old = {"run": "run", "state": {}, "plan": {}, "history": [], "seconds": {}, "arrays": []}  # as 0.1.0 wrote them
    text = json.dumps(old).encode()
    body = len(text).to_bytes(8, "little") + text
    content = b"dsgnar checkpoint 1\n" + hashlib.sha256(body).digest() + body
    with pytest.raises(CheckpointError, match="another version.*resume with the version that wrote it, or start a new"):
        decode(content, "run")


def test_the_previous_checkpoint_is_used_if_the_last_is_damaged(tmp_path):
    first, second = example(1.0), example(2.0)
    checkpoints.save(tmp_path, first, "run")
    checkpoints.save(tmp_path, second, "run")
    assert looks(checkpoints.latest(tmp_path, "run")[0]) == looks(second)
    (tmp_path / CURRENT).write_bytes((tmp_path / CURRENT).read_bytes()[:-1])
    found, complaints = checkpoints.latest(tmp_path, "run")
    assert looks(found) == looks(first) and len(complaints) == 1 and "damaged or cut short" in complaints[0]
    found, complaints = checkpoints.latest(tmp_path, "another run")
    assert found is None and "another problem" in complaints[1]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([CURRENT, PREVIOUS])


# --- runs that go on --------------------------------------------------------------------------------------------------


class StopAt:
    """Presses Ctrl-C in an iteration."""

    def __init__(self, iteration):
        self.iteration = iteration

    def started(self, run): ...

    def finished(self, run, solution): ...

    def iterated(self, run, record):
        if record.iteration == self.iteration:
            os.kill(os.getpid(), signal.SIGINT)


def interrupted(start, *args, **options) -> ds.Solution:
    """The solution of a run that Ctrl-C stops."""
    with pytest.raises(ds.Interrupted) as ended:
        start(*args, **options)
    return ended.value.solution


def account(directory, result=True):
    """What must be equal: everything but times, and where the files lie."""
    history = [line.split(",") for line in (directory / "history.csv").read_text().splitlines()]
    seconds = history[0].index("seconds")
    found = json.loads((directory / "result.json").read_text())
    del found["seconds"]
    with np.load(directory / "solution.npz") as file:
        thetas = file["thetas"].tobytes()
    return found, [row[:seconds] + row[seconds + 1 :] for row in history], thetas


@pytest.fixture(scope="module")
def undisturbed(shared_kernels, tmp_path_factory):
    """The directory of a run with the options SMALL that nothing interrupts."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with jax.enable_x64(True):
        ds.solve(problem(), observers=[ds.RunDirectory(directory)], **SMALL)
    return directory


@pytest.mark.parametrize(
    ("options", "changing"),
    [
        # new points in every iteration, then more of them, and a hand-over
        (RAW | dict(intervals=2, max_iterations=8, gap=1.05, gaps=1), ("points", "interval", "stage")),
        (dict(precision="double", warm_up=3, single_above=math.inf, long_wait=0), ("precision", "stage")),
        # points that stay, and are not evaluated again
        (dict(precision="single", method="paper", minimum_radius=1e-9), ("stage",)),
    ],
    ids=["fast", "double", "paper"],
)
def test_a_run_that_is_interrupted_ends_as_if_it_had_not_been(options, changing, tmp_path):
    options = SMALL | options
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    expected = ds.solve(problem(), observers=[ds.RunDirectory(whole)], **options)
    assert all(len({getattr(record, name) for record in expected.history}) > 1 for name in changing)
    first = interrupted(ds.solve, problem(), observers=[ds.RunDirectory(parts), StopAt(3)], **options)
    assert first.stop is StopReason.INTERRUPTED and len(first.history) == 3
    interrupted(ds.resume, parts, problem(), observers=[StopAt(9)])
    assert ds.resume(parts, problem()).stop is expected.stop
    assert account(parts) == account(whole)


def test_every_iteration_is_a_place_to_go_on_from():
    """Also those just before a hand-over, a stage switch and more points: a checkpoint is taken in each."""
    options = SMALL | dict(intervals=2, max_iterations=7)
    taken = []

    class Takes(StopAt):
        def iterated(self, run, record):
            taken.append(decode(encode(run.state, "run"), "run"))

    whole = ds.solve(problem(), observers=[Takes(0)], **options)
    assert taken[6].stop is StopReason.ITERATIONS and len(taken) == 14
    for state in taken[::3]:
        again = run(Context.of(problem(), options["network"], whole.outcome.settings), state)
        assert again.thetas.tobytes() == whole.thetas.tobytes()
        strip = [repr(dataclasses.replace(r, seconds=0.0)) for r in again.history]
        assert strip == [repr(dataclasses.replace(r, seconds=0.0)) for r in whole.history]


def test_a_run_that_hit_a_limit_continues_with_a_larger_one(undisturbed, tmp_path):
    ds.solve(problem(), observers=[ds.RunDirectory(tmp_path)], **(SMALL | dict(max_iterations=5)))
    assert len(ds.resume(tmp_path, problem()).history) == 5  # nothing to do
    ds.resume(tmp_path, problem(), max_iterations=14)
    assert account(tmp_path) == account(undisturbed)
    with pytest.raises(TypeError, match="max_iterations, max_seconds, tol, quantity and enough, not 'seed'"):
        ds.resume(tmp_path, problem(), seed=3)


def test_a_damaged_checkpoint_costs_a_message_and_no_more(undisturbed, tmp_path):
    kept = ds.RunDirectory(tmp_path, every=0)
    interrupted(ds.solve, problem(), observers=[kept, StopAt(6)], **SMALL)
    (tmp_path / CURRENT).write_bytes(b"something else")
    with pytest.warns(UserWarning, match="not a checkpoint of dsgnar"):
        ds.resume(tmp_path, problem())
    assert account(tmp_path) == account(undisturbed)
    assert (tmp_path / REFUSED).read_bytes() == b"something else"
    for name in (CURRENT, PREVIOUS):
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(runs.WrongDirectory, match="cannot be resumed.*not a checkpoint of dsgnar.*--force"):
        ds.resume(tmp_path, problem())
    for name in (CURRENT, PREVIOUS):
        (tmp_path / name).unlink()
    with pytest.raises(runs.WrongDirectory, match="has no checkpoint"):
        ds.resume(tmp_path, problem())


def test_a_run_without_checkpoint_starts_from_the_beginning_and_one_without_end_can_be_loaded(undisturbed, tmp_path):
    interrupted(ds.solve, problem(), observers=[ds.RunDirectory(tmp_path), StopAt(5)], **SMALL)
    (tmp_path / "result.json").unlink()
    so_far = ds.load(tmp_path, problem())
    assert len(so_far.history) == 5 and so_far.stop is StopReason.INTERRUPTED
    for name in (CURRENT, "history.csv", "solution.npz"):
        (tmp_path / name).unlink()
    with pytest.raises(runs.RunError, match="no checkpoint yet"):
        ds.load(tmp_path, problem())
    ds.resume(tmp_path, problem())
    assert account(tmp_path) == account(undisturbed)


def test_loading_builds_no_optimiser(undisturbed, tmp_path, monkeypatch):
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)

    def never(*args):
        raise AssertionError("loading needs no optimiser")

    monkeypatch.setattr(context, "compose", never)
    ended = ds.load(tmp_path, problem())
    (tmp_path / "result.json").unlink()
    so_far = ds.load(tmp_path, problem())  # of a run that has not ended
    assert ended.thetas.tobytes() == so_far.thetas.tobytes()
    assert so_far.outcome.held_out == ended.outcome.held_out and so_far.history == ended.history


def test_a_run_resumed_under_another_version_says_so(undisturbed, tmp_path):
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds.resume(tmp_path, problem())  # nothing has changed
    config["environment"]["dsgnar"] = "0.0.9"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match=rf"began with dsgnar 0.0.9 and continues with {ds.__version__}"):
        ds.resume(tmp_path, problem())


def test_a_run_resumed_with_other_constants_of_the_method_says_so_and_keeps_its_own(undisturbed, tmp_path, monkeypatch):
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    monkeypatch.setitem(METHODS, "fast", dataclasses.replace(ds.FAST, slack=0.5, wait=70))
    with pytest.warns(UserWarning, match=r"keeps its own: slack = 0.03 \(now 0.5\)$"):  # wait was the person's choice
        again = ds.resume(tmp_path, problem())
    assert again.outcome.settings.method.slack == 0.03


def test_a_changed_configuration_does_not_fit_the_checkpoints(undisturbed, tmp_path):
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    config["method"]["slack"] = 0.5
    (tmp_path / "config.json").write_text(json.dumps(config))
    with (
        pytest.raises(runs.WrongDirectory, match="another problem, network or settings"),
        pytest.warns(UserWarning, match="slack = 0.5 "),
    ):
        ds.resume(tmp_path, problem())
    del config["method_changes"], config["environment"]
    config["method"]["no such constant"] = 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(runs.RunError, match="config.json was changed, or another version.*no such constant"):
        ds.resume(tmp_path, problem())


# --- what goes wrong on the way ---------------------------------------------------------------------------------------


def test_a_full_disk_does_not_end_the_run(undisturbed, tmp_path, monkeypatch):
    kept, real = ds.RunDirectory(tmp_path, every=0), checkpoints._write_through
    full = {"now": False}

    def write(path, content):
        if full["now"]:
            path.write_bytes(content[: len(content) // 2])  # as far as it goes
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, content)

    class FillsUp(StopAt):
        def iterated(self, run, record):
            full["now"] = record.iteration >= self.iteration

    monkeypatch.setattr(checkpoints, "_write_through", write)
    with pytest.warns(UserWarning, match="No space left") as messages:
        solution = ds.solve(problem(), observers=[kept, FillsUp(6)], **SMALL)
    assert len(solution.history) == 14  # the caller has the solution
    assert len(messages) == 2 and "continues and tries again" in str(messages[0].message)  # once, and once at the end
    assert kept.failure is not None and kept.failure.errno == errno.ENOSPC
    assert not list(tmp_path.glob("*.partial")) and not (tmp_path / "result.json").exists()
    full["now"] = False
    ds.resume(tmp_path, problem())
    assert account(tmp_path) == account(undisturbed)


def test_a_failure_leaves_the_last_iteration_and_frees_the_directory(tmp_path):
    class Fails(StopAt):
        def iterated(self, run, record):
            if record.iteration == self.iteration:
                raise MemoryError("no more")

    with pytest.raises(MemoryError):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path), Fails(4)], **SMALL)
    state, _ = checkpoints.latest(tmp_path, runs.identity(tmp_path))
    assert state is not None and len(state.history) == 4
    assert len(ds.resume(tmp_path, problem()).history) == 14


def test_a_directory_belongs_to_one_run_at_a_time(tmp_path):
    holder = ds.RunDirectory(tmp_path)
    holder.hold()
    with pytest.raises(runs.RunError, match=f"in use by another run .process {os.getpid()}"):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path)], **SMALL)
    holder.release()
    ds.RunDirectory(tmp_path).hold()


def test_earlier_runs_are_never_lost(tmp_path):
    short = SMALL | dict(max_iterations=2)
    ds.solve(problem(), observers=[ds.RunDirectory(tmp_path)], **short)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.warns(UserWarning, match="earlier-1"):
        interrupted(ds.solve, problem(), observers=[ds.RunDirectory(tmp_path), StopAt(2)], seed=1, **SMALL)
    assert len(ds.load(tmp_path / "earlier-1", problem()).history) == 2
    assert (tmp_path / "notes.txt").exists()
    with pytest.raises(runs.WrongDirectory, match="unfinished run.*dsgnar resume.*--force"):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path)], **short)
    with pytest.warns(UserWarning, match="earlier-2"):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path, force=True)], **short)
    assert ds.load(tmp_path / "earlier-2", problem()).outcome.settings.seed == 1
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(runs.RunError, match="result.json was changed"):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path)], **short)
    with pytest.warns(UserWarning, match="earlier-3"):
        files.make_room(tmp_path, force=True)


def test_a_first_signal_asks_and_a_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGTERM)
        assert interruption.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_only_the_main_thread_listens_to_signals():
    before, found = signal.getsignal(signal.SIGINT), []

    def enter():
        with Interruption():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [before]
