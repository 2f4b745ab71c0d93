"""What all commands share: the application, exit codes, and errors that speak to a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import jax
import typer
from rich.console import Console

from dsgnar.runs import RunError, WrongDirectory
from dsgnar.statement import StatementError

CONVERGED, FAILED, USAGE, NOT_CONVERGED = 0, 1, 2, 3

app = typer.Typer(
    help="Solve partial differential equations with neural networks to the accuracy of a classical solver.",
    epilog="Exit codes: 0 converged, 1 error, 2 wrong call, 3 stopped before convergence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """A remark for the person, beside the output."""
    err.print(f"dsgnar: {message}", markup=False)


def usage(message: object) -> NoReturn:
    """End with a message: the call was wrong."""
    say(str(message))
    raise typer.Exit(USAGE)


def failed(message: object) -> NoReturn:
    """End with a message: something went wrong."""
    say(str(message))
    raise typer.Exit(FAILED)


@contextmanager
def wrong_values() -> Iterator[None]:
    """Errors in what the person gave end the program as a wrong call."""
    try:
        yield
    except RunError:  # not a wrong value, although a ValueError: `explained` tells those apart
        raise
    except (TypeError, ValueError) as error:
        usage(error)


@contextmanager
def explained(directory: object = None, hint: str = "") -> Iterator[None]:
    """Errors that can be foreseen end the program with a message; `directory` has what was reached, `hint` helps on."""
    kept = f"; what was reached is kept: `dsgnar resume {directory}`" if directory is not None else ""
    try:
        yield
    except (StatementError, WrongDirectory) as error:
        usage(error)
    except (RunError, FloatingPointError) as error:
        failed(error)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        failed(f"cannot read or write{where}: {error.strerror or error}{hint}")
    except MemoryError as error:
        failed(f"out of memory ({error}): use fewer --points, a smaller --sketch or a smaller network{kept}")
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        first = str(error).splitlines()[0]
        failed(f"out of memory ({first}): use fewer --points, a smaller --sketch or a smaller network{kept}")
