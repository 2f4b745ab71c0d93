"""The runs of a sweep: every problem with every combination of settings and every seed.

    --seeds 0:8 --set sketch=500,700       8 x 2 runs, such as burgers-sketch500-seed3

All that distinguishes a run is in its name, and its name is that of its directory: a sweep that is started again finds its
runs, and one with more seeds or values adds to them.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MOST = 10_000  # runs: more are a slip of the pen


class GridError(ValueError):
    """A sweep was stated wrongly; the message says what to change."""


@dataclass(frozen=True)
class Run:
    """One run of a sweep."""

    problem: str
    seed: int
    settings: Mapping[str, str] = field(default_factory=dict)  # as written on the command line
    preset: str = "default"

    @property
    def name(self) -> str:
        problem = Path(self.problem).stem if self.problem.endswith(".py") else self.problem
        preset = "" if self.preset == "default" else self.preset
        parts = [problem, preset, *(_label(*pair) for pair in self.settings.items()), f"seed{self.seed}"]
        return "-".join(filter(None, parts))

    def solve(self, directory: Path) -> list[str]:
        """The arguments of `dsgnar` that begin it."""
        options = [f"--set={name}={value}" for name, value in self.settings.items()]
        preset = [] if self.preset == "default" else ["--preset", self.preset]
        return ["solve", self.problem, *preset, "--seed", str(self.seed), *options, "--out", str(directory)]


def _label(name: str, value: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9.+-]+", "_", value).strip("_")
    return f"{name}{safe}" if safe[:1].isdigit() else f"{name}_{safe}"


def grid(
    problems: Sequence[str], seeds: Sequence[int], settings: Mapping[str, Sequence[str]], preset: str = "default"
) -> list[Run]:
    """All runs, the seeds of one setting next to each other."""
    total = len(problems) * len(seeds)
    for given in settings.values():
        total *= len(given)
    if total > MOST:
        raise GridError(f"that would be {total:,} runs; a sweep has at most {MOST:,}")
    found: dict[str, Run] = {}
    for problem, *chosen in itertools.product(problems, *settings.values()):
        for seed in seeds:
            run = Run(problem, seed, dict(zip(settings, chosen, strict=True)), preset)
            if run.name in found:
                raise GridError(f"two runs would be called {run.name}: leave out what is given twice, or rename a file")
            found[run.name] = run
    return list(found.values())


def seeds(text: str) -> list[int]:
    """`0:8` is 0 to 7, as in Python; `3` and `0,2,5` are those seeds, and `0:3,7` works too."""
    out: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?::(\d+))?\s*", part)
        if match is None:
            raise GridError(f"--seeds {text}: write 0:8 for the seeds 0 to 7, or 0,2,5")
        first, end = int(match[1]), match[2]
        if end is not None and not first < int(end) <= first + MOST:
            raise GridError(f"--seeds {text}: {part.strip()} holds no seed, or too many; 0:8 is 0 to 7")
        out += [first] if end is None else range(first, int(end))
    if len(set(out)) < len(out):
        raise GridError(f"--seeds {text}: a seed is given twice")
    return out


def values(assigned: Sequence[str]) -> dict[str, list[str]]:
    """`sketch=500,700` gives both values of `sketch`. Commas within brackets or quotes belong to a value."""
    out: dict[str, list[str]] = {}
    for assignment in assigned:
        name, equals, text = assignment.partition("=")
        found = list(_parts(text))
        if not equals or not all(found):
            raise GridError(f"--set {assignment}: write NAME=VALUE,VALUE,..., such as --set sketch=500,700")
        if name in out:
            raise GridError(f"--set {assignment}: {name} is given twice; write {name}=VALUE,VALUE")
        if name == "seed":
            raise GridError(f"--set {assignment}: seeds are given by --seeds")
        if len(set(found)) < len(found):
            raise GridError(f"--set {assignment}: a value is given twice")
        out[name] = found
    return out


def _parts(text: str) -> Iterator[str]:
    depth, quote, part = 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quote:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()
