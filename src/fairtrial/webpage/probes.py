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


def _complete(page: ExtractedPage, *, cut_off: bool) -> Probe:
    if page.complete and not cut_off:
        return Probe(name="complete", passed=True, words="the code is whole")
    why = "the answer was cut off at max_tokens" if cut_off else "the code breaks off"
    return Probe(name="complete", passed=False, words=why)


def _browser_probes(seen: Rendering) -> Iterator[Probe]:
    desktop, phone = seen.desktop, seen.phone
    yield Probe(name="answers", passed=not seen.trouble, words=seen.trouble or "the page loads and stays responsive")
    if desktop is not None or seen.errors:
        quoted = [f"“{error}”" for error in seen.errors]
        words = f"script errors: {_some(quoted)}" if seen.errors else "no script error"
        yield Probe(name="no_script_errors", passed=not seen.errors, words=words)
    if desktop is None:
        return
    yield Probe(
        name="self_contained",
        passed=not seen.blocked,
        words=f"asks for {_some(seen.blocked)}, which is blocked" if seen.blocked else "asks for nothing outside",
    )
    blank = desktop["blank"]
    yield Probe(
        name="not_blank", passed=not blank, words="nothing is to be seen" if blank else "something is to be seen"
    )
    if blank:
        return  # nothing else can be measured on a blank page
    yield _contrast(desktop["contrast"])
    yield _counted("labels", desktop["labels"], "missing", "every field, control and image has a name")
    if phone is not None:
        yield _fits_phone(phone)
        yield _responsive(seen, phone)
    if seen.controls is not None:
        yield _controls(seen.controls)


def _contrast(measured: dict[str, Any]) -> Probe:
    if not measured["texts"]:
        return Probe(name="contrast", passed=None, words="there is no text on a plain background")
    if not measured["low"]:
        return Probe(name="contrast", passed=True, words=f"all {measured['texts']} texts can be read (WCAG AA)")
    examples = _some(measured["examples"], measured["low"])
    words = f"{measured['low']} of {measured['texts']} texts have too little contrast: {examples}"
    return Probe(name="contrast", passed=False, words=words)


def _counted(name: str, measured: dict[str, Any], key: str, good: str) -> Probe:
    if not measured[key]:
        return Probe(name=name, passed=True, words=good)
    return Probe(name=name, passed=False, words=f"{measured[key]} × {_some(measured['examples'], measured[key])}")


def _fits_phone(phone: dict[str, Any]) -> Probe:
    beyond, culprit = phone["overflow"]["beyond"], phone["overflow"]["culprit"]
    if not beyond:
        return Probe(name="fits_phone", passed=True, words="no sideways scrolling on a phone")
    what = f", because of {clipped(culprit, 80)}" if culprit else ""
    return Probe(name="fits_phone", passed=False, words=f"{beyond} px too wide for a phone{what}")


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
    return Probe(
        name="responsive", passed=not reasons, words="; ".join(reasons) or "works on a phone, a tablet and a desktop"
    )


def _controls(measured: dict[str, Any]) -> Probe:
    if not measured["controls"]:
        return Probe(name="controls", passed=None, words="there is nothing to press")
    if measured["restless"]:
        return Probe(name="controls", passed=None, words="the page moves by itself: nobody can tell what a press does")
    if not measured["dead"]:
        return Probe(name="controls", passed=True, words=f"all {measured['controls']} controls do something")
    examples = _some(measured["examples"], measured["dead"])
    words = f"{measured['dead']} of {measured['controls']} controls do nothing: {examples}"
    return Probe(name="controls", passed=False, words=words)


def _some(items: list[str], count: int | None = None) -> str:
    """Return the first three items and how many more there are."""
    count = len(items) if count is None else count
    shown = ", ".join(clipped(item, 100) for item in items[:3])
    return f"{shown} and {count - 3} more" if count > 3 else shown


def share_passed(results: list[Probe]) -> float | None:
    """Return the share of probes that passed, among those that could be measured."""
    outcomes = [probe.passed for probe in results if probe.passed is not None]
    return sum(outcomes) / len(outcomes) if outcomes else None
