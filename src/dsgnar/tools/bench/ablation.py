"""Ablations: one choice of the method at a time, everything else as the paper has it (Figure 4, and the choices beside it).

    targets    a target ratio that never changes, from 0.05 to 0.8, and the two stages of Algorithm 5
    hashes     K of the CountSketch, and buckets instead
    columns    the cosine transform, groups of parameters, or no column sketch
    sketch     its size, as a multiple of the preset's
    window     W of the stage switch
    search     probes and PCHIP, or bracketing
    weights    UpdateWeights, or weights that stay

Targets, stages and stops are the paper's in every variant, and a radius falls by at most a factor of three in an iteration,
as with its probes: a bracketing search may otherwise go all the way down for a large target. Parts that are not varied are
those of the chosen method: with `paper` an ablation is the paper's to the letter, with `fast` it takes hours instead of
days. Each run has a directory (`kept.py`); variants with equal settings share theirs.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from dsgnar.solving.method import PAPER
from dsgnar.solving.observers import Observer
from dsgnar.solving.record import Record
from dsgnar.solving.settings import CHANGES, Settings
from dsgnar.solving.stop import StopReason
from dsgnar.storing.files import read_history
from dsgnar.suite.own_file import find
from dsgnar.suite.statement import Statement
from dsgnar.tools.bench.kept import ended, solved
from dsgnar.tools.bench.results import error

TARGETS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
TWO_STAGES = "two stages"
NEVER = 10**9  # iterations before the stage switch is considered
# What all variants share: the stages and stops of Algorithms 1 and 5.
RULES = (
    "targets", "wait", "window", "slope", "correlation", "ramp", "greedy", "undamped", "exact_stage", "retreats", "tries",
    "stall", "restarts", "redraws", "minimum_radius", "warm_up", "single_above",
)  # fmt: skip


def _columns(kind: str) -> dict[str, Any]:
    return {"column_sketch": kind, "late_column_sketch": kind, "columns_from": math.inf if kind == "all" else 0.5}


GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    "targets": {**{f"{t:g}": {"targets": (t, t), "wait": NEVER} for t in TARGETS}, TWO_STAGES: {}},
    "hashes": {
        **{f"K = {k}": {"row_sketch": "hashes", "hashes": k} for k in (1, 2, 4, 8)},
        "buckets": {"row_sketch": "buckets"},
    },
    "columns": {kind: _columns(kind) for kind in ("srct", "groups", "all")},
    "sketch": {f"s x {share:g}": {"sketch": share} for share in (0.25, 0.5, 1, 1.5)},  # of the preset's
    "window": {f"W = {w}": {"window": w} for w in (5, 15, 30, 60)},
    "search": {kind: {"search": kind} for kind in ("probes", "bracket")},
    "weights": {"on": {"exponent": PAPER.exponent}, "off": {"exponent": 0.0}},
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One choice, and the settings that it means."""

    group: str
    name: str
    settings: Settings
    directory: str  # of its runs, without the seed


@dataclass(frozen=True)
class Study:
    """On what the choices are tried: a problem, a preset and a method."""

    problem: str = "burgers"
    preset: str = "double-quick"
    method: str = "fast"

    @cached_property
    def statement(self) -> Statement:
        return find(self.problem, self.preset)

    @property
    def name(self) -> str:
        return f"{self.statement.name}-{self.preset}-{self.method}"

    def variants(self, groups: Sequence[str] = ()) -> tuple[Variant, ...]:
        """Those of some groups, or all."""
        for group in groups:
            if group not in GROUPS:
                raise ValueError(f"there is no group {group!r}; there are {', '.join(GROUPS)}")
        out: list[Variant] = []
        shared: dict[Settings, str] = {}
        for group, choices in GROUPS.items():
            for name, changes in choices.items():
                settings = self._settings(changes)
                slug = f"{group}-{name}".replace(" = ", "").replace(" ", "-")
                out.append(Variant(group, name, settings, shared.setdefault(settings, slug)))
        return tuple(variant for variant in out if not groups or variant.group in groups)

    def _settings(self, changes: Mapping[str, Any]) -> Settings:
        stated = self.statement
        paper = PAPER.at(stated.settings.precision or "single")
        if "sketch" in changes:
            if stated.settings.sketch is None:
                raise ValueError(f"{self.problem} has no sketch size that could be varied: state one as a setting")
            changes = {**changes, "sketch": max(1, round(changes["sketch"] * stated.settings.sketch))}
        rules = {name: getattr(paper, name) for name in RULES} | {"search_patience": paper.probe_range}
        settings = stated.changed({"method": self.method, **rules, **changes})
        # Constants in one place, so that equal settings are equal values.
        return replace(settings, method=settings.chosen_method(), **dict.fromkeys(CHANGES))


@dataclass(frozen=True)
class Run:
    """A variant with one seed, and what became of it."""

    variant: Variant
    seed: int
    result: dict[str, Any]
    history: tuple[Record, ...]
    new: bool  # whether it was solved now, and not read

    @property
    def error(self) -> float:
        return error(self.result) if self.result["relative_l2"] else math.nan

    @property
    def loss(self) -> float:
        return self.history[-1].loss

    @property
    def least(self) -> float:
        """The smallest lambda of an accepted step."""
        return min((r.lam for r in self.history if r.accepted and r.lam > 0), default=math.nan)

    @property
    def stopped(self) -> bool:
        """Whether a limit ended it."""
        return StopReason.of(self.result["stop_reason"]).is_limit


def runs(
    directory: Path,
    study: Study,
    variants: Sequence[Variant],
    seeds: int,
    limits: Mapping[str, Any],
    observers: Sequence[Observer] = (),
) -> Iterator[Run]:
    """Run after run, all variants with one seed before the next, so that an early end leaves a whole picture."""
    conditions = tuple(study.statement.problem.conditions)
    for seed in range(seeds):
        for variant in variants:
            path = directory / study.name / f"{variant.directory}-seed{seed}"
            new = not ended(path, limits)
            settings = replace(variant.settings, seed=seed, **limits)
            result = solved(path, lambda s=settings: (study.statement, s), limits, observers)
            yield Run(variant, seed, result, read_history(path / "history.csv", conditions), new)


# --- what came out ----------------------------------------------------------------------------------------------------


def by_variant(found: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """The runs of each variant, in the order of the variants."""
    out: dict[tuple[str, str], list[Run]] = {}
    for run in found:
        out.setdefault((run.variant.group, run.variant.name), []).append(run)
    return out


def markdown(found: Sequence[Run], stamp: str = "") -> str:
    """A table for each group: medians over the seeds, and least to most of the errors; then the paper's claims."""
    lines = [stamp, ""] if stamp else []
    head = ("variant", "error", "loss", "smallest lambda", "iterations", "seconds", "seeds", "ended")
    groups = dict.fromkeys(run.variant.group for run in found)
    for group in groups:
        lines += [f"**{group}**", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for (where, name), runs in by_variant(found).items():
            if where == group:
                lines.append("| " + " | ".join((name, *_cells(runs))) + " |")
        lines.append("")
    if "targets" in groups:
        lines += ["**Claims of the paper about the target ratio**", "", *(f"* {claim}" for claim in claims(found)), ""]
    return "\n".join(lines)


def _cells(runs: Sequence[Run]) -> tuple[str, ...]:
    errors = [run.error for run in runs]
    spread = f" ({min(errors):.1e} to {max(errors):.1e})" if len(runs) > 1 else ""
    reasons = dict.fromkeys(run.result["stop_reason"].replace("_", " ") for run in runs)
    return (
        f"{_median(runs, 'error'):.1e}{spread}", f"{_median(runs, 'loss'):.1e}", f"{_median(runs, 'least'):.1e}",
        f"{statistics.median(run.result['iterations'] for run in runs):.0f}",
        f"{statistics.median(run.result['seconds']['solve'] for run in runs):.0f}", str(len(runs)), ", ".join(reasons),
    )  # fmt: skip


def _median(runs: Sequence[Run], name: str) -> float:
    return statistics.median(getattr(run, name) for run in runs)


def claims(found: Sequence[Run]) -> list[str]:
    """Whether what the caption of the paper's Figure 4 says holds in these runs."""
    variants = {name: runs for (group, name), runs in by_variant(found).items() if group == "targets"}
    fixed = {float(name): runs for name, runs in variants.items() if name != TWO_STAGES}
    if any(run.stopped for runs in variants.values() for run in runs):
        return ["cannot be judged: a limit of iterations or seconds ended some of the runs"]
    if len(fixed) < 2 or TWO_STAGES not in variants:
        return ["cannot be judged: some of the variants have not been run"]
    iterations = {t: statistics.median(run.result["iterations"] for run in runs) for t, runs in fixed.items()}
    best = min(fixed, key=lambda t: _median(fixed[t], "error"))
    both = variants[TWO_STAGES]
    count = statistics.median(run.result["iterations"] for run in both)
    ratio = _median(both, "error") / _median(fixed[best], "error")
    return [
        f"a smaller target leads to a smaller lambda: {_ordered({t: _median(r, 'least') for t, r in fixed.items()})}",
        f"and to a smaller error: {_ordered({t: _median(r, 'error') for t, r in fixed.items()})}",
        f"at the cost of more iterations: {_ordered({t: -n for t, n in iterations.items()})}",
        f"two stages need fewer iterations for the same error: {count:.0f} where the best fixed target, {best:g}, needs "
        f"{iterations[best]:.0f}; their error is {ratio:.2g} times as large",
    ]


def _ordered(values: Mapping[float, float]) -> str:
    """How many pairs of targets are in the order that is claimed."""
    pairs = list(combinations(sorted(values), 2))
    right = sum(values[a] <= values[b] for a, b in pairs)
    return f"{right} of {len(pairs)} pairs of targets are in this order"
