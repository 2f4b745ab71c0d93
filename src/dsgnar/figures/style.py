"""One look for all pictures: the width of a page, a serif face, colours that colour-blind people can tell apart."""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

WIDTH = 7.4  # inches: the text width of a page with small margins

# Okabe and Ito's palette, in an order that keeps neighbours apart in grey print as well.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, ORANGE, BLACK, GREY = "#56B4E9", "#E69F00", "#000000", "#8a8a8a"
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)

DIVERGING, SEQUENTIAL, ERRORS = "RdBu_r", "viridis", "magma"  # values of both signs, of one sign, magnitudes of errors

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


def styled(function: Callable) -> Callable:
    """Draw with these settings, and leave the caller's alone."""

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with rc_context(_RC):
            return function(*args, **kwargs)

    return inside


def power(value: float, digits: int = 2) -> str:
    """A number as a paper prints it: $4.5 \\times 10^{-7}$."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return rf"${mantissa} \times 10^{{{int(exponent)}}}$"


def label(axis: Axes, x: str, y: str) -> None:
    axis.set(xlabel=x, ylabel=y)


def decades(axis: Axes) -> None:
    """Label powers of ten only, and show at least two of them: labels such as 6 x 10^-7 do not fit beside a small panel."""
    for side, name in ((axis.xaxis, "x"), (axis.yaxis, "y")):
        low, high = side.get_view_interval()
        if side.get_scale() == "log" and 0 < low < high:
            below, above = math.floor(math.log10(low)), math.ceil(math.log10(high))
            if math.floor(math.log10(high)) - math.ceil(math.log10(low)) < 1:
                axis.set(**{f"{name}lim": (10.0**below, 10.0**above)})
            side.set_minor_formatter(NullFormatter())


def maths(name: str) -> str:
    """A name of the user as mathematics: `x1` becomes $x_1$; longer names stay upright."""
    head = name.rstrip("0123456789")
    if len(head) == 1:
        return f"${name}$" if head == name else f"${head}_{{{name[len(head) :]}}}$"
    return name.replace("_", " ")
