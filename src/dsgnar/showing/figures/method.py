"""Figures of the method: how a step is chosen, and what a sketch does to the Jacobian (figures 3 and 2 of the paper).

Both show what the next iteration of a run would do:

    run = figures.run_until(30, problem, network=MLP(), precision="single")
    figures.probe_curve(run).savefig("probes.pdf")
    figures.jacobians(run).savefig("jacobians.pdf")
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.interpolate import PchipInterpolator

from dsgnar.calculus.precision import x64
from dsgnar.calculus.streams import stream
from dsgnar.optimise.jacobian import Jacobian
from dsgnar.optimise.optimiser import Active, Optimiser
from dsgnar.optimise.radius import Found, Probe, Probes, Search, monotone
from dsgnar.optimise.sketch import AllColumns, AllRows
from dsgnar.problem import Problem
from dsgnar.showing.colours import BLUE, GREEN, GREY, SEQUENTIAL, VERMILION
from dsgnar.showing.figures.style import WIDTH, label, styled
from dsgnar.solving import intervals
from dsgnar.solving.context import Context
from dsgnar.solving.loop import advance
from dsgnar.solving.model import Network
from dsgnar.solving.settings import Settings, with_options
from dsgnar.solving.state import RunState

ROWS = 1500  # of the full Jacobian that are drawn
SHADES = 6  # decades of magnitude that the colours span


@dataclass(frozen=True, eq=False)
class Standing:
    """A run after a number of iterations, ready for the next one."""

    context: Context
    state: RunState

    @property
    def optimiser(self) -> Optimiser:
        return self.context.optimiser(self.state.plan)

    @property
    def points(self) -> Active:
        return self.context.collocation.active(self.state)


@x64
def run_until(
    iterations: int,
    problem: Problem,
    network: Network | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Standing:
    """Run a number of iterations, or fewer if the run stops before. Options are fields of `Settings` or `Method`."""
    context = Context.of(problem, network, with_options(settings or Settings(), options))
    state = context.start()
    while state.iterate.iteration < iterations:
        if state.stop is None:
            state, _ = advance(context, state)
        elif intervals.goes_on(context, state):
            state = intervals.following(context, state)
        else:
            break
    return Standing(context, state)


# --- the choice of a step ---------------------------------------------------------------------------------------------


@x64
@styled
def probe_curve(run: Standing) -> Figure:
    """Ratio and regularisation over the radius: the paper's probes with their interpolant, and those of the run's search."""
    target = run.context.rules.target(run.state.plan)
    chosen = run.optimiser.search
    paper = chosen if isinstance(chosen, Probes) else Probes()
    probes = _search(run, paper, target)
    own = None if paper is chosen else _search(run, chosen, target)
    figure = Figure(figsize=(WIDTH / 2, 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    grid = probes.probes[: paper.count]  # without the last one, which the interpolant gave
    _ratios(above, grid, own, target)
    below.loglog([p.radius for p in grid], [p.lam for p in grid], ".-", color=BLUE, ms=4, lw=0.8)
    for axis in (above, below):
        axis.axvline(run.state.iterate.radius, color=GREY, lw=0.8, ls=":")
        axis.axvline((own or probes).best.radius, color=GREEN, lw=0.8, ls="--")
    above.set_title(
        f"The step of iteration {run.state.iterate.iteration + 1}, stage {run.state.plan.stage}", loc="left"
    )
    below.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    below.xaxis.set_major_formatter("{x:g}")
    below.xaxis.set_minor_formatter(NullFormatter())
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    label(above, "", r"decrease ratio $\varrho$")
    label(below, r"radius $\Delta$", r"regularisation $\lambda$")
    return figure


def _search(run: Standing, search: Search, target: float) -> Found:
    iterate = run.state.iterate if run.state.evaluated else replace(run.state.iterate, mean_squares=None)
    exact = run.context.rules.exact(run.state.plan)
    _, step = replace(run.optimiser, search=search).iterate(iterate, run.points, target, exact)
    if step.found is None or step.problem:
        raise ValueError(f"there is no step to draw: {step.problem}")
    return step.found


def _ratios(axis: Axes, grid: Sequence[Probe], own: Found | None, target: float) -> None:
    radii = np.array([p.radius for p in grid])
    axis.semilogx(radii, [p.ratio for p in grid], "o", color=BLUE, ms=3, label="probes")
    values, first = np.unique(monotone([p.ratio for p in grid]), return_index=True)
    if len(values) > 1:
        between = np.linspace(values[0], values[-1], 300)
        curve = np.exp(PchipInterpolator(values, np.log(radii[first]))(between))
        axis.plot(curve, between, color=BLUE, lw=0.9, label=r"interpolant $\Delta(\varrho)$")
    if own is not None:
        style: dict[str, Any] = dict(marker="D", ms=5, mfc="none", color=VERMILION, ls="")
        axis.plot([p.radius for p in own.probes], [p.ratio for p in own.probes], label="bracketing search", **style)
        for k, p in enumerate(own.probes):
            axis.annotate(str(k + 1), (p.radius, p.ratio), (4, 3), textcoords="offset points", size=7, color=VERMILION)
    axis.axhline(target, color=VERMILION, lw=0.9, label=rf"target $\varrho^\star = {target:g}$")
    axis.plot([], [], color=GREY, lw=0.8, ls=":", label=r"last radius $\Delta_k$")
    axis.plot([], [], color=GREEN, lw=0.8, ls="--", label=r"chosen $\Delta_{k+1}$")
    finite = [p.ratio for p in grid if math.isfinite(p.ratio)]
    axis.set_ylim(max(-0.5, min(finite, default=0.0) - 0.05), max([1.0, *finite]) + 0.1)


# --- the Jacobian and its sketch --------------------------------------------------------------------------------------


@x64
@styled
def jacobians(run: Standing) -> Figure:
    """Magnitudes of the full Jacobian (at some of the points) and of its sketch, and the singular values of both."""
    points, iterate = run.points.flat, run.state.iterate
    theta, weights = jnp.asarray(iterate.theta), iterate.weights
    share = min(1.0, ROWS / sum(len(p) for p in points))
    some = tuple(p[: max(1, round(share * len(p)))] for p in points)
    rng = stream(run.context.settings.seed, "sketch", iterate.iteration)
    full = np.asarray(Jacobian(run.context.residuals, AllRows(), AllColumns())(theta, some, weights, rng).jacobian)
    sketched = np.asarray(run.optimiser.jacobian(theta, points, weights, rng).jacobian)
    top = float(np.abs(full).max())
    norm = LogNorm(max(top, 1e-300) * 10.0**-SHADES, max(top, 1e-300), clip=True)
    figure = Figure(figsize=(WIDTH, 2.7), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 0.8))
    image = _image(left, full, norm)
    _image(middle, sketched, norm)
    figure.colorbar(image, ax=(left, middle), pad=0.01, aspect=30)
    left.set_title(rf"$\bf{{(a)}}$ $|J|$, {len(full):,} of {sum(map(len, points)):,} rows", loc="left")
    middle.set_title(rf"$\bf{{(b)}}$ sketched, {sketched.shape[0]:,} $\times$ {sketched.shape[1]:,}", loc="left")
    _conditions(left, list(run.context.problem.conditions), [len(p) for p in some])
    for axis in (left, middle):
        label(axis, "parameters" if axis is left or sketched.shape[1] == full.shape[1] else "mixed parameters", "")
    _spectra(right, full, sketched)
    return figure


def _image(axis: Axes, matrix: np.ndarray, norm: LogNorm) -> Any:
    axis.grid(False)
    magnitude = np.maximum(np.abs(matrix), norm.vmin or 0.0)
    return axis.imshow(magnitude, norm=norm, cmap=SEQUENTIAL, aspect="auto", interpolation="nearest", rasterized=True)


def _conditions(axis: Axes, names: list[str], counts: list[int]) -> None:
    """Name the rows of each condition."""
    ends = np.cumsum(counts)
    for end in ends[:-1]:
        axis.axhline(end - 0.5, color="white", lw=0.8)
    axis.set_yticks(ends - np.asarray(counts) / 2, names, rotation=90, va="center")
    axis.tick_params(axis="y", length=0)


def _spectra(axis: Axes, full: np.ndarray, sketched: np.ndarray) -> None:
    """Singular values; a sketch keeps the leading ones."""
    for matrix, colour, name in ((full, BLUE, "full"), (sketched, VERMILION, "sketched")):
        values = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
        axis.semilogy(np.arange(1, len(values) + 1), np.maximum(values, 1e-300), color=colour, label=name)
    axis.set_title(r"$\bf{(c)}$ singular values", loc="left")
    label(axis, "index", r"$\sigma_i$")
    axis.legend(loc="best")
