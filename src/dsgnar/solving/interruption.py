"""Ending a run from outside.

The first Ctrl-C (or SIGTERM) asks a run to end after its iteration, a second Ctrl-C ends it at once. What was reached is
kept and observers are told. Then the signal goes on to the program: `Interrupted` is a KeyboardInterrupt, so a loop of
solves ends, and `Terminated` a SystemExit, so the process does. Both carry the solution as it stood.
"""

import signal
import threading
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run; `solution` is what it had reached."""

    def __init__(self, solution: Any):
        super().__init__("the run was interrupted; `solution` of this exception is what it had reached")
        self.solution = solution


class Terminated(SystemExit):
    """SIGTERM ended a run; `solution` is what it had reached."""

    def __init__(self, solution: Any):
        super().__init__(128 + signal.SIGTERM)
        self.solution = solution


class Interruption:
    """While entered, signals are noted. Only the main thread can be asked by a signal (Python's rule)."""

    def __init__(self):
        self.asked = False  # to end, by a signal or by an observer
        self.signal: int | None = None  # which one, if it was a signal
        self._before: dict = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in SIGNALS}
            # An ignored signal stays ignored (nohup), and a handler that is not Python's could not be put back.
            self._before = {n: h for n, h in handlers.items() if h not in (signal.SIG_IGN, None)}
            for number in self._before:
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def ask(self) -> None:
        """End after this iteration."""
        self.asked = True

    def pass_on(self, solution: Any) -> None:
        """Raise what the signal means to the program, if there was one."""
        if self.signal == signal.SIGTERM:
            raise Terminated(solution)
        if self.signal is not None:
            raise Interrupted(solution)

    def note(self, number: int = signal.SIGINT) -> None:
        """A signal has come; the first one counts."""
        self.asked, self.signal = True, number if self.signal is None else self.signal

    def _note(self, number, frame) -> None:
        again = self.signal is not None
        self.note(number)
        if again:
            raise KeyboardInterrupt
