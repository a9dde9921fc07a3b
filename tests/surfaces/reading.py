"""Reads headlines as a person would: each sentence becomes claims, and a sentence that claims nothing is an error."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = r"[A-Za-z][\w.-]*(?:@[\w-]+)?"
NUMBER = r"−?[\d,]+(?:\.\d+)?"
CI = rf" \(95 % CI (?P<low>{NUMBER}) to (?P<high>{NUMBER})\)"
ON = r"(?P<on> on \w+(?: \(lower is better\))?)?"


@dataclass
class Claim:
    """One thing that a headline says."""

    kind: str
    one: str = ""
    other: str = ""
    amount: str = ""
    bounds: tuple[str, str] | None = None
    names: list[str] = field(default_factory=list)
    counts: tuple[int, ...] = ()
    metric: str = ""
    lower: bool = False
    how: str = ""


def _claim(kind: str, found: re.Match[str]) -> Claim:
    groups = {name: value for name, value in found.groupdict().items() if value is not None}
    on = groups.get("on", "")
    return Claim(
        kind,
        groups.get("one", ""),
        groups.get("other", ""),
        groups.get("amount", ""),
        (groups["low"], groups["high"]) if "low" in groups else None,
        _names(groups.get("names", "")),
        tuple(int(groups[name].replace(",", "")) for name in ("n1", "n2", "n3") if name in groups),
        on.removeprefix(" on ").partition(" ")[0],
        "lower is better" in on,
        groups.get("how", ""),
    )


def _names(text: str) -> list[str]:
    return re.findall(rf"{NAME}(?=,|\s|$)", text.replace(" and ", " ")) if text else []


POINTS = rf"(?P<amount>{NUMBER}) points?"
LISTED = rf"(?P<names>{NAME}(?:, {NAME})*(?:,? and (?:{NAME}|(?P<n1>\d+) more))?)"
PATTERNS = [
    ("silent", rf"(?P<one>{NAME}) never answered(?: \((?P<amount>[^)]*)\))?"),
    ("unscored", rf"(?P<one>{NAME}) has no \w+(?: \([^)]*\))?"),
    ("alone", rf"(?P<one>{NAME}) (?:scores|has a \w+ of) (?P<amount>{NUMBER})(?:{CI}| on (?:one case|\d+ cases))"),
    ("better", rf"(?P<one>{NAME}) is {POINTS} better than (?P<other>{NAME})(?:{CI})?"),
    ("better", rf"(?P<one>{NAME}) is better than (?P<other>{NAME}){ON} by (?P<amount>{NUMBER})(?:{CI})?"),
    ("leads", rf"(?P<one>{NAME}) leads{ON}"),
    ("next", rf"(?P<other>{NAME}), the next, is (?P<amount>{NUMBER})(?: points?)? behind(?:{CI})?"),
    ("behind", rf"(?P<other>{NAME}) is (?P<amount>{NUMBER})(?: points?)? behind (?P<one>{NAME})(?:{CI})?"),
    ("tied", rf"{LISTED} are tied for first{ON}"),
    ("tied", rf"{LISTED} lead and are equivalent within {NUMBER}(?: points?)?{ON}"),
    ("highest", rf"{LISTED} (?:scores? highest|comes? first{ON})"),
    ("ruled out", r"(?P<n1>[\d,]+) cases? rules? out (?P<n2>\d+) of the other (?P<n3>\d+) as the best"),
    ("all ruled out", r"(?P<n1>[\d,]+) cases? rules? out all of the other (?P<n2>\d+) as the best"),
    ("racing", r"(?P<n1>\d+) (?:is|are) still in the race"),
    ("no leader", rf"[Tt]oo close to call{ON}: no clear leader among the (?P<n1>\d+) arms"),
    ("all equivalent", rf"[Aa]ll (?P<n1>\d+) arms are equivalent{ON} within {NUMBER}(?: points?)?"),
    ("level", rf"(?P<one>{NAME}) and (?P<other>{NAME}) are too close to call{ON}: they are level(?:{CI})?"),
    ("here", rf"On this case, (?P<one>{NAME}) is (?P<how>better|ahead) by (?P<amount>{NUMBER})(?: points?)?(?:{CI})?"),
    ("here level", rf"On this case, they are level(?:{CI})?"),
    ("one case", rf"(?P<one>{NAME}) and (?P<other>{NAME}) are too close to call{ON}: there is only one case"),
    (
        "close",
        rf"(?P<one>{NAME}) and (?P<other>{NAME}) are too close to call{ON}: {NAME} is ahead by "
        rf"(?P<amount>{NUMBER})(?: points?)?(?:{CI})?",
    ),
    ("equivalent", rf"(?P<one>{NAME}) and (?P<other>{NAME}) are equivalent{ON} within {NUMBER}(?: points?)?(?:{CI})?"),
    (
        "depends",
        rf"[Ww]hether (?P<one>{NAME}) is better than (?P<other>{NAME}){ON} depends on the "
        rf"(?:(?P<n1>\d+) failed trials?|trials that failed); without them, it is ahead by (?P<amount>{NUMBER})"
        rf"(?: points?)?(?:{CI})?",
    ),
    (
        "overtaken",
        rf"(?P<other>{NAME}) has the best mean{ON}, but (?P<one>{NAME}) is (?:better by (?P<amount>{NUMBER})|"
        rf"{POINTS.replace('amount', 'amount_points')} better) on the (?P<n1>\d+) cases? that both have(?:{CI})?",
    ),
    ("nothing", r"No answer has a score yet"),
]


def read(sentence: str) -> list[Claim]:
    """Return what a headline claims; every part of it must be understood."""
    text, claims = sentence.strip(), []
    while text:
        text = text.lstrip(" ;")
        if text in ("", "."):
            break
        for kind, pattern in PATTERNS:
            found = re.match(rf"{pattern}(?=[.;]|$)", text)
            if found:
                claims.append(_claim(kind, found))
                text = text[found.end() :].removeprefix(".")
                break
        else:
            raise AssertionError(f"nobody would understand `{text}` in: {sentence}")
    assert claims, sentence
    return claims


MOVED = rf"(?P<one>{NAME}) (?P<verb>gained|lost|improved by|got worse by) (?P<amount>{NUMBER})(?: points?)?(?:{CI})?"


def moves(sentence: str) -> list[tuple[str, int, Claim]]:
    """Return which arms moved from an earlier to a later run, +1 for the better, −1 for the worse."""
    return [
        (found["one"], 1 if found["verb"] in ("gained", "improved by") else -1, _claim("moved", found))
        for found in re.finditer(MOVED, sentence)
    ]


def value(text: str) -> float:
    """Return a printed number."""
    return float(text.replace("−", "-").replace(",", ""))


def shows(text: str, exact: float) -> bool:
    """Return whether a printed number is an exact one, rounded to the digits that are printed."""
    digits = len(text.partition(".")[2])
    return abs(value(text) - exact) <= 0.5 * 10.0**-digits + 1e-9
