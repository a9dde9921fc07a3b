"""Measurements of a page as findings for readers and judges: deterministic, and part of the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fairtrial.text.printable import clipped
from fairtrial.webpage.extract import ExtractedPage
from fairtrial.webpage.rendering import Rendering

_MIN_TEXT_PX = 11.0  # on a phone
_NO_PAGE = {
    "no_code": "there is no page in the answer",
    "needs_build": "the answer is source that a browser cannot show without a build",
}


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One finding: whether it is as it should be (None if that could not be measured), and a description."""

    name: str
    passed: bool | None
    words: str


def probes(page: ExtractedPage, seen: Rendering | None, *, cut_off: bool = False) -> list[Probe]:
    """Return all findings about a page; without a browser, only those from its code."""
    return [_complete(page, cut_off=cut_off), *(_browser_probes(seen) if seen is not None else ())]


def missing_page(page: ExtractedPage) -> str:
    """Return why an answer has no page."""
    return next((_NO_PAGE[finding] for finding in page.findings if finding in _NO_PAGE), _NO_PAGE["no_code"])


def _finding(name: str, trouble: str, good: str) -> Probe:
    """Return what is wrong as a finding, or what is good where nothing is."""
    return Probe(name=name, passed=not trouble, words=trouble or good)


def _complete(page: ExtractedPage, *, cut_off: bool) -> Probe:
    broken = "" if page.complete else "the code breaks off"
    return _finding("complete", "the answer was cut off at max_tokens" if cut_off else broken, "the code is whole")


def _browser_probes(seen: Rendering) -> Iterator[Probe]:
    desktop, phone = seen.desktop, seen.phone
    yield _finding("answers", seen.trouble, "the page loads and stays responsive")
    if desktop is not None or seen.errors:
        quoted = [f"“{error}”" for error in seen.errors]
        yield _finding("no_script_errors", f"script errors: {_some(quoted)}" if quoted else "", "no script error")
    if desktop is None:
        return
    asked = f"asks for {_some(seen.blocked)}, which is blocked" if seen.blocked else ""
    yield _finding("self_contained", asked, "asks for nothing outside")
    blank = desktop["blank"]
    yield _finding("not_blank", "nothing is to be seen" if blank else "", "something is to be seen")
    if blank:
        return  # nothing else can be measured on a blank page
    yield _contrast(desktop["contrast"])
    yield _labels(desktop["labels"])
    if phone is not None:
        yield _fits_phone(phone)
        yield _responsive(seen, phone)
    if seen.controls is not None:
        yield _controls(seen.controls)


def _contrast(measured: dict[str, Any]) -> Probe:
    if not measured["texts"]:
        return Probe(name="contrast", passed=None, words="there is no text on a plain background")
    low = measured["low"]
    examples = f"{low} of {measured['texts']} texts have too little contrast: {_some(measured['examples'], low)}"
    return _finding("contrast", examples if low else "", f"all {measured['texts']} texts can be read (WCAG AA)")


def _labels(measured: dict[str, Any]) -> Probe:
    missing = measured["missing"]
    examples = f"{missing} × {_some(measured['examples'], missing)}" if missing else ""
    return _finding("labels", examples, "every field, control and image has a name")


def _fits_phone(phone: dict[str, Any]) -> Probe:
    beyond, culprit = phone["overflow"]["beyond"], phone["overflow"]["culprit"]
    what = f", because of {clipped(culprit, 80)}" if culprit else ""
    too_wide = f"{beyond} px too wide for a phone{what}" if beyond else ""
    return _finding("fits_phone", too_wide, "no sideways scrolling on a phone")


def _responsive(seen: Rendering, phone: dict[str, Any]) -> Probe:
    reasons = []
    if not phone["viewport"]:
        reasons.append("no viewport: a phone shows it as a shrunken desktop")
    if seen.tablet_overflow:
        reasons.append(f"{seen.tablet_overflow} px too wide for a tablet")
    if phone["overflow"]["beyond"]:
        reasons.append("too wide for a phone")
    if phone["smallest"] is not None and phone["smallest"] < _MIN_TEXT_PX:
        reasons.append(f"text of {phone['smallest']:.0f} px on a phone")
    return _finding("responsive", "; ".join(reasons), "works on a phone, a tablet and a desktop")


def _controls(measured: dict[str, Any]) -> Probe:
    if not measured["controls"]:
        return Probe(name="controls", passed=None, words="there is nothing to press")
    if measured["restless"]:
        return Probe(name="controls", passed=None, words="the page moves by itself: nobody can tell what a press does")
    dead, count = measured["dead"], measured["controls"]
    examples = f"{dead} of {count} controls do nothing: {_some(measured['examples'], dead)}"
    return _finding("controls", examples if dead else "", f"all {count} controls do something")


def _some(items: list[str], count: int | None = None) -> str:
    count = len(items) if count is None else count
    shown = ", ".join(clipped(item, 100) for item in items[:3])
    return f"{shown} and {count - 3} more" if count > 3 else shown


def share_of_probes(results: list[Probe]) -> float | None:
    """Return the share of probes that passed, among those that could be measured."""
    outcomes = [probe.passed for probe in results if probe.passed is not None]
    return sum(outcomes) / len(outcomes) if outcomes else None
