"""Count what agents did with their tools, trial by trial, from the traces of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairtrial.agents.doubles.notes import told_in
from fairtrial.analyse.case_share import CaseShare
from fairtrial.analyse.offered import Offers
from fairtrial.core.calls import ForbiddenCall, MadeCall, fits, is_named
from fairtrial.core.experiment import Case, ExpectedCall
from fairtrial.core.ids import canonical_json
from fairtrial.core.skill_use import fired, wants
from fairtrial.text.conditions import IncomparableError

HELD_OUT = "test"  # the tag of cases that had no part in the choice of a description
NONE = "no tool"  # in the place of a tool: nothing was called, or nothing should be
_READS = ("read_resource", "ReadMcpResourceTool", "read_mcp_resource")  # how agents call reading a resource
_PROMPT, SKILL = "get_prompt", "Skill"
_OWN = frozenset({*_READS, _PROMPT, SKILL, "ListMcpResourcesTool", "list_mcp_resources"})


class ToolCounts:
    """What was done with one tool in all trials of an arm."""

    def __init__(self, trials: CaseShare) -> None:
        self.use, self.success, self.valid = (
            CaseShare(of=trials),
            CaseShare(),
            CaseShare(),
        )  # of trials, of calls, of calls
        self.chosen, self.arguments = CaseShare(), CaseShare()  # of trials whose cases ask for it
        self.instead: dict[str, CaseShare] = {}  # of these trials, by the tool that was called instead


class SkillCounts:
    """Whether a skill fired in the trials of an arm, on all cases and on those that are held out for the numbers."""

    def __init__(self) -> None:
        self.use = CaseShare()
        self.all, self.held_out = TriggerCounts(), TriggerCounts()

    def add(self, case: Case, wanted: str | None, *, used: bool, ended: bool) -> None:
        """Add a trial; one that did not end, before the skill fired, does not tell whether it would have."""
        if ended or used:
            self.use.add(case, hits=int(used))
        for counts in (self.all, self.held_out)[: 1 + (HELD_OUT in case.tags)] if wanted else ():
            if not used and not ended:
                counts.unobserved += 1
            elif wanted == "fires":
                counts.recall.add(case, hits=int(used))
            else:
                counts.false_fires.add(case, hits=int(used))


class TriggerCounts:
    """Trials in which a skill fired, of those in which it should, and of those in which it should not."""

    def __init__(self) -> None:
        self.recall, self.false_fires = CaseShare(), CaseShare()
        self.unobserved = 0

    @property
    def asked(self) -> bool:
        """Whether any case says what the skill should do."""
        return bool(self.recall.chances or self.false_fires.chances or self.unobserved)


class ForbiddenCounts:
    """Trials that made a call, of those in which it was forbidden."""

    def __init__(self, rule: ForbiddenCall) -> None:
        self.rule, self.made = rule, CaseShare()


class ArmCounts:
    """What one arm did with its tools."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._validators = {name: _validator(tool.schema) for name, tool in offers.tools.items()}
        self.recovered, self.unneeded, self.any_use = CaseShare(), CaseShare(), CaseShare()
        self.tools: dict[str, ToolCounts] = {name: ToolCounts(self.any_use) for name in offers.tools}
        self.skills = {skill.name: SkillCounts() for skill in offers.skills if not skill.as_text}
        self.forbidden: dict[bytes, ForbiddenCounts] = {}  # by what is forbidden
        self.any_forbidden = CaseShare()
        self.confusion: Counter[tuple[str, str]] = Counter()
        self.resources: Counter[str] = Counter()
        self.prompts: Counter[str] = Counter()
        self.invalid: Counter[tuple[str, str]] = Counter()  # by tool and reason
        self.trials = self.unknown = 0
        self.stood_in = CaseShare()  # of calls to servers that have a recording or a mock in their place

    def add(
        self,
        case: Case,
        calls: Sequence[MadeCall] | None,
        expected: Sequence[ExpectedCall] | None,
        forbidden: Sequence[ForbiddenCall] = (),
        *,
        ended: bool = True,
    ) -> None:
        """Add a trial: its calls, those that its case asks for and forbids, and whether it came to its end."""
        if calls is None:
            self.unknown += 1
            self._add_skills(case, (), ended=False)
            return
        self.trials += 1
        self._add_offers(case, calls)
        self._add_skills(case, calls, ended=ended)
        self._add_forbidden(case, calls, forbidden, ended=ended)
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

    def _add_skills(self, case: Case, calls: Sequence[MadeCall], *, ended: bool) -> None:
        used = fired(calls)
        names = [skill.name for skill in self._offers.skills]
        for name, counts in self.skills.items():
            counts.add(case, wants(case, name, names), used=name in used, ended=ended)

    def _add_forbidden(
        self, case: Case, calls: Sequence[MadeCall], forbidden: Sequence[ForbiddenCall], *, ended: bool
    ) -> None:
        """Count forbidden calls; a trial that broke off, or that cannot be compared, does not tell of none."""
        made: list[bool | None] = []
        for rule in forbidden:
            try:
                was_made = any(rule.is_made(call) for call in calls)
            except IncomparableError:
                was_made, ended = False, False
            made.append(was_made or (False if ended else None))
        for rule, found in zip(forbidden, made, strict=True):
            own = self.forbidden.setdefault(canonical_json(rule), ForbiddenCounts(rule))
            own.made.add(case, hits=int(bool(found)), of=int(found is not None))
        if forbidden:
            self.any_forbidden.add(case, hits=int(any(made)), of=int(any(made) or None not in made))

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
        for call in calls:
            arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
            if call.tool in _READS:
                self.resources[str(arguments.get("uri"))] += 1
            elif call.tool == _PROMPT:
                self.prompts[str(arguments.get("name"))] += 1

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
            for called in mistaken:
                counts.instead.setdefault(called, CaseShare(of=counts.chosen)).hit(case)
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
