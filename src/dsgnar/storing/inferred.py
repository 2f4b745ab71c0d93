"""What an inverse problem adds to a run directory: to config.json what is sought, to result.json what was found.

    "coefficients": {"nu": {"value": 0.0095, "standard_error": 0.0003, "determined": true, ...}}
    "covariance": [[7.7e-08]], "data": {"data": {"count": 100, "misfit": 0.011, "noise": 0.01, "given": true, ...}}

A coefficient that data do not determine has null for both numbers. Functions of fewer axes have an account of their error
bars ("functions"). Bands of predictions and the spread of functions are in solution.npz, and the data in data.npz: a run
that goes on takes them from there, whatever has become of the file that they came from.
"""

import dataclasses
import hashlib
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar.problem import Problem
from dsgnar.problem.data import with_data
from dsgnar.problem.domain import Points
from dsgnar.problem.inverse import Unknown
from dsgnar.solving.coefficients import Account, Estimated, Fit, Inference
from dsgnar.storing.checkpoints import write_atomically

BAND = "band: "  # and the name of the data
SPREAD = "spread"
DATA = "data.npz"


def sought(problem: Problem) -> dict[str, Any]:
    """Coefficients, properties of unknowns, and data by their checksums; empty for other problems."""
    out: dict[str, Any] = {}
    if problem.coefficients:
        starts = {name: {"start": c.start, "positive": c.positive} for name, c in problem.coefficients.items()}
        out["coefficients"] = starts
    kinds = {str(u): [list(u.axes or ()), u.positive] for u in problem.unknowns if isinstance(u, Unknown)}
    if kinds:
        out["kinds"] = kinds
    data = {name: _digest(problem, name) for name, c in problem.conditions.items() if c.measured is not None}
    return out | ({"data": data} if data else {})


def _digest(problem: Problem, name: str) -> str:
    numbers = _columns(problem, name).values()
    return hashlib.sha256(b"".join(np.ascontiguousarray(n, "<f8").tobytes() for n in numbers)).hexdigest()[:16]


def _columns(problem: Problem, name: str) -> dict[str, np.ndarray]:
    """A set of data as columns: axes, value, and noise where it is known."""
    condition = problem.conditions[name]
    assert condition.measured is not None and isinstance(condition.part, Points)
    columns = dict(zip(problem.domain.axes, condition.part.table(problem.domain).T, strict=True))
    noise = {} if condition.measured.noise is None else {"noise": condition.measured.noise}
    return columns | {"value": condition.measured.values} | noise


def keep_data(directory: Path, problem: Problem) -> None:
    """Write the data of a problem, if it has any."""
    names = [name for name, c in problem.conditions.items() if c.measured is not None]
    if names:
        kept = {f"{name}: {column}": v for name in names for column, v in _columns(problem, name).items()}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **kept)
        write_atomically(directory / DATA, buffer.getvalue())


def with_kept_data(problem: Problem, directory: Path) -> Problem:
    """The problem with the data of a run directory."""
    names = [name for name, c in problem.conditions.items() if c.measured is not None]
    if not names or not (directory / DATA).exists():
        return problem
    changed = dict(problem.conditions)
    with np.load(directory / DATA, allow_pickle=False) as file:
        for name in names:
            table = {key.removeprefix(f"{name}: "): file[key] for key in file.files if key.startswith(f"{name}: ")}
            changed[name] = with_data(problem.conditions[name], table, problem.domain.axes, str(directory / DATA))
    return dataclasses.replace(problem, conditions=changed)


def to_json(found: Inference | None) -> dict[str, Any]:
    """What was found, as plain data; empty where nothing was sought."""
    if found is None:
        return {}
    coefficients = {
        name: {
            "value": c.value,
            "standard_error": _finite(c.standard_error),
            "determined": c.determined,
            "found": c.found,
            "positive": c.positive,
            "freedom": _finite(c.freedom),
            "why": c.why,
        }
        for name, c in found.coefficients.items()
    }
    fits = {
        name: dict(count=f.count, misfit=f.misfit, noise=f.noise, given=f.given, freedom=f.freedom)
        for name, f in found.fits.items()
    }
    covariance = None if found.covariance is None else found.covariance.tolist()
    checks = {"distance": found.distance, "held": found.held}
    out = {"coefficients": coefficients, "covariance": covariance, "data": fits, "fit_checks": checks}
    if not found.functions:
        return out
    functions = {name: dataclasses.asdict(account) for name, account in found.functions.items()}
    return out | {"functions": functions, "freedom": _finite(found.freedom)}


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: null stands for it."""
    return None if value is None or not math.isfinite(value) else value


def from_json(
    reached: Mapping[str, Any], bands: Mapping[str, np.ndarray], spread: np.ndarray | None = None
) -> Inference | None:
    """And back."""
    if "coefficients" not in reached:
        return None
    coefficients = {name: _estimated(c) for name, c in reached["coefficients"].items()}
    fits = {name: Fit(**f, band=bands.get(name)) for name, f in reached["data"].items()}
    covariance = None if reached["covariance"] is None else np.array(reached["covariance"])
    functions = {name: Account(**account) for name, account in reached.get("functions", {}).items()}
    freedom = reached.get("freedom")
    freedom = math.inf if freedom is None else freedom
    return Inference(
        coefficients, covariance, fits, **reached["fit_checks"], functions=functions, spread=spread, freedom=freedom
    )


def _estimated(c: Mapping[str, Any]) -> Estimated:
    error = c["standard_error"] if c["determined"] else math.inf
    freedom = math.inf if c["freedom"] is None else c["freedom"]
    return Estimated(c["found"], error, c["determined"], c["positive"], freedom, c["why"])


def arrays(found: Inference | None) -> dict[str, np.ndarray]:
    """Bands of predictions, and the spread of functions, by the names that they have in an archive."""
    if found is None:
        return {}
    spread = {} if found.spread is None else {SPREAD: found.spread}
    return spread | {BAND + name: fit.band for name, fit in found.fits.items() if fit.band is not None}


def bands(archive: Any) -> dict[str, np.ndarray]:
    """Bands in an archive."""
    return {name.removeprefix(BAND): archive[name] for name in archive.files if name.startswith(BAND)}
