"""`tool_calls`: did an agent call the right tools, in the right way?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.calls import MadeCall, contains, fits, is_named, read_calls, read_expected_calls
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.text.printable import clipped, counted

Names = Annotated[list[str], msgspec.Meta(min_length=1)]
_MAX_SHOWN = 300


class ToolCalls(Scorer, frozen=True, kw_only=True):
    """Scores 1 if the calls of an agent are as required, else 0; an answer without a record of calls is unscored.

    `names` must all be called: in any `order`, `in_order` with others between them, or `exact`, these and no others.
    None of `forbidden` may be. A name is `tool` or `server.tool`, and `*` stands for anything. `arguments` has, by
    name, what a call of that tool must contain; other arguments are allowed, and one call that fits is enough. `min`
    and `max` limit the number of calls, of `names` if there are any. Without options, the case decides: its `tools`
    (if that is empty, nothing may be called), or `expected` as a name, JSON with `name` and `arguments`, or a JSON list
    of these in their order.
    """

    guide: ClassVar = Guide(
        scale="0 or 100",
        reproducibility="deterministic",
        best_for="agents: the tools they must use, and those they must not",
    )
    reads_text: ClassVar[bool] = False
    names: Names | None = None
    forbidden: Names | None = None
    order: Literal["any", "in_order", "exact"] = "any"
    arguments: dict[str, dict[str, Any]] = {}
    min: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def needs_expected(self) -> bool:
        return not (self.names or self.forbidden or self.arguments or self.min is not None or self.max is not None)

    def lacks_expected(self, case: Case) -> bool:
        return self.needs_expected() and case.tools is None and not case.accepted

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if self.min is not None and self.max is not None and self.min > self.max:
            yield f"`min` ({self.min}) is above `max` ({self.max}), so no answer can be right"
        if self.needs_expected() and case.tools is None:
            try:
                read_expected_calls(next(iter(case.accepted), ""))
            except ValueError as error:
                yield str(error)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        made = context.tool_calls
        if made is None:
            return Unscored(kind="trace", message="the target does not report which tools were used")
        calls = read_calls(made)
        reasons = list(self._reasons(calls, context))
        value = float(not reasons)
        shown = clipped(", ".join(call.name for call in calls), _MAX_SHOWN) or "no calls"
        notes = f"{'; '.join(reasons)} (calls: {shown})" if reasons else shown
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _reasons(self, calls: Sequence[MadeCall], context: ScoreContext) -> Iterator[str]:
        if self.needs_expected():
            wanted = context.case.tools
            if wanted == () and calls:
                yield "no tool should be called"
            if wanted is None:
                wanted = tuple(read_expected_calls(context.expected))
            yield from _order_reasons(wanted, calls, "in_order" if self.order == "any" else self.order)
            return
        yield from _order_reasons([ExpectedCall(name=name) for name in self.names or ()], calls, self.order)
        for name in self.forbidden or ():
            if any(is_named(call, name) for call in calls):
                yield f"{name} is forbidden"
        for name, arguments in self.arguments.items():
            yield from _argument_reasons(name, arguments, calls)
        named = [call for call in calls if not self.names or any(is_named(call, name) for name in self.names)]
        if self.min is not None and len(named) < self.min:
            yield f"{counted(len(named), 'call')}, below the minimum of {self.min}"
        if self.max is not None and len(named) > self.max:
            yield f"{counted(len(named), 'call')}, above the maximum of {self.max}"


def _order_reasons(wanted: Sequence[ExpectedCall], calls: Sequence[MadeCall], order: str) -> Iterator[str]:
    missing = [item.name for item in wanted if not any(fits(call, item) for call in calls)]
    if missing:
        yield f"no fitting call of {', '.join(dict.fromkeys(missing))}"
    elif order == "exact" and not (len(calls) == len(wanted) and all(map(fits, calls, wanted))):
        yield "not exactly the required calls in their order"
    elif order == "in_order" and not _in_order(wanted, calls):
        yield "the required calls are not in their order"


def _in_order(wanted: Sequence[ExpectedCall], calls: Sequence[MadeCall]) -> bool:
    left = iter(calls)
    return all(any(fits(call, item) for call in left) for item in wanted)


def _argument_reasons(name: str, arguments: dict[str, Any], calls: Sequence[MadeCall]) -> Iterator[str]:
    named = [call for call in calls if is_named(call, name)]
    if not named:
        yield f"{name} was not called"
    elif not any(contains(call.arguments, arguments) for call in named):
        yield f"no call of {name} with {clipped(msgspec.json.encode(arguments).decode(), _MAX_SHOWN)}"
