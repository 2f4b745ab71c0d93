"""Checkpoints are whole or refused, execute nothing, and a run goes on from them bit for bit."""

import dataclasses
import errno
import hashlib
import json
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsgnar as ds
from dsgnar import checkpoints, configuration, runs
from dsgnar.checkpoints import CURRENT, PREVIOUS, REFUSED, Checkpoint, CheckpointError, decode, encode
from dsgnar.interruption import Interruption
from dsgnar.optimiser import State
from dsgnar.solution import Record
from dsgnar.solve import Run
from dsgnar.stages import Plan, StopReason
from small import problem

SMALL = dict(network=ds.MLP(widths=(6, 6)), points=64, max_points=256, wait=4, window=3, max_iterations=14)

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
    Checkpoint,
    state=st.builds(State, arrays, arrays, numbers, mean_squares=st.none() | arrays, lam=optional),
    plan=st.builds(Plan, st.sampled_from(["single", "double"]), st.integers(1, 9), gaps=tuples, lams=tuples),
    history=st.lists(records, max_size=2).map(tuple),
    seconds=st.just({"solve": 1.5, "compile": 0.1}),
    finished=st.lists(arrays, max_size=2).map(tuple),
    worst=st.none() | tuples,
    unfinished=st.none() | st.sampled_from(StopReason),
    stop=st.none() | st.sampled_from(StopReason),
    evaluated=st.booleans(),
)


def looks(value):
    """A value that can be compared: arrays by their bits, nan equal to itself."""
    if dataclasses.is_dataclass(value):
        return [looks(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return [looks(v) for v in value] if isinstance(value, tuple) else repr(value)


def example() -> Checkpoint:
    return Checkpoint(State(np.arange(5.0), np.ones(2), 0.1), Plan("double", 64), (), {"solve": 1.0, "compile": 0.0})


# --- the file ---------------------------------------------------------------------------------------------------------


@given(whole)
def test_a_checkpoint_is_read_as_it_was_written(checkpoint):
    assert looks(decode(encode(checkpoint, "run"), "run")) == looks(checkpoint)


@given(whole, st.data())
def test_any_byte_changed_or_cut_off_is_noticed(checkpoint, data):
    content = encode(checkpoint, "run")
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
    of_objects = good | {"arrays": [{"dtype": "|O", "shape": [1]}] * 3}
    named = good | {"state": good["state"] | {"theta": {"__reduce__": ["os.mkdir", "executed"]}}, "stop": "__import__"}
    huge = good | {"arrays": [{"dtype": "<f8", "shape": [10**15]}] * 3}
    negative = good | {"arrays": [{"dtype": "<f8", "shape": [-1]}] * 3}
    deep = sealed((10**6).to_bytes(8, "little") + b"[" * 10**6)
    extra = good | {"plan": good["plan"] | {"__class__": "os"}}
    crafted = [with_header(h, bomb * 9) for h in (of_objects, named, huge, negative, extra)]
    for content in (bomb, sealed(bomb), deep, *crafted):
        with pytest.raises(CheckpointError):
            decode(content, "run")
    assert not list(tmp_path.iterdir())


def test_the_previous_checkpoint_is_used_if_the_last_is_damaged(tmp_path):
    first, second = (dataclasses.replace(example(), seconds={"solve": k, "compile": 0.0}) for k in (1.0, 2.0))
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
    """Asks for an end in an iteration, as Ctrl-C does."""

    def __init__(self, iteration):
        self.iteration = iteration

    def started(self, run): ...

    def finished(self, run, solution): ...

    def iterated(self, run, record):
        if record.iteration == self.iteration - 1:
            os.kill(os.getpid(), signal.SIGINT)


def account(directory, result=True):
    """What must be equal: everything but times, and where the files lie."""
    history = [line.split(",") for line in (directory / "history.csv").read_text().splitlines()]
    seconds = history[0].index("seconds")
    found = json.loads((directory / "result.json").read_text())
    del found["seconds"]
    with np.load(directory / "solution.npz") as file:
        thetas = file["thetas"].tobytes()
    return found, [row[:seconds] + row[seconds + 1 :] for row in history], thetas


@pytest.mark.parametrize(
    "options",
    [
        dict(precision="single", intervals=2),  # new points in every iteration, points that grow, a hand-over
        dict(precision="double", warm_up=3, single_above=None),  # a change of precision
        dict(
            precision="single", method="paper", minimum_radius=1e-9
        ),  # points that stay, whose residuals are not evaluated again
    ],
    ids=["fast", "double", "paper"],
)
def test_a_run_that_is_interrupted_ends_as_if_it_had_not_been(options, tmp_path):
    options = SMALL | options
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    expected = ds.solve(problem(), observers=[ds.RunDirectory(whole)], **options)
    first = ds.solve(problem(), observers=[ds.RunDirectory(parts), StopAt(3)], **options)
    assert first.outcome is not None and first.outcome.stop is StopReason.INTERRUPTED
    assert len(first.outcome.history) == 3
    ds.resume(parts, problem(), observers=[StopAt(9)])
    assert ds.resume(parts, problem()).outcome.stop is expected.outcome.stop
    assert account(parts) == account(whole)


def test_every_iteration_is_a_place_to_go_on_from(tmp_path):
    """Also those just before a hand-over, a stage switch and more points: a checkpoint is taken in each."""
    options = SMALL | dict(intervals=2, max_iterations=7, points=64)
    taken = []

    class Takes:
        def started(self, run): ...
        def finished(self, run, solution): ...
        def iterated(self, run, record):
            taken.append(decode(encode(run.checkpoint(), "run"), "run"))

    whole = ds.solve(problem(), observers=[Takes()], **options)
    assert taken[6].stop is StopReason.ITERATIONS and len(taken) == 14
    for checkpoint in taken[::3]:
        run = Run(problem(), options["network"], whole.outcome.settings)
        run.restore(checkpoint)
        again = run.run()
        assert again.thetas.tobytes() == whole.thetas.tobytes()
        strip = [repr(dataclasses.replace(r, seconds=0.0)) for r in again.outcome.history]
        assert strip == [repr(dataclasses.replace(r, seconds=0.0)) for r in whole.outcome.history]


def test_a_run_that_gave_up_goes_on_with_a_larger_limit(tmp_path):
    short, long = tmp_path / "short", tmp_path / "long"
    ds.solve(problem(), observers=[ds.RunDirectory(long)], **SMALL)
    ds.solve(problem(), observers=[ds.RunDirectory(short)], **(SMALL | dict(max_iterations=5)))
    assert len(ds.resume(short, problem()).outcome.history) == 5  # nothing to do
    ds.resume(short, problem(), max_iterations=14)
    assert account(short) == account(long)
    with pytest.raises(TypeError, match="max_iterations and max_seconds, not 'seed'"):
        ds.resume(short, problem(), seed=3)


def test_a_damaged_checkpoint_costs_a_message_and_no_more(tmp_path):
    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    ds.solve(problem(), observers=[ds.RunDirectory(whole)], **SMALL)
    ds.solve(problem(), observers=[ds.RunDirectory(damaged, every=0), StopAt(6)], **SMALL)
    (damaged / CURRENT).write_bytes(b"something else")
    with pytest.warns(UserWarning, match="not a checkpoint of dsgnar"):
        ds.resume(damaged, problem())
    assert account(damaged) == account(whole)
    assert (damaged / REFUSED).read_bytes() == b"something else"
    for name in (CURRENT, PREVIOUS):
        (damaged / name).unlink()
    with pytest.raises(runs.WrongDirectory, match="left no checkpoint"):
        ds.resume(damaged, problem())


def test_a_run_without_checkpoint_starts_from_the_beginning_and_one_without_end_can_be_loaded(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    ds.solve(problem(), observers=[ds.RunDirectory(whole)], **SMALL)
    ds.solve(problem(), observers=[ds.RunDirectory(killed), StopAt(5)], **SMALL)
    (killed / "result.json").unlink()
    so_far = ds.load(killed, problem())
    assert len(so_far.outcome.history) == 5 and so_far.outcome.stop is StopReason.INTERRUPTED
    for name in (CURRENT, "history.csv", "solution.npz"):
        (killed / name).unlink()
    with pytest.raises(runs.RunError, match="no checkpoint yet"):
        ds.load(killed, problem())
    ds.resume(killed, problem())
    assert account(killed) == account(whole)


# --- what goes wrong on the way ---------------------------------------------------------------------------------------


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
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
    assert len(solution.outcome.history) == 14  # the caller has the solution
    assert len(messages) == 2 and "goes on and tries again" in str(messages[0].message)  # once, and once at the end
    assert kept.failure is not None and kept.failure.errno == errno.ENOSPC
    assert not list(tmp_path.glob("*.partial")) and not (tmp_path / "result.json").exists()
    full["now"] = False
    ds.resume(tmp_path, problem())
    ds.solve(problem(), observers=[ds.RunDirectory(tmp_path / "whole")], **SMALL)
    assert account(tmp_path) == account(tmp_path / "whole")


def test_a_failure_leaves_the_last_iteration_and_frees_the_directory(tmp_path):
    class Fails(StopAt):
        def iterated(self, run, record):
            if record.iteration == self.iteration:
                raise MemoryError("no more")

    with pytest.raises(MemoryError):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path), Fails(4)], **SMALL)
    checkpoint, _ = checkpoints.latest(tmp_path, configuration.fingerprint(runs.read_config(tmp_path)))
    assert checkpoint is not None and len(checkpoint.history) == 4
    assert len(ds.resume(tmp_path, problem()).outcome.history) == 14


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
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path), StopAt(2)], seed=1, **SMALL)
    assert len(ds.load(tmp_path / "earlier-1", problem()).outcome.history) == 2
    assert (tmp_path / "notes.txt").exists()
    with pytest.raises(runs.WrongDirectory, match="unfinished run.*dsgnar resume.*--force"):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path)], **short)
    with pytest.warns(UserWarning, match="earlier-2"):
        ds.solve(problem(), observers=[ds.RunDirectory(tmp_path, force=True)], **short)
    assert ds.load(tmp_path / "earlier-2", problem()).outcome.settings.seed == 1


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
