"""Where a run takes place: on how many devices, and with which other processes; and the command `launch`."""

import json
import os
import signal
import sys
from typing import Annotated, Any

import jax
import typer

from dsgnar.calculus.devices import current, over
from dsgnar.calculus.team import PATIENCE
from dsgnar.calculus.version import VERSION
from dsgnar.cli.common import app, explained, failed, say, usage, wrong_values
from dsgnar.solving.settings import Resolved, Settings
from dsgnar.storing.configuration import outline
from dsgnar.suite.statement import Statement
from dsgnar.tools import joining
from dsgnar.tools.launching import Launched

_PANEL = "Several devices and processes"


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


Devices = Annotated[
    int | None, _option("--devices", min=1, help="JAX devices that share the work, in each process; 1 by default.")
]
Distributed = Annotated[bool, _option("--distributed", help="With the other processes of this SLURM or Open MPI job.")]
Coordinator = Annotated[
    str | None, _option("--coordinator", metavar="HOST:PORT", help="Where process 0 is; with the next two.")
]
Processes = Annotated[int | None, _option("--processes", min=1, help="How many processes there are.")]
ProcessId = Annotated[int | None, _option("--process-id", min=0, help="Which one this is, from 0.")]
PatienceOption = Annotated[
    float, _option("--patience", min=1, help="Seconds that a process waits for another before it ends.")
]


def place(
    ctx: typer.Context,
    devices: int | None,
    distributed: bool,
    coordinator: str | None,
    processes: int | None,
    process_id: int | None,
    patience: float,
) -> None:
    """Join the other processes, if there are any, and use so many devices until the command ends."""
    if coordinator is None and (processes, process_id) != (None, None):
        usage("--processes and --process-id belong to --coordinator HOST:PORT; `dsgnar launch` starts processes here")
    if distributed and coordinator is not None:
        usage("--distributed asks SLURM or Open MPI where the others are: leave out --coordinator, or --distributed")
    if distributed or coordinator is not None:
        try:
            joining.join(coordinator, processes, process_id, patience)
        except joining.JoinError as error:
            usage(error)
    with explained(), wrong_values():
        chosen = ctx.with_resource(over(devices, patience))
        with joining.without_remarks():
            chosen.team.compare({"version of dsgnar": VERSION, "version of JAX": jax.__version__})


def compare(statement: Statement, settings: Settings | Resolved) -> None:
    """Exit unless all processes are about to solve the same problem in the same way."""
    files = json.dumps([statement.name, statement.preset, statement.digests(), outline(statement)], sort_keys=True)
    with explained():
        current().team.compare({"problem": files, "settings": repr(settings), "devices": str(len(current().homes))})


def leave() -> None:
    """The processes part: what remains to be done is for the first alone."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def ended(code: Any) -> None:
    """End this process at once if it is still part of a team: JAX would wait for the others, which wait for this one."""
    if jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


@app.command(context_settings={"ignore_unknown_options": True})
def launch(
    arguments: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="`solve` or `resume` with its arguments.")
    ],
    processes: Annotated[int, typer.Option(help="How many processes share the work.", min=1)] = 2,
    patience: Annotated[
        float, typer.Option(help="Seconds that a process waits for another before it ends.", min=1)
    ] = PATIENCE,
) -> None:
    """Solve one problem with several processes on this machine: `dsgnar launch --processes 2 -- solve burgers`.

    The first process writes the run directory and shows progress. If one fails, all end; `dsgnar resume` continues.
    """
    if arguments[0] not in ("solve", "resume"):
        usage(f"launch starts `solve` or `resume`, not {arguments[0]!r}: dsgnar launch --processes 2 -- solve burgers")
    given = [word.partition("=")[0] for word in arguments]
    for name in ("--distributed", "--coordinator", "--process-id"):
        if name in given:
            usage(f"launch says where the processes are: leave out {name}")
    for name in ("--processes", "--patience"):
        if name in given:
            usage(f"{name} belongs to launch: write it before the --, as in dsgnar launch {name} N -- solve burgers")
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = Launched(arguments, processes, patience).wait(say)
    except OSError as error:
        failed(f"the processes cannot be started: {error}")
    finally:
        signal.signal(signal.SIGTERM, before)
    raise typer.Exit(code)
