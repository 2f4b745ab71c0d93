"""Waiting for others, but not for ever.

A process that waits within JAX cannot be reached by an exception. A thread beside it looks at the clock, says what is wrong,
and ends the process.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Patience:
    """Ends this process when something takes longer than so many seconds."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self._waiting: tuple[float, str] | None = None  # since when, and what to say
        self._thread: threading.Thread | None = None

    @contextmanager
    def __call__(self, message: str) -> Iterator[None]:
        """Within, the process ends with this message when its patience is over."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        self._waiting = time.monotonic(), message
        try:
            yield
        finally:
            self._waiting = None

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            waiting = self._waiting
            if waiting is not None and time.monotonic() - waiting[0] > self.seconds:
                give_up(waiting[1])


def give_up(message: str, code: int = 1) -> None:
    """End this process now, with a message."""
    print(f"dsgnar: {message}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(code)
