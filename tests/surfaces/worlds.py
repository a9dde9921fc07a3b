"""Runs of every kind that a headline may be about: metrics of either direction, few and many arms, ties and trouble."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sqlalchemy import bindparam, delete, select, update

from fairtrial.analyse.run import Run
from fairtrial.config import RunOptions
from fairtrial.store import Store, schema

# By name: worst and best. Latency and cost belong to every trial, the others are what a scorer measures.
METRICS: dict[str, tuple[float | None, float | None]] = {
    "": (0.0, 1.0),
    "latency_ms": (None, 0.0),
    "cost_usd": (None, 0.0),
    "absolute_gap": (None, 0.0),
    "normalised_gap": (1.0, 0.0),
    "marks": (1.0, 5.0),
    "depth": (None, None),
}
LOWER = {name for name, (worst, best) in METRICS.items() if best is not None and (worst is None or best < worst)}
STATES = ("apart", "level", "spread", "failures", "dead", "early", "budget", "one", "repeats")
ARMS = (2, 3, 6, 20)  # twenty make more pairs than any surface lists, and more arms than any sentence or card names


def _skills(state: str, arms: int, rng: np.random.Generator) -> np.ndarray:
    if state in ("level", "one"):
        return np.full(arms, 0.6)
    if state in ("spread", "failures"):
        return np.linspace(0.8, 0.45, arms)
    best = np.full(arms, 0.2)
    best[: max(1, arms // 3)] = 0.9
    return rng.permutation(best)


async def world(run_suite: Any, store: Store, state: str, arms: int) -> Run:
    """Make a real run, and give its answers the scores and measurements of this world."""
    rng = np.random.default_rng(STATES.index(state) * 100 + arms)
    skills, count = _skills(state, arms, rng), {"one": 1, "repeats": 1, "early": 40}.get(state, 24)
    right = rng.random((arms, count)) < skills[:, None]
    names = [f"arm-{n:02}" for n in range(arms)]
    targets = []
    for number, name in enumerate(names):
        answers = {f"c{n:02}": "42" if right[number, n] else "x" for n in range(count)}
        faults = {"refused": 1.0} if state == "dead" and number == arms - 1 else {}
        targets.append({"id": name, "target": "mock:x", "options": {"answers": answers, "faults": faults}})
    run = await run_suite(
        RunOptions(stop_when="decided") if state == "early" else None,
        targets=targets,
        cases=[{"id": f"c{n:02}", "input": f"case {n}", "expected": "42"} for n in range(count)],
        retry={"attempts": 1},
        repeats=5 if state == "repeats" else 1,
    )
    _measure(store, run.id, rng, skills)
    if state == "failures":
        _fail(store, run.id, rng)
    if state == "budget":
        _run_out_of_money(store, run.id, count)
    return again(run)


def again(run: Run) -> Run:
    """Read a run anew."""
    return Run(run.store, run.store.run_of_id(run.id))


def _measure(store: Store, run_id: str, rng: np.random.Generator, skills: np.ndarray) -> None:
    """Set what was measured of every trial: the better an arm, the better all of it, with noise."""
    trials, scores = schema.trials, schema.scores
    keys = ("case_position", "arm_position", "repeat")
    with store.writing() as connection:
        columns = [trials.c[name] for name in keys]
        rows = connection.execute(select(*columns).where(trials.c.run_id == run_id).order_by(*columns)).all()
        of_trials, of_scores = [], []
        for row in rows:
            place = {f"at_{name}": getattr(row, name) for name in keys}
            skill = float(np.clip(skills[row.arm_position] + rng.normal(0, 0.1), 0.01, 0.99))
            of_trials.append(
                {**place, "latency_ms": round(1000 * (1 - skill), 3), "cost_usd": round(0.01 * (1 - skill), 6)}
            )
            measured = {
                "absolute_gap": [50 * (1 - skill), None, 0.0],
                "normalised_gap": [1 - skill, 1.0, 0.0],
                "marks": [1 + 4 * skill, 1.0, 5.0],
                "depth": [10 * skill, None, None],
            }
            of_scores.append({**place, "metrics": json.dumps(measured).encode()})
        for table, values in ((trials, of_trials), (scores, of_scores)):
            places = [table.c[name] == bindparam(f"at_{name}") for name in keys]
            changed = update(table).where(table.c.run_id == run_id, *places)
            more = {"unknown_costs": 0} if table is trials else {}
            connection.execute(changed.values(**more, row_hash=None), values)  # as an earlier version wrote them


def _fail(store: Store, run_id: str, rng: np.random.Generator) -> None:
    """Let some calls have timed out."""
    trials, scores = schema.trials, schema.scores
    with store.writing() as connection:
        rows = connection.execute(
            select(trials.c.case_position, trials.c.arm_position).where(trials.c.run_id == run_id)
        ).all()
        for case, arm in rows:
            if rng.random() < 0.12:
                for table in (trials, scores):
                    where = (table.c.run_id == run_id, table.c.case_position == case, table.c.arm_position == arm)
                    if table is scores:
                        connection.execute(delete(table).where(*where))
                    else:
                        failed = {"failure_kind": "timeout", "failure_message": "no answer for 120 s", "answer": None}
                        connection.execute(update(table).where(*where).values(**failed, row_hash=None))


def _run_out_of_money(store: Store, run_id: str, count: int) -> None:
    """Let the run have been stopped by its budget after half of its cases."""
    with store.writing() as connection:
        for table in (schema.scores, schema.trials):
            connection.execute(delete(table).where(table.c.run_id == run_id, table.c.case_position >= count // 2))
        connection.execute(
            update(schema.runs)
            .where(schema.runs.c.id == run_id)
            .values(status="incomplete", reason="budget of $1 reached")
        )


def decide_by(run: Run, metric: str) -> Run:
    """Make a metric the one that the run's suite calls primary."""
    settings = {**run.settings, "primary_metric": metric or None}
    with run.store.writing() as connection:
        connection.execute(
            update(schema.runs).where(schema.runs.c.id == run.id).values(settings=json.dumps(settings).encode())
        )
    return again(run)
