"""One process factorises for all: with the cores of those who wait, and with an end where it fails."""

import os
import threading
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np
import pytest

from dsgnar.calculus import cores
from dsgnar.calculus.cores import Cores
from dsgnar.calculus.devices import Devices
from dsgnar.calculus.team import Alone
from dsgnar.optimise.agreement import Steps
from dsgnar.optimise.band import Band
from dsgnar.optimise.factorise import SVD
from dsgnar.optimise.jacobian import Sketched
from dsgnar.optimise.subproblem import FactorisationError


def test_one_process_has_what_it_has():
    assert cores.together(Alone()) == cores.own() and cores.own().threads >= 1


class Others(Alone):
    """A process among others, whose numbers are given."""

    def __init__(self, others, rank=0):
        self.others, self.rank, self.size = others, rank, 1 + len(others)
        self.leads = rank == 0

    def gather(self, rows):
        return np.concatenate([rows, self.others])


def test_processes_of_one_machine_lend_their_cores(monkeypatch):
    monkeypatch.setattr(cores, "own", lambda: Cores(frozenset({0, 1}), 2))
    mine = cores._encoded(cores.own())
    neighbour, elsewhere = (cores._encoded(Cores(frozenset(numbers), 2)) for numbers in ({2, 700}, {4, 5}))
    elsewhere[0] += 1  # another machine
    assert cores.together(Others([neighbour, elsewhere])) == Cores(frozenset({0, 1, 2, 700}), 4)
    # Three that share the same two cores have no more than these.
    assert cores.together(Others([mine, mine])) == Cores(frozenset({0, 1}), 2)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system keeps no thread to a core")
def test_threads_are_let_out_and_brought_back():
    everything = os.sched_getaffinity(0)
    first = frozenset(sorted(everything)[:1])
    stop, seen = threading.Event(), []
    other = threading.Thread(target=stop.wait)
    other.start()

    def kept_to():
        return {frozenset(os.sched_getaffinity(k)) for k in (threading.get_native_id(), other.native_id)}

    try:
        os.sched_setaffinity(0, first)
        os.sched_setaffinity(other.native_id, first)
        with cores.pools().limit(limits=1):
            with cores.borrowed(Cores(frozenset(everything), 2)):
                assert cores.own().threads == 2 and kept_to() == {frozenset(everything)}
                late = threading.Thread(target=stop.wait)
                late.start()
            assert cores.own().threads == 1 and kept_to() == {first}
            assert os.sched_getaffinity(late.native_id) == first
            with cores.borrowed(Cores(frozenset(everything), 1)):  # not more than its own: nothing is touched
                seen.append(kept_to())
    finally:
        stop.set()
        os.sched_setaffinity(0, everything)
    assert seen == [{first}]


@dataclass
class Line(Alone):
    """Two processes in one: what the first sends is kept, and the second receives it."""

    leads: bool
    sent: list = field(default_factory=list)
    size: int = 2

    def gather(self, rows):
        return np.concatenate([rows, rows])

    def first(self, values):
        if self.leads:
            self.sent.append(values)
        return self.sent[-1]


def sketched(rows: int) -> Sketched:
    A = np.random.default_rng(0).standard_normal((6, 4))[:rows]
    return Sketched(jnp.asarray(A), jnp.asarray(A @ np.ones(4) - 1), lambda p: 2.0 * p, lambda g: g)


@pytest.mark.parametrize("factorisation", [SVD(), Band(2)])
def test_all_processes_have_the_steps_of_the_first(factorisation):
    theta, line = jnp.zeros(4), []
    plain = Steps.of(Devices(), theta, factorisation, sketched(6))
    leader = Steps.of(Devices(team=Line(True, line)), theta, factorisation, sketched(6))
    other = Steps.of(Devices(team=Line(False, line)), theta, factorisation, sketched(0))
    for radius in (0.1, 0.01):
        (trial, step), *rest = [steps.to(radius, None, 1e-11) for steps in (plain, leader, other)]
        assert trial.norm == pytest.approx(radius) and len(line[-1]) == 4 + theta.size
        for same, equal in rest:
            assert same == trial and np.array_equal(equal, step)


def test_a_failure_of_the_first_reaches_the_others():
    theta, line, fine = jnp.zeros(4), [], sketched(6)
    broken = Sketched(fine.jacobian.at[2, 1].set(jnp.nan), fine.residual, fine.lift, fine.compress)
    other = Steps.of(Devices(team=Line(False, line)), theta, SVD(), sketched(0))
    with pytest.raises(FactorisationError, match="holds inf or nan"):
        Steps.of(Devices(team=Line(True, line)), theta, SVD(), broken)
    with pytest.raises(FactorisationError, match="the first process could not factorise"):
        other.to(0.1, None, 1e-11)
    assert len(line) == 1
