"""Summary of the pairs of answers that judges compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fairtrial.core.money import Cost
from fairtrial.core.showing import Shown
from fairtrial.stats.one_arm import Aggregate
from fairtrial.stats.pairs import Orders, both_orders
from fairtrial.store.rows import read_cost


class ArmPair(msgspec.Struct, frozen=True, kw_only=True):
    """One judge's verdicts on two arms; wins are those of `one`."""

    judge: str
    one: str
    other: str
    orders: Orders
    failed: int


class JudgeOrders(msgspec.Struct, frozen=True, kw_only=True):
    """How much the order of answers affects one judge, over all its pairs."""

    judge: str
    pairs: int
    flip_rate: Aggregate
    first_share: Aggregate
    calls: int
    cost: Cost

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of the calls; None unless it is known for every call."""
        return self.cost.usd


class PairsSummary(Shown, msgspec.Struct, frozen=True, kw_only=True):
    """All judged pairs of arms of a run."""

    run_id: str
    suite: str
    pairs: list[ArmPair]
    judges: list[JudgeOrders]
    failures: list[tuple[str, int]]
    exhausted: bool = False  # the budget was reached before all pairs were judged


class _Columns:
    """Collects verdicts, either of one pair of arms or of one judge."""

    def __init__(self) -> None:
        self.forward: list[float] = []
        self.backward: list[float] = []
        self.cases: list[int] = []
        self.failed = 0
        self.calls = 0
        self.cost = Cost()

    def add(self, row: dict[str, Any]) -> None:
        self.calls += row["asked"]
        self.cost += read_cost(row)
        if row["failure_kind"] is not None:
            self.failed += 1
            return
        self.forward.append(row["forward"])
        self.backward.append(row["backward"])
        self.cases.append(row["case_position"])

    def orders(self) -> Orders:
        """Return the results over both orders; answers to one case are alike, so cases, not pairs, are the sample."""
        return both_orders(self.forward, self.backward, clusters=self.cases)


def summarise_pairs(
    run_id: str, suite: str, arm_names: list[str], rows: Iterable[dict[str, Any]], *, exhausted: bool = False
) -> PairsSummary:
    """Summarise stored pairs."""
    by_arms: dict[tuple[str, int, int], _Columns] = {}
    by_judge: dict[str, _Columns] = {}
    failures: dict[str, int] = {}
    for row in rows:
        by_arms.setdefault((row["judge"], row["arm_one"], row["arm_other"]), _Columns()).add(row)
        by_judge.setdefault(row["judge"], _Columns()).add(row)
        if row["failure_kind"] is not None:
            failures[row["failure_message"]] = failures.get(row["failure_message"], 0) + 1
    return PairsSummary(
        run_id=run_id,
        suite=suite,
        pairs=[
            ArmPair(
                judge=judge,
                one=arm_names[one],
                other=arm_names[other],
                orders=columns.orders(),
                failed=columns.failed,
            )
            for (judge, one, other), columns in sorted(by_arms.items())
        ],
        judges=[_judge_orders(judge, columns) for judge, columns in sorted(by_judge.items())],
        failures=sorted(failures.items(), key=lambda item: -item[1]),
        exhausted=exhausted,
    )


def _judge_orders(judge: str, columns: _Columns) -> JudgeOrders:
    orders = columns.orders()
    return JudgeOrders(
        judge=judge,
        pairs=orders.pairs,
        flip_rate=orders.flip_rate,
        first_share=orders.first_share,
        calls=columns.calls,
        cost=columns.cost,
    )
