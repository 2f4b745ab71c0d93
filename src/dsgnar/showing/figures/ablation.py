"""Loss, error and lambda over iterations, for several variants side by side (Figure 4 of the paper)."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dsgnar.showing import words
from dsgnar.showing.colours import repeated
from dsgnar.showing.figures.style import WIDTH, label, styled
from dsgnar.solving.record import Record

Histories = Sequence[Sequence[Record]]  # of one variant, a seed each


@styled
def courses(variants: Mapping[str, Histories], title: str = "") -> Figure:
    """A colour for each variant, a line for each of its seeds; the first seed is drawn in full strength."""
    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
    for axis, quantity in zip(figure.subplots(1, 3), (words.LOSS, words.ERROR, words.LAMBDA), strict=True):
        for (name, histories), colour in zip(variants.items(), repeated(), strict=False):
            for k, history in enumerate(histories):
                x, y = _POINTS[quantity.title](history)
                axis.semilogy(x, y, color=colour, lw=1.1 if k == 0 else 0.6, alpha=1.0 if k == 0 else 0.5,
                              label=name if k == 0 else None)  # fmt: skip
        axis.set_title(quantity.title, loc="left")
        label(axis, "iteration", quantity.symbol)
    _legend(figure, figure.axes[0], title)
    return figure


def _legend(figure: Figure, axis: Axes, title: str) -> None:
    handles, names = axis.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(7, len(names)), title=title or None)


def _loss(history: Sequence[Record]) -> tuple[list, list]:
    return [r.iteration for r in history], [r.loss for r in history]


def _error(history: Sequence[Record]) -> tuple[list, list]:
    looked = [(r.iteration, max(r.error.values())) for r in history if r.error]
    return [k for k, _ in looked], [e for _, e in looked]


def _lambda(history: Sequence[Record]) -> tuple[list, list]:
    damped = [(r.iteration, r.lam) for r in history if r.accepted and r.lam > 0]
    return [k for k, _ in damped], [lam for _, lam in damped]


_POINTS = {words.LOSS.title: _loss, words.ERROR.title: _error, words.LAMBDA.title: _lambda}
