"""Trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor, v1.0 and later, one per file or line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.answer import Failure, Usage
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import Event, read_events
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LoggedSession
from fairtrial.foreign.source import Source
from fairtrial.tracks.interchange.logs._lines import entries, is_context, split_tool, text_in, tolerant
from fairtrial.tracks.interchange.values import (
    clean_text,
    count_of,
    dict_of,
    list_of,
    name_of,
    number_of,
    seconds_of,
    text_of,
)

OURS = "fairtrial"  # the key in `extra` under which we keep what the format cannot hold
_VERSION = re.compile(r"ATIF-v1\.\d+")
_MAX_PARTS = 100  # files that go on from one to the next
_STEP = frozenset({
    "step_id", "source", "message", "timestamp", "observation", "is_copied_context", "llm_call_count", "extra",
    "model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics",
})  # fmt: skip


def recognises(source: Source) -> bool:
    """Return whether a file is of this format."""
    if b"ATIF-v" not in source.head:
        return False
    if source.suffix == ".jsonl":
        return "schema_version" in source.first and "steps" in source.first
    return source.keys >= {"schema_version", "steps"}


def companions(source: Source) -> Iterable[Path]:
    """Return the files in which a trajectory goes on, and those of its subagents, as far as they are in its folder."""
    if source.suffix == ".jsonl":
        return []
    found: list[Path] = []
    todo = [source]
    while todo and len(found) < _MAX_PARTS:
        one = todo.pop()
        for path in _referenced(_document(one), source.path.parent):
            if path not in found and path != source.path:
                found.append(path)
                todo.append(Source(path))
    return [path for path in found if recognises(Source(path))]


def _document(source: Source) -> dict[str, Any]:
    """Return the document in a file; an empty one if it is none."""
    try:
        return dict_of(source.document)
    except FairtrialError:
        return {}
    finally:
        source.release()


def _referenced(document: dict[str, Any], folder: Path) -> Iterator[Path]:
    results = [
        dict_of(result)
        for step in list_of(document.get("steps"))
        for result in list_of(dict_of(dict_of(step).get("observation")).get("results"))
    ]
    refs = [dict_of(ref) for one in results for ref in list_of(one.get("subagent_trajectory_ref"))]
    for name in [document.get("continued_trajectory_ref"), *(ref.get("trajectory_path") for ref in refs)]:
        path = _at(name, folder)
        if path is not None:
            yield path


def _at(name: Any, folder: Path) -> Path | None:
    """Return a file that a trajectory names, if it is in its folder or below: nothing else is opened."""
    if not isinstance(name, str) or not name or "\0" in name:
        return None
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        return path if inside and path.is_file() else None
    except OSError:
        return None


def sessions(source: Source) -> Iterator[LoggedSession]:
    """Yield the trajectories in a file."""
    if source.suffix != ".jsonl":
        yield from _session(dict_of(source.document), source.path.parent)
        return
    reading, last = Chronicle(""), None
    for document in entries(source, reading):
        for session in _session(document, source.path.parent):
            if last is not None:
                yield last
            last = session
    if last is not None:  # what was wrong with lines is known only now
        unknown = {**last.unknown, **reading.unknown}
        yield msgspec.structs.replace(last, unknown=unknown, stopped=last.stopped or reading.stopped)


def _session(document: dict[str, Any], folder: Path) -> Iterator[LoggedSession]:
    told = _Trajectory(dict_of(document.get("agent")), folder)
    told.read(document)
    session = told.session(document)
    if session is not None:
        yield session


class _Trajectory:
    """One trajectory with those of its subagents. What we wrote says the place of every event; others are in order."""

    def __init__(self, agent: dict[str, Any], folder: Path) -> None:
        self.chronicle = Chronicle(name_of(agent.get("name") or "agent"))
        self.chronicle.version, self.chronicle.model = text_of(agent.get("version")), text_of(agent.get("model_name"))
        self._folder = folder
        self._ours: list[tuple[int, Event]] = []
        self._copied = 0
        self._files = 0

    def read(self, document: dict[str, Any], within: str = "") -> None:
        """Read the steps of a document, and of the one that it goes on in."""
        version = document.get("schema_version")
        if not (isinstance(version, str) and _VERSION.fullmatch(version)) and not within:
            self.chronicle.skip(f"schema version {name_of(version)}")
        embedded = {
            str(one.get("trajectory_id")): one for one in map(dict_of, list_of(document.get("subagent_trajectories")))
        }
        for step in list_of(document.get("steps")):
            tolerant(self.chronicle, "step", self._step, dict_of(step), embedded, within)
        rest = _at(document.get("continued_trajectory_ref"), self._folder)
        if rest is not None and self._files < _MAX_PARTS:
            self._files += 1
            self.read(_document(Source(rest)), within)
        elif document.get("continued_trajectory_ref"):
            self.chronicle.note("The trajectory goes on in a file that is not here.")

    def _step(self, step: dict[str, Any], embedded: dict[str, dict[str, Any]], within: str) -> None:
        for key in step.keys() - _STEP:
            self.chronicle.skip(f"field {name_of(key)} of a step")
        if step.get("is_copied_context"):
            self._copied += 1  # it was told before: its tokens would count twice
            return
        told, source = self.chronicle, str(step.get("source"))
        at, text, ours = seconds_of(step.get("timestamp")), text_in(step.get("message")), _own(step)
        if source == "agent":
            self._agent(step, at, text, within)
        elif ours:
            self._add(ours.get("event"), text=text)
            if "system" in ours:
                told.system = text
        elif source == "user" and not is_context(text):
            told.ask(text, at, within=within)
        elif source in ("system", "user"):
            told.instruct(text, at, within=within)
        else:
            told.skip(f"source {name_of(source)}")
        for result in list_of(dict_of(step.get("observation")).get("results")):
            tolerant(told, "result", self._result, dict_of(result), embedded, at, within)

    def _agent(self, step: dict[str, Any], at: float | None, text: str, within: str) -> None:
        told, ours, model = self.chronicle, _own(step), text_of(step.get("model_name"))
        if not within:
            told.model = told.model or model
        if ours:
            self._add(ours.get("reasoning"), text=text_of(step.get("reasoning_content")))
            self._add(ours.get("message"), text=text)
        else:
            told.think(text_of(step.get("reasoning_content")), at, within=within)
            told.say(text, at, model=model or told.model, within=within)
        told.used(f"{within} {step.get('step_id')} {self._files}", _usage(step.get("metrics")))
        for call in list_of(step.get("tool_calls")):
            tolerant(told, "tool call", self._call, dict_of(call), at, within)

    def _call(self, call: dict[str, Any], at: float | None, within: str) -> None:
        name, ours = str(call["tool_call_id"]), _own(call)
        if ours:
            given = {} if "arguments" in ours else {"arguments": call.get("arguments")}
            self._add({**given, **ours})
            return
        server, tool = split_tool(str(call.get("function_name")))
        self.chronicle.call(name, tool, call.get("arguments"), at, server=server, within=within)

    def _result(
        self, result: dict[str, Any], embedded: dict[str, dict[str, Any]], at: float | None, within: str
    ) -> None:
        told, name, ours = self.chronicle, result.get("source_call_id"), _own(result)
        for ref in list_of(result.get("subagent_trajectory_ref")):
            self._subagent(dict_of(ref), embedded, str(name or ref))
        text = text_in(result.get("content"))
        if ours:
            self._add(ours, text=text)
        elif not isinstance(name, str):
            told.note(text, at, within=within)
        elif not told.has_call(name):
            told.skip("result of an unknown call")
        elif result.get("content") is not None or not result.get("subagent_trajectory_ref"):
            told.returned(name, text, error=_is_error(dict_of(result.get("extra"))))

    def _subagent(self, ref: dict[str, Any], embedded: dict[str, dict[str, Any]], call: str) -> None:
        document = embedded.get(str(ref.get("trajectory_id")))
        if document is None:
            path = _at(ref.get("trajectory_path"), self._folder)
            if path is None or self._files >= _MAX_PARTS:
                self.chronicle.note("What a subagent did is in a file that is not here.")
                return
            self._files += 1
            document = _document(Source(path))
        self.chronicle.delegate(call, name_of(dict_of(document.get("agent")).get("name") or ""))
        self.read(document, within=call)

    def _add(self, event: Any, **texts: Any) -> None:
        """Add an event as we wrote it, with what is in the format's own fields."""
        if not isinstance(event, dict):
            return
        place = event.get("n")
        data = {**texts, **{name: value for name, value in event.items() if name != "n"}}
        try:
            (read,) = read_events([data])
        except msgspec.ValidationError:
            self.chronicle.skip("event of another version of fairtrial")
            return
        self._ours.append((place if isinstance(place, int) else len(self._ours), read))

    def session(self, document: dict[str, Any]) -> LoggedSession | None:
        """Return the session, with what the document says of the whole."""
        told = self.chronicle
        told.id = text_of(document.get("session_id") or document.get("trajectory_id"))
        for _, event in sorted(self._ours, key=lambda one: one[0]):
            told.add(event)
        if self._copied:
            told.note(f"{self._copied} steps of an earlier context were copied here and are left out.")
        final = dict_of(document.get("final_metrics"))
        told.cost_usd = number_of(final.get("total_cost_usd"))
        told.usage = _sum(final)
        take_trial(told, _own(document))
        extra = dict_of(dict_of(document.get("agent")).get("extra"))
        told.folder = told.folder or text_of(extra.get("cwd") or next(iter(list_of(extra.get("cwds"))), ""))
        told.branch = told.branch or text_of(
            dict_of(extra.get("git")).get("branch") or next(iter(list_of(extra.get("git_branches"))), "")
        )
        return told.session()


def _own(holder: dict[str, Any]) -> dict[str, Any]:
    return dict_of(dict_of(holder.get("extra")).get(OURS))


def _is_error(extra: dict[str, Any]) -> bool:
    """Return whether a call failed: the format has no field for it, and converters say it in places of their own."""
    raw = dict_of(dict_of(extra.get("tool_result_metadata")).get("raw_tool_result"))
    return bool(extra.get("tool_result_is_error") or extra.get("is_error") or raw.get("is_error"))


def _usage(metrics: Any) -> Usage | None:
    if not isinstance(metrics, dict):
        return None
    extra = dict_of(metrics.get("extra"))
    return Usage(
        prompt=count_of(metrics.get("prompt_tokens")),
        completion=count_of(metrics.get("completion_tokens")),
        cache_read=count_of(metrics.get("cached_tokens")),
        cache_write=count_of(extra.get("cache_creation_input_tokens") or extra.get("cache_write_input_tokens")),
        reasoning=count_of(extra.get("reasoning_output_tokens")),
    )


def _sum(final: dict[str, Any]) -> Usage | None:
    """Return the tokens of the whole session, which include those of subagents; None without a sum of them."""
    if final.get("total_prompt_tokens") is None and final.get("total_completion_tokens") is None:
        return None
    extra = dict_of(final.get("extra"))
    written = extra.get("total_cache_creation_input_tokens") or extra.get("total_cache_write_input_tokens")
    return Usage(
        prompt=count_of(final.get("total_prompt_tokens")),
        completion=count_of(final.get("total_completion_tokens")),
        cache_read=count_of(final.get("total_cached_tokens")),
        cache_write=count_of(written),
        reasoning=count_of(extra.get("reasoning_output_tokens")),
    )


def take_trial(told: Chronicle, ours: dict[str, Any]) -> None:
    """Take what we wrote of the trial: its case, arm and scores."""
    if not ours:
        return
    scores = {name_of(name): value for name, given in dict_of(ours.get("rewards")).items()
              if (value := number_of(given)) is not None}  # fmt: skip
    repeat = ours.get("repeat")
    told.more = {
        "case": name_of(ours.get("case") or ""),
        "arm": name_of(ours.get("arm") or ""),
        "repeat": repeat - 1 if isinstance(repeat, int) and repeat > 0 else None,
        "scores": scores,
        "notes": {name_of(name): clean_text(text) for name, text in dict_of(ours.get("notes")).items()},
        "worked_ms": number_of(ours.get("latency_ms")),
        "started_at": seconds_of(ours.get("started_at")),
    }
    told.cost_usd = number_of(ours.get("cost_usd")) if "cost_usd" in ours else told.cost_usd
    failure = dict_of(ours.get("failure"))
    if failure.get("kind"):
        told.failure = Failure(kind=name_of(failure["kind"]), message=clean_text(failure.get("message")))
    told.finish_reason = ours.get("finish_reason") if isinstance(ours.get("finish_reason"), str) else None
