"""Observers of a run: they see it and may ask it to stop, and change nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dsgnar.optimise.residuals import Residuals
from dsgnar.problem import Problem
from dsgnar.problem.reference import Reference
from dsgnar.solving.context import Context
from dsgnar.solving.interruption import Interruption
from dsgnar.solving.intervals import has_next
from dsgnar.solving.march import March
from dsgnar.solving.model import Network
from dsgnar.solving.record import Record
from dsgnar.solving.settings import Resolved
from dsgnar.solving.solution import Solution
from dsgnar.solving.state import RunState


@dataclass(frozen=True)
class View:
    """A run as observers see it, after its last complete iteration."""

    context: Context
    state: RunState
    interruption: Interruption

    @property
    def problem(self) -> Problem:
        return self.context.problem

    @property
    def network(self) -> Network:
        return self.context.model.network

    @property
    def residuals(self) -> Residuals:
        return self.context.residuals

    @property
    def settings(self) -> Resolved:
        return self.context.settings

    @property
    def reference(self) -> Reference | None:
        return self.context.reference

    @property
    def march(self) -> March:
        """The time intervals so far, the one being solved included."""
        return March(self.state.times, self.state.begun)

    @property
    def intervals(self) -> int | None:
        """How many time intervals there will be; None if they are found on the way."""
        return None if self.settings.intervals == "auto" else self.context.march.count

    @property
    def marching(self) -> bool:
        """Whether there is more than one time interval."""
        return len(self.march.times) > 2 or (bool(self.march.times) and has_next(self.context, self.state))

    @property
    def history(self) -> Sequence[Record]:
        return self.state.history

    @property
    def asked_to_stop(self) -> bool:
        return self.interruption.asked

    def ask_to_stop(self) -> None:
        """End the run after this iteration."""
        self.interruption.ask()


class Observer(Protocol):
    """Told when a run starts, after each of its iterations, and when it has ended."""

    def started(self, run: View) -> None: ...

    def iterated(self, run: View, record: Record) -> None: ...

    def finished(self, run: View, solution: Solution | None) -> None:
        """The run has ended; there is no solution if it failed."""
        ...


@runtime_checkable
class Settling(Protocol):
    """An observer that is also told which of several attempts counts, with the time of all of them."""

    def settled(self, solution: Solution) -> None: ...


@runtime_checkable
class Preparing(Protocol):
    """An observer that is also told when a problem is looked at before a run: seconds, and half a minute for hard ones."""

    def preparing(self) -> None: ...


@runtime_checkable
class Concluding(Protocol):
    """An observer that is also told when iterations are over and the error is to be estimated: seconds, or half a minute."""

    def concluding(self) -> None: ...


def tell_preparing(observers: Sequence[Observer]) -> None:
    """Tell those that want to know that a network is being chosen."""
    for observer in observers:
        if isinstance(observer, Preparing):
            observer.preparing()


def tell_concluding(observers: Sequence[Observer]) -> None:
    """Tell those that want to know that iterations are over."""
    for observer in observers:
        if isinstance(observer, Concluding):
            observer.concluding()
