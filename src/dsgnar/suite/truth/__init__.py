"""Reference solutions (Appendix C of the paper): computed here, each checked in independent ways, and stored.

    load(name)        the stored table of a problem whose solution has no closed form (`STORED`)
    generate(name)    compute that table again, run its checks, write both
    check(name)       repeat the checks of a reference; also of Burgers' equation, which has an exact solution by quadrature

How each is computed is in the module of the same name. The other problems of the suite have closed forms.
"""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy

from dsgnar.suite.truth.table import Comparison, Table

STORED = ("kdv", "ks", "cavity", "burgers2d", "heat_longtime", "heat_holes", "balls")
CHECKED = ("burgers", *STORED)
DATA = Path(__file__).parent / "data"


def load(name: str) -> Table:
    """The stored reference values of a problem."""
    return Table.load(DATA / f"{_known(name, STORED)}.npz")


def generate(name: str, folder: Path = DATA) -> Table:
    """Compute a reference, check it, and store it in `folder` with what the checks measured."""
    module = import_module(f"{__name__}.{_known(name, STORED)}")
    table = module.compute()
    comparisons = module.check(table)
    failed = [c.what for c in comparisons if not c.holds]
    if failed:
        raise RuntimeError(f"the reference {name!r} fails its checks and was not written: {', '.join(failed)}")
    metadata = dict(table.metadata) | {
        "accuracy": comparisons[0].measured,
        "agreement": [list(c) for c in comparisons],
        "versions": {"numpy": np.__version__, "scipy": scipy.__version__},
        "command": f"dsgnar references --generate {name}",
    }
    table = replace(table, metadata=metadata)
    table.save(folder / f"{name}.npz")
    return table


def check(name: str) -> list[Comparison]:
    """Compare a reference with other methods and resolutions; takes up to a few minutes."""
    module = import_module(f"{__name__}.{_known(name, CHECKED)}")
    return module.check(load(name)) if name in STORED else module.check()


def _known(name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise ValueError(f"there is no reference {name!r} here, only {', '.join(names)}; the others are closed forms")
    return name


__all__ = ["CHECKED", "STORED", "Comparison", "Table", "check", "generate", "load"]
