"""Do tools and skills help? What each adds, what it takes, and how agents used it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from fairtrial.analyse.compare import decided
from fairtrial.analyse.comparison import Comparison, Verdict
from fairtrial.analyse.offered import OfferedServer, Offers, added, offers_of
from fairtrial.analyse.score_table import choose, read_scores, sources_of
from fairtrial.analyse.stored_run import StoredRun
from fairtrial.analyse.tool_counts import NONE, SKILL, ArmCounts, CaseShare, ToolCounts
from fairtrial.core.calls import calls_of, expected_calls
from fairtrial.core.experiment import Arm
from fairtrial.core.score import Scale
from fairtrial.core.showing import Brief
from fairtrial.stats import Aggregate
from fairtrial.stats.units import Interval, Measured
from fairtrial.store.transcripts import trace_rows

_SLICE = 500
_MOST_REASONS = 5
_TAKEN = ("cost_usd", "latency_ms")
_IN_TEMPLATES = r'\{% raw %\}|\{\{ "'  # before the text of a skill


class OfferRate(msgspec.Struct, frozen=True, kw_only=True):
    """A share: how many of how many, with an interval over cases; without any there is no share."""

    hits: int
    of: int
    share: Measured | None
    ci95: Interval | None


class OfferDifference(msgspec.Struct, frozen=True, kw_only=True):
    """By how much an arm differs from its baseline, on the cases that both have."""

    metric: str  # empty for the score
    scale: Scale
    difference: Measured | None
    ci95: Interval | None
    verdict: Verdict
    count: int


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


class SkillStats(msgspec.Struct, frozen=True, kw_only=True):
    """How one arm used one skill."""

    name: str
    tokens: int
    as_text: bool
    use: OfferRate | None  # None if it was part of the system prompt


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Trials by the tool that the case asks for (rows) and the tool that was called instead or as asked (columns)."""

    expected: list[str]
    called: list[str]
    counts: list[list[int]]


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


def has_offers(run: StoredRun) -> bool:
    """Return whether any arm of a run has servers or skills."""
    return any(arm.condition.mcp or arm.condition.skills for arm in run.plan_arms)


def tool_report(run: StoredRun) -> ToolReport:
    """Report on the tools and skills of a run; intervals are over cases, those of gains hold for all pairs together."""
    offers = offers_of(run)
    metric, gains = _gains(run, offers)
    counts = _counts(run, offers)
    arms = [
        _arm(arm, offers[arm.name], counts[arm.position])
        for arm in run.plan_arms
        if offers[arm.name].items() or counts[arm.position].tools
    ]
    return ToolReport(run_id=run.id, suite=run.record.suite_name, metric=metric, gains=gains, arms=arms)


def _counts(run: StoredRun, offers: dict[str, Offers]) -> list[ArmCounts]:
    """Count what every arm did, reading cases and traces slice by slice."""
    counts = [ArmCounts(offers[arm.name]) for arm in run.plan_arms]
    for start in range(0, run.plan.case_count, _SLICE):
        cases = {case.position: case for case in run.store.cases(run.plan.id, start, _SLICE)}
        for row in trace_rows(run.store, run.id, start, _SLICE):
            case, arm = cases[row.case_position], run.plan_arms[row.arm_position]
            expected = expected_calls(case, arm.scorer_of(case)) if offers[arm.name].items() else None
            counts[row.arm_position].add(case, calls_of(row.trace), expected)
            counts[row.arm_position].add_doubles(case, row.trace)
    return counts


def _arm(arm: Arm, offers: Offers, counts: ArmCounts) -> ArmToolReport:
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
        any_use=_rate(counts.any_use),
        tools=sorted(tools, key=lambda tool: (not tool.offered, -tool.use.hits, tool.name)),
        skills=[
            SkillStats(
                name=skill.name,
                tokens=skill.tokens,
                as_text=skill.as_text,
                use=_rate(counts.skills[skill.name]) if skill.name in counts.skills else None,
            )
            for skill in offers.skills
        ],
        never_called=[name for name in offers.tools if not counts.tools[name].use.hits],
        recovered=_rate(counts.recovered),
        unneeded=_rate(counts.unneeded),
        confusion=_confusion(counts),
        invalid=invalid,
        resources=dict(counts.resources.most_common()),
        prompts=dict(counts.prompts.most_common()),
        stood_in=_rate(counts.stood_in) if counts.stood_in.chances else None,
    )


def _tool(name: str, offers: Offers, counts: ToolCounts) -> ToolStats:
    offered = offers.tools.get(name)
    return ToolStats(
        name=name,
        offered=offered is not None or (name == SKILL and any(not skill.as_text for skill in offers.skills)),
        tokens=offered.tokens if offered else None,
        use=_rate(counts.use),
        success=_rate(counts.success),
        valid=_rate(counts.valid),
        chosen=_rate(counts.chosen),
        arguments=_rate(counts.arguments),
    )


def _rate(share: CaseShare) -> OfferRate:
    result: Aggregate | None = share.aggregate() if share.chances else None
    return OfferRate(
        hits=share.hits,
        of=share.chances,
        share=result.mean if result else None,
        ci95=result.ci95 if result else None,
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
    )


def _ordered(names: Iterator[str]) -> list[str]:
    return sorted(set(names), key=lambda name: (name == NONE, name))


# -- gains ---------------------------------------------------------------------------------------


def _gains(run: StoredRun, offers: dict[str, Offers]) -> tuple[str, list[Gain]]:
    """Return what the score of gains is about, and the gain of everything that some arm has and another one lacks."""
    scores = read_scores(sources_of(run))
    family = choose(scores)
    wanted = list(_wanted(run.plan_arms, offers))
    named = [{arm.name, less.name} for arm, less, _ in wanted]
    pairs = [(a, b) for a, b in family if {a.arm.name, b.arm.name} in named]
    if not pairs:
        return scores.primary, []
    # The same family as in `compare`: one verdict, one interval.
    main = decided(scores, pairs, [scores.primary], family=family, detailed=0)
    known = [name for name in _TAKEN if all(name in arm.values for pair in pairs for arm in pair)]
    others = [name for name in known if name != scores.primary]
    taken = decided(scores, pairs, others, primary=False) if others else []
    gains = []
    for arm, less, what in wanted:
        own = [_difference(pair, arm.name) for pair in main if {pair.a, pair.b} == {arm.name, less.name}]
        costs = [_difference(pair, arm.name) for pair in taken if {pair.a, pair.b} == {arm.name, less.name}]
        if own and own[0].count:
            gains.append(
                Gain(
                    what=what,
                    arm=arm.name,
                    baseline=less.name,
                    other_system=_own_system(arm) != _own_system(less),
                    score=own[0],
                    taken=[one for one in costs if one.count],
                )
            )
    return scores.primary, gains


def _wanted(arms: Sequence[Arm], offers: dict[str, Offers]) -> Iterator[tuple[Arm, Arm, list[tuple[str, str]]]]:
    """Yield pairs of arms of one target, with what the first has more: one thing, or everything against nothing."""
    for arm in arms:
        own = [other for other in arms if other.target.id == arm.target.id and other is not arm]
        found = [(less, what) for less in own if (what := added(offers[arm.name], offers[less.name])) is not None]
        single = [(less, what) for less, what in found if len(what) == 1]
        bare = [(less, what) for less, what in found if len(what) > 1 and not offers[less.name].items()]
        for less, what in (*single, *bare[:1]):
            yield arm, less, what


def _own_system(arm: Arm) -> str:
    """Return the system prompt of an arm without the texts of skills, which come after what the suite says."""
    system = arm.condition.system
    if not any(skill.as_text for skill in arm.condition.skills):
        return system
    heading = rf"(?:\A|\n\n)({_IN_TEMPLATES})?# Skill: {re.escape(arm.condition.skills[0].name)}(\n|\\n)"
    found = re.search(heading, system)
    return system[: found.start()] if found else system


def _difference(pair: Comparison, arm: str) -> OfferDifference:
    """Return a comparison as that of this arm with the other one."""
    own = pair.of(arm)
    return OfferDifference(
        metric=own.metric,
        scale=own.scale,
        difference=own.difference,
        ci95=own.ci95,
        verdict=own.verdict,
        count=own.count,
    )
