"""Count what agents did with their tools, trial by trial, from the traces of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairtrial.agents.doubles.notes import told_in
from fairtrial.analyse.offered import Offers
from fairtrial.core.calls import MadeCall, fits, is_named
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.stats import Aggregate, aggregate

NONE = "no tool"  # in the place of a tool: nothing was called, or nothing should be
_READS = ("read_resource", "ReadMcpResourceTool", "read_mcp_resource")  # how agents call reading a resource
_PROMPT, SKILL = "get_prompt", "Skill"
_OWN = frozenset({*_READS, _PROMPT, SKILL, "ListMcpResourcesTool", "list_mcp_resources"})


class CaseShare:
    """A share with its interval: hits and chances by case, as the trials of a case are not independent.

    Args:
        of: A share of the same chances: what is mentioned late is not counted from then on only.
    """

    def __init__(self, of: CaseShare | None = None) -> None:
        self._hits: Counter[int] = Counter()
        self._chances: Counter[int] = of._chances if of else Counter()
        self._clusters: dict[int, str] = of._clusters if of else {}

    def add(self, case: Case, *, hits: int, of: int = 1) -> None:
        """Add the hits of a trial, of this many chances."""
        if of:
            self._hits[case.position] += hits
            self._chances[case.position] += of
            self._clusters[case.position] = case.cluster or f"\0{case.position}"

    def hit(self, case: Case) -> None:
        """Add a hit, of chances that are counted elsewhere."""
        self._hits[case.position] += 1

    @property
    def hits(self) -> int:
        """All hits."""
        return sum(self._hits.values())

    @property
    def chances(self) -> int:
        """All chances."""
        return sum(self._chances.values())

    def aggregate(self) -> Aggregate:
        """Return the share over all chances: each case has the weight of its chances."""
        cases = sorted(self._chances)
        clustered = len(set(self._clusters.values())) < len(cases)
        return aggregate(
            [self._hits[case] / self._chances[case] for case in cases],
            [self._chances[case] for case in cases],
            [self._clusters[case] for case in cases] if clustered else None,
        )


class ToolCounts:
    """What was done with one tool in all trials of an arm."""

    def __init__(self, trials: CaseShare) -> None:
        self.use, self.success, self.valid = (
            CaseShare(of=trials),
            CaseShare(),
            CaseShare(),
        )  # of trials, of calls, of calls
        self.chosen, self.arguments = CaseShare(), CaseShare()  # of trials whose cases ask for it


class ArmCounts:
    """What one arm did with its tools."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._validators = {name: _validator(tool.schema) for name, tool in offers.tools.items()}
        self.recovered, self.unneeded, self.any_use = CaseShare(), CaseShare(), CaseShare()
        self.tools: dict[str, ToolCounts] = {name: ToolCounts(self.any_use) for name in offers.tools}
        self.skills: dict[str, CaseShare] = {skill.name: CaseShare() for skill in offers.skills if not skill.as_text}
        self.confusion: Counter[tuple[str, str]] = Counter()
        self.resources: Counter[str] = Counter()
        self.prompts: Counter[str] = Counter()
        self.invalid: Counter[tuple[str, str]] = Counter()  # by tool and reason
        self.trials = self.unknown = 0
        self.stood_in = CaseShare()  # of calls to servers that have a recording or a mock in their place

    def add(self, case: Case, calls: Sequence[MadeCall] | None, expected: Sequence[ExpectedCall] | None) -> None:
        """Add a trial: its calls, and those that its case asks for."""
        if calls is None:
            self.unknown += 1
            return
        self.trials += 1
        self._add_offers(case, calls)
        # What only reads resources or loads skills is counted as such, and as a tool where the case asks for it.
        asked = {one.name for one in expected or ()}
        tools = [call for call in calls if call.tool not in _OWN or call.tool in asked]
        self._add_calls(case, tools)
        self._add_recovery(case, tools)
        if expected is not None:
            self._add_expected(case, tools, expected)

    def add_doubles(self, case: Case, trace: Mapping[str, Any] | None) -> None:
        """Add how many calls of a trial recordings and mocks have answered, of those that came to them."""
        for told in told_in(trace).values():
            if told.plays:
                answered = told.recorded + told.mock
                self.stood_in.add(case, hits=answered, of=answered + told.live + len(told.unknown))

    def _add_calls(self, case: Case, calls: Sequence[MadeCall]) -> None:
        self.any_use.add(case, hits=int(bool(calls)))
        for name in _names(calls):
            own, counts = [call for call in calls if call.name == name], self._tool(name)
            counts.use.hit(case)
            counts.success.add(case, hits=sum(not call.error for call in own), of=len(own))
            validator = self._validators.get(name)
            if validator is not None:
                reasons = [_reason(validator, call.arguments) for call in own]
                counts.valid.add(case, hits=reasons.count(""), of=len(own))
                self.invalid.update((name, reason) for reason in reasons if reason)

    def _add_recovery(self, case: Case, calls: Sequence[MadeCall]) -> None:
        """Count tools that failed in a trial, and those of them that worked at a later call of the same trial."""
        for name in dict.fromkeys(call.name for call in calls if call.error):
            own = [call.error for call in calls if call.name == name]
            self.recovered.add(case, hits=int(False in own[own.index(True) :]))

    def _add_offers(self, case: Case, calls: Sequence[MadeCall]) -> None:
        used = set()
        for call in calls:
            arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
            if call.tool in _READS:
                self.resources[str(arguments.get("uri"))] += 1
            elif call.tool == _PROMPT:
                self.prompts[str(arguments.get("name"))] += 1
            elif call.tool == SKILL:
                used.add(str(arguments.get("skill") or arguments.get("command")).rpartition(":")[2])
        for name, share in self.skills.items():
            share.add(case, hits=int(name in used))

    def _add_expected(self, case: Case, calls: Sequence[MadeCall], expected: Sequence[ExpectedCall]) -> None:
        if not expected:
            self.unneeded.add(case, hits=int(bool(calls)))
            self.confusion.update((NONE, name) for name in _names(calls) or [NONE])
            return
        others = [name for name in _names(calls) if not any(self._is(name, one, calls) for one in expected)]
        asked: dict[str, list[ExpectedCall]] = {}  # a case may ask for a tool several times: it is one trial
        for one in expected:
            asked.setdefault(self._name(one.name), []).append(one)
        for name, wanted in asked.items():
            counts = self._tool(name)
            own = [call for call in calls if any(is_named(call, one.name) for one in wanted)]
            if own and name not in _names(calls):  # it has a star or no server, and so it is no tool's whole name
                counts.use.hit(case)
            counts.chosen.add(case, hits=int(bool(own)))
            given = [one for one in wanted if one.arguments is not None]
            if own and given:
                right = all(any(fits(call, one) for call in own) for one in given)
                counts.arguments.add(case, hits=int(right))
            mistaken = [] if own else others or [NONE]
            self.confusion.update((name, called) for called in ([name] if own else mistaken))

    def _tool(self, name: str) -> ToolCounts:
        if name not in self.tools:
            self.tools[name] = ToolCounts(self.any_use)
        return self.tools[name]

    def _name(self, expected: str) -> str:
        """Return the whole name of an expected tool: a case may leave out its server."""
        matches = [name for name in self._offers.tools if is_named(_as_call(name), expected)]
        return matches[0] if len(matches) == 1 else expected

    def _is(self, name: str, expected: ExpectedCall, calls: Sequence[MadeCall]) -> bool:
        return any(call.name == name and is_named(call, expected.name) for call in calls)


def _names(calls: Iterable[MadeCall]) -> list[str]:
    return list(dict.fromkeys(call.name for call in calls))


def _as_call(name: str) -> MadeCall:
    server, _, tool = name.partition(".")
    return MadeCall(tool, server, None)


def _validator(schema: Mapping[str, Any]) -> Any:
    """Return what checks arguments against a schema; None if there is none, or it is not valid itself."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(dict(schema)) if schema else None
    except ValueError:
        return None


def _reason(validator: Any, arguments: Any) -> str:
    """Return what is wrong with the arguments of a call; empty if nothing is."""
    error = next(validator.iter_errors({} if arguments is None else arguments), None)
    if error is None:
        return ""
    place = "/".join(map(str, error.instance_path))
    return f"{place}: {error.message}" if place else str(error.message)
