"""What later rooms let a solution do: export, plot and save it.

Those rooms are built on this one, so this one does not know them. The package's front page (`dsgnar/__init__.py`) says where
each ability is found; it is imported when it is first used, since drawing and exporting bring large libraries.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_OFFERED: dict[str, str] = {}


def offer(abilities: Mapping[str, str]) -> None:
    """Let solutions do something: by name, the module and the function that does it, which takes the solution first."""
    _OFFERED.update(abilities)


def ability(name: str) -> Callable[..., Any]:
    """The function that was offered under a name."""
    module, function = _OFFERED[name].split(":")
    return getattr(import_module(module), function)
