"""`reproduce ablation`: one choice of the method at a time."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from dsgnar.cli.common import continued, drawn, err, explained, out, wrong_values
from dsgnar.cli.measuring import Into, fill, reproduce
from dsgnar.cli.solving import Preset
from dsgnar.showing import figures
from dsgnar.showing.figures.page import DPI
from dsgnar.showing.progress import Progress
from dsgnar.showing.words import duration
from dsgnar.storing.checkpoints import write_atomically
from dsgnar.tools.bench import ablation, machine

Problem = Annotated[str, typer.Option(help="A name from `dsgnar list`, or your own Python file.")]


@reproduce.command("ablation")
def ablation_(
    groups: Annotated[
        list[str] | None, typer.Argument(help=f"Some of {', '.join(ablation.GROUPS)}; targets by default.")
    ] = None,
    problem: Problem = ablation.Study.problem,
    preset: Preset = ablation.Study.preset,
    method: Annotated[
        Literal["fast", "paper"], typer.Option(help="Whose parts are used where they are not varied.")
    ] = "fast",
    seeds: Annotated[int, typer.Option(help="Seeds of each variant.", min=1)] = 3,
    max_iterations: Annotated[int, typer.Option(help="Maximum number of iterations of each run.", min=1)] = 1000,
    max_seconds: Annotated[float | None, typer.Option(help="Time limit of each run.")] = None,
    directory: Annotated[
        Path, typer.Option("--out", "-o", help="Directory for the runs; those there are kept.", file_okay=False)
    ] = Path("runs/ablation"),
    into: Into = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """The choice of the target ratio (Figure 4), and other choices of the method, one at a time.

    Each run has a directory. Ctrl-C stops after the current iteration. Run the command again to continue; a larger limit
    continues runs that had reached it.
    """
    study = ablation.Study(problem, preset, method)
    with explained(), wrong_values():
        variants = study.variants(groups or ("targets",))
    limits = {"max_iterations": max_iterations} | ({} if max_seconds is None else {"max_seconds": max_seconds})
    found: list[ablation.Run] = []
    with explained():
        with continued(directory):
            observers = () if quiet else (Progress(err, study.name),)
            laps, last, total = [], time.monotonic(), seeds * len(variants)
            for run in ablation.runs(directory, study, variants, seeds, limits, observers):
                found.append(run)
                laps += [time.monotonic() - last] if run.new else []
                last, missing = time.monotonic(), total - len(found)
                left = f"  about {duration(missing * sum(laps) / len(laps))} left" if laps and missing else ""
                out.print(_line(run, len(found), total) + left, markup=False)
        stamp = f"`dsgnar reproduce ablation`, {study.name}, {machine.stamp()}."
        text = ablation.markdown(found, stamp)
        write_atomically(directory / study.name / "ablation.md", text.encode())
        for group in dict.fromkeys(run.variant.group for run in found):
            _draw(directory / study.name / f"{group}.png", group, found)
        fill(into, "ablation", text)
    out.print(f"written to {directory / study.name}/ (ablation.md, and a picture of each group)", markup=False)


def _line(run: ablation.Run, number: int, total: int) -> str:
    name = f"{run.variant.group} {run.variant.name}, seed {run.seed}"
    reached = f"error {run.error:.1e}  lambda {run.least:.1e}  {run.result['iterations']} iterations"
    return f"{number}/{total}  {name:28} {reached}  {run.result['seconds']['solve']:.0f} s"


def _draw(path: Path, group: str, found: list[ablation.Run]) -> None:
    every = ablation.by_variant(found).items()
    histories = {name: [run.history for run in runs] for (where, name), runs in every if where == group}
    drawn(path, lambda partial: figures.courses(histories, group).savefig(partial, dpi=DPI))
