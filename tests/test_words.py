"""Numbers, durations and symbols as they are shown, and the colours that ranges of values get."""

import math
import re

import numpy as np
import pytest

from dsgnar.showing import colours, words
from dsgnar.showing.words import duration, html_powers, html_symbol, listed, mathtext, mathtext_power, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1447, "1447"),
        (0.25, "0.25"),
        (4.5016e-7, "4.5e-07"),
        (0.0, "0"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (123456.0, "1.2e+05"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (13.21, "13.2 s"),
        (245, "4:05 min"),
        (3753, "1:02:33 h"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_durations(value, text):
    assert duration(value) == text


def test_numbers_that_change_keep_their_width():
    assert [words.scientific(v) for v in (1.0, 3.14159e-12, math.nan)] == ["1.00e+00", "3.14e-12", "–"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([16, 16, 16], "16 × 3"),
        ([0.1, 0.8], "0.1, 0.8"),
        (True, "yes"),
        ({"pde": 50, "ic": 25}, "pde 50, ic 25"),
        (math.inf, "∞"),
        ([], "–"),
        ("fast", "fast"),
    ],
)
def test_settings(value, text):
    assert listed(value) == text


@pytest.mark.parametrize(
    ("name", "tex", "html"),
    [
        ("u", "$u$", "<i>u</i>"),
        ("x12", "$x_{12}$", "<i>x</i><sub>12</sub>"),
        ("flow_rate", "flow rate", "flow rate"),
        ("p<", "p<", "p&lt;"),
    ],
)
def test_symbols_are_the_same_in_figures_and_pages(name, tex, html):
    assert (mathtext(name), html_symbol(name)) == (tex, html)


def test_powers_of_ten_are_written_out_and_words_are_not():
    assert html_powers("4.5e-07 <b>") == '<span class="nowrap">4.5 × 10<sup>−7</sup></span> &lt;b&gt;'
    assert html_powers("run1e-05") == "run1e-05"
    assert mathtext_power(4.5016e-7) == r"$4.5 \times 10^{-7}$"


def test_both_signs_have_zero_in_the_middle_unless_one_is_faint():
    assert colours.value_range([np.array([-1.0, 3.0])]) == (-3.0, 3.0, colours.DIVERGING)
    assert colours.value_range([np.array([-0.1, 3.0])]) == (-0.1, 3.0, colours.SEQUENTIAL)
    assert colours.value_range([np.array([1.0]), np.array([2.0])]) == (1.0, 2.0, colours.SEQUENTIAL)


@pytest.mark.parametrize(
    ("maps", "low", "high"),
    [
        ([np.geomspace(1e-3, 1e-2, 1001)], 1e-3, 1e-2),  # no wider than the values
        ([np.geomspace(1e-12, 1e-2, 1001)], 1e-6, 1e-2),  # four decades
        ([np.full(9, 1e-2)], 1e-3, 1e-2),  # at least one
        ([np.full(9, 1e-5), np.full(9, 1e-2)], 1e-5, 1e-2),  # each map has something to show
        ([np.zeros(9), np.full(9, 1e-2)], 1e-10, 1e-2),  # but never more than eight
        ([np.zeros(9)], 1e-301, 1e-300),
    ],
)
def test_error_maps_show_some_decades(maps, low, high):
    assert colours.error_range(maps) == (pytest.approx(low, rel=0.1), pytest.approx(high))


def test_scales_have_ticks_at_powers_of_ten_or_between_them():
    assert colours.ticks(1e-3, 0.1) == [(1, -3), (1, -2), (1, -1)]
    assert colours.ticks(0.3, 2.5) == [(5, -1), (1, 0), (2, 0)]
    assert words.mathtext_tick(1, -3) == "$10^{-3}$" and words.mathtext_tick(5, -1) == r"$5{\cdot}10^{-1}$"


def test_pages_name_a_colour_for_every_line_of_a_figure():
    names = re.findall(r"(--series-\d): #\w{6};", colours.style_sheet())
    assert names == 2 * list(colours.VARIABLES) and len(colours.VARIABLES) == len(colours.LINES)
