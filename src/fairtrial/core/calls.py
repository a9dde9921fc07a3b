"""Tool calls: those in a trace, those that a case asks for, and whether one is the other."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import msgspec

from fairtrial.core.experiment import Case, ExpectedCall, ScorerSpec
from fairtrial.text.conditions import fits_condition
from fairtrial.text.json_text import last_json, same_json

SCORER = "tool_calls"  # whose options say which calls a case asks for
FORBIDDING = (SCORER, "trajectory")  # whose options say which calls it forbids


class MadeCall(NamedTuple):
    """A call that was made."""

    tool: str
    server: str | None
    arguments: Any
    error: bool = False

    @property
    def name(self) -> str:
        """The name of the tool with its server, if it has one."""
        return f"{self.server}.{self.tool}" if self.server else self.tool


def calls_of(trace: Mapping[str, Any] | None) -> list[MadeCall] | None:
    """Return the calls in a trace; None if the target does not report them."""
    entries = (trace or {}).get("tool_calls")
    if not isinstance(entries, list | tuple):
        return None
    return read_calls(entries)


def read_calls(entries: Iterable[Any]) -> list[MadeCall]:
    """Read the calls of a trace; a third-party agent may put anything there."""
    return [call for call in map(_call, entries) if call]


def _call(entry: Any) -> MadeCall | None:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("tool"), str):
        return None
    arguments = entry.get("arguments")
    if isinstance(arguments, str):  # some APIs have arguments as JSON text
        parsed = last_json(arguments, strict=True)
        arguments = parsed.value if parsed else arguments
    server = entry.get("server")
    return MadeCall(entry["tool"], server if isinstance(server, str) else None, arguments, bool(entry.get("error")))


def is_named(call: MadeCall, name: str) -> bool:
    """Return whether a call is of a tool of this name: `tool` or `server.tool`, where `*` stands for anything."""
    return fnmatchcase(call.tool, name) or fnmatchcase(call.name, name)


def fits(call: MadeCall, expected: ExpectedCall) -> bool:
    """Return whether a call is the expected one: its tool, and what its arguments must contain."""
    arguments = expected.arguments
    return is_named(call, expected.name) and (arguments is None or contains(call.arguments, arguments))


def contains(value: Any, part: Any) -> bool:
    """Return whether a JSON value has everything that the part has; lists must be equal."""
    if isinstance(part, Mapping):
        return isinstance(value, Mapping) and all(k in value and contains(value[k], item) for k, item in part.items())
    return same_json(value, part)


def read_expected_calls(expected: str) -> list[ExpectedCall]:
    """Read the calls that a case expects; raise ValueError if they cannot be read."""
    if expected[:1] not in ("{", "["):
        return [ExpectedCall(name=expected)]
    parsed = last_json(expected, strict=True)
    items = parsed.value if parsed and isinstance(parsed.value, list) else [parsed.value if parsed else None]
    return [_expected_call(item, expected) for item in items]


def _expected_call(item: Any, expected: str) -> ExpectedCall:
    name = item if isinstance(item, str) else None
    if isinstance(item, Mapping):
        name = item.get("name") or item.get("tool")
        if isinstance(name, str):
            return ExpectedCall(name=name, arguments=item.get("arguments"))
    if not isinstance(name, str):
        raise ValueError(f"`expected` must be a tool's name, or JSON with `name` and `arguments`, not {expected!r}")
    return ExpectedCall(name=name)


def expected_calls(case: Case, scorer: ScorerSpec) -> tuple[ExpectedCall, ...] | None:
    """Return the calls that a case asks for: its `tools`, or what its `tool_calls` scorer wants; None if neither.

    None at all (an empty result) means that no tool should be called.
    """
    if case.tools is not None:
        return case.tools
    for options in _tool_scorers(scorer):
        if (calls := _wanted_by(options, case)) is not None:
            return calls
    return None


class ForbiddenCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that must not be made: `tool` or `server.tool`, with any arguments or those that fit these."""

    tool: str
    arguments: dict[str, Any] | None = None

    def is_made(self, call: MadeCall) -> bool:
        """Return whether a call is this one; raise IncomparableError if that cannot be known."""
        return is_named(call, self.tool) and (self.arguments is None or fits_condition(call.arguments, self.arguments))


def forbidden_calls(case: Case, scorer: ScorerSpec) -> tuple[ForbiddenCall, ...]:
    """Return the calls that a case forbids, itself and by its scorers (`forbidden` of `tool_calls`, `trajectory`)."""
    written = list((case.metadata or {}).get("forbidden") or ())
    for options in _tool_scorers(scorer, FORBIDDING):
        written += options.get("forbidden") or ()
    found = [ForbiddenCall(tool=one) if isinstance(one, str) else _forbidden(one) for one in written]
    return tuple(one for place, one in enumerate(found) if one is not None and one not in found[:place])


def _forbidden(written: Any) -> ForbiddenCall | None:
    try:
        return msgspec.convert(written, ForbiddenCall)
    except msgspec.ValidationError:  # of a scorer of somebody's own, in which the word means something else
        return None


def _tool_scorers(scorer: Any, kinds: Container[str] = (SCORER,)) -> Iterable[Mapping[str, Any]]:
    """Yield the `tool_calls` scorers in a scorer, which may have others inside; what `not` contains is not wanted."""
    if isinstance(scorer, str):
        scorer = {"type": scorer}
    if isinstance(scorer, list):
        for part in scorer:
            yield from _tool_scorers(part, kinds)
    elif isinstance(scorer, Mapping):
        if scorer.get("type") in kinds:
            yield scorer
        elif scorer.get("type") != "not":
            for part in scorer.values():
                if isinstance(part, list | Mapping):
                    yield from _tool_scorers(part, kinds)


def _wanted_by(options: Mapping[str, Any], case: Case) -> tuple[ExpectedCall, ...] | None:
    names, arguments = options.get("names") or [], options.get("arguments") or {}
    if names or arguments:
        return tuple(
            ExpectedCall(name=name, arguments=arguments.get(name)) for name in dict.fromkeys((*names, *arguments))
        )
    if options.get("max") == 0:
        return ()
    if not {"forbidden", "min", "max"} & options.keys() and case.accepted:
        try:
            return tuple(read_expected_calls(case.accepted[0]))
        except ValueError:
            return None
    return None
