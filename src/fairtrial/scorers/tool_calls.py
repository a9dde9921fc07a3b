"""`tool_calls`: did an agent call the right tools, in the right way?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.json_text import last_json, same_json
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.text import clipped

Names = Annotated[list[str], msgspec.Meta(min_length=1)]
_MAX_SHOWN = 300


class Wanted(NamedTuple):
    """A call that must occur: a tool's name, and some of its arguments."""

    name: str
    arguments: Any = None


class Call(NamedTuple):
    """A call that was made."""

    tool: str
    server: str | None
    arguments: Any


class ToolCalls(Scorer, frozen=True, kw_only=True):
    """Scores 1 if the calls of an agent are as required, else 0; an answer without a record of calls is unscored.

    `names` must all be called: in any `order`, `in_order` with others between them, or `exact`, these and no others.
    None of `forbidden` may be. A name is `tool` or `server.tool`, and `*` stands for anything. `arguments` has, by
    name, what a call of that tool must contain; other arguments are allowed, and one call that fits is enough. `min`
    and `max` limit the number of calls, of `names` if there are any. Without options, `expected` is the call: a name,
    or JSON with `name` and `arguments`, or a JSON list of these in their order.
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

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if self.min is not None and self.max is not None and self.min > self.max:
            yield f"`min` ({self.min}) is above `max` ({self.max}), so no answer can be right"
        if self.needs_expected():
            try:
                _wanted(next(iter(case.accepted), ""))
            except ValueError as error:
                yield str(error)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        made = context.tool_calls
        if made is None:
            return Unscored(kind="trace", message="the target does not report which tools were used")
        calls = [call for call in map(_call, made) if call]
        reasons = list(self._reasons(calls, context.expected))
        value = float(not reasons)
        shown = clipped(", ".join(map(_name, calls)), _MAX_SHOWN) or "no calls"
        notes = f"{'; '.join(reasons)} (calls: {shown})" if reasons else shown
        return Score(value=value, raw=value, confidence=1.0, notes=notes)

    def _reasons(self, calls: Sequence[Call], expected: str) -> Iterator[str]:
        """Yield what is wrong with the calls."""
        if self.needs_expected():
            wanted = _wanted(expected)
            yield from _order_reasons(wanted, calls, "in_order" if self.order == "any" else self.order)
            return
        yield from _order_reasons([Wanted(name) for name in self.names or ()], calls, self.order)
        for name in self.forbidden or ():
            if any(_is_named(call, name) for call in calls):
                yield f"{name} is forbidden"
        for name, arguments in self.arguments.items():
            yield from _argument_reasons(name, arguments, calls)
        counted = [call for call in calls if not self.names or any(_is_named(call, name) for name in self.names)]
        if self.min is not None and len(counted) < self.min:
            yield f"{len(counted)} calls, below the minimum of {self.min}"
        if self.max is not None and len(counted) > self.max:
            yield f"{len(counted)} calls, above the maximum of {self.max}"


def _order_reasons(wanted: Sequence[Wanted], calls: Sequence[Call], order: str) -> Iterator[str]:
    missing = [item.name for item in wanted if not any(_fits(call, item) for call in calls)]
    if missing:
        yield f"no fitting call of {', '.join(dict.fromkeys(missing))}"
    elif order == "exact" and not (len(calls) == len(wanted) and all(map(_fits, calls, wanted))):
        yield "not exactly the required calls in their order"
    elif order == "in_order" and not _in_order(wanted, calls):
        yield "the required calls are not in their order"


def _in_order(wanted: Sequence[Wanted], calls: Sequence[Call]) -> bool:
    left = iter(calls)
    return all(any(_fits(call, item) for call in left) for item in wanted)


def _argument_reasons(name: str, arguments: dict[str, Any], calls: Sequence[Call]) -> Iterator[str]:
    named = [call for call in calls if _is_named(call, name)]
    if not named:
        yield f"{name} was not called"
    elif not any(_contains(call.arguments, arguments) for call in named):
        yield f"no call of {name} with {clipped(msgspec.json.encode(arguments).decode(), _MAX_SHOWN)}"


def _fits(call: Call, wanted: Wanted) -> bool:
    return _is_named(call, wanted.name) and (wanted.arguments is None or _contains(call.arguments, wanted.arguments))


def _is_named(call: Call, name: str) -> bool:
    return fnmatchcase(call.tool, name) or fnmatchcase(_name(call), name)


def _name(call: Call) -> str:
    return f"{call.server}.{call.tool}" if call.server else call.tool


def _contains(value: Any, part: Any) -> bool:
    """Return whether a JSON value has everything that the part has; lists must be equal."""
    if isinstance(part, Mapping):
        return isinstance(value, Mapping) and all(k in value and _contains(value[k], item) for k, item in part.items())
    return same_json(value, part)


def _call(entry: Any) -> Call | None:
    """Read a call of a trace; a third-party agent may put anything there."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("tool"), str):
        return None
    arguments = entry.get("arguments")
    if isinstance(arguments, str):  # some APIs have arguments as JSON text
        parsed = last_json(arguments, strict=True)
        arguments = parsed.value if parsed else arguments
    server = entry.get("server")
    return Call(entry["tool"], server if isinstance(server, str) else None, arguments)


def _wanted(expected: str) -> list[Wanted]:
    """Read the calls that a case expects; raise ValueError if they cannot be read."""
    if expected[:1] not in ("{", "["):
        return [Wanted(expected)]
    parsed = last_json(expected, strict=True)
    items = parsed.value if parsed and isinstance(parsed.value, list) else [parsed.value if parsed else None]
    return [_wanted_call(item, expected) for item in items]


def _wanted_call(item: Any, expected: str) -> Wanted:
    name = item if isinstance(item, str) else None
    if isinstance(item, Mapping):
        name = item.get("name") or item.get("tool")
        if isinstance(name, str):
            return Wanted(name, item.get("arguments"))
    if not isinstance(name, str):
        raise ValueError(f"`expected` must be a tool's name, or JSON with `name` and `arguments`, not {expected!r}")
    return Wanted(name)
