"""The page in an answer: extract it, open it in a browser if there is one, and collect all results."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.core.file import File
from fairtrial.core.score import ANY, Scale, ScoreContext, Unscored
from fairtrial.core.workshop import borrowed
from fairtrial.webpage.acting import BrokenCheckError
from fairtrial.webpage.browser import NoBrowserError
from fairtrial.webpage.checks import Check, CheckResult, checks_of, share_of_checks
from fairtrial.webpage.extract import ExtractedPage, extract
from fairtrial.webpage.probes import Probe, missing_page, probes, share_of_probes
from fairtrial.webpage.render import Renderer
from fairtrial.webpage.rendering import Rendering

SCALES: dict[str, Scale] = {
    "checks": (0.0, 100.0),
    "probes": (0.0, 100.0),
    "script_errors": (None, 0.0),
    "blocked_requests": (None, 0.0),
    "phone_overflow_px": (None, 0.0),
    "low_contrast_texts": (None, 0.0),
    "missing_labels": (None, 0.0),
    "dead_controls": (None, 0.0),
    "code_bytes": ANY,
}


REAL_TIME = "measured in real time"  # on a busy machine the result might have been different


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """The results about an answer's page. `blind` says why no browser has opened it."""

    page: ExtractedPage
    seen: Rendering | None = None
    probes: list[Probe] = []
    checks: list[CheckResult] = []
    blind: str = ""

    @property
    def missing(self) -> str:
        """Why there is no page; empty if there is one."""
        return "" if self.page.html is not None else missing_page(self.page)

    @property
    def time(self) -> str:
        """A note that the page was measured in real time; empty if it was measured in virtual time."""
        return REAL_TIME if self.seen is not None and not self.seen.virtual else ""

    def metrics(self) -> dict[str, float]:
        """Return the measurements as numbers."""
        probed = share_of_probes(self.probes)
        values: dict[str, float | None] = {
            "checks": 100 * share_of_checks(self.checks) if self.checks else None,
            "probes": 100 * probed if probed is not None and (self.seen or self.missing) else None,
            "code_bytes": len(self.page.html.encode("utf-8", "replace")) if self.page.html is not None else None,
        }
        if self.seen is not None:
            values |= _counts(self.seen)
        return {name: float(value) for name, value in values.items() if value is not None}

    def details(self) -> dict[str, Any]:
        """Return the details stored with the score, for readers and for pairwise judges."""
        return {
            "findings": list(self.page.findings),
            "probes": [msgspec.to_builtins(probe) for probe in self.probes],
            "checks": [msgspec.to_builtins(check) for check in self.checks],
            **({"console": self.seen.console} if self.seen and self.seen.console else {}),
            **({"blind": self.blind} if self.blind else {}),
            **({"time": self.time} if self.time else {}),
        }

    def files(self) -> tuple[File, ...]:
        """Return the screenshots."""
        pictures = self.seen.pictures if self.seen else {}
        return tuple(File(name=name, media="image/png", body=body) for name, body in pictures.items())

    def facts(self) -> str:
        """Return the facts that a judge is given."""
        return fact_lines(self.details())


def fact_lines(details: dict[str, Any]) -> str:
    """Return stored probes and checks as lines."""
    marks = {True: "ok", False: "NOT OK", None: "unknown"}
    lines = [f"- {marks[probe['passed']]}: {_line(probe['words'])}" for probe in details["probes"]]
    for check in details["checks"]:
        ending = "" if check["passed"] else f" ({_line(check['reason'])})"
        lines.append(f"- check {'passed' if check['passed'] else 'FAILED'}: {check['name']}{ending}")
    if details.get("blind"):
        lines.append("- no browser has shown this page: nobody knows what it looks like")
    return "\n".join(lines)


def _line(text: str) -> str:
    """Return a text on one line, so that a page's own text cannot look like one of our facts."""
    return " ".join(text.split())


def is_unresponsive(details: dict[str, Any] | None) -> bool:
    """Return whether a page is known to hang or to use too much memory, so that it must not be shown live."""
    page = (details or {}).get("page") or {}
    return any(probe["name"] == "answers" and not probe["passed"] for probe in page.get("probes", ()))


async def look(context: ScoreContext, checks: list[Check]) -> Looked | Unscored:
    """Open and check the page of an answer, with the checks of the case and of its scorer.

    A check that is itself invalid says nothing about the page, so the result is unscored.
    """
    page = extract(context.response)
    cut_off = context.finish_reason == "length"
    all_checks = [*checks_of(context.case.metadata), *checks]
    if page.html is None:
        why = missing_page(page)
        failed = [CheckResult(name=check.name, passed=False, weight=check.weight, reason=why) for check in all_checks]
        return Looked(page=page, probes=[Probe(name="page", passed=False, words=why)], checks=failed)
    try:
        async with borrowed(context.workshop, Renderer) as renderer:
            seen = await renderer.render(page.html, all_checks)
    except BrokenCheckError as error:
        return Unscored(kind="check", message=str(error))
    except NoBrowserError as error:
        return Looked(page=page, probes=probes(page, None, cut_off=cut_off), blind=str(error))
    if seen.stalled:
        return Looked(page=page, probes=probes(page, None, cut_off=cut_off), blind=seen.stalled)
    return Looked(page=page, seen=seen, probes=probes(page, seen, cut_off=cut_off), checks=seen.checks)


def _counts(seen: Rendering) -> dict[str, float | None]:
    desktop, phone = seen.desktop or {}, seen.phone or {}
    shown = desktop and not desktop["blank"]
    return {
        "script_errors": len(seen.errors) if desktop or seen.errors else None,
        "blocked_requests": len(seen.blocked) if desktop else None,
        "phone_overflow_px": phone["overflow"]["beyond"] if phone else None,
        "low_contrast_texts": desktop["contrast"]["low"] if shown and desktop["contrast"]["texts"] else None,
        "missing_labels": desktop["labels"]["missing"] if shown else None,
        "dead_controls": seen.controls["dead"] if seen.controls and not seen.controls["restless"] else None,
    }
