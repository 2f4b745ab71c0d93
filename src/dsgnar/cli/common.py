"""What all commands share: the application, exit codes, messages, and errors that say what to do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import jax
import typer
from rich.console import Console

from dsgnar.calculus.team import TeamError
from dsgnar.calculus.version import VERSION
from dsgnar.solving.interruption import Interrupted, Terminated
from dsgnar.storing.runs import RunError, WrongDirectory
from dsgnar.suite.statement import StatementError

GOOD, FAILED, USAGE, NOT_SOLVED = 0, 1, 2, 3

app = typer.Typer(
    help="Solve partial differential equations with physics-informed neural networks.",
    epilog="Exit codes: 0 solved, 1 error, 2 wrong use, 3 not solved, only partly, or not to the tolerance.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"dsgnar {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None: ...


def say(message: str) -> None:
    """Print a message to stderr, beside the output."""
    err.print(f"dsgnar: {message}", markup=False)


def usage(message: object) -> NoReturn:
    """Exit with a message: the command was used wrongly."""
    say(str(message))
    raise typer.Exit(USAGE)


def failed(message: object) -> NoReturn:
    """Exit with a message: something went wrong."""
    say(str(message))
    raise typer.Exit(FAILED)


@contextmanager
def wrong_values() -> Iterator[None]:
    """Within, a wrong value exits as wrong use."""
    try:
        yield
    except RunError:  # a ValueError, but not a wrong value: `explained` deals with it
        raise
    except (TypeError, ValueError) as error:
        usage(error)


@contextmanager
def continued(directory: Path) -> Iterator[None]:
    """Within, a signal ends the command after the current iteration; the same command continues."""
    try:
        yield
    except (Interrupted, Terminated):
        say(f"interrupted; run the same command again to continue from what is in {directory}")
        raise typer.Exit(NOT_SOLVED) from None


@contextmanager
def explained(directory: object = None, hint: str = "") -> Iterator[None]:
    """Within, foreseeable errors exit with a message. `directory` holds the run so far, `hint` says what else to try."""
    smaller = "use fewer --points, a smaller --sketch or a smaller network"
    kept = f"; the run so far is kept: `dsgnar resume {directory}`" if directory is not None else ""
    try:
        yield
    except (StatementError, WrongDirectory) as error:
        usage(error)
    except (RunError, FloatingPointError) as error:
        failed(error)
    except TeamError as error:
        failed(f"{error}{kept}")
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        failed(f"cannot read or write{where}: {error.strerror or error}{hint}")
    except MemoryError as error:
        failed(f"out of memory ({error}): {smaller}{kept}")
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        first = str(error).splitlines()[0]
        failed(f"out of memory ({first}): {smaller}{kept}")


def drawn(path: Path, draw: Callable[[Path], Any]) -> None:
    """Let `draw` write a picture: it is there as a whole or not at all."""
    partial = path.with_name(f"{path.stem}.partial{path.suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        draw(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
