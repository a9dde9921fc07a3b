"""Counting, without fairtrial."""

import pytest

from fairtrial_readability.ease import Reading, hardest, read, sentences


@pytest.mark.parametrize(
    ("text", "words", "count", "syllables"),
    [
        ("The cat sat on the mat.", 6, 1, 6),
        ("One. Two! Three?", 3, 3, 3),
        ("Table and rate\nbegin a line", 6, 2, 8),
        ("It’s 42.", 1, 1, 1),
        ("", 0, 0, 0),
        ("… 42 <>", 0, 0, 0),
    ],
)
def test_words_sentences_and_syllables(text, words, count, syllables):
    assert read(text) == Reading(words, count, syllables)


def test_the_formula():
    assert Reading(words=100, sentences=5, syllables=150).ease == pytest.approx(206.835 - 20.3 - 126.9)


def test_it_stays_on_its_scale():
    assert read("Go.").ease == 100
    assert read("Incomprehensibilities notwithstanding.").ease == 0 == read("").ease


def test_the_hardest_sentence():
    text = "It is so. Administrative responsibilities necessitate documentation. Go on!"
    assert hardest(text) == sentences(text)[1]
    assert hardest("42") == ""
