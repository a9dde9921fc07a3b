"""Intervals drawn with characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.cli.axis import TextAxis, filled, split

numbers = st.floats(-1e4, 1e4).map(lambda value: round(value, 3))


@given(st.lists(numbers, min_size=1, max_size=8), st.integers(16, 80), st.booleans())
def test_whatever_the_numbers_an_axis_has_its_width_and_its_order(values, width, zero):
    axis = TextAxis(values, width, zero=zero)
    assert len(axis.head().plain) == width and axis.ticks == sorted(set(axis.ticks)) and len(axis.ticks) >= 2
    columns = [axis.column(value) for value in sorted(values)]
    assert columns == sorted(columns) and columns[0] >= 0 and columns[-1] < width
    low, *_, high = [*sorted(values), max(values)]
    bar = axis.bar(values[0], (low, high)).plain
    assert len(bar) == width and bar.count("●") == 1
    assert set(bar[axis.column(low) : axis.column(high) + 1]) <= {"━", "●"}


def test_scores_stay_on_their_scale():
    axis = TextAxis([2.0, 99.0], 41, within=(0.0, 100.0))
    assert axis.ticks[0] == 0 and axis.ticks[-1] == 100
    assert axis.head().plain.split() == [str(n) for n in range(0, 101, 10)]
    assert (axis.column(0), axis.column(50), axis.column(100)) == (0, 20, 40)


def test_differences_have_a_line_at_zero():
    axis = TextAxis([-34.3, -10.4], 40, zero=True)
    assert "−" in axis.head().plain and axis.bar(None, None).plain.strip() == "│"
    assert axis.bar(-10.4, (-15.0, -5.0)).plain.index("●") < axis.column(0.0)


@pytest.mark.parametrize(("share", "bar"), [(0, "░░░░"), (0.5, "██░░"), (1, "████"), (0.29, "█▏░░"), (2, "████")])
def test_bars_grow_in_eighths(share, bar):
    assert filled(share, 4).replace(" ", "░") == bar


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=3), st.integers(10, 90))
def test_a_divided_bar_shows_every_count(counts, width):
    bar = split(counts, "█▒░", width)
    assert len(bar) == (width if sum(counts) else 0)
    assert all((mark in bar) == (count > 0) for mark, count in zip("█▒░", counts, strict=True))
