"""Parsing of numbers in text, as written in many languages and in TeX.

`1.234` means 1.234 in some languages and 1234 in others: such a number has several readings. Parsing takes time linear
in the length of the text, whatever its content.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_THIN = "\N{THIN SPACE}"
_ONE_FOR_ONE = str.maketrans(
    {
        **dict.fromkeys("−‒–－﹣", "-"),
        **dict.fromkeys("\N{NO-BREAK SPACE}\N{FIGURE SPACE}\N{NARROW NO-BREAK SPACE}", _THIN),
        **dict.fromkeys("’٬", "'"),
        "٫": ".",
        "％": "%",
        "\N{FRACTION SLASH}": "/",
    }
)
_TEX = {"{,}": ",", r"\,": _THIN, r"\%": "%", r"\times": "×", r"\cdot": "·", r"\dfrac": r"\frac", r"\tfrac": r"\frac"}
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5"}
_VULGAR |= {"⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅐": "1/7", "⅑": "1/9", "⅒": "1/10"}
_PART = re.compile(rf"(\d?)\s?([{''.join(_VULGAR)}])")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_POWER = re.compile(r"(?<=10)[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")

_TO_THE = r"\s?(?:\^|\*\*)\s?\{?\s?(?P<%s>[-+]?\d++)\s?\}?"
# Atomic groups, since Python 3.11 before 3.11.5 reads too far with a possessive quantifier after a group.
_RUN = rf"\d{{1,3}}(?>(?:[ ]\d{{3}}(?!\d))+)(?:[.,]\d++)?|\d++(?>(?:[.,'_{_THIN}]\d++)*)|(?<!\.)\.\d++"
# A sign counts only where it cannot be a dash between two numbers: "10-5" is 10 and 5.
_NUMBER = re.compile(
    rf"""(?P<sign>(?<![\w.)\]}}])[-+])?(?:[$€£¥][ ]?)?
    (?: (?:(?P<tex_whole>\d++)\s?)? \\frac\s?                          # \frac{{1}}{{2}}  1\frac{{1}}{{2}}  \frac12
        (?: \{{\s?(?P<tex_over>[-+]?\d++(?:\.\d++)?)\s?\}} \s? \{{\s?(?P<tex_under>\d++(?:\.\d++)?)\s?\}}
          | (?P<over_digit>\d)(?P<under_digit>\d) )
      | (?:(?P<whole>\d++)[ ])? (?<!\d/)(?P<over>\d++)[ ]?/[ ]?(?P<under>\d++)(?![/.,]\d)   # 1/2  1 1/2, but no date
      | 10{_TO_THE % "alone"}                                                  # 10^5
      | (?P<run>{_RUN})
        (?:[eE](?P<exponent>[-+]?\d++) | \s?[x×*·]\s?10{_TO_THE % "power"})?   # 6.02e23  6.02 × 10^23
    )(?P<percent>\s?(?:%|per\s?cent\b))?""",
    re.VERBOSE,
)
_GROUPED = re.compile(rf"[1-9]\d{{0,2}}([,.'{_THIN} ])\d{{3}}(?:\1\d{{3}})*(?:(?!\1)[.,]\d+)?")
_OTHER_GROUPS = re.compile(r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?|\d+(?:_\d+)+(?:\.\d+)?")  # 12,34,567  1_0000
_ONE_POINT = re.compile(r"\d*[.,]\d+")
_FORMULA = re.compile(r"\s*(\$|\\\(|\\\[)(.+)(?:\$|\\\)|\\\])\.?\s*", re.DOTALL)
_PIECE = re.compile(r"\d+(?:\.\d+)?|\.\d+")


class Number(NamedTuple):
    """A number as written, and its possible values; the reading of English and of programs comes first."""

    text: str
    readings: tuple[float, ...]


def read_number(text: str) -> tuple[float, ...]:
    """Return the values of a text that is one finite number; `50%` is 50 and 0.5. Empty if it is anything else.

    A number on its own has one reading: `1.234` is 1.234, and `1,234` is 1234.
    """
    formula = _FORMULA.fullmatch(text)
    match = _NUMBER.fullmatch(_normalise((formula[2] if formula else text).strip().removesuffix(".")))
    numbers = [number for number in _numbers(match) if number.text == match[0]] if match else []
    return numbers[0].readings[: 2 if match and match["percent"] else 1] if numbers else ()


def find_numbers(text: str) -> list[Number]:
    """Return every finite number in a text."""
    return [number for match in _NUMBER.finditer(_normalise(text)) for number in _numbers(match) if number.readings]


def _normalise(text: str) -> str:
    """Normalise the text: one character for all variants of a sign."""
    if "\\" in text or "{,}" in text:
        for tex, plain in _TEX.items():
            text = text.replace(tex, plain)
    if text.isascii():
        return text
    text = _PART.sub(lambda match: f"{match[1]} {_VULGAR[match[2]]}" if match[1] else _VULGAR[match[2]], text)
    return _POWER.sub(lambda match: "^" + match[0].translate(_RAISED), text).translate(_ONE_FOR_ONE)


def _numbers(match: re.Match[str]) -> Iterator[Number]:
    """Yield the numbers of a match: usually one, several where a space or a comma may separate numbers."""
    sign = -1 if match["sign"] == "-" else 1
    if match["run"]:
        yield from _run(match, sign)
    elif match["alone"]:
        yield _number(match[0], [sign * value for value in _values("1", match["alone"], match["percent"])])
    elif match["whole"]:
        yield from _mixed(match, sign)
    else:
        over, under = match["over"] or match["tex_over"], match["under"] or match["tex_under"]
        value = float(match["tex_whole"] or 0) + _ratio(over or match["over_digit"], under or match["under_digit"])
        yield _number(match[0], _shares(sign * value, match["percent"]))


def _mixed(match: re.Match[str], sign: int) -> Iterator[Number]:
    """Yield the readings of `1 1/2`: one number, or two."""
    whole, part = float(match["whole"]), _ratio(match["over"], match["under"])
    yield _number(match["whole"], [sign * whole])
    mixed = _shares(sign * (whole + part), match["percent"]) if part < 1 else []
    yield _number(match[0] if mixed else "", [*mixed, *_shares(part, match["percent"])])


def _run(match: re.Match[str], sign: int) -> Iterator[Number]:
    """Yield the numbers in digits with points, commas, spaces and the like between them."""
    run, exponent, percent = match["run"], match["exponent"] or match["power"], match["percent"]
    readings = [sign * value for digits in _readings(run) for value in _values(digits, exponent, percent)]
    if readings and " " not in run:
        yield _number(match[0], readings)
        return
    first, *middle, last = _PIECE.findall(run)
    yield _number(first, [sign * float(first)])
    for piece in middle:
        yield _number(piece, [float(piece)])
    yield _number(match[0] if readings else last, [*readings, *_values(last, exponent, percent)])


def _readings(run: str) -> list[str]:
    """Return the possible readings of digits with separators as one number; empty if they are not a valid number."""
    grouped = _GROUPED.fullmatch(run)
    if grouped:
        whole, decimal = run.replace(grouped[1], "").replace(",", "."), run.replace(",", ".")
        if grouped[1] not in ".," or run.count(grouped[1]) > 1 or not whole.isdecimal():
            return [whole]
        return [decimal, whole] if grouped[1] == "." else [whole, decimal]
    if _OTHER_GROUPS.fullmatch(run):
        return [run.replace(",", "").replace("_", "")]
    return [run.replace(",", ".")] if run.isdecimal() or _ONE_POINT.fullmatch(run) else []


def _values(digits: str, exponent: str | None, percent: str | None) -> list[float]:
    number = float(f"{digits}e{exponent or 0}")
    if not percent:
        return [number]
    return [number, number / 100 if exponent else float(f"{digits}e-2")]  # makes 33.3 % exactly 0.333


def _shares(value: float, percent: str | None) -> list[float]:
    return [value, value / 100] if percent else [value]


def _ratio(over: str, under: str) -> float:
    return float(over) / float(under) if float(under) else math.nan


def _number(text: str, readings: list[float]) -> Number:
    return Number(text, tuple(dict.fromkeys(reading for reading in readings if math.isfinite(reading))))
