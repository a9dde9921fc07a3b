"""Do tools and skills help? What each adds, what it takes, and how agents used it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from fairtrial.analyse.offer_rates import OfferDifference, OfferRate, rate_of
from fairtrial.analyse.offered import OfferedServer, Offers, added, offers_of, own_system
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.tool_counts import NONE, SKILL, ArmCounts, SkillCounts, ToolCounts
from fairtrial.analyse.version_gains import Measurements, VersionGain, version_gains
from fairtrial.analyse.versions import changed, has_versions, version_pairs, wording
from fairtrial.core.calls import calls_of, expected_calls, forbidden_calls
from fairtrial.core.events import LimitEvent
from fairtrial.core.experiment import Arm
from fairtrial.core.showing import Brief
from fairtrial.core.skill import Skill
from fairtrial.core.trace import events_of
from fairtrial.store.transcripts import trace_rows

_SLICE = 500
_MOST_REASONS = 5


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """What servers, tools or skills add: an arm that has them against one of the same target that lacks only these."""

    what: list[tuple[str, str]]  # (server, tool or skill; its name)
    arm: str
    baseline: str
    other_system: bool  # whether the system prompts differ too, so that not only `what` makes the difference
    score: OfferDifference
    taken: list[OfferDifference]  # cost and latency, where they are known


class ToolStats(msgspec.Struct, frozen=True, kw_only=True):
    """How one arm used one tool."""

    name: str
    offered: bool  # whether a server of the condition has it; the agent's own tools and invented ones are not offered
    tokens: int | None
    use: OfferRate  # trials that called it
    success: OfferRate  # calls that worked
    valid: OfferRate  # calls whose arguments fit its schema
    chosen: OfferRate  # trials that called it, of those whose cases ask for it
    arguments: OfferRate  # of these, with the arguments that the case asks for


class TriggerStats(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a skill fired where it should, and only there, over the cases that say so."""

    recall: OfferRate  # trials in which it fired, of those in which it should
    false_fires: OfferRate  # trials in which it fired, of those in which it should not
    unobserved: int  # trials that broke off before it fired: nobody knows whether it would have
    held_out: bool  # whether these are only the cases tagged `test`


class SkillStats(msgspec.Struct, frozen=True, kw_only=True):
    """How one arm used one skill."""

    name: str
    tokens: int
    as_text: bool
    use: OfferRate | None  # None if it was part of the system prompt
    triggers: TriggerStats | None = None  # None if no case says when it should fire, or nobody can see whether it does


class ForbiddenStats(msgspec.Struct, frozen=True, kw_only=True):
    """In how many trials a call was made that their cases forbid."""

    tool: str
    arguments: dict[str, Any] | None
    made: OfferRate


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Trials by the tool that the case asks for (rows) and the tool that was called instead or as asked (columns)."""

    expected: list[str]
    called: list[str]
    counts: list[list[int]]
    trials: list[int] = []  # whose cases ask for the tool of the row

    def mistakes(self) -> list[tuple[int, str, str]]:
        """Return how often which tool was called instead of which, the most frequent first."""
        rows = zip(self.expected, self.counts, strict=True)
        found = [(count, row, name) for row, own in rows for name, count in zip(self.called, own, strict=True)]
        wrong = [one for one in found if one[0] and one[1] != one[2] and NONE not in one[1:]]
        return sorted(wrong, key=lambda one: (-one[0], *one[1:]))

    def among(self, most: int) -> Confusion:
        """Return the part that can be read, of this many tools: those that were taken for each other most."""
        if len(self.called) <= most:
            return self
        room = most - (NONE in self.called)
        names = list(dict.fromkeys(name for _, *pair in self.mistakes() for name in pair))[:room]
        names += [name for name in self.expected if name not in names and name != NONE][: room - len(names)]
        names += [NONE]
        rows = [place for place, name in enumerate(self.expected) if name in names]
        columns = [place for place, name in enumerate(self.called) if name in names]
        return Confusion(
            expected=[self.expected[place] for place in rows],
            called=[self.called[place] for place in columns],
            counts=[[self.counts[row][column] for column in columns] for row in rows],
            trials=[self.trials[place] for place in rows] if self.trials else [],
        )


class ArmToolReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one arm was offered, and what it did with it."""

    arm: str
    target: str
    condition: str
    servers: list[OfferedServer]
    tokens: int | None  # that the descriptions take before any call
    trials: int  # whose tool calls are known
    unknown: int
    any_use: OfferRate  # trials that called any tool
    tools: list[ToolStats]
    skills: list[SkillStats]
    never_called: list[str]
    recovered: OfferRate  # tools that failed in a trial and worked at a later call
    unneeded: OfferRate  # trials that called a tool, of those whose cases ask for none
    confusion: Confusion | None
    invalid: list[tuple[str, str, int]]  # tool, what was wrong with its arguments, how often
    resources: dict[str, int]
    prompts: dict[str, int]
    stood_in: OfferRate | None = None  # calls that recordings and mocks answered, of those that came to them
    forbidden: list[ForbiddenStats] = []
    any_forbidden: OfferRate | None = None  # trials that made any forbidden call, of those whose cases forbid one

    @property
    def offered(self) -> int:
        """The number of tools that its servers offer."""
        return sum(len(server.tools) for server in self.servers)

    @property
    def covered(self) -> int:
        """The number of these that were called at least once."""
        return self.offered - len(self.never_called)


class ToolReport(Brief, msgspec.Struct, frozen=True, kw_only=True):
    """The tools and skills of a run."""

    run_id: str
    suite: str
    metric: str  # that `score` of a gain is about; empty for the score
    gains: list[Gain]
    arms: list[ArmToolReport]
    versions: list[VersionGain] = []


def has_offers(run: StoredRun) -> bool:
    """Return whether any arm of a run has servers or skills."""
    return any(arm.condition.mcp or arm.condition.skills for arm in run.plan_arms)


def tool_report(run: StoredRun) -> ToolReport:
    """Report on the tools and skills of a run; intervals are over cases, those of gains hold for all pairs together."""
    offers = offers_of(run)
    counts = _counts(run, offers)
    wanted, versions = list(_wanted(run.plan_arms, offers)), version_pairs(run.plan_arms, offers)
    pairs = [(arm.name, less.name) for arm, less, _ in wanted]
    measured = Measurements(run, [*pairs, *((pair.arm.name, pair.baseline.name) for pair in versions)])
    held_out = any(own.held_out.asked for one in counts for own in one.skills.values())
    arms = [
        _arm(arm, offers[arm.name], counts[arm.position], held_out=held_out)
        for arm in run.plan_arms
        if offers[arm.name].items() or counts[arm.position].tools
    ]
    return ToolReport(
        run_id=run.id,
        suite=run.record.suite_name,
        metric=measured.metric,
        gains=[gain for arm, less, what in wanted if (gain := _gain(measured, arm, less, what)) is not None],
        arms=arms,
        versions=version_gains(versions, counts, measured, held_out=held_out),
    )


def _counts(run: StoredRun, offers: dict[str, Offers]) -> list[ArmCounts]:
    """Count what every arm did, reading cases and traces slice by slice."""
    counts = [ArmCounts(offers[arm.name]) for arm in run.plan_arms]
    for start in range(0, run.plan.case_count, _SLICE):
        cases = {case.position: case for case in run.store.cases(run.plan.id, start, _SLICE)}
        for row in trace_rows(run.store, run.id, start, _SLICE):
            case, arm = cases[row.case_position], run.plan_arms[row.arm_position]
            scorer, equipped = arm.scorer_of(case), bool(offers[arm.name].items())
            counts[row.arm_position].add(
                case,
                calls_of(row.trace),
                expected_calls(case, scorer) if equipped else None,
                forbidden_calls(case, scorer),
                ended=not (row.failed or _reached_a_limit(row.trace)),
            )
            counts[row.arm_position].add_doubles(case, row.trace)
    return counts


def _reached_a_limit(trace: dict[str, Any] | None) -> bool:
    return any(isinstance(event, LimitEvent) for event in events_of(trace) or ())


def _arm(arm: Arm, offers: Offers, counts: ArmCounts, *, held_out: bool) -> ArmToolReport:
    tools = [_tool(name, offers, own) for name, own in counts.tools.items()]
    invalid = [(tool, reason, count) for (tool, reason), count in counts.invalid.most_common(_MOST_REASONS)]
    return ArmToolReport(
        arm=arm.name,
        target=arm.target.id,
        condition=arm.condition.name,
        servers=offers.servers,
        tokens=offers.tokens,
        trials=counts.trials,
        unknown=counts.unknown,
        any_use=rate_of(counts.any_use),
        tools=sorted(tools, key=lambda tool: (not tool.offered, -tool.use.hits, tool.name)),
        skills=[_skill(skill, counts.skills.get(skill.name), held_out=held_out) for skill in offers.skills],
        never_called=[name for name in offers.tools if not counts.tools[name].use.hits],
        recovered=rate_of(counts.recovered),
        unneeded=rate_of(counts.unneeded),
        confusion=_confusion(counts),
        invalid=invalid,
        resources=dict(counts.resources.most_common()),
        prompts=dict(counts.prompts.most_common()),
        stood_in=rate_of(counts.stood_in) if counts.stood_in.chances else None,
        forbidden=[
            ForbiddenStats(tool=own.rule.tool, arguments=own.rule.arguments, made=rate_of(own.made))
            for own in counts.forbidden.values()
        ],
        any_forbidden=rate_of(counts.any_forbidden) if counts.forbidden else None,
    )


def _skill(skill: Skill, counts: SkillCounts | None, *, held_out: bool) -> SkillStats:
    if counts is None:
        return SkillStats(name=skill.name, tokens=skill.tokens, as_text=skill.as_text, use=None)
    chosen = counts.held_out if held_out else counts.all
    triggers = TriggerStats(
        recall=rate_of(chosen.recall),
        false_fires=rate_of(chosen.false_fires),
        unobserved=chosen.unobserved,
        held_out=held_out,
    )
    return SkillStats(
        name=skill.name,
        tokens=skill.tokens,
        as_text=skill.as_text,
        use=rate_of(counts.use),
        triggers=triggers if chosen.asked else None,
    )


def _tool(name: str, offers: Offers, counts: ToolCounts) -> ToolStats:
    offered = offers.tools.get(name)
    return ToolStats(
        name=name,
        offered=offered is not None or (name == SKILL and any(not skill.as_text for skill in offers.skills)),
        tokens=offered.tokens if offered else None,
        use=rate_of(counts.use),
        success=rate_of(counts.success),
        valid=rate_of(counts.valid),
        chosen=rate_of(counts.chosen),
        arguments=rate_of(counts.arguments),
    )


def _confusion(counts: ArmCounts) -> Confusion | None:
    if not counts.confusion:
        return None
    expected = _ordered(row for row, _ in counts.confusion)
    called = _ordered(name for pair in counts.confusion for name in pair)
    return Confusion(
        expected=expected,
        called=called,
        counts=[[counts.confusion[row, column] for column in called] for row in expected],
        trials=[(counts.unneeded if row == NONE else counts.tools[row].chosen).chances for row in expected],
    )


def _ordered(names: Iterator[str]) -> list[str]:
    return sorted(set(names), key=lambda name: (name == NONE, name))


# -- gains ---------------------------------------------------------------------------------------


def _gain(measured: Measurements, arm: Arm, less: Arm, what: list[tuple[str, str]]) -> Gain | None:
    """Return what an arm gains by what it has more; None if the two have no scored case in common."""
    score = measured.score(arm.name, less.name)
    if score is None:
        return None
    return Gain(
        what=what,
        arm=arm.name,
        baseline=less.name,
        other_system=own_system(arm) != own_system(less),
        score=score,
        taken=measured.taken(arm.name, less.name),
    )


def _wanted(arms: Sequence[Arm], offers: dict[str, Offers]) -> Iterator[tuple[Arm, Arm, list[tuple[str, str]]]]:
    """Yield pairs of arms of one target, with what the first has more: one thing, or everything against nothing."""
    for arm in arms:
        own = [other for other in arms if other.target.id == arm.target.id and other is not arm]
        own = [other for other in own if not has_versions(changed(other, arm, offers))]
        own = [other for other in own if wording(other) == wording(arm)] or own
        found = [(less, what) for less in own if (what := added(offers[arm.name], offers[less.name])) is not None]
        single = [(less, what) for less, what in found if len(what) == 1]
        bare = [(less, what) for less, what in found if len(what) > 1 and not offers[less.name].items()]
        for less, what in (*single, *bare[:1]):
            yield arm, less, what
