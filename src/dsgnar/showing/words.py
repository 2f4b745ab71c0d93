"""Words, numbers and symbols in one place: progress, figures and report say the same thing in the same way.

    number      0.25, 4.5e-07        as a person writes it
    scientific  4.50e-07             of constant width, for values that change while one looks
    duration    13.2 s, 4:05 min, 1:02:33 h
    rate        4.0 iterations/s, 10.0 s per iteration

A symbol has a form for matplotlib (`mathtext`) and one for web pages (`html_symbol`, also understood by plotly.js).
"""

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

NOTHING = "–"  # for what is not known


class Term(NamedTuple):
    """A quantity that is followed during a run."""

    title: str
    symbol: str = ""  # for matplotlib

    @property
    def plain(self) -> str:
        """The title in the middle of a sentence."""
        return self.title[:1].lower() + self.title[1:]


ERROR = Term("Relative error", r"$\ell_2^{\mathrm{rel}}$")
LOSS = Term("Loss", r"$\mathcal{L}$")
HELD_OUT = Term("Held-out loss")
RESIDUALS = Term("Residuals at training points")
WEIGHTS = Term("Weights", r"$w_m$")
RATIO = Term("Decrease ratio", r"$\varrho$")
LAMBDA = Term("Regularisation", r"$\lambda$")
RADIUS = Term("Trust-region radius", r"$\Delta$")


# --- numbers ----------------------------------------------------------------------------------------------------------


def number(value: Any, digits: int = 2) -> str:
    """A number as a person writes it: 1447, 0.25, 4.5e-07. What is no number stays as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NOTHING if value is None else str(value)
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0 or 1e-2 <= abs(value) < 1e5:
        return f"{value:.{digits + 1}g}"
    return f"{value:.{digits - 1}e}"


def scientific(value: float, digits: int = 3) -> str:
    """A number with a power of ten, always of the same width: 4.50e-07."""
    return f"{value:.{digits - 1}e}" if math.isfinite(value) else number(value)


def listed(values: Any) -> str:
    """A setting, whatever its type: `16 × 6` for equal widths, `yes` and `no`."""
    if isinstance(values, Mapping):
        return ", ".join(f"{name} {listed(value)}" for name, value in values.items()) or NOTHING
    if isinstance(values, Sequence) and not isinstance(values, str):
        if len(values) > 1 and all(v == values[0] for v in values):
            return f"{listed(values[0])} × {len(values)}"
        return ", ".join(map(listed, values)) or NOTHING
    if isinstance(values, bool):
        return "yes" if values else "no"
    return f"{values:g}" if isinstance(values, float) and math.isfinite(values) else number(values)


def duration(seconds: Any) -> str:
    """13.2 s, 4:05 min, 1:02:33 h."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def rate(iterations: int, seconds: float) -> str:
    """4.0 iterations/s, or 10.0 s per iteration."""
    if iterations >= seconds:
        return f"{iterations / seconds:.1f} iterations/s"
    return f"{seconds / iterations:.1f} s per iteration"


# --- symbols ----------------------------------------------------------------------------------------------------------


def _indexed(name: str) -> tuple[str, str] | None:
    """A letter and its index, `x1` -> x, 1; None for a name that is a word."""
    head = name.rstrip("0123456789")
    return (head, name[len(head) :]) if len(head) == 1 else None


def mathtext(name: str) -> str:
    """The name of an axis or unknown for matplotlib: `x1` becomes $x_{1}$; words stay upright."""
    parts = _indexed(name)
    if parts is None:
        return name.replace("_", " ")
    letter, index = parts
    return f"${letter}_{{{index}}}$" if index else f"${letter}$"


def html_symbol(name: str) -> str:
    """The same for web pages."""
    parts = _indexed(name)
    if parts is None:
        return html.escape(name.replace("_", " "))
    letter, index = parts
    return f"<i>{html.escape(letter)}</i>" + (f"<sub>{index}</sub>" if index else "")


def mathtext_power(value: float, digits: int = 2) -> str:
    """A number as a paper prints it, for matplotlib: $4.5 \\times 10^{-7}$."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return rf"${mantissa} \times 10^{{{int(exponent)}}}$"


def mathtext_tick(mantissa: int, exponent: int) -> str:
    """The label of a tick on a logarithmic scale, for matplotlib: $10^{-7}$, $5{\\cdot}10^{-7}$."""
    power = f"10^{{{exponent}}}"
    return f"${power}$" if mantissa == 1 else rf"${mantissa}{{\cdot}}{power}$"


def html_powers(text: str) -> str:
    """Text, escaped for web pages, with every 4.5e-07 in it as a power of ten."""

    def power(match: re.Match[str]) -> str:
        return f'<span class="nowrap">{match[1]} × 10<sup>{minus(int(match[2]))}</sup></span>'

    return re.sub(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]\d+)\b", power, html.escape(text))


def minus(number: int | str) -> str:
    """A number with a true minus sign."""
    return str(number).replace("-", "−")
