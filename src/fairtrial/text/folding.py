"""Text normalisation for comparing answers, and whole-word search in normalised text.

`fold` removes differences of typing and typography: capitals, Unicode forms (full-width letters, ligatures, composed
accents, digits of other scripts), curly quotes, long dashes, invisible characters and runs of spaces. `bare` also
removes sentence punctuation. Neither touches what makes answers different: accents, signs, decimal points, `C++` and
`C#`, `$5` and `5%`.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
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

# Scripts that write no spaces between words, or attach particles to them: there, any substring counts as a word.
_JOINED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_JOINED}]]"
_ANY_LETTER = regex.compile(_LETTER, regex.V1)
_BEFORE = rf"(?<!{_LETTER})(?<!{_LETTER}_)"
_AFTER = rf"(?!{_LETTER}|_{_LETTER}|[+#]|'(?!s\b){_LETTER})"  # not C in C++, not can in can't, but Paris in Paris's
_BEFORE_DIGIT = r"(?<!\d[.,:/^'])(?<!(?<![\p{L}\p{N})\]])[-.]\$?)"  # not 5 in 1.5, not 42 in -42
_BEFORE_SIGN = r"(?<![\p{L}\p{N})\]])"  # not -5 in 10-5
_AFTER_DIGIT = r"(?![.,:/^']\d)"


def fold(text: str) -> str:
    """Return the text case-folded, in one Unicode form, with plain quotes and dashes and single spaces."""
    if not text.isascii():
        text = _PART.sub(" ", _POWER.sub(_raised, _UNSEEN_OR_DIGIT.sub(_ascii_digit, text))).translate(_ONE_FOR_ONE)
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_ONE_FOR_ONE)
    return " ".join(text.casefold().split())


def same_text(answer: str, expected: str) -> bool:
    """Return whether two texts are equal after folding and without sentence punctuation."""
    folded, folded_expected = fold(answer), fold(expected)
    bare_expected = bare(folded_expected, strict=True)
    return folded == folded_expected or bare_expected in (bare(folded), bare(folded, strict=True))


def bare(text: str, *, strict: bool = False) -> str:
    """Strip sentence punctuation, surrounding quotes and emphasis marks from a folded text.

    With `strict`, the mark in `n!` and `5!` is not punctuation.
    """
    text = _PAUSE.sub("", text)
    start, end = 0, len(text)
    while start < end:
        inner = _strip_layer(text, start, end, strict=strict)
        if inner == (start, end):
            break
        start, end = inner
    return text[start:end] or text


def _strip_layer(text: str, start: int, end: int, *, strict: bool) -> tuple[int, int]:
    """Strip one layer: a space, a bullet, a mark at the end, a pair of quotes or stars."""
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
    """Return whether a folded text contains a folded word or phrase; as a whole word, unless `whole` is false."""
    if not whole or not word:
        return word in text
    before, after = _boundaries(word)
    at = text.find(word)
    while at >= 0:
        if before.match(text, at) and after.match(text, at + len(word)):
            return True
        at = text.find(word, at + 1)
    return False


def _boundaries(word: str) -> tuple[Any, Any]:
    """Return the patterns of what may come before and after a word: compiled by its ends, for words are many."""
    first, last = word[0], word[-1]
    before = _before(_is_letter(first), first.isdigit(), first in "+-.")
    return before, _after(_is_letter(last), last.isdigit())


@lru_cache(maxsize=4096)
def _is_letter(character: str) -> bool:
    return _ANY_LETTER.match(character) is not None


@cache
def _before(letter: bool, digit: bool, sign: bool) -> Any:
    parts = (_BEFORE if letter else "", _BEFORE_DIGIT if digit else "", _BEFORE_SIGN if sign else "")
    return regex.compile("".join(parts), regex.V1)


@cache
def _after(letter: bool, digit: bool) -> Any:
    return regex.compile((_AFTER if letter else "") + (_AFTER_DIGIT if digit else ""), regex.V1)


def _raised(match: Any) -> str:
    return "^" + "".join(_RAISED[character] for character in match[0])


def _ascii_digit(match: Any) -> str:
    """Return a digit of any script as an ASCII digit, and an invisible character as an empty string."""
    return str(unicodedata.decimal(match[0])) if match[0].isdecimal() else ""
