"""A greeting before JAX's own: all processes are there, each once, and agree on how many they are.

JAX aborts with a stack trace where two processes have one number, or count differently. So process 0 listens first where
JAX's coordinator will, until all have come:

    process I      dsgnar P I           how many processes there are, and which one it is
    process 0      welcome              to all at once, or to all what is wrong
"""

import socket
import time
from contextlib import suppress

POLL = 0.2  # seconds
SOON = 5.0  # in which one who has come says who it is
LONGEST = 500  # bytes of a line
NAME, WELCOME = "dsgnar", "welcome"


class JoinError(ValueError):
    """The other processes cannot be found; the message says what to change."""


def receive(host: str, port: int, processes: int, patience: float) -> None:
    """What process 0 does: wait for all others at a free port."""
    end, come = time.monotonic() + patience, {}
    with _listening(host, port) as server:
        try:
            while len(come) < processes - 1:
                server.settimeout(max(end - time.monotonic(), 0.01))
                try:
                    guest, _ = server.accept()
                except TimeoutError:
                    raise JoinError(_missing(processes, set(come), patience)) from None
                _enter(guest, processes, come)
            for guest in come.values():
                _say(guest, WELCOME)
        except JoinError as error:
            for guest in come.values():
                _say(guest, str(error))
            raise
        finally:
            for guest in come.values():
                guest.close()


def greet(host: str, port: int, processes: int, number: int, patience: float) -> None:
    """What all others do: come to process 0, and wait until all are there."""
    end, why = time.monotonic() + patience, "no answer"
    while time.monotonic() < end:
        try:
            with socket.create_connection((host, port), timeout=min(SOON, patience)) as host_of_all:
                _say(host_of_all, f"{NAME} {processes} {number}")
                answer = _line(host_of_all, end + SOON)  # process 0 may give up a little later
        except OSError as error:
            answer, why = "", str(error.strerror or error)
        if answer == WELCOME:
            return
        if answer.startswith("--"):
            raise JoinError(answer)
        if answer:
            raise JoinError(
                f"--coordinator {host}:{port}: another program answers there, or the processes have begun without this one"
            )
        time.sleep(POLL)
    raise JoinError(
        f"--coordinator {host}:{port}: nobody answers there after {patience:g} s ({why}); is process 0 running, and there?"
    )


def _enter(guest: socket.socket, processes: int, come: dict[int, socket.socket]) -> None:
    """Note who has come; raise if that cannot be, after telling it."""
    words = _line(guest, time.monotonic() + SOON).split()
    if len(words) != 3 or words[0] != NAME or not all(word.isdecimal() for word in words[1:]):
        guest.close()  # not one of ours
        return
    count, number = map(int, words[1:])
    wrong = ""
    if count != processes:
        wrong = f"--processes: process 0 was started with {processes}, and process {number} with {count}"
    elif number in come:
        wrong = f"--process-id: two processes were started with {number}; each needs a number of its own"
    if wrong:
        with guest:
            _say(guest, wrong)
        raise JoinError(wrong)
    come[number] = guest


def _missing(processes: int, come: set[int], patience: float) -> str:
    missing = ", ".join(str(k) for k in range(1, processes) if k not in come)
    return f"--processes {processes}: process {missing} did not come within {patience:g} s; start all of them"


def _listening(host: str, port: int) -> socket.socket:
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen()
    except OSError as error:
        server.close()
        raise JoinError(
            f"--coordinator {host}:{port}: process 0 cannot listen there ({error.strerror or error}); choose another port, "
            "and a name or address of the machine of process 0"
        ) from None
    return server


def _say(to: socket.socket, text: str) -> None:
    with suppress(OSError):  # it has gone
        to.sendall(f"{text}\n".encode())


def _line(of: socket.socket, end: float) -> str:
    """The next line; what there is of it when the time is over or the other one is gone."""
    said = b""
    with suppress(OSError):
        while b"\n" not in said and len(said) < LONGEST:
            of.settimeout(max(end - time.monotonic(), 0.01))
            part = of.recv(LONGEST)
            if not part:
                break
            said += part
    return said.decode(errors="replace").partition("\n")[0]
