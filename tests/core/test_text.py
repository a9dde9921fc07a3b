"""Numbers and nouns as people write them."""

import pytest

from fairtrial.text.printable import counted, significant


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(8.04e-30, 6, "0"), (-1e-12, 6, "0"), (0.0, 6, "0"), (1e-8, 6, "1e-08"), (1 / 3, 3, "0.333"), (-44.0, 8, "-44")],
)
def test_a_trace_of_rounding_is_0(value, digits, shown):
    assert significant(value, digits) == shown


def test_one_and_many():
    assert [counted(number, "answer") for number in (0, 1, 2)] == ["0 answers", "1 answer", "2 answers"]
