"""The comparison page: any arms of any runs, with the numbers of `fairtrial compare`."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairtrial.analyse.comparison import Comparison, Comparisons
from fairtrial.analyse.leaderboard import Leaderboard
from fairtrial.analyse.run_numbers import MOST_PAIRS
from fairtrial.analyse.score_table import SCORE, find_sources
from fairtrial.core.errors import FairtrialError
from fairtrial.core.expected import show_expected
from fairtrial.core.formatting import Scale, interval_words
from fairtrial.core.ids import content_hash
from fairtrial.core.place import Place
from fairtrial.present.figures import Links, difference_histogram, kind_differences, leaders, pair_matrix
from fairtrial.present.figures.pairs import pair_differences
from fairtrial.present.words.changes import change_title, comparison_headline, comparison_parts, is_turned, two_times
from fairtrial.present.words.comparisons import (
    basis_words,
    brief_lines,
    detail_lines,
    metric_lines,
    sentence,
    subject_line,
)
from fairtrial.present.words.leaderboards import decided_words
from fairtrial.present.words.verdicts import WORDS
from fairtrial.store import browsing
from fairtrial.store.browsing import RunQuery
from fairtrial.web.cache import patience
from fairtrial.web.grid import page_number, pager
from fairtrial.web.numbers import CaseDifference, Compared, PairCases, comparison
from fairtrial.web.places import address_of, pair_address
from fairtrial.web.site import Site, url

_RECENT = 60
_FLIPS = 8  # cases of a page, each with both answers


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
                values |= {"waits": compared is None, "result": compared and self._view(compared, params)}
            except FairtrialError as error:
                values["error"] = str(error)
        kept = {"runs": names, "a": a, "b": b, "metric": metric, "margin": params.get("margin", "")}
        labels, metrics = self._choices(names, values["result"])
        titles = self._titles(names)
        return self._site.page(
            request, "compare.html.j2", labels=labels, metrics=metrics, titles=titles,
            recent=recent, names=names, kept=kept, text=params.get("text", ""),
            retry=url("/compare", **kept, wait=1), **values,
        )  # fmt: skip

    def _choices(self, names: list[str], result: dict[str, Any] | None) -> tuple[list[str], list[str]]:
        """Return the arms and metrics to choose from, known before anything is compared."""
        if result is not None:
            return result["labels"], result["metrics"]
        try:
            sources = find_sources(names, self._site.store) if names else []
        except FairtrialError:
            return [], []
        arms = [(arm.name, source.label) for source in sources for arm in source.runs[0].plan_arms]
        twice = {name for name, _ in arms if sum(other == name for other, _ in arms) > 1}
        labels = [f"{name}@{source}" if name in twice else name for name, source in arms]
        runs = [run for source in sources for run in source.runs[:1]]
        metrics = [name for run in runs for name in browsing.metric_names(run.store, run.record)]
        return labels, list(dict.fromkeys(metrics))

    def _titles(self, names: list[str]) -> dict[str, str]:
        """Return the display names of the named runs: `run 3`."""
        titles = {}
        for name in names:
            try:
                runs = self._site.store.find_runs(name)
            except FairtrialError:
                continue
            titles[name] = f"run {runs[0].number}" if len(runs) == 1 else name
        return titles

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

    def _view(self, compared: Compared, params: QueryParams) -> dict[str, Any]:
        comparisons = compared.comparisons
        view = {
            "comparisons": comparisons,
            "labels": compared.labels,
            "metrics": compared.metrics,
            "subject": subject_line(comparisons),
            "scale": Scale(comparisons.metric),
            "pair": None,
        }
        if compared.cases is not None:
            return {**view, **self._pair(comparisons.pairs[0], compared.cases, comparisons, params)}
        shown = comparisons.turned() if is_turned(comparisons) else comparisons
        return {**view, **self._all_pairs(shown, compared.leaderboard, params)}

    def _all_pairs(
        self, comparisons: Comparisons, leaderboard: Leaderboard | None, params: QueryParams
    ) -> dict[str, Any]:
        """Return every pair: the headline and the matrix where all arms are compared with each other, else a table."""
        kept = {"runs": params.getlist("runs"), "metric": comparisons.metric, "margin": params.get("margin", "")}
        links = Links(
            arm=lambda arm: url("/compare", **kept, **_pair_of(arm, comparisons, leaderboard)),
            pair=lambda a, b: url("/compare", **kept, a=a, b=b),
        )
        return {
            "headline": comparison_parts(comparisons),
            "arm_href": links.arm,
            "matrix": pair_matrix(leaderboard, links) if leaderboard and len(leaderboard.places) > 2 else "",
            "forest": leaders(leaderboard, {}, links) if leaderboard else "",
            "brackets": bool(leaderboard and leaderboard.shown_brackets),
            "decided": decided_words(leaderboard) if leaderboard else "",
            "differences": pair_differences(comparisons, links),
            "differences_words": change_title(comparisons),
            "sentences": [
                (pair, sentence(pair, comparisons.margin), brief_lines(pair), detail_lines(pair))
                for pair in comparisons.pairs[:MOST_PAIRS]
            ],
            "more": max(0, len(comparisons.pairs) - MOST_PAIRS),
        }

    def _pair(
        self, pair: Comparison, cases: PairCases, comparisons: Comparisons, params: QueryParams
    ) -> dict[str, Any]:
        """Return one pair: the sentence, the histogram, kinds of cases and the biggest flips with both answers."""
        side = "behind" if params.get("flips") == "behind" or not cases.ahead else "ahead"
        flips = cases.ahead if side == "ahead" else cases.behind
        page = page_number(params)
        kept = {
            "runs": params.getlist("runs"), "a": pair.a, "b": pair.b, "metric": pair.metric,
            "margin": params.get("margin", ""), "flips": side,
        }  # fmt: skip
        return {
            "pair": pair,
            "verdict": WORDS[pair.verdict],
            "bounds": interval_words(pair.ci95, pair.metric, comparisons.margin) if pair.ci95 else "",
            "sentence": comparison_headline(comparisons),
            "basis": basis_words(pair, comparisons.margin),
            "histogram": difference_histogram(pair, cases.counts, largest=cases.largest, sign=cases.sign),
            "kinds": kind_differences(pair),
            "brief": brief_lines(pair),
            "details": detail_lines(pair),
            "metric_lines": metric_lines(comparisons, pair, details=True),
            "flips": self._flips(cases, flips[(page - 1) * _FLIPS : page * _FLIPS]),
            "flip_counts": (len(cases.ahead), len(cases.behind)),
            "side": side,
            "swap": url("/compare", **{**kept, "a": pair.b, "b": pair.a, "flips": ""}),
            "flip_address": lambda which: url("/compare", **{**kept, "flips": which}) + "#flips",
            "pager": pager("/compare", kept, page, len(flips), _FLIPS, anchor="#flips"),
        }

    def _flips(self, cases: PairCases, flips: list[CaseDifference]) -> list[dict[str, Any]]:
        """Return cases on which the arms differ, each with its question and both answers."""
        one, other = (self._site.run(run) for run in cases.runs)
        shown = []
        for case in flips:
            places = Place(case.place_a, cases.arms[0], 0), Place(case.place_b, cases.arms[1], 0)
            trials = one.trial_at(places[0]), other.trial_at(places[1])
            question = one.store.cases(one.plan.id, case.place_a, 1)[0]
            shown.append(
                {
                    "case": case,
                    "input": question.input,
                    "expected": show_expected(question.expected),
                    "answers": [trial.answer or trial.failure_message or "" if trial else "" for trial in trials],
                    "notes": [trial.notes or "" if trial else "" for trial in trials],
                    "pair": pair_address(cases.runs, places) if any(t and t.tool_calls for t in trials) else "",
                    "addresses": [address_of(run, place) for run, place in zip(cases.runs, places, strict=True)],
                }
            )
        return shown


def _pair_of(arm: str, comparisons: Comparisons, leaderboard: Leaderboard | None) -> dict[str, str]:
    """Return the pair that the name of an arm leads to: the arm in both runs, or with the first arm."""
    if leaderboard is not None and two_times(comparisons) is None:
        return {"a": leaderboard.places[0].label, "b": arm}
    return next(({"a": pair.a, "b": pair.b} for pair in comparisons.pairs if arm in (pair.a, pair.b)), {})


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
