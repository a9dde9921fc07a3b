"""Assertions as scorers: an assertion is one entry in a table of one of the `checks_…` files."""

from __future__ import annotations

from typing import Any

from fairtrial.core.templates import TemplateError
from fairtrial.tracks.interchange.importers._promptfoo import transforms
from fairtrial.tracks.interchange.importers._promptfoo.assertion import (
    Assertion,
    Converted,
    Make,
    Scorer,
    limited,
    number_of,
)
from fairtrial.tracks.interchange.importers._promptfoo.checks_by_code import CODE
from fairtrial.tracks.interchange.importers._promptfoo.checks_by_judges import JUDGED
from fairtrial.tracks.interchange.importers._promptfoo.checks_of_calls import CALLS
from fairtrial.tracks.interchange.importers._promptfoo.checks_of_text import TEXT
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, MissingFileError
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import filled
from fairtrial.tracks.interchange.importers._promptfoo.providers import Providers

_KINDS: dict[str, Make] = {**TEXT, **JUDGED, **CODE, **CALLS}
_TEXTS = (".txt", ".md", ".json", ".yaml", ".yml", ".csv", ".html", ".xml")
_BETWEEN_ARMS = {
    "select-best": "`select-best` compares the answers of arms: `fairtrial pairwise RUN` does that after the run",
    "max-score": "`max-score` chooses between arms by their scores: `fairtrial rank RUN` and `compare` do that",
}
SCORING = ("assertScoringFunction", "assertScorer")  # keys of a test: what makes one score of its assertions
_KEYS = {  # we ourselves put `factuality` there, from the options of the test; `reason` is a note for readers
    "type", "value", "weight", "provider", "threshold", "metric", "transform", "assert", "config", "rubricPrompt",
    "contextTransform", "factuality", "reason", "description",
}  # fmt: skip
_ADVICE = {
    "perplexity": "log probabilities are not recorded; leave it out",
    "perplexity-score": "log probabilities are not recorded; leave it out",
    "human": "label answers with `fairtrial label`",
    "ruby": "Ruby is not run; write the check as a `python` scorer",
}
_NO_SCORER = "no scorer does this; write it as a `python` scorer"


class Assertions:
    """Turns the assertions of tests into scorers; `graders` has the models that they name."""

    def __init__(self, at: Conversion, providers: Providers) -> None:
        self._at, self._folder, self._notes, self._providers = at, at.folder, at.notes, providers
        self.graders: list[Any] = []  # in the order in which `by` of a scorer counts them

    def scoring(
        self, entries: Any, values: dict[str, Any], where: str, threshold: Any = None, function: Any = None
    ) -> dict[str, Any]:
        """Return the `scorer` and `expected` of a case; a function may make one score of the parts."""
        every = self._results(entries, values, where)
        found = [(result, weight) for result, weight in every if result]
        if not found:
            return {}
        if function and len(every) == len(_listed(entries)):
            parts = [
                (_on_its_own(result), weight, str(entry.get("metric") or "") if isinstance(entry, dict) else "")
                for entry, (result, weight) in zip(_listed(entries), every, strict=True)
                if result
            ]
            return self._combined_by(str(function), parts, threshold, where)
        scorers, expected = _with_expected([result for result, _ in found])
        scorer = _combined(list(zip(scorers, (weight for _, weight in found), strict=True)), threshold)
        return {**({"expected": expected} if expected is not None else {}), "scorer": scorer}

    def _combined_by(
        self, function: str, parts: list[tuple[Scorer, float, str]], threshold: Any, where: str
    ) -> dict[str, Any]:
        """Return a scorer whose score a function of the user's makes of its parts."""
        name, _, called = function.removeprefix(PREFIX).partition(":")
        with self._notes.missing("`assertScoringFunction`", where):
            made = self._at.code.scoring(self._folder.find(name)[0], called)
            listed = [
                {**({"name": metric} if metric else {}), "scorer": part, "weight": weight or 1.0}
                for part, weight, metric in parts
            ]
            return {"scorer": limited({"type": "weighted", "scorers": listed, "function": made}, number_of(threshold))}
        return {"scorer": _combined([(part, weight) for part, weight, _ in parts], threshold)}

    def _results(self, entries: Any, values: dict[str, Any], where: str) -> list[tuple[Converted | None, float]]:
        results: list[tuple[Converted | None, float]] = []
        for entry in _listed(entries):
            if isinstance(entry, str) and entry.startswith(PREFIX):
                with self._notes.missing(f"assertions {entry}", where):
                    results += self._results(self._folder.data(entry), values, where)
                continue
            if not isinstance(entry, dict) or not ("type" in entry or "assert" in entry):
                self._notes.lost(f"assertion {entry!r}"[:80], "an assertion is a mapping with `type`", where)
                continue
            weight = entry.get("weight", 1)
            results.append((self._result(entry, values, where), weight if isinstance(weight, int | float) else 1))
        return results

    def _result(self, entry: dict[str, Any], values: dict[str, Any], where: str) -> Converted | None:
        """Return the scorer of an assertion; None if there is none, which is noted."""
        kind = str(entry.get("type", "assert-set"))
        if kind == "assert-set":
            return self._set(entry, values, where)
        if kind in _BETWEEN_ARMS:
            self._notes.differs(_BETWEEN_ARMS[kind])
            return None
        self._note_keys(entry, kind, where)
        base, noted = kind.removeprefix("not-"), self._notes.count
        try:
            with self._notes.missing(f"assertion `{kind}`", where):
                if result := self._made(base, entry, values, where):
                    result = self._extracted(result, entry, where)
                    if base in JUDGED:
                        result = result._replace(scorer={**result.scorer, "by": [self._grader(entry.get("provider"))]})
                    return _negated(result) if kind != base else result
                if self._notes.count == noted:
                    self._notes.lost(f"assertion `{kind}`", _ADVICE.get(base, _NO_SCORER), where)
        except TemplateError as error:
            self._notes.lost(f"assertion `{kind}`", f"{error}; write its value without that", where)
        return None

    def _grader(self, provider: Any) -> int:
        """Return the number of the model that grades; None stands for promptfoo's own."""
        if provider not in self.graders:
            self.graders.append(provider)
        return self.graders.index(provider)

    def _made(self, kind: str, entry: dict[str, Any], values: dict[str, Any], where: str) -> Converted | None:
        if kind not in _KINDS:
            return None
        value = self._value(entry.get("value"), kind, values)
        threshold = number_of(entry.get("threshold"))
        return _KINDS[kind](Assertion(kind, value, threshold, entry, where, values, self._at, self._providers))

    def _extracted(self, result: Converted, entry: dict[str, Any], where: str) -> Converted:
        extract = transforms.extraction(self._at, entry["transform"], where) if entry.get("transform") else None
        if extract and self._providers.offered and transforms.is_structured(str(entry["transform"])):
            self._notes.differs(
                "a `transform` of tool calls: an answer that is nothing but tool calls has no text here; check it with "
                "a `tool_calls` scorer"
            )
        return result._replace(scorer={**result.scorer, "extract": extract}) if extract else result

    def _note_keys(self, entry: dict[str, Any], kind: str, where: str) -> None:
        if entry.get("metric"):
            self._notes.differs(
                "`metric` names of assertions are left out: the parts of a score are shown by their scorers' names"
            )
        what = f"`{{}}` of assertion `{kind}`"
        self._notes.lost_keys(entry, _KEYS, what, "set it by hand, if the scorer has it", where)

    def _value(self, value: Any, kind: str, values: dict[str, Any]) -> Any:
        """Return the value of an assertion with files read and templates filled in."""
        if kind in ("javascript", "python"):
            return value
        if isinstance(value, list):
            return [self._value(item, kind, values) for item in value]
        if isinstance(value, dict):
            return {key: self._value(item, kind, values) for key, item in value.items()}
        if isinstance(value, str) and value.startswith(PREFIX):
            return self._value(self._in_file(value), kind, values)
        return filled(value, values, self._at.environment) if isinstance(value, str) else value

    def _in_file(self, name: str) -> Any:
        suffix = f".{name.rpartition('.')[2]}"
        if suffix in (".json", ".yaml", ".yml"):
            return self._folder.data(name)
        if suffix not in _TEXTS:
            raise MissingFileError(f"{name} is a program, whose result is not known here; write the value itself")
        return self._folder.text(name).strip()

    def _set(self, entry: dict[str, Any], values: dict[str, Any], where: str) -> Converted | None:
        found = self._results(entry.get("assert") or [], values, where)
        parts = [(_on_its_own(result), weight) for result, weight in found if result]
        return Converted(_combined(parts, entry.get("threshold"))) if parts else None


def _listed(entries: Any) -> list[Any]:
    return entries if isinstance(entries, list) else [entries]


def _negated(result: Converted) -> Converted:
    if result.scorer["type"] == "contains" and "any" in result.scorer:
        return Converted({("none" if key == "any" else key): item for key, item in result.scorer.items()})
    return Converted({"type": "not", "scorer": result.scorer}, result.reference)


def _with_expected(results: list[Converted]) -> tuple[list[Scorer], str | None]:
    """Return the scorers, and the one text that they compare with; if there are several, each has its own."""
    references = {result.reference for result in results if result.reference is not None}
    if len(references) == 1 and not any("json_schema" in repr(result.scorer) for result in results):
        return [result.scorer for result in results], references.pop()
    return [_on_its_own(result) for result in results], None


def _on_its_own(result: Converted) -> Scorer:
    """Return a scorer with its reference in it, so that it needs no `expected`."""
    if result.reference is None:
        return result.scorer
    if result.scorer["type"] == "not":
        return {"type": "not", "scorer": _on_its_own(Converted(result.scorer["scorer"], result.reference))}
    return {"type": "best_of", "scorer": result.scorer, "references": [result.reference]}


def _combined(parts: list[tuple[Any, float]], threshold: Any) -> Scorer:
    """Return one scorer: all must be satisfied, or, with weights or a threshold, the weighted mean counts."""
    limit = number_of(threshold)
    scorers, weights = [part for part, _ in parts], [weight for _, weight in parts]
    if limit is None and len(set(weights)) == 1:
        return scorers[0] if len(scorers) == 1 else {"type": "all_of", "scorers": scorers}
    if not any(weight > 0 for weight in weights):
        weights = [1.0] * len(weights)
    listed = [{"scorer": part, "weight": weight} for part, weight in zip(scorers, weights, strict=True)]
    return limited({"type": "weighted", "scorers": listed}, limit)
