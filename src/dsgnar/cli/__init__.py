"""The command line: thin over the library. One file for each group of commands, which it adds to `common.app`."""

# ruff: noqa: I001 - the order of the imports is the order in which `--help` lists the commands
import sys
import traceback

import jax

from dsgnar.cli import solving
from dsgnar.cli import placing
from dsgnar.cli import sweeping
from dsgnar.cli import reporting
from dsgnar.cli import looking
from dsgnar.cli import measuring
from dsgnar.cli import drawing
from dsgnar.cli import ablating
from dsgnar.cli import yardstick
from dsgnar.cli.common import app

__all__ = [
    "ablating",
    "app",
    "drawing",
    "looking",
    "main",
    "measuring",
    "placing",
    "reporting",
    "solving",
    "sweeping",
    "yardstick",
]


def main() -> None:
    """Entry point of the `dsgnar` command."""
    try:
        sys.exit(app())
    except SystemExit as exit:
        placing.ended(exit.code)
        raise
    except BaseException:
        if not jax.distributed.is_initialized():
            raise
        traceback.print_exc()
        placing.ended(1)
