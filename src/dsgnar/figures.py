"""Pictures of a solution and of the course of a run (Appendix D of the paper)."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg", force=False)
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from dsgnar.reference import Reference
from dsgnar.solution import Solution

STAGE_COLOUR, GREY = "#ad502b", "#998f84"


def solution_page(solution: Solution, reference: Reference | None, title: str = "") -> Any:
    """Solution, absolute error and error over time on top; loss, error, weights, ratio, lambda and radius below."""
    outcome = solution.outcome
    assert outcome is not None
    figure, axes = plt.subplots(3, 3, figsize=(13, 10), layout="constrained")
    figure.suptitle(f"{title}   ({outcome.settings.precision} precision, {solution.parameters} parameters)")
    _fields(solution, reference, axes[0, 0], axes[0, 1])
    history = outcome.history
    k = [r.iteration for r in history]
    errors = [(r.iteration, r.seconds, max(r.error.values())) for r in history if r.error]
    _curve(axes[0, 2], [e[1] for e in errors], [e[2] for e in errors], "seconds", "relative $\\ell_2$ error")
    _curve(axes[1, 0], k, [r.loss for r in history], "iteration", "loss")
    held = [(r.iteration, r.held_out) for r in history if r.held_out]
    axes[1, 0].plot([h[0] for h in held], [h[1] for h in held], ".", color=GREY, ms=3, label="held-out points")
    axes[1, 0].legend(frameon=False)
    _curve(axes[1, 1], [e[0] for e in errors], [e[2] for e in errors], "iteration", "relative $\\ell_2$ error")
    for m, name in enumerate(solution.problem.conditions):
        axes[1, 2].semilogy(k, [r.weights[m] for r in history], label=name)
    axes[1, 2].set(xlabel="iteration", ylabel="weights")
    axes[1, 2].legend(frameon=False)
    taken = [r for r in history if r.accepted]
    axes[2, 0].plot([r.iteration for r in taken], [r.ratio for r in taken], ".", ms=4)
    axes[2, 0].plot(k, [r.target for r in history], color=GREY, lw=1)
    axes[2, 0].set(xlabel="iteration", ylabel="ratio $\\varrho$", ylim=(0, 1))
    _curve(axes[2, 1], [r.iteration for r in taken], [max(r.lam, 1e-40) for r in taken], "iteration", "$\\lambda$")
    _curve(axes[2, 2], k, [r.radius for r in history], "iteration", "radius $\\Delta$")
    for axis in (*axes[1], *axes[2]):
        for before, after in zip(history, history[1:], strict=False):
            if before.stage != after.stage:
                axis.axvline(after.iteration, color=STAGE_COLOUR, lw=1, ls="--")
            if before.precision != after.precision:
                axis.axvline(after.iteration, color=GREY, lw=1, ls=":")
    return figure


def _curve(axis, x, y, xlabel: str, ylabel: str) -> None:
    if len(x):
        axis.semilogy(x, y)
    axis.set(xlabel=xlabel, ylabel=ylabel)


def _fields(solution: Solution, reference: Reference | None, left, right) -> None:
    domain, unknown = solution.problem.domain, solution.unknowns[0]
    if domain.dimension != 2 or reference is None or reference.shape is None:
        left.set_axis_off()
        right.set_axis_off()
        return
    order = (1, 0) if domain.time == domain.axes[1] else (0, 1)  # time runs to the right
    points = reference.points.reshape(*reference.shape, 2)
    horizontal, vertical = points[..., order[0]], points[..., order[1]]
    values = solution.at(reference.points)[:, 0].reshape(reference.shape).astype(np.float64)
    error = np.abs(values - reference.values[unknown].reshape(reference.shape))
    mesh = left.pcolormesh(horizontal, vertical, values, cmap="RdBu_r", shading="nearest", rasterized=True)
    left.figure.colorbar(mesh, ax=left)
    positive = np.maximum(error, max(error.max() * 1e-6, 1e-300))
    mesh = right.pcolormesh(
        horizontal, vertical, positive, norm=LogNorm(), cmap="magma", shading="nearest", rasterized=True
    )
    right.figure.colorbar(mesh, ax=right)
    for axis, name in ((left, f"${unknown}$"), (right, "absolute error")):
        axis.set(xlabel=domain.axes[order[0]], ylabel=domain.axes[order[1]], title=name)


def save(solution: Solution, reference: Reference | None, path: Path, title: str = "") -> None:
    """Write the solution page as a picture."""
    figure = solution_page(solution, reference, title)
    figure.savefig(path, dpi=110)
    plt.close(figure)
