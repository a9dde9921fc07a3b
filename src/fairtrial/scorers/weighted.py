"""`weighted`: the weighted mean of several scorers, or what a function makes of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.calling import call, named_arguments, unknown_parameter
from fairtrial.core.composite import Composite, PartSpec, as_details, combined, judgements_of, score_parts
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide
from fairtrial.core.user_functions import find_function, load_function
from fairtrial.scorers._results import as_score


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scorer, its weight, and its name for a function; default: the scorer's own."""

    scorer: str | dict[str, Any]
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    name: str | None = None


class Weighted(Composite, frozen=True, kw_only=True):
    """The weighted mean of its parts. If a part cannot be scored, the answer is unscored.

    With `function` (`package.module:name` or `file.py:name`), that function makes the score instead: it gets `parts`,
    the scores of the parts by name, may ask for whatever a `python` scorer gets, and returns what such a scorer does.
    """

    guide: ClassVar = Guide(
        scale="0–100, a weighted mean",
        reproducibility="as its parts",
        best_for="a trade-off between several qualities",
    )
    scorers: Annotated[list[Part], msgspec.Meta(min_length=1)]
    function: str | None = None

    def parts(self) -> Sequence[PartSpec]:
        return [part.scorer for part in self.scorers]

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if sum(part.weight for part in self.scorers) <= 0:
            yield "a weighted scorer needs at least one weight above 0"
        if self.function is not None:
            yield from _function_problems(self.function, folder)
        yield from super().check(case, folder)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        parts = await score_parts(self, context)
        if isinstance(parts, Unscored):
            return parts
        named = [(spec.name or name, score) for spec, (name, score) in zip(self.scorers, parts, strict=True)]
        if self.function is not None:
            return await self._by_function(self.function, named, context)
        weights = [part.weight for part in self.scorers]
        value = sum(w * score.value for w, (_, score) in zip(weights, named, strict=True)) / sum(weights)
        notes = ", ".join(f"{name} {score.value:.2f} × {w:g}" for w, (name, score) in zip(weights, named, strict=True))
        return combined(value, notes, named)

    async def _by_function(
        self, function: str, parts: list[tuple[str, Score]], context: ScoreContext
    ) -> Score | Unscored:
        given = {**context.facts(), "parts": {name: score.value for name, score in parts}}
        try:
            made = load_function(function, context.folder, context.functions)
            result = as_score(await call(made, **named_arguments(made, given)))
        except (Exception, SystemExit) as error:  # user code: anything it raises leaves the trial unscored
            message = f"{function} raised {type(error).__name__}: {error}"
            return Unscored(kind="crashed", message=message, judgements=judgements_of(parts))
        if isinstance(result, Unscored):
            return msgspec.structs.replace(result, judgements=judgements_of(parts))
        shown = result.notes or ", ".join(f"{name} {score.value:.2f}" for name, score in parts)
        whole = combined(result.value, shown, parts)
        return msgspec.structs.replace(whole, details={**(result.details or {}), **as_details(parts)})


def _function_problems(name: str, folder: Path) -> Iterable[str]:
    """Yield why a function cannot make a score of the parts."""
    try:
        function = find_function(name, folder)
    except ValueError as error:
        yield str(error)
        return
    known = [*ScoreContext(response="", case=Case(id="", input="")).facts(), "parts"]
    parameter = unknown_parameter(function, known)
    if parameter is not None:
        yield f"`{name}` asks for `{parameter}`; it may take {', '.join(known)}"
