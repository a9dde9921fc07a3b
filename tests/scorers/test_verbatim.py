"""Comparison character by character, for those who want it: case, punctuation and spelling count."""

import pytest

import fairtrial as ft


@pytest.mark.parametrize(
    ("name", "options", "response", "value"),
    [
        ("match", {"expected": "Paris"}, "Paris", 1),
        ("match", {"expected": "Paris"}, " Paris\n", 1),
        ("match", {"expected": "Paris"}, "paris", 0),
        ("match", {"expected": "Paris"}, "Paris.", 0),
        ("match", {"expected": '{"a": 1}'}, '{"a":1}', 0),
        ("contains", {"any": ["no"]}, "I know", 1),
        ("contains", {"any": ["No"]}, "I know", 0),
        ("contains", {"all": ["a ", "B"]}, "a B", 1),
        ("contains", {"none": ["b"]}, "a B", 1),
        ("contains", {"expected": "$5 ("}, "costs $5 (net)", 1),
        ("starts_with", {"text": "Yes"}, "Yesterday", 1),
        ("starts_with", {"text": "Yes"}, "yes", 0),
        ("starts_with", {"expected": "Yes"}, "**Yes**", 0),
    ],
)
def test_every_character_counts(name, options, response, value):
    assert ft.score(name, response=response, verbatim=True, **options).value == value


@pytest.mark.parametrize(("limit", "value"), [(3, 1), (2, 0), (0, 0)])
def test_a_limit_on_the_distance(limit, value):
    score = ft.score("levenshtein", response="kitten", expected="sitting", max_distance=limit)
    assert score.value == value and "distance 3" in score.notes
