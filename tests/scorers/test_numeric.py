import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.scorers.numeric import find_numbers, read_number


def value(response: str, expected: str, **options) -> float:
    return ft.score("numeric", response=response, expected=expected, **options).value


@pytest.mark.parametrize(
    ("response", "expected", "score"),
    [
        ("42", "42", 1.0),
        ("about 42", "42", 1.0),
        ("42.42", "42", 1.0),  # exactly 1 %, whatever binary fractions say
        ("41.58", "42", 1.0),
        ("42.43", "42", 1 - math.sqrt(0.43 / 42 / 0.25)),
        ("43", "42", 1 - math.sqrt(1 / 42 / 0.25)),
        ("52.5", "42", 0.0),  # 25 %
        ("100", "42", 0.0),
        ("no idea", "42", 0.0),
        ("first 10, then 42, finally 7", "42", 1.0),
        ("-42", "42", 0.0),
        ("−42", "-42", 1.0),
        ("0.005", "0", 1.0),  # against 0 the error is absolute
        ("0.1", "0", 1 - math.sqrt(0.1 / 0.25)),
        ("6.02e23", "6.02e23", 1.0),
        ("6.02 × 10^23", "6.02e23", 1.0),
        ("1,234.5", "1234.5", 1.0),
        ("1_000", "1000", 1.0),
        (".5", "0.5", 1.0),
        ("50%", "0.5", 1.0),
        ("50%", "50", 1.0),
        ("50 %", "50%", 1.0),
        ("0.5", "50%", 1.0),
        ("50", "50%", 1.0),
        ("10-5", "-5", 0.0),
        ("10-5", "5", 1.0),
        ("10-5", "10", 1.0),
        ("x=-3", "-3", 1.0),
        ("so it is ...42", "42", 1.0),
    ],
)
def test_values(response, expected, score):
    assert value(response, expected) == pytest.approx(score, abs=1e-9)


def test_both_sides_of_the_band():
    assert value("101", "100") == 1.0
    assert value("101.0001", "100") == pytest.approx(0.8, abs=1e-4)


def test_options():
    assert value("45", "42", tolerance=0.1) == 1.0
    assert value("63", "42", zero_at=1.0) == pytest.approx(1 - math.sqrt(0.5))
    assert value("42 is wrong, it is 7", "42", pick="last") == 0.0
    assert value("40 or 41.9", "42", pick="closest") == 1.0


def test_what_is_no_number_is_no_expected_value():
    for text in ("", "forty", "1 2", "NaN", "inf", "1e999", "--3", "1,23,4x"):
        assert read_number(text) == ()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_reads_what_python_writes(number):
    assert read_number(repr(number)) == (number,)


@given(st.integers(-(10**12), 10**12))
def test_reads_thousands_separators(number):
    assert find_numbers(f"it is {number:,} or so") == [(float(number),)]


@given(st.floats(1e-6, 1e6), st.floats(0, 1))
def test_more_error_never_scores_more(expected, share):
    assume(share <= 1)
    nearer, farther = expected * (1 + share / 2), expected * (1 + share)
    assert value(repr(farther), repr(expected)) <= value(repr(nearer), repr(expected)) + 1e-9


@given(st.text(max_size=200))
def test_never_breaks(text):
    for readings in find_numbers(text):
        assert all(isinstance(reading, float) for reading in readings)
