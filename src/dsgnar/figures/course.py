"""The course of a run: loss, error, weights, ratio, lambda and radius over iterations (panels e to j of Appendix D)."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsgnar.figures.style import BLACK, BLUE, GREY, LINES, VERMILION, label, maths
from dsgnar.solution import Record, Solution

Panel = tuple[str, Callable[[Axes], None]]  # a title, and what is drawn

# What a vertical line means: how it is drawn, and between which records it stands.
EVENTS: dict[str, tuple[dict, Callable[[Record, Record], bool]]] = {
    "stage switch": (dict(color=VERMILION, ls="--"), lambda a, b: a.interval == b.interval and a.stage != b.stage),
    "precision switch": (
        dict(color=BLACK, ls=":"),
        lambda a, b: a.interval == b.interval and a.precision != b.precision,
    ),
    "end of a time interval": (dict(color=GREY, ls="-"), lambda a, b: a.interval != b.interval),
}


def panels(solution: Solution) -> list[Panel]:
    """The six panels of the course."""
    assert solution.outcome is not None
    history, conditions = solution.outcome.history, tuple(solution.problem.conditions)
    second: Panel = ("Relative error", lambda axis: errors(axis, history, "iteration"))
    if not any(r.error for r in history):
        second = ("Residuals at training points", lambda axis: _residuals(axis, history, conditions))
    return [
        ("Loss", lambda axis: _loss(axis, history)),
        second,
        ("Weights", lambda axis: _weights(axis, history, conditions)),
        ("Decrease ratio", lambda axis: _ratio(axis, history)),
        ("Regularisation", lambda axis: _lambda(axis, history)),
        ("Trust-region radius", lambda axis: _radius(axis, history)),
    ]


def mark(axis: Axes, history: Sequence[Record], over: str = "iteration") -> None:
    """Vertical lines where stage, precision or time interval change."""
    for style, happens in EVENTS.values():
        for before, after in pairwise(history):
            if happens(before, after):
                between = (getattr(before, over) + getattr(after, over)) / 2
                axis.axvline(between, lw=0.7, zorder=0.5, **style)


def legend(history: Sequence[Record]) -> list[Line2D]:
    """Keys of the vertical lines and of the crosses that occur."""
    keys = [
        Line2D([], [], lw=0.9, label=name, **style)
        for name, (style, happens) in EVENTS.items()
        if any(happens(a, b) for a, b in pairwise(history))
    ]
    if any(not r.accepted for r in history):
        keys.append(Line2D([], [], ls="", marker="x", ms=4, color=GREY, label="rejected step"))
    return keys


def errors(axis: Axes, history: Sequence[Record], over: str) -> None:
    """The relative error of every unknown, or the held-out loss where no reference was given, over iterations or seconds."""
    looked = [r for r in history if r.error]
    if looked:
        for name, colour in zip(looked[0].error or {}, _cycle(), strict=False):
            pairs = [(getattr(r, over), r.error[name]) for r in looked if r.error and name in r.error]
            _line(axis, [x for x, _ in pairs], [y for _, y in pairs], colour, maths(name))
        _legend(axis, len(looked[0].error or {}))
    else:
        seen = [r for r in history if r.held_out]
        _line(axis, [getattr(r, over) for r in seen], [r.held_out for r in seen])
    label(axis, over, r"$\ell_2^{\mathrm{rel}}$" if looked else "held-out loss")


def _loss(axis: Axes, history: Sequence[Record]) -> None:
    _line(axis, [r.iteration for r in history], [r.loss for r in history])
    held = [r for r in history if r.held_out]
    if held:
        style = dict(ls="", marker="o", ms=2, mew=0, color=VERMILION, label="held-out points")
        axis.semilogy([r.iteration for r in held], [r.held_out for r in held], **style)
        axis.legend(loc="best")
    label(axis, "iteration", r"$\mathcal{L}$")


def _residuals(axis: Axes, history: Sequence[Record], conditions: tuple[str, ...]) -> None:
    _each(axis, history, conditions, lambda r, m: np.sqrt(r.mean_squares[m]))
    label(axis, "iteration", "root mean square")


def _weights(axis: Axes, history: Sequence[Record], conditions: tuple[str, ...]) -> None:
    _each(axis, history, conditions, lambda r, m: r.weights[m])
    label(axis, "iteration", r"$w_m$")


def _each(axis: Axes, history: Sequence[Record], conditions: tuple[str, ...], value: Callable) -> None:
    for m, (name, colour) in enumerate(zip(conditions, _cycle(), strict=False)):
        _line(axis, [r.iteration for r in history], [value(r, m) for r in history], colour, name)
    _legend(axis, len(conditions))


def _ratio(axis: Axes, history: Sequence[Record]) -> None:
    taken, refused = _split(history)
    floor = -0.1  # ratios below it, or not finite, are drawn on it
    for records, marker in ((taken, _DOT), (refused, _CROSS)):
        ratios = np.clip(np.nan_to_num([r.ratio for r in records], nan=floor), floor, 1.1)
        axis.plot([r.iteration for r in records], ratios, ls="", **marker)
    axis.step(
        [r.iteration for r in history],
        [r.target for r in history],
        where="mid",
        color=VERMILION,
        lw=0.9,
        label="target",
    )
    axis.set_ylim(-0.15, 1.15)
    axis.legend(loc="best")
    label(axis, "iteration", r"$\varrho$")


def _lambda(axis: Axes, history: Sequence[Record]) -> None:
    taken, _ = _split(history)
    damped = [r.lam if r.lam > 0 else math.nan for r in taken]
    _line(axis, [r.iteration for r in taken], damped)
    free = [r.iteration for r in taken if not r.lam > 0]
    if free:
        style: dict[str, Any] = dict(
            ls="", marker="v", ms=3, mew=0, color=VERMILION, transform=axis.get_xaxis_transform()
        )
        axis.plot(free, np.full(len(free), 0.03), label=r"$\lambda = 0$", **style)
        axis.legend(loc="best")
    label(axis, "iteration", r"$\lambda$")


def _radius(axis: Axes, history: Sequence[Record]) -> None:
    _, refused = _split(history)
    _line(axis, [r.iteration for r in history], [r.radius for r in history])
    axis.semilogy([r.iteration for r in refused], [r.radius for r in refused], ls="", **_CROSS)
    label(axis, "iteration", r"$\Delta$")


_DOT: dict[str, Any] = dict(marker="o", ms=2, mew=0, color=BLUE)
_CROSS: dict[str, Any] = dict(marker="x", ms=3.5, mew=0.8, color=GREY)


def _split(history: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    return [r for r in history if r.accepted], [r for r in history if not r.accepted]


def _cycle() -> Sequence[str]:
    return list(LINES) * 4


def _line(axis: Axes, x: Sequence, y: Sequence, colour: str = BLUE, text: str = "") -> None:
    """A line over a logarithmic axis; one of few points shows them."""
    axis.semilogy(x, y, color=colour, label=text, marker="o" if len(x) < 8 else "", ms=2)


def _legend(axis: Axes, entries: int) -> None:
    """A legend where there is more than one line; long ones get room of their own above the lines."""
    if entries > 3:
        low, high = np.log10(axis.get_ylim())
        axis.set_ylim(top=10 ** (high + 0.17 * (high - low) * math.ceil(entries / 2)))
        axis.legend(loc="upper center", ncols=2)
    elif entries > 1:
        axis.legend(loc="best")
