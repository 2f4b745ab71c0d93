"""Several devices: every piece of work belongs to one of them, and a run is the same on any number.

Devices of a CPU are made by a flag that JAX reads when it starts, so these runs have a process of their own.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dsgnar as ds
from dsgnar.calculus import threads
from dsgnar.calculus.devices import ONE, Devices, current, over
from dsgnar.calculus.team import Alone
from dsgnar.cli import app
from small import SMALL, problem

PATIENCE = 300  # seconds; the test takes about 20


class Some(Alone):
    """One of several processes, as far as sharing work out is concerned."""

    def __init__(self, size: int, rank: int):
        self.size, self.rank = size, rank


@given(count=st.integers(0, 60), processes=st.integers(1, 5), devices=st.integers(1, 4))
def test_every_piece_belongs_to_one_share(count, processes, devices):
    places = [Devices((None,) * devices, Some(processes, rank)) for rank in range(processes)]
    dealt = [[cut for _, cut in place.dealt(count)] for place in places]
    assert np.concatenate(sum(dealt, [])).tolist() == list(range(count))
    blocks = [[cut for _, cut in place.blocks(count)] for place in places]
    assert sum((cut.tolist() for cuts in blocks for cut in cuts), []) == list(range(count))
    length = -(-count // (processes * devices)) * devices
    sizes = [sum(len(cut) for cut in cuts) for cuts in blocks]
    assert all(size == length for size in sizes[: count // length if length else 0]) and max(sizes) <= length


def test_one_device_shares_work_out_among_threads_as_it_always_did(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    cuts = [cut.tolist() for cut in np.array_split(np.arange(10), 3)]
    assert [cut.tolist() for _, cut in ONE.dealt(10)] == [cut.tolist() for _, cut in ONE.blocks(10)] == cuts
    assert [len(cut) for _, cut in ONE.blocks(2)] == [1, 1] and [len(cut) for _, cut in ONE.dealt(2)] == [1, 1, 0]


class Receiving(Some):
    """The first of three processes; the rows of the others are given."""

    leads = True

    def __init__(self, *others):
        super().__init__(3, 0)
        self.others = others

    def received(self, rows):
        return iter(self.others)


@pytest.mark.parametrize("count", [7, 9])
def test_rows_come_to_their_place_on_the_host(count):
    whole = np.arange(2.0 * count).reshape(count, 2)
    others = [np.zeros((3, 2)) for _ in range(2)]
    for rank, rows in enumerate(others, 1):
        mine = whole[3 * rank : 3 * (rank + 1)]
        rows[: len(mine)] = mine
    first = Devices(team=Receiving(*others))
    room, blocks = first.room(count, (2,), np.float64), first.blocks(count)
    for place, (_, cut) in zip(first.parted(room, blocks), blocks, strict=True):
        place[:] = whole[cut]
    np.testing.assert_array_equal(first.filled(room, count), whole)
    last = Devices(team=Some(3, 2))
    last.team.leads = False
    room, blocks = last.room(count, (2,), np.float64), last.blocks(count)
    assert room.shape == (3, 2) and sum(map(len, last.parted(room, blocks))) == count - 6
    assert last.filled(room, count).shape == (0, 2)


def test_more_devices_than_there_are():
    with pytest.raises(ValueError, match=r"devices=64: JAX has only \d+ cpu device.*host_platform_device_count=64"):
        ds.solve(problem(), devices=64, **SMALL)
    result = CliRunner().invoke(app, ["solve", "burgers", "--devices", "64"])
    assert result.exit_code == 2 and "JAX has only" in result.output
    for wrong in (0, -1, 1.5, True, "4"):
        with pytest.raises(ValueError, match="devices must be a positive integer"), over(wrong):
            pass


def test_the_choice_ends_with_its_block():
    with over(1) as chosen:
        assert current() is chosen and chosen.total == 1 and not chosen.describe()
    assert current() is ONE


def on_devices() -> None:
    """In a process with four devices: a sketch of 29 rows on three, and 30 iterations on one, two and four of them."""
    import jax

    from dsgnar.calculus.streams import stream
    from dsgnar.optimise.jacobian import Jacobian
    from dsgnar.optimise.optimiser import Active
    from dsgnar.optimise.sketch import AllColumns, Buckets
    from dsgnar.solving.context import Context
    from dsgnar.solving.loop import advance
    from dsgnar.solving.settings import with_options
    from small import NETWORK, SIZES, WEIGHTS, points, residuals

    assert jax.device_count() == 4
    out: dict = {"sketch": [], "loss": [], "theta": []}
    with jax.enable_x64(True):
        plain, theta = residuals()
        flat = tuple(points(300, 90).values())
        for count in (1, 3):
            with over(count) as chosen:
                res = replace(plain, devices=chosen, batch=16)
            sketched = Jacobian(res, Buckets(29), AllColumns())(theta, flat, WEIGHTS, stream(3))
            active = Active.of(res, points(300, 90), np.float64)
            used = {next(iter(b.devices())) for share in active.batched.shares for _, b, _ in share}
            assert len(used) == count and sketched.jacobian.shape == (29, theta.size)
            parts = sketched.jacobian, sketched.residual, res.kernel(theta, active.batched)
            parts += (res.gradient(theta, WEIGHTS, active.batched),)
            out["sketch"].append(np.concatenate([np.ravel(part) for part in parts]).tolist())
        # Double precision from the start, and no third stage: few kernels to compile, and few differences to grow.
        chosen = dict(precision="double", warm_up=0, single_above=float("inf"), wait=40, **SIZES)
        for count in (1, 2, 4):
            with over(count):
                context = Context.of(problem(), NETWORK, with_options(ds.Settings(), chosen))
            state = context.start()
            for _ in range(30):
                state, _ = advance(context, state)
            out["loss"].append([record.loss for record in state.history])
            out["theta"].append(state.iterate.theta.tolist())
    print(json.dumps(out))


def in_a_process(devices: int, code: str, *arguments: str, seconds: float = PATIENCE) -> str:
    """What a program prints that has so many devices."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "PYTHONPATH": path}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=os.environ | flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_the_same_on_any_number_of_devices():
    out = json.loads(in_a_process(4, "from test_devices import on_devices; on_devices()").splitlines()[-1])
    for other in out["sketch"][1:]:
        np.testing.assert_allclose(other, out["sketch"][0], rtol=1e-11, atol=1e-13)
    assert len(out["loss"][0]) == 30
    for loss, theta in zip(out["loss"][1:], out["theta"][1:], strict=True):
        np.testing.assert_allclose(loss, out["loss"][0], rtol=1e-8)
        np.testing.assert_allclose(theta, out["theta"][0], rtol=1e-6, atol=1e-8)


GRADIENT = """
import hashlib
import jax
import numpy as np
from small import WEIGHTS, points, residuals

with jax.enable_x64(True):
    parts, theta = residuals(widths=(40, 40))
    gradient = parts.gradient(theta, WEIGHTS, parts.device_points(points(4096, 100), theta.dtype))
    print(hashlib.sha256(np.asarray(gradient).tobytes()).hexdigest())
"""


def test_a_gradient_has_the_same_bits_however_many_threads_there_are():
    """XLA splits long sums among the threads of all devices: stage 3 on four devices had other last digits."""
    assert in_a_process(1, GRADIENT) == in_a_process(4, GRADIENT)


BURGERS = """
import json, sys
import dsgnar as ds
from dsgnar.suite.statement import from_suite
from dsgnar.calculus.devices import over
from dsgnar.solving.context import Context
from dsgnar.solving.loop import run

stated = from_suite("burgers", "default")
out = []
for count in (1, 2, 4):
    with over(count):
        context = Context.of(stated.problem, stated.network, stated.changed({}), stated.reference())
        solution = run(context, context.start())
    out.append([[r.loss for r in solution.history], solution.outcome.relative_l2["u"]])
print(json.dumps(out))
"""


DOUBLE = """
import json
from dsgnar.calculus.devices import over
from dsgnar.solving.loop import advance
from dsgnar.tools.bench.cases import find
from dsgnar.tools.bench.parts import STEADY

out = []
for count in (1, 2, 4):
    with over(count):
        context = find("burgers-double").context("fast", **STEADY | {"points": 4096, "sketch": 500})
        state = context.start()
        for _ in range(30):
            state, record = advance(context, state)
    assert record.precision == "double"
    out.append([[r.loss for r in state.history], state.iterate.theta.tolist()])
print(json.dumps(out))
"""


@pytest.mark.slow
def test_burgers_in_double_precision_on_one_two_and_four_devices():
    """4,096 points and 500 rows; with 32,768 and 2,000 nothing differed either (docs/devices.md)."""
    (losses, theta), *others = json.loads(in_a_process(4, DOUBLE, seconds=900).splitlines()[-1])
    assert len(losses) == 30 and losses[-1] < 0.1 * losses[0]
    for loss, other in others:
        np.testing.assert_allclose(loss, losses, rtol=1e-8)
        np.testing.assert_allclose(other, theta, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_burgers_on_one_two_and_four_devices():
    (losses, error), *others = json.loads(in_a_process(4, BURGERS, seconds=900).splitlines()[-1])
    assert error < 1e-6
    for loss, other in others:
        assert loss == losses and other == error
