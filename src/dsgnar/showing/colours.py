"""Colours of figures and report, and the part of a colour map that a range of values gets."""

import math
from collections.abc import Sequence

import numpy as np

# Okabe and Ito's palette, which colour-blind people can tell apart, in an order that keeps neighbours apart in grey print.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, ORANGE, BLACK, GREY = "#56B4E9", "#E69F00", "#000000", "#8a8a8a"
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)

# The same hues on a screen, with a contrast of 3 or more on white and on black.
ON_WHITE = ("#0072b2", "#d55e00", "#009e73", "#b5578c", "#c98a00", "#3f9fd8", "#4a4a4a")
ON_BLACK = ("#5cb3ea", "#ff9550", "#3ccfa4", "#e79cc6", "#f0bd4a", "#9ad3f5", "#c9c9c9")
VARIABLES = tuple(f"--series-{k}" for k in range(1, len(LINES) + 1))  # what style sheets call them

# Colour maps: values of both signs, values of one sign, magnitudes of errors.
DIVERGING, SEQUENTIAL, ERRORS = "RdBu_r", "viridis", "magma"
FAINT = 0.05  # values of the other sign below this share of the larger one do not ask for a diverging map
DECADES = 4  # of error that are shown below the largest of a picture


def repeated(colours: Sequence[str] = LINES) -> list[str]:
    """Colours for up to four times as many lines as there are colours."""
    return list(colours) * 4


def style_sheet() -> str:
    """The colours of lines as CSS variables, for a light and for a dark page."""
    light, dark = (
        " ".join(f"{name}: {colour};" for name, colour in zip(VARIABLES, colours, strict=True))
        for colours in (ON_WHITE, ON_BLACK)
    )
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"


def value_range(arrays: Sequence[np.ndarray]) -> tuple[float, float, str]:
    """From where to where a colour map goes, and which one: zero is in the middle where both signs matter."""
    values = np.concatenate([a[~np.isnan(a)] for a in arrays])
    if not values.size:  # nothing was reached
        return 0.0, 1.0, SEQUENTIAL
    low, high = float(values.min()), float(values.max())
    if min(-low, high) > FAINT * max(-low, high):
        return -max(-low, high), max(-low, high), DIVERGING
    return low, high, SEQUENTIAL


def error_range(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """From where to where the logarithmic scale of some error maps goes: each has something to show on it.

    The lower end is the least over all maps of what 99 % of a map exceed, at most `DECADES` below the map's largest value;
    it is at least one decade and at most twice `DECADES` below the largest of all.
    """
    high = max(1e-300, *(float(np.nanmax(a)) for a in arrays))
    low = min(max(float(np.nanquantile(a, 0.01)), float(np.nanmax(a)) * 10.0**-DECADES) for a in arrays)
    return max(min(low, high / 10), high * 10.0 ** (-2 * DECADES), 1e-301), high


def ticks(low: float, high: float) -> list[tuple[int, int]]:
    """Ticks of a logarithmic scale as mantissa and exponent: powers of ten, with 2 and 5 times them below two decades."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    mantissas = (1, 2, 5) if high < 100 * low else (1,)
    inside = low * (1 - 1e-9), high * (1 + 1e-9)
    return [(m, k) for k in exponents for m in mantissas if inside[0] <= m * 10.0**k <= inside[1]]
