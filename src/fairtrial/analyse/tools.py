"""How the arms used their tools, and their scores when they did."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairtrial.analyse.stopping import Adjust
from fairtrial.core.experiment import Arm, Condition, ToolUse
from fairtrial.stats import Aggregate, aggregate
from fairtrial.store import Store, totals
from fairtrial.store.records import RunRecord


class ToolSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One arm's use of the MCP servers it was given."""

    answers: int  # that report their tool use
    used: int  # with at least one call
    calls: int
    errors: int
    tools: dict[str, tuple[int, int]]  # calls and errors by "server.tool"
    marked: int  # that lack what the condition requires
    unknown: int  # answers that do not report their tool use
    when_used: Aggregate  # the score over the answers that used a tool

    @property
    def rate(self) -> float:
        """Return the share of answers that used a tool."""
        return self.used / self.answers if self.answers else 0.0


class _Sums:
    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.answers = self.used = self.marked = self.unknown = 0
        self.tools: dict[str, tuple[int, int]] = {}
        self.scores: dict[int, list[float]] = {}
        self.weights: dict[int, float] = {}

    def add(self, row: totals.ToolRow) -> None:
        if row.tools is None:
            self.unknown += 1
            self.marked += bool(self.condition.missing(None))
            return
        use = ToolUse(tools=row.tools)
        self.answers += 1
        self.used += use.calls > 0
        self.marked += bool(self.condition.missing(use))
        for name, (calls, errors) in row.tools.items():
            made, failed = self.tools.get(name, (0, 0))
            self.tools[name] = (made + calls, failed + errors)
        if use.calls and row.score is not None:
            self.scores.setdefault(row.case_position, []).append(row.score)
            self.weights[row.case_position] = row.weight

    def summary(self, adjust: Adjust) -> ToolSummary:
        means = {case: sum(values) / len(values) for case, values in self.scores.items()}
        plain = aggregate(list(means.values()), [self.weights[case] for case in means], alpha=adjust.alpha)
        return ToolSummary(
            answers=self.answers,
            used=self.used,
            calls=sum(calls for calls, _ in self.tools.values()),
            errors=sum(errors for _, errors in self.tools.values()),
            tools=dict(sorted(self.tools.items())),
            marked=self.marked,
            unknown=self.unknown,
            when_used=adjust(plain, means, (0.0, 1.0)) if plain.count > 1 else plain,
        )


def arm_tools(
    store: Store, record: RunRecord, arms: tuple[Arm, ...], adjust: Callable[[int], Adjust]
) -> dict[int, ToolSummary]:
    """Return the tool use by arm position, for arms with MCP servers; `adjust` is how to adjust the means of each."""
    sums = {arm.position: _Sums(arm.condition) for arm in arms if arm.condition.mcp}
    if not sums:
        return {}
    for row in totals.tool_rows(store, record.id, record.plan_id, record.scoring):
        if row.arm_position in sums:
            sums[row.arm_position].add(row)
    return {position: found.summary(adjust(position)) for position, found in sums.items()}
