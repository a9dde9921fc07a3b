import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairtrial as ft


def value(response: str, expected: str | None) -> float:
    return ft.score("exact", response=response, expected=expected).value


@pytest.mark.parametrize(
    ("response", "expected", "score"),
    [
        ("Paris", "Paris", 1.0),
        ("  Paris\n", " Paris ", 1.0),
        ("paris", "Paris", 0.95),
        ("Paris!", "Paris", 0.95 - 0.35 * (1 / 6)),
        ("It is Paris.", "Paris", 0.95 - 0.35 * (7 / 12)),
        ("It is paris.", "Paris", 0.90 - 0.35 * (7 / 12)),
        ("x" * 1000 + "Paris", "Paris", 0.95 - 0.35 * (1000 / 1005)),
        ("x" * 1000 + "paris", "Paris", max(0.55, 0.90 - 0.35 * (1000 / 1005))),
        ("Pariz", "Paris", 0.7 * 0.8),
        ("abcdefgh", "abxxxxxx", 0.4 * 0.25),
        ("London", "Quebec City", 0.0),
        ("", "Paris", 0.0),
        ("1945", "1944", 0.525),  # graded: what plain accuracy calls wrong has a share of the points
        ("-42", "42", 0.95 - 0.35 / 3),
        ("naïve", "naïve", 1.0),
    ],
)
def test_values(response, expected, score):
    assert value(response, expected) == pytest.approx(score, abs=1e-12)


def test_bounds_of_the_bands():
    assert value("Paris" + "x" * 10**6, "Paris") == pytest.approx(0.60, abs=1e-5)
    assert value("paris" + "x" * 10**6, "Paris") == pytest.approx(0.55, abs=1e-5)


def test_similarity_of_exactly_one_half_is_in_the_lower_band():
    assert value("abcd", "abxy") == pytest.approx(0.4 * 0.5)


@pytest.mark.slow
@given(st.text(min_size=1).filter(str.strip), st.text())
def test_never_better_than_identical(expected, response):
    assert 0 <= value(response, expected) <= 1
    if response.strip() == expected.strip():
        assert value(response, expected) == 1
