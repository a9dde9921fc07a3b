"""Durations are said in one way everywhere."""

import pytest

from fairtrial.core.formatting import span


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.2, "0 s"),
        (42, "42 s"),
        (360, "6 min"),
        (372.4, "6 min 12 s"),
        (7200, "2 h"),
        (7505, "2 h 5 min"),
    ],
)
def test_a_duration_has_the_units_that_are_there(seconds, words):
    assert span(seconds) == words
