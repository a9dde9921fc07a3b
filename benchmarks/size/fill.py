"""Fill a store with made-up results of the suite, as its mock targets would give, without running the engine.

Rows go in through the store's own statements, so that any database can be filled; only the engine is left out.
"""

from __future__ import annotations

import hashlib
import platform
import random
from collections.abc import Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.size.suite import ARMS, FAILING, RIGHT, STEPS, WRONG, answers
from fairtrial import pipeline
from fairtrial.core.ids import canonical_json, new_id
from fairtrial.store import Store, schema
from fairtrial.store.waiting import Waiting

_BATCH = 5000
_STARTED = 1_790_000_000.0
_TRIAL: dict[str, Any] = {
    **dict.fromkeys(schema.trials.c.keys()),
    "attempts": 1,
    "cached": False,
    "waited_ms": 0.0,
    "prompt_tokens": 20,
    "completion_tokens": 0,
    "cost_usd": 0.0,
    "charged_usd": 0.0,
    "unknown_costs": 0,
}
_SCORE: dict[str, Any] = {
    **dict.fromkeys(schema.scores.c.keys()),
    "scoring": 0,
    "scorer": "numeric",
    "confidence": 1.0,
    "max": 1.0,
    "automatic": False,
    "retryable": False,
    "scored_at": _STARTED,
}
_VALUES = {RIGHT: (1.0, "42, 0.00% off 42"), WRONG: (0.6913932790, "41, 2.38% off 42")}
_FAILED = {"failure_kind": "refused", "failure_message": "HTTP 400: the mock rejected this request"}


def fill(store: Store, suite_file: Path, seed: int = 0) -> str:
    """Write the plan of a suite and a finished run of it; return the run's id."""
    suite = pipeline.load(suite_file)
    for _ in pipeline._write_plan(suite, store, Waiting()):
        pass
    run_id = new_id()
    store.add_run(
        {
            "id": run_id,
            "plan_id": suite.plan_id,
            "series_id": None,
            "status": "incomplete",
            "settings": canonical_json(msgspec.to_builtins(suite.settings)),
            "context": canonical_json(_context([arm.name for arm in suite.arms])),
            "ended_at": _STARTED,
        }
    )
    trials = made_up(run_id, store.plan(suite.plan_id).case_count, suite.arms[0].repeats, seed, len(suite.arms))
    while batch := list(islice(trials, _BATCH)):
        scores = [score for _, score in batch if score is not None]
        store.write({"trials": [trial for trial, _ in batch], "scores": scores})
    return run_id


def _context(arms: list[str]) -> dict[str, Any]:
    return {
        "arms": [{"arm": name, "sent": {}} for name in arms],
        "packages": {"fairtrial": version("fairtrial")},
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def made_up(
    run_id: str, cases: int, repeats: int, seed: int, arms: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield the rows of every trial in the order of places: the trial, and its score unless it failed."""
    luck = random.Random(seed)
    scripts = [answers(arm) for arm in range(arms)]
    for case in range(cases):
        for arm in range(arms):
            script = scripts[arm][f"(step {case % STEPS})"]
            for repeat in range(repeats):
                place = {"run_id": run_id, "case_position": case, "arm_position": arm, "repeat": repeat}
                name = hashlib.blake2b(f"{run_id}/{case}/{arm}/{repeat}".encode(), digest_size=10).hexdigest()
                trial = {**_TRIAL, **place, "trial_id": name, "started_at": _STARTED + case, "model": f"arm-{arm}"}
                if luck.random() < FAILING:
                    yield {**trial, **_FAILED}, None
                    continue
                text = script[repeat % len(script)]
                value, notes = _VALUES[text]
                answer = {
                    "answer": text,
                    "finish_reason": "stop",
                    "latency_ms": luck.lognormvariate(6 + arm % ARMS / 5, 0.5),
                    "completion_tokens": 30,
                    "cost_usd": 0.0001 * (arm + 1),
                    "charged_usd": 0.0001 * (arm + 1),
                }
                yield {**trial, **answer}, {**_SCORE, **place, "value": value, "raw": value, "notes": notes}
