import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fairtrial as ft
from fairtrial.text.numbers import find_numbers, read_number


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


def test_without_tolerance_it_is_right_or_wrong():
    assert (
        value("42", "42", tolerance=0) == value("42.0", "42", tolerance=0) == value("33.3%", "0.333", tolerance=0) == 1
    )
    assert value("42.0000001", "42", tolerance=0) == value("41", "42", tolerance=0, zero_at=5) == 0
    assert value("123456789012345", "123456789012346", tolerance=0) == 0


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("it is 1/2", "0.5"),
        ("-1/2", "-0.5"),
        ("1 1/2", "1.5"),
        ("2½", "2.5"),
        ("½", "0.5"),
        (r"\(\frac{1}{2}\)", "0.5"),
        (r"-\dfrac{3}{4}", "-0.75"),
        (r"\frac12", "0.5"),
        (r"1\frac{1}{2}", "1.5"),
        ("1.234,5", "1234.5"),
        ("1.234.567", "1234567"),
        ("1 234 567", "1234567"),
        ("1\u202f234,5", "1234.5"),
        ("1\u00a0234", "1234"),
        ("1'234.50", "1234.5"),
        ("1’234", "1234"),
        ("12,34,567", "1234567"),
        ("3,14", "3.14"),
        ("3 × 10⁵", "300000"),
        ("3 × 10⁻⁵", "0.00003"),
        (r"3 \times 10^5", "300000"),
        (r"$3 \cdot 10^{5}$", "300000"),
        ("10^5", "100000"),
        ("10**5", "100000"),
        (r"1{,}234", "1234"),
        (r"1\,234", "1234"),
        (r"50\%", "0.5"),
        ("50 percent", "0.5"),
        ("-$5", "-5"),
        ("$1,234.50", "1234.5"),
        ("٤٢", "42"),
    ],
)
def test_numbers_as_people_write_them(response, expected):
    assert value(response, expected) == 1
    assert value(response, expected, pick="last") == 1
    assert value(expected, response.removeprefix("it is ")) == 1  # and as they write what is right


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("1/2", "2"),
        ("1/2", "1"),
        ("3 × 10^5", "3"),
        ("10^5", "5"),
        ("1,5", "5"),
        ("0.123", "123"),
        ("0,123", "123"),
        ("3142", "3.142"),  # what is expected is read in one way
    ],
)
def test_parts_of_a_number_are_no_numbers(response, expected):
    assert value(response, expected) == 0


@pytest.mark.parametrize(
    ("response", "expected", "note"),
    [("1.234", "1234", "`1.234` read as 1234"), ("1,234", "1.234", "`1,234` read as 1.234"), ("1,234", "1234", "")],
)
def test_a_number_with_two_readings_does_not_lose(response, expected, note):
    result = ft.score("numeric", response=response, expected=expected)
    assert result.value == 1 and note in result.notes and ("read as" in result.notes) == bool(note)


@pytest.mark.parametrize(
    "text", ["first 7, then 42", "7. Then 42", "it's 7' long, or 42", "1 000 km, 42 m", "1, 000 000"]
)
def test_punctuation_after_a_number_is_no_part_of_it(text):
    """Python 3.11.2, which Debian 12 has, reads too far with a possessive quantifier."""
    assert all(number.text.strip()[-1].isdigit() for number in find_numbers(text)) and find_numbers(text)


def test_dates_and_lists_are_several_numbers():
    assert [n.readings for n in find_numbers("5/6/2024, 1,2,3")] == [(5,), (6,), (2024,), (1,), (2,), (3,)]


def test_an_expected_number_may_be_one():
    assert ft.score("numeric", response="42", expected=42).value == 1
    assert ft.score("numeric", response="2.5", expected=[1, 2.5]).value == 1


def test_what_is_no_number_is_no_expected_value():
    for text in ("", "forty", "1 2", "NaN", "inf", "1e999", "--3", "1,23,4x"):
        assert read_number(text) == ()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_reads_what_python_writes(number):
    assert read_number(repr(number)) == (number,)


_GROUPS = [",", ".", "'", "’", "_", "\u00a0", "\u2009", "\u202f", " ", "{,}", r"\,"]


@given(st.integers(-(10**12), 10**12), st.sampled_from(_GROUPS), st.sampled_from("-−–"))
def test_reads_thousands_separators(number, separator, minus):
    written = f"{number:,}".replace(",", separator).replace("-", minus)
    assert float(number) in find_numbers(f"it is {written} or so")[-1].readings


@given(st.decimals(-(10**9), 10**9, places=2), st.sampled_from(_GROUPS), st.sampled_from(".,"))
def test_reads_decimals_of_many_languages(number, separator, point):
    assume(separator.strip("{}") != point and (separator, point) != ("_", ","))
    written = f"{number:,}".replace(".", "!").replace(",", separator).replace("!", point)
    assert float(number) in find_numbers(f"it is {written} or so")[-1].readings


@given(st.integers(-999, 999), st.integers(1, 999))
def test_reads_fractions(over, under):
    for written in (f"{over}/{under}", rf"\frac{{{over}}}{{{under}}}", f"{over} / {under}"):
        assert read_number(written) == (over / under,)


@given(st.integers(-99, 99), st.integers(-99, 99))
def test_reads_powers_of_ten(digits, power):
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    for written in (
        f"{digits} × 10^{power}",
        f"{digits}·10{raised}",
        rf"{digits} \times 10^{{{power}}}",
        f"{digits}e{power}",
    ):
        assert read_number(written) == (float(f"{digits}e{power}"),)


@pytest.mark.slow
@given(st.floats(1e-6, 1e6), st.floats(0, 1))
def test_more_error_never_scores_more(expected, share):
    assume(share <= 1)
    nearer, farther = expected * (1 + share / 2), expected * (1 + share)
    assert value(repr(farther), repr(expected)) <= value(repr(nearer), repr(expected)) + 1e-9


@given(st.text(max_size=200))
def test_never_breaks(text):
    for number in find_numbers(text):
        assert number.readings and all(map(math.isfinite, number.readings))


_BITS = [*"1/,.' _^{}%e-$x½", "\\frac", "10^", "111", "11 "]


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(_BITS), min_size=1, max_size=4).map("".join))
def test_the_time_grows_with_the_length_alone(bit):
    # A number that is looked at twice for every one before it would take minutes.
    find_numbers(bit * 1500)
