"""Cases of the PINNacle benchmark, solved by one call for all of them: `solve(problem, seed=..., max_seconds=...)`.

A case with a seed has a run directory, with what was measured in `pinnacle.json`. That file is written last, so what has one
is done. A solve that was interrupted begins again: its seconds are those of one run. One that ends with an error stays, as a
failure. Two errors are measured:

    theirs   the benchmark's measure, at its points, against its file (from a copy of its repository) or formula
    ours     the relative l2 error against our reference, of all unknowns stacked and of each
"""

import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dsgnar.solving.entry import solve
from dsgnar.solving.observers import Observer
from dsgnar.solving.solution import Solution
from dsgnar.storing import runs
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.suite.pinnacle import CASES, Case, Yardstick
from dsgnar.suite.pinnacle.measure import stacked
from dsgnar.tools.bench.machine import version

FILE = "pinnacle.json"


@dataclass(frozen=True)
class Theirs:
    """What the benchmark compares with, and what our solution scores there; neither where its file is not at hand."""

    yardstick: Yardstick | None = None
    floor: float | None = None
    why: str = ""  # there is none


@dataclass(frozen=True)
class Row:
    """A case and what was measured with each seed."""

    case: Case
    results: tuple[Mapping[str, Any], ...]
    theirs: Theirs = field(default_factory=Theirs)


def cases(names: Sequence[str] = ()) -> tuple[Case, ...]:
    """All cases, or some by their names, in any spelling of capitals."""
    known = {name.lower(): case for name, case in CASES.items()}
    for name in names:
        if name.lower() not in known:
            raise ValueError(f"there is no case {name!r}, only {', '.join(CASES)}")
    wanted = {name.lower() for name in names}
    return tuple(case for name, case in known.items() if not wanted or name in wanted)


def table(
    directory: Path,
    chosen: Sequence[Case],
    seeds: Sequence[int],
    options: Mapping[str, Any],
    clone: Path | None = None,
    observers: Sequence[Observer] = (),
) -> Iterator[Row]:
    """Solve case after case with every seed; what is in the directory already is read. `options` are those of `solve`."""
    for case in chosen:
        theirs = compared_with(case, clone)
        yield Row(case, tuple(_result(directory, case, seed, options, theirs, observers) for seed in seeds), theirs)


def compared_with(case: Case, clone: Path | None) -> Theirs:
    """The benchmark's points and values for a case. With a file the floor is measured, which may take a minute."""
    if case.formula is not None:
        return Theirs(case.formula(), case.floor)
    if case.file is None or clone is None:
        return Theirs(None, case.floor, "no copy of the benchmark was given")
    try:
        found = case.file.read(clone)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return Theirs(None, case.floor, f"{case.file.path} cannot be read ({why})")
    return Theirs(found, found.error(case.anywhere(found.points)))


def _result(
    directory: Path,
    case: Case,
    seed: int,
    options: Mapping[str, Any],
    theirs: Theirs,
    observers: Sequence[Observer],
) -> dict[str, Any]:
    path, solution = directory / f"{case.name}-seed{seed}", None
    result = _read(path / FILE, options)
    if result is None:
        result, solution = _solved(path, case, seed, options, observers)
    if result["failed"] is None and result["theirs"] is None and theirs.yardstick is not None:
        solution = solution or runs.load(path, case.problem())
        result["theirs"] = theirs.yardstick.error(solution.counted(case.inside(theirs.yardstick.points)))
        _write(path / FILE, result)
    return result


def _solved(
    path: Path, case: Case, seed: int, options: Mapping[str, Any], observers: Sequence[Observer]
) -> tuple[dict[str, Any], Solution | None]:
    """Solve, and keep the run and what was measured."""
    start, solution, failed = time.perf_counter(), None, None
    try:
        solution = solve(case.problem(), seed=seed, observers=observers, **options)
    except (ArithmeticError, MemoryError, RuntimeError) as error:  # JAX's own errors are RuntimeErrors
        failed = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    seconds = time.perf_counter() - start  # compiling included
    result: dict[str, Any] = {"case": case.name, "seed": seed, "options": dict(options), "failed": failed}
    result |= {"seconds": seconds, "version": version()}
    path.mkdir(parents=True, exist_ok=True)
    if solution is not None:
        result |= {"verdict": solution.verdict, "estimate": solution.error_estimate, **ours(case, solution)}
        result["stop"] = None if solution.stop is None else solution.stop.code
        runs.save(solution, path)
    result["theirs"] = None
    _write(path / FILE, result)
    return result, solution


def ours(case: Case, solution: Any) -> dict[str, Any]:
    """The errors against our reference: of all unknowns stacked, and of each."""
    reference = case.reference()
    found = solution.counted(reference.points)
    there = np.stack([reference.values[name] for name in solution.unknowns], axis=1)
    each = {name: stacked(found[:, k], there[:, k]) for k, name in enumerate(solution.unknowns)}
    return {"ours": stacked(found, there), "each": each}


def _read(path: Path, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """A result that is there; None if there is none. One with other options is not for this table."""
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    if result["options"] != dict(options):
        then, now = (", ".join(f"{k}={v}" for k, v in o.items()) or "no options" for o in (result["options"], options))
        raise ValueError(f"{path} was measured with {then}, not with {now}: use another --out, or the same options")
    return result


def _write(path: Path, result: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(result, indent=1) + "\n").encode())


# --- text -------------------------------------------------------------------------------------------------------------

_HEAD = (
    "case, equation solved",
    "theirs: l2 at the benchmark's points (floor)",
    "ours: l2, stacked",
    "ours: l2 of each output",
    "verdicts",
    "estimated error",
    "s",
    "P, Q (second-hand)",
)


def spread(values: Sequence[float | None]) -> str:
    """The median, and from least to most; failures count as infinite."""
    known = sorted(math.inf if v is None or not math.isfinite(v) else v for v in values)
    text = lambda v: f"{v:.1e}" if v < math.inf else "failed"
    return text(statistics.median(known)) + (f" ({text(known[0])} to {text(known[-1])})" if len(known) > 1 else "")


def cells(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    case, results = row.case, row.results
    floor = "" if row.theirs.floor is None else f"floor {row.theirs.floor:.1e}" if row.theirs.floor else "floor 0"
    measured = [r["theirs"] for r in results if r["theirs"] is not None or r["failed"] is not None]
    first = spread(measured) if measured else ""
    names = next((list(r["each"]) for r in results if r["failed"] is None), [])
    each = "; ".join(f"{name} {spread([r.get('each', {}).get(name) for r in results])}" for name in names)
    seconds = sorted(r["seconds"] for r in results)
    between = f" ({seconds[0]:.0f} to {seconds[-1]:.0f})" if len(seconds) > 1 else ""
    return (
        f"{case.name}: {case.equation}",
        f"{first} ({floor or 'floor unknown'})".strip(),
        spread([r.get("ours") for r in results]),
        each,
        ", ".join("error" if r["failed"] is not None else str(r["verdict"]) for r in results),
        ", ".join(_estimate(r) for r in results),
        f"{np.median(seconds):.0f}{between}",
        f"{case.published[0]:.2e}, {case.published[1]:.2e}",
    )


def _estimate(result: Mapping[str, Any]) -> str:
    known = result.get("estimate")
    return "unknown" if not known else f"{max(known.values()):.1e}"


def line(row: Row) -> str:
    """A row as one line of text."""
    _, theirs, stacked_, _, verdicts, estimates, seconds, published = cells(row)
    words = f"theirs {theirs:44} ours {stacked_:32} {verdicts}; estimated {estimates}; {seconds} s; P, Q {published}"
    return f"{row.case.name:12} {words}"


def markdown(rows: Sequence[Row], stamp: str = "") -> str:
    """The table, what our references are, and what has to be said about single cases."""
    lines = [stamp, ""] if stamp else []
    lines += ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    lines += ["", *_REMARKS, "", "| case | our reference | its accuracy | its cost |", "|---|---|---|---|"]
    for row in rows:
        reference = row.case.reference()
        source = reference.source.split(";")[0]
        lines.append(f"| {row.case.name} | {source} | {reference.accuracy:.0e} | {row.case.cost} |")
    notes = [f"- {row.case.name}: {text}." for row in rows for text in _notes(row)]
    return "\n".join([*lines, *([""] if notes else []), *notes]) + "\n"


_REMARKS = (
    "Median over the seeds, with the least and the most. The floor is what our solution scores by the benchmark's measure:",
    "below it a smaller figure is no merit. P is PINNacle's best error, Q that of PELINE (2026), both second-hand and from",
    "GPUs with other budgets: compare errors, not times. Seconds include compiling.",
)


def _notes(row: Row) -> Iterator[str]:
    if row.case.note:
        yield row.case.note
    if row.theirs.yardstick is None and row.theirs.why:
        yield f"the first column has no measurement, because {row.theirs.why}"
    for result in row.results:
        if result["failed"] is not None:
            yield f"seed {result['seed']} ended with an error, {result['failed']}"
