"""The course of a run: loss, error, weights, ratio, lambda and radius over iterations (panels e to j of Appendix D)."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dsgnar.showing import words
from dsgnar.showing.colours import BLUE, GREY, VERMILION, repeated
from dsgnar.showing.figures.style import label
from dsgnar.showing.iterations import EVENTS, RATIO_RANGE, drawn_ratio, marks, split
from dsgnar.solving.record import Record
from dsgnar.solving.solution import Solution

Panel = tuple[str, Callable[[Axes], None]]  # a title, and what draws it


def panels(solution: Solution) -> list[Panel]:
    """The six panels of the course."""
    history, conditions = solution.history, tuple(solution.problem.conditions)
    second: Panel = (words.ERROR.title, lambda axis: errors(axis, history, "iteration"))
    if not any(r.error for r in history):
        second = (words.RESIDUALS.title, lambda axis: _residuals(axis, history, conditions))
    return [
        (words.LOSS.title, lambda axis: _loss(axis, history)),
        second,
        (words.WEIGHTS.title, lambda axis: _weights(axis, history, conditions)),
        (words.RATIO.title, lambda axis: _ratio(axis, history)),
        (words.LAMBDA.title, lambda axis: _lambda(axis, history)),
        (words.RADIUS.title, lambda axis: _radius(axis, history)),
    ]


def mark(axis: Axes, history: Sequence[Record], over: str = "iteration") -> None:
    """Vertical lines where stage, precision or time interval change."""
    for each in marks(history):
        axis.axvline(each.at(over), lw=0.7, zorder=1.5, **_look(each.kind))


def legend(history: Sequence[Record]) -> list[Line2D]:
    """Keys of the vertical lines and of the crosses that occur."""
    seen = {each.kind for each in marks(history)}
    keys = [Line2D([], [], lw=0.9, label=kind, **_look(kind)) for kind in EVENTS if kind in seen]
    if any(not r.accepted for r in history):
        keys.append(Line2D([], [], ls="", marker="x", ms=4, color=GREY, label="rejected step"))
    return keys


def _look(kind: str) -> dict[str, Any]:
    return {"color": EVENTS[kind].colour, "ls": EVENTS[kind].dash}


def errors(axis: Axes, history: Sequence[Record], over: str) -> None:
    """The relative error of every unknown, or the held-out loss without a reference, over iterations or seconds."""
    looked = [r for r in history if r.error]
    if looked:
        for name, colour in zip(looked[0].error or {}, repeated(), strict=False):
            pairs = [(getattr(r, over), r.error[name]) for r in looked if r.error and name in r.error]
            _line(axis, [x for x, _ in pairs], [y for _, y in pairs], colour, words.mathtext(name))
        _legend(axis, len(looked[0].error or {}))
    else:
        seen = [r for r in history if r.held_out]
        _line(axis, [getattr(r, over) for r in seen], [r.held_out for r in seen])
    label(axis, over, words.ERROR.symbol if looked else words.HELD_OUT.plain)


def _loss(axis: Axes, history: Sequence[Record]) -> None:
    _line(axis, [r.iteration for r in history], [r.loss for r in history])
    held = [r for r in history if r.held_out]
    if held:
        style: dict[str, Any] = dict(ls="", marker="o", ms=2, mew=0, color=VERMILION, label="held-out points")
        axis.semilogy([r.iteration for r in held], [r.held_out for r in held], **style)
        axis.legend(loc="best")
    label(axis, "iteration", words.LOSS.symbol)


def _residuals(axis: Axes, history: Sequence[Record], conditions: tuple[str, ...]) -> None:
    _each(axis, history, conditions, lambda r, m: np.sqrt(r.mean_squares[m]))
    label(axis, "iteration", "root mean square")


def _weights(axis: Axes, history: Sequence[Record], conditions: tuple[str, ...]) -> None:
    _each(axis, history, conditions, lambda r, m: r.weights[m])
    label(axis, "iteration", words.WEIGHTS.symbol)


def _each(axis: Axes, history: Sequence[Record], conditions: tuple[str, ...], value: Callable) -> None:
    for m, (name, colour) in enumerate(zip(conditions, repeated(), strict=False)):
        _line(axis, [r.iteration for r in history], [value(r, m) for r in history], colour, name)
    _legend(axis, len(conditions))


def _ratio(axis: Axes, history: Sequence[Record]) -> None:
    for records, marker in zip(split(history), (_DOT, _CROSS), strict=True):
        axis.plot([r.iteration for r in records], [drawn_ratio(r) for r in records], ls="", **marker)
    style: dict[str, Any] = dict(where="mid", color=VERMILION, lw=0.9, label="target")
    axis.step([r.iteration for r in history], [r.target for r in history], **style)
    axis.set_ylim(*RATIO_RANGE)
    axis.legend(loc="best")
    label(axis, "iteration", words.RATIO.symbol)


def _lambda(axis: Axes, history: Sequence[Record]) -> None:
    accepted, _ = split(history)
    damped = [r.lam if r.lam > 0 else math.nan for r in accepted]
    _line(axis, [r.iteration for r in accepted], damped)
    free = [r.iteration for r in accepted if not r.lam > 0]
    if free:
        style: dict[str, Any] = dict(
            ls="", marker="v", ms=3, mew=0, color=VERMILION, transform=axis.get_xaxis_transform()
        )
        axis.plot(free, np.full(len(free), 0.03), label=r"$\lambda = 0$", **style)
        axis.legend(loc="best")
    label(axis, "iteration", words.LAMBDA.symbol)


def _radius(axis: Axes, history: Sequence[Record]) -> None:
    _, rejected = split(history)
    _line(axis, [r.iteration for r in history], [r.radius for r in history])
    axis.semilogy([r.iteration for r in rejected], [r.radius for r in rejected], ls="", **_CROSS)
    label(axis, "iteration", words.RADIUS.symbol)


_DOT: dict[str, Any] = dict(marker="o", ms=2, mew=0, color=BLUE)
_CROSS: dict[str, Any] = dict(marker="x", ms=3.5, mew=0.8, color=GREY)


def _line(axis: Axes, x: Sequence, y: Sequence, colour: str = BLUE, text: str = "") -> None:
    """A line over a logarithmic axis; a short one shows its points."""
    axis.semilogy(x, y, color=colour, label=text, marker="o" if len(x) < 8 else "", ms=2)


def _legend(axis: Axes, entries: int) -> None:
    """A legend for more than one line; a long one gets room above the lines."""
    if entries > 3:
        low, high = np.log10(axis.get_ylim())
        axis.set_ylim(top=10 ** (high + 0.17 * (high - low) * math.ceil(entries / 2)))
        axis.legend(loc="upper center", ncols=2)
    elif entries > 1:
        axis.legend(loc="best")
