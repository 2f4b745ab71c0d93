"""One look for all figures: the width of a page, a serif face, thin lines."""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

P = ParamSpec("P")
T = TypeVar("T")

WIDTH = 7.4  # inches: the text width of a page with small margins

_RC: dict[Any, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.borderpad": 0.2,
    "legend.handlelength": 1.4,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
}


def styled(function: Callable[P, T]) -> Callable[P, T]:
    """Draw with these settings, and leave those of the caller alone."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        with rc_context(_RC):
            return function(*args, **kwargs)

    return inside


def label(axis: Axes, x: str, y: str) -> None:
    axis.set(xlabel=x, ylabel=y)


def decades(axis: Axes) -> None:
    """Label powers of ten only, and show at least two: labels such as 6 x 10^-7 do not fit beside a small panel."""
    for side, name in ((axis.xaxis, "x"), (axis.yaxis, "y")):
        low, high = side.get_view_interval()
        if side.get_scale() == "log" and 0 < low < high:
            below, above = math.floor(math.log10(low)), math.ceil(math.log10(high))
            if math.floor(math.log10(high)) - math.ceil(math.log10(low)) < 1:
                axis.set(**{f"{name}lim": (10.0**below, 10.0**above)})
            side.set_minor_formatter(NullFormatter())
