"""Tables and a figure from stored runs of the development set: what is solved, and how estimates compare with true errors.

    python benchmarks/development.py --out runs/default.jsonl
    python benchmarks/development.py --out runs/default.jsonl --seed 1
    python benchmarks/development.py --out benchmarks/tolerances.jsonl --tol 1e-3,1e-5,1e-7,1e-9 --seed 0,1,2
    python benchmarks/accuracy.py runs/default.jsonl benchmarks/tolerances.jsonl --figure docs/estimates.png

Prints markdown; docs/accuracy.md is made of it.
"""

import argparse
import json
import math
from collections import Counter, defaultdict
from pathlib import Path

BANDS = ("below 1e-8", "1e-8 to 1e-6", "1e-6 to 1e-5", "1e-5 to 1e-2", "above 1e-2")
LIMITS = (1e-8, 1e-6, 1e-5, 1e-2)


def read(paths):
    """Rows of all files."""
    return [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]


def plain(row):
    """Whether a run had no setting but a limit of time."""
    return set(row["options"]) <= {"max_seconds"}


def ratio(row):
    """The true error over the estimate, of the unknown for which it is farthest from 1; None where it is unknown."""
    if not row["known"]:
        return None
    ratios = [row["errors"][name] / value for name, value in row["estimates"].items() if value > 0]
    return max(ratios, key=lambda r: abs(math.log(r)) if r > 0 else math.inf)


def by_problem(rows):
    """A line for each problem and setting, with all its seeds."""
    found = defaultdict(list)
    for row in rows:
        found[row["name"]].append(row)
    lines = [
        "| problem | verdict | error, by seed | estimate | iterations | time intervals | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, group in found.items():
        group.sort(key=lambda row: row["seed"])
        cells = [
            ", ".join(dict.fromkeys(row["verdict"] for row in group)),
            ", ".join(f"{row['error']:.1e}" for row in group),
            ", ".join(f"{max(row['estimates'].values()):.1e}" if row["known"] else "unknown" for row in group),
            *(", ".join(f"{row[key]:.0f}" for row in group) for key in ("iterations", "intervals", "seconds")),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def crossed(rows):
    """A line for each problem, a column for each tolerance: true errors by seed, and estimates behind them."""
    tolerances = sorted({row["options"]["tol"] for row in rows}, reverse=True)
    found = defaultdict(lambda: defaultdict(list))
    for row in sorted(rows, key=lambda row: row["seed"]):
        guess = f"{max(row['estimates'].values()):.1e}" if row["known"] else "unknown"
        found[row["name"]][row["options"]["tol"]].append(f"{row['error']:.1e} ({guess}){'' if row['met'] else ' not met'}")
    heads = [f"tol={tol:g}" for tol in tolerances]
    lines = [f"| problem | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for name, cells in found.items():
        lines.append(f"| {name} | {' | '.join('; '.join(cells[tol]) for tol in tolerances)} |")
    return "\n".join(lines)


def by_tolerance(rows):
    """For each tolerance how many runs met it, in truth and by their own account, and the worst ratios."""
    found = defaultdict(list)
    for row in rows:
        found[row["options"].get("tol", 0)].append(row)
    lines = [
        "| tolerance | runs | met by estimate | true error below it | said to be met but not | estimate unknown | "
        "error over estimate | within a factor of 2 | median seconds | of them the last estimate |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for tol, group in sorted(found.items(), reverse=True):
        met = [row for row in group if row["met"]]
        true = [row for row in group if row["error"] <= tol]
        false = [row["name"] for row in met if row["error"] > tol]
        ratios = sorted(r for row in group if (r := ratio(row)) is not None)
        span = f"{ratios[0]:.2f} to {ratios[-1]:.2f}" if ratios else ""
        within = sum(0.5 <= r <= 2 for r in ratios)
        seconds = sorted(row["seconds"] for row in group)[len(group) // 2]
        share = sorted(row["parts"]["estimate"] / sum(row["parts"].values()) for row in group)[len(group) // 2]
        unknown = len(group) - len(ratios)
        counts = len(group), len(met), len(true), ", ".join(false) or 0, unknown
        cells = (*counts, span, within, f"{seconds:.0f}", f"{share:.0%}")
        lines.append(f"| {tol:g} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def verdicts(rows):
    """How verdicts and true errors go together."""
    counts = Counter((row["verdict"], sum(row["error"] >= limit for limit in LIMITS)) for row in rows)
    lines = [f"| verdict | {' | '.join('error ' + band for band in BANDS)} |", "|---" * (len(BANDS) + 1) + "|"]
    for verdict in ("solved", "partly", "failed"):
        lines.append(f"| {verdict} | {' | '.join(str(counts[verdict, k]) for k in range(len(BANDS)))} |")
    return "\n".join(lines)


def estimates(rows):
    """How estimates and true errors go together, in a sentence and with the worst of them."""
    known = sorted((r, row["name"], row["seed"], row["error"]) for row in rows if (r := ratio(row)) is not None)
    within = [sum(1 / f <= r <= f for r, *_ in known) for f in (1.2, 2, 5)]
    worst = ", ".join(f"{n} seed {s} {r:.2f} (error {e:.1e})" for r, n, s, e in (*known[:3], *known[-5:]))
    return (
        f"{len(rows)} runs, {len(known)} with an estimate. True error over estimate: {within[0]} within a factor of 1.2, "
        f"{within[1]} within 2, {within[2]} within 5. Farthest from 1: {worst}."
    )


def draw(rows, path):
    """True errors over estimates, all points."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axis = figure.subplots()
    known = [row for row in rows if row["known"]]
    pairs = [(value, row["errors"][name], row) for row in known for name, value in row["estimates"].items()]
    kinds = sorted({row["options"].get("tol") or math.inf for *_, row in pairs}, reverse=True)
    for k, tol in enumerate(kinds):
        some = [(e, t) for e, t, row in pairs if (row["options"].get("tol") or math.inf) == tol]
        text = "no tolerance" if tol == math.inf else f"tol={tol:g}"
        axis.loglog(*zip(*some, strict=True), "o", ms=3, mew=0, alpha=0.7, color=f"C{k}", label=f"{text} ({len(some)})")
    lowest, highest = (f(min(p[:2]) if f is min else max(p[:2]) for p in pairs) for f in (min, max))
    ends = [max(lowest, 1e-17) / 3, highest * 3]
    for factor, style in ((1, "-"), (2, "--"), (0.5, "--"), (5, ":"), (0.2, ":")):
        axis.loglog(ends, [factor * e for e in ends], style, lw=0.7, color="grey", zorder=0)
    unknown = [row["error"] for row in rows if not row["known"] and row["error"] < 1]
    if unknown:
        axis.plot(
            [ends[1]] * len(unknown), unknown, "x", ms=4, color="black", label=f"estimate unknown ({len(unknown)})"
        )
    axis.set(xlabel="estimated relative l2 error", ylabel="true relative l2 error")
    axis.legend(fontsize=7)
    figure.savefig(path, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables from stored runs of the development set.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--figure")
    asked = parser.parse_args()
    rows = read(asked.files)
    print(by_problem([row for row in rows if plain(row)]), end="\n\n")
    toleranced = [row for row in rows if "tol" in row["options"]]
    print(by_tolerance(toleranced), end="\n\n")
    print(crossed(toleranced), end="\n\n")
    print(estimates(rows), end="\n\n")
    print(verdicts(rows))
    if asked.figure:
        draw(rows, asked.figure)


if __name__ == "__main__":
    main()
