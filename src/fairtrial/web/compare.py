"""Comparing: any arms of any runs; the numbers are those of `fairtrial compare`."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.compare import compare
from fairtrial.analyse.compare_words import (
    Scale,
    brief_lines,
    detail_lines,
    headline,
    p_words,
    pair_cells,
    pair_columns,
    sentence,
)
from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.contestants import Contestant, Field, choose, enter, find_sources, pick
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import content_hash
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web.desk import Desk, url
from fairtrial.web.digests import PATIENCE

_RECENT = 60
_MOST_CASES = 200
_LONG = 120.0


class CaseDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a pair: both values, and where each is to be seen."""

    id: str
    a: float
    b: float
    place_a: int
    place_b: int

    @property
    def difference(self) -> float:
        """a − b."""
        return self.a - self.b


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, and what can be chosen beside it."""

    comparisons: Comparisons
    labels: list[str]
    metrics: list[str]
    cases: list[CaseDifference]  # of one pair, the largest differences first
    runs: tuple[str, str] | None = None  # where its arms are to be seen
    arms: tuple[int, int] | None = None


class Compare:
    """The page of comparisons."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.routes = [Route("/compare", self._show)]

    def _show(self, request: Request) -> Response:
        asked = request.query_params
        names = [name.strip() for name in asked.getlist("runs") if name.strip()]
        a, b, metric = asked.get("a", ""), asked.get("b", ""), asked.get("metric", "")
        recent, _ = browsing.runs_page(self._desk.store, RunQuery(text=asked.get("text", "").strip()), 0, _RECENT)
        values: dict[str, Any] = {"found": None, "waits": False, "error": ""}
        if names:
            try:
                margin = _margin(asked.get("margin", ""), metric)
                wait = _LONG if asked.get("wait") else PATIENCE
                found = self._compared(names, (a, b) if a and b else (), metric, margin, wait)
                values |= {"waits": found is None, "found": found and self._words(found, margin)}
            except FairtrialError as error:
                values["error"] = str(error)
        kept = {"runs": names, "a": a, "b": b, "metric": metric, "margin": asked.get("margin", "")}
        return self._desk.page(
            request, "compare.html.j2", recent=recent, names=names, kept=kept, text=asked.get("text", ""),
            again=url("/compare", **kept, wait=1), **values,
        )  # fmt: skip

    def _compared(
        self, names: list[str], arms: tuple[str, ...], metric: str, margin: float | None, wait: float
    ) -> Compared | None:
        if any("@" in name for name in names):
            raise FairtrialError("other stores are compared on the command line: `fairtrial compare`")
        sources = find_sources(names, self._desk.store)
        runs = [run for source in sources for run in source.runs]
        key = content_hash([[run.id for run in runs], arms, metric, margin])[:24]

        def work_out() -> Compared:
            field = enter(sources)
            return _compared(field, arms, metric, margin)

        return self._desk.digests.about(f"comparison/{key}", runs, Compared, work_out, wait=wait)

    def _words(self, found: Compared, margin: float | None) -> dict[str, Any]:
        comparisons = found.comparisons
        bounds = [abs(bound) for pair in comparisons.pairs if pair.ci95 for bound in pair.ci95]
        bounds += [abs(pair.difference) for pair in comparisons.pairs if pair.difference is not None]
        return {
            **{name: getattr(found, name) for name in ("comparisons", "labels", "metrics", "cases", "runs", "arms")},
            "headline": headline(comparisons),
            "columns": pair_columns(comparisons),
            "pairs": [_pair(pair, comparisons.margin) for pair in comparisons.pairs],
            "most": max(bounds, default=1.0) or 1.0,
            "scale": Scale(comparisons.metric),
            "p_words": p_words,
        }


def _pair(pair: Comparison, margin: float | None) -> dict[str, Any]:
    wide = [abs(bound) for group in pair.groups if group.ci95 for bound in group.ci95]
    return {
        "pair": pair,
        "cells": pair_cells(pair),
        "sentence": sentence(pair, margin),
        "brief": brief_lines(pair),
        "lines": detail_lines(pair),
        "most": max([*wide, abs(pair.difference or 0.0)], default=1.0) or 1.0,
    }


def _compared(field: Field, arms: tuple[str, ...], metric: str, margin: float | None) -> Compared:
    pairs = choose(field, arms)
    found = compare(field, pairs, metric=metric, margin=margin)
    metrics = dict.fromkeys(name for one in field.contestants for name in one.values if name)
    labels = [one.label for one in field.contestants]
    result = Compared(comparisons=found, labels=labels, metrics=list(metrics), cases=[])
    if len(pairs) != 1:
        return result
    a, b = (pick(field, one.label) for one in pairs[0])
    return msgspec.structs.replace(
        result,
        cases=_differences(field, a, b, metric),
        runs=(a.source.runs[0].id, b.source.runs[0].id),
        arms=(a.arm.position, b.arm.position),
    )


def _differences(field: Field, a: Contestant, b: Contestant, metric: str) -> list[CaseDifference]:
    """The cases on which two arms differ most."""
    common = field.common(a, b, metric)
    cases = [
        CaseDifference(id=field.facts[key].id, a=float(x), b=float(y), place_a=a.places[key], place_b=b.places[key])
        for key, x, y in zip(common.keys, common.a, common.b, strict=True)
    ]
    return sorted(cases, key=lambda case: -abs(case.difference))[:_MOST_CASES]


def _margin(text: str, metric: str) -> float | None:
    """Points of 100 for the score, its own scale for a metric."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise FairtrialError(f"a margin is a number above 0, not `{text}`")
    return value if metric else value / 100
