"""Trials of Harbor: folders with a `result.json`, and the trajectory that the agent left in `agent/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import ErrorEvent, Event, LimitEvent
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.logs import atif
from fairtrial.tracks.interchange.logs._harbor_errors import LIMITS, REFUSALS, keeps_reward
from fairtrial.tracks.interchange.values import (
    count_of,
    dict_of,
    failure_of,
    list_of,
    name_of,
    number_of,
    scrub,
    seconds_of,
    text_of,
)

_TRIAL = {"task_name", "trial_name", "task_checksum", "agent_info"}
_SHORT = 12  # characters of a task's checksum


def recognises(source: Source) -> bool:
    """Return whether a file is the result of a trial; that of a whole job is in its trials."""
    return source.name == "result.json" and b'"task_checksum"' in source.head and source.keys >= _TRIAL


def companions(source: Source) -> Iterable[Path]:
    """Return the trajectories of a trial, also of its steps."""
    folder = source.path.parent
    found = [*folder.glob("agent/*.json"), *folder.glob("steps/*/agent/*.json")]
    return sorted(path for path in found if path.is_file())


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the session of a trial: what its agent did, and the rewards that it got for that."""
    result = dict_of(source.document)
    told, unknown = _told(source)
    checksum = str(result.get("task_checksum") or "")[:_SHORT]
    agent, model = dict_of(result.get("agent_info")), _model(result)
    name = name_of(agent.get("name") or "agent")
    rewards = {
        name_of(key): value
        for key, given in dict_of(dict_of(result.get("verifier_result")).get("rewards")).items()
        if (value := number_of(given)) is not None
    }
    exceptions = list(_exceptions(result))
    usage, cost = _used(result)
    base = told or LoggedSession(id="", agent=name)
    yield msgspec.structs.replace(
        base,
        id=name_of(result.get("trial_name")),
        agent=name,
        version=str(agent.get("version") or ""),
        model=model or base.model,
        events=(*base.events, *_endings(exceptions)),
        case=name_of(f"{result.get('task_name')}@{checksum}" if checksum else result.get("task_name")),
        scores=rewards,
        failure=_failure(rewards, exceptions),
        usage=usage or base.usage,
        cost_usd=base.cost_usd if cost is None else cost,
        started_at=seconds_of(result.get("started_at")) or base.started_at,
        ended_at=seconds_of(result.get("finished_at")) or base.ended_at,
        worked_ms=_worked(result) or base.worked_ms,
        finish_reason="refusal" if any(kind in REFUSALS for kind, _ in exceptions) else base.finish_reason,
        metadata={"task": name_of(result.get("task_name")), "dataset": name_of(result.get("source") or "adhoc")},
        unknown=unknown,
    )


def _told(source: Source) -> tuple[LoggedSession | None, dict[str, int]]:
    """Return what the agent did over all steps of a trial; and how many of its files say nothing that is understood."""
    found: list[LoggedSession] = []
    unknown: dict[str, int] = {}
    for path in companions(source):
        one = Source(path)
        try:
            found += atif.sessions(one) if atif.recognises(one) else ()
        except FairtrialError:
            unknown["trajectory that cannot be read"] = unknown.get("trajectory that cannot be read", 0) + 1
    for session in found:
        for kind, count in session.unknown.items():
            unknown[kind] = unknown.get(kind, 0) + count
    if not found:
        return None, unknown
    if len(found) == 1:
        return found[0], unknown
    events: list[Event] = []
    for number, session in enumerate(found):
        last = events[-1].turn if events else 0
        events += [_in_step(event, number, last) for event in session.events]
    return msgspec.structs.replace(found[0], events=tuple(events)), unknown


def _in_step(event: Event, step: int, turns: int) -> Event:
    """Return an event of a later step of a trial, whose turns and calls go on from those before."""
    changes: dict[str, Any] = {"turn": event.turn + turns}
    for field in ("id", "call", "within"):
        name = getattr(event, field, "")
        if step and name:
            changes[field] = f"{name}#{step + 1}"
    return msgspec.structs.replace(event, **changes)


def _model(result: dict[str, Any]) -> str:
    info = dict_of(dict_of(result.get("agent_info")).get("model_info"))
    named = "/".join(str(part) for part in (info.get("provider"), info.get("name")) if part)
    chosen = dict_of(dict_of(result.get("config")).get("agent")).get("model_name")
    return named or (chosen if isinstance(chosen, str) else "")


def _exceptions(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for holder in (result, *list_of(result.get("step_results"))):
        info = dict_of(dict_of(holder).get("exception_info"))
        if info:
            yield name_of(info.get("exception_type") or "error"), scrub(text_of(info.get("exception_message")))


def _endings(exceptions: Iterable[tuple[str, str]]) -> Iterator[Event]:
    for kind, message in exceptions:
        if kind in LIMITS:
            yield LimitEvent(kind=LIMITS[kind])
        else:
            yield ErrorEvent(kind=kind, text=message)


def _failure(rewards: dict[str, float], exceptions: list[tuple[str, str]]) -> Failure | None:
    """Return why a trial has no valid reward: it never becomes a 0."""
    bad = [(kind, message) for kind, message in exceptions if not keeps_reward(kind)]
    if rewards and not bad:
        return None
    kind, message = next(iter(bad or exceptions), ("", "it has no reward, and no reason is given"))
    failure = failure_of(f"{kind}: {message}" if kind else message)
    return msgspec.structs.replace(failure, kind="timeout") if LIMITS.get(kind) == "time" else failure


def _used(result: dict[str, Any]) -> tuple[Usage | None, float | None]:
    steps = [dict_of(step).get("agent_result") for step in list_of(result.get("step_results"))]
    told = [one for one in (result.get("agent_result"), *steps) if isinstance(one, dict)]
    counted = [one for one in told if one.get("n_input_tokens") is not None or one.get("n_output_tokens") is not None]
    costs = [cost for one in told if (cost := number_of(one.get("cost_usd"))) is not None]
    usage = Usage(
        prompt=sum(count_of(one.get("n_input_tokens")) for one in counted),
        completion=sum(count_of(one.get("n_output_tokens")) for one in counted),
        cache_read=sum(count_of(one.get("n_cache_tokens")) for one in counted),
    )
    return usage if counted else None, sum(costs) if costs else None


def _worked(result: dict[str, Any]) -> float | None:
    """Return how long the agent worked, without the time that its environment took to start."""
    spans = [dict_of(result.get("agent_execution"))]
    spans += [dict_of(dict_of(step).get("agent_execution")) for step in list_of(result.get("step_results"))]
    times = [(seconds_of(span.get("started_at")), seconds_of(span.get("finished_at"))) for span in spans]
    known = [1000 * (end - start) for start, end in times if start is not None and end is not None and end >= start]
    return sum(known) if known else None
