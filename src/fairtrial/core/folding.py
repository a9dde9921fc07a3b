"""Texts that mean the same although they are written differently, and words found in them.

`fold` undoes what a keyboard, a font or a sentence's beginning does to a text: capitals, Unicode forms (full-width
letters, ligatures, composed accents, digits of other scripts), curly quotes, long dashes, invisible characters and
runs of blanks. `bare` leaves out the punctuation of sentences too. Neither touches what tells answers apart: accents,
signs, decimal points, `C++` and `C#`, `$5` and `5%`.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any

import regex

_ONE_FOR_ONE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
        "\N{FRACTION SLASH}": "/",
    }
)
_UNSEEN_OR_DIGIT = regex.compile(r"[\p{Cf}[\p{Nd}--[0-9]]]", regex.V1)
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_POWER = regex.compile(f"[{''.join(_RAISED)}]+")
_PART = regex.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")  # 1½ is 1 1/2, never 11/2

_END = ".,;:…。、，；：．"
_LOUD = "!?！？"
_PAUSE = regex.compile(rf"[{_END}]+(?=\s)|(?<=\p{{L}}\p{{L}})[{_LOUD}]+(?=\s)")
_LONE = regex.compile(r"(?<!\p{L})[\p{L}\d]")  # a letter by itself, or the end of a number
_ENCLOSED = regex.compile(r"\(\w+\)")

# Scripts that set words apart by nothing, or hang particles on them: a word there is any part of a text.
_JOINED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_JOINED}]]"
_BEFORE = rf"(?<!{_LETTER})(?<!{_LETTER}_)"
_AFTER = rf"(?!{_LETTER}|_{_LETTER}|[+#]|'(?!s\b){_LETTER})"  # not C in C++, not can in can't, but Paris in Paris's
_BEFORE_DIGIT = r"(?<!\d[.,:/^'])(?<!(?<![\p{L}\p{N})\]])[-.]\$?)"  # not 5 in 1.5, not 42 in -42
_BEFORE_SIGN = r"(?<![\p{L}\p{N})\]])"  # not -5 in 10-5
_AFTER_DIGIT = r"(?![.,:/^']\d)"


def fold(text: str) -> str:
    """The text in small letters, in one Unicode form, with plain quotes and dashes and single blanks."""
    if not text.isascii():
        text = _PART.sub(" ", _POWER.sub(_raised, _UNSEEN_OR_DIGIT.sub(_plain, text))).translate(_ONE_FOR_ONE)
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_ONE_FOR_ONE)
    return " ".join(text.casefold().split())


def same_text(answer: str, expected: str) -> bool:
    """Whether two texts are the same when folded and without the punctuation of sentences."""
    one, other = fold(answer), fold(expected)
    wanted = bare(other, strict=True)
    return one == other or wanted in (bare(one), bare(one, strict=True))


def bare(text: str, *, strict: bool = False) -> str:
    """A folded text without the punctuation of sentences, quotes around it and marks of emphasis.

    With `strict`, the mark in `n!` and `5!` is no punctuation.
    """
    text = _PAUSE.sub("", text)
    start, end = 0, len(text)
    while start < end:
        inner = _inner(text, start, end, strict=strict)
        if inner == (start, end):
            break
        start, end = inner
    return text[start:end] or text


def _inner(text: str, start: int, end: int, *, strict: bool) -> tuple[int, int]:
    """One layer less: blanks, a bullet, marks at the end, a pair of quotes or stars."""
    first, last = text[start], text[end - 1]
    if first in " ¿¡" or text.startswith("- ", start):
        return start + 1, end
    if last in " " + _END or (last in _LOUD and not _is_factorial(text, start, end - 1, strict=strict)):
        return start, end - 1
    if end - start > 2 and first == last and first in "\"'`*_":
        return start + 1, end - 1
    if first == "(" and last == ")" and _ENCLOSED.fullmatch(text, start, end):
        return start + 1, end - 1
    return start, end


def _is_factorial(text: str, start: int, mark: int, *, strict: bool) -> bool:
    if mark == start or text[mark - 1] == ")":
        return mark > start
    return strict and _LONE.fullmatch(text, mark - 1, mark) is not None


def find_word(word: str, text: str, *, whole: bool = True) -> bool:
    """Whether a folded text has a folded word or phrase; as a whole word, unless `whole` is false."""
    if word not in text:
        return False
    return not whole or _word_pattern(word).search(text) is not None


@lru_cache(maxsize=1024)
def _word_pattern(word: str) -> Any:
    before = _BEFORE if regex.match(_LETTER, word[0], regex.V1) else ""
    after = _AFTER if regex.match(_LETTER, word[-1], regex.V1) else ""
    before += _BEFORE_DIGIT if word[0].isdigit() else ""
    before += _BEFORE_SIGN if word[0] in "+-." else ""
    after += _AFTER_DIGIT if word[-1].isdigit() else ""
    return regex.compile(before + regex.escape(word) + after, regex.V1)


def _raised(match: Any) -> str:
    return "^" + "".join(_RAISED[character] for character in match[0])


def _plain(match: Any) -> str:
    """A digit of any script as ours; nothing for what cannot be seen."""
    return str(unicodedata.decimal(match[0])) if match[0].isdecimal() else ""
