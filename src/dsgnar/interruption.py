"""Ending a run from outside: the first Ctrl-C (or SIGTERM) asks it to end after its iteration, a second ends it at once."""

import signal
import threading

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While entered, a signal is noted in `asked`. Only the main thread can be asked (Python's rule for signals)."""

    def __init__(self):
        self.asked = False
        self._before: dict = {}

    def __enter__(self) -> "Interruption":
        self.asked = False
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in SIGNALS}
            # An ignored signal stays ignored (nohup), and a handler that is not Python's could not be put back.
            self._before = {n: h for n, h in handlers.items() if h not in (signal.SIG_IGN, None)}
            for number in self._before:
                signal.signal(number, self._ask)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _ask(self, number, frame) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
