"""The comparison page: any arms of any runs, with the numbers of `fairtrial compare`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.comparison import Comparison
from fairtrial.analyse.score_table import SCORE, find_sources
from fairtrial.analyse.wording.comparisons import (
    Scale,
    brief_lines,
    detail_lines,
    headline,
    p_words,
    pair_cells,
    pair_columns,
    sentence,
)
from fairtrial.core.errors import FairtrialError
from fairtrial.core.ids import content_hash
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web.cache import patience
from fairtrial.web.numbers import Compared, comparison
from fairtrial.web.site import Site, url

_RECENT = 60


class Compare:
    """The comparison page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.routes = [Route("/compare", self._show)]

    def _show(self, request: Request) -> Response:
        params = request.query_params
        names = [name.strip() for name in params.getlist("runs") if name.strip()]
        a, b, metric = (params.get(name, "") for name in ("a", "b", "metric"))
        metric = "" if metric == SCORE else metric
        recent, _ = browsing.runs_page(self._site.store, RunQuery(text=params.get("text", "").strip()), 0, _RECENT)
        values: dict[str, Any] = {"result": None, "waits": False, "error": ""}
        if not names and "margin" in params:
            values["error"] = "choose at least one run"
        if names:
            try:
                margin = _margin(params.get("margin", ""), metric)
                wait = patience(params)
                compared = self._compared(names, (a, b) if a and b else (), metric, margin, wait)
                values |= {"waits": compared is None, "result": compared and self._view(compared)}
            except FairtrialError as error:
                values["error"] = str(error)
        kept = {"runs": names, "a": a, "b": b, "metric": metric, "margin": params.get("margin", "")}
        return self._site.page(
            request, "compare.html.j2", recent=recent, names=names, kept=kept, text=params.get("text", ""),
            retry=url("/compare", **kept, wait=1), **values,
        )  # fmt: skip

    def _compared(
        self, names: list[str], arms: tuple[str, ...], metric: str, margin: float | None, wait: float
    ) -> Compared | None:
        if any("@" in name for name in names):
            raise FairtrialError("to compare with another store, use the command line: `fairtrial compare`")
        sources = find_sources(names, self._site.store)
        runs = [run for source in sources for run in source.runs]
        groups = [(source.label, [run.id for run in source.runs]) for source in sources]
        args = (groups, arms, metric, margin)
        name = f"comparison/{content_hash(list(args))[:24]}"
        return self._site.cache.get(name, runs, Compared, comparison, *args, wait=wait)

    def _view(self, compared: Compared) -> dict[str, Any]:
        comparisons = compared.comparisons
        bounds = [abs(bound) for pair in comparisons.pairs if pair.ci95 for bound in pair.ci95]
        bounds += [abs(pair.difference) for pair in comparisons.pairs if pair.difference is not None]
        return {
            **{name: getattr(compared, name) for name in ("comparisons", "labels", "metrics", "cases", "runs", "arms")},
            "headline": headline(comparisons),
            "columns": pair_columns(comparisons),
            "pairs": [_pair(pair, comparisons.margin) for pair in comparisons.pairs],
            "most": max(bounds, default=1.0) or 1.0,
            "scale": Scale(comparisons.metric),
            "p_words": p_words,
        }


def _pair(pair: Comparison, margin: float | None) -> dict[str, Any]:
    bounds = [abs(bound) for group in pair.groups if group.ci95 for bound in group.ci95]
    return {
        "pair": pair,
        "cells": pair_cells(pair),
        "sentence": sentence(pair, margin),
        "brief": brief_lines(pair),
        "lines": detail_lines(pair),
        "most": max([*bounds, abs(pair.difference or 0.0)], default=1.0) or 1.0,
    }


def _margin(text: str, metric: str) -> float | None:
    """Parse a margin: points of 100 for the score, the metric's own scale for a metric."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise FairtrialError(f"the margin must be a number above 0, not `{text}`")
    return value if metric else value / 100
