"""A trial as a trajectory in ATIF; a run with several as a folder of them, or as lines."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import msgspec

from fairtrial.analyse.run import Run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import CallEvent, Event
from fairtrial.reports.json import iso_time
from fairtrial.tracks.interchange.exports.trajectory_steps import (
    Document,
    Step,
    Trajectory,
    file_stem,
    shown,
    steps_of,
    tool_name,
    trajectories,
)
from fairtrial.tracks.interchange.logs.atif import OURS

_VERSION = "ATIF-v1.7"  # the first with subagents inside; later ones add nothing that we have
_ENDING = ".atif.json"
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def write(run: Run, file: IO[str]) -> None:
    """Write the trajectory of a run with one trial."""
    found = trajectories(run)
    first = next(found, None)
    if first is None:
        raise FairtrialError(f"run {run.id} has no trials yet: there is no trajectory to write")
    if next(found, None) is not None:
        raise FairtrialError(
            "a file of ATIF holds one trial, and this run has several; write a folder of files: `fairtrial export RUN "
            "--format atif -o trajectories/`, or one line for each: `-o trajectories.atif.jsonl`"
        )
    file.write(msgspec.json.format(_encode(document_of(run, first)), indent=1).decode())
    file.write("\n")


def write_folder(run: Run, folder: Path) -> None:
    """Write one file for every trial."""
    for one in trajectories(run):
        body = msgspec.json.format(_encode(document_of(run, one)), indent=1)
        (folder / f"{file_stem(one.told)}{_ENDING}").write_bytes(body + b"\n")


def line_of(run: Run, one: Trajectory) -> str:
    """Return a trajectory as one line."""
    return _encode(document_of(run, one)).decode() + "\n"


def document_of(run: Run, one: Trajectory) -> Document:
    """Return a trajectory as a document; what the format has no field for is in `extra`."""
    writer = _Writer(one)
    steps = writer.steps(steps_of(one.events))
    if one.system:
        steps.insert(0, {"source": "system", "message": one.system, "extra": {OURS: {"system": True}}})
    steps = steps or [{"source": "system", "message": "", "extra": {OURS: {"empty": True}}}]
    trial = one.told.trial
    document: Document = {
        "schema_version": _VERSION,
        "session_id": (trial.trace or {}).get("session_id") or trial.trial_id,
        "trajectory_id": trial.trial_id,
        "agent": _agent(one),
        "steps": _numbered(steps),
        "final_metrics": _totals(one, len(steps)),
        "extra": {OURS: one.facts(run)},
    }
    if writer.inside:
        document["subagent_trajectories"] = writer.inside
    return document


def _agent(one: Trajectory) -> Document:
    agent: Document = {"name": one.agent, "version": one.version}
    return {**agent, "model_name": one.model} if one.model else agent


def _numbered(steps: list[Document]) -> list[Document]:
    return [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]


def _totals(one: Trajectory, steps: int) -> Document:
    trial = one.told.trial
    totals: Document = {
        "total_prompt_tokens": trial.prompt_tokens,
        "total_completion_tokens": trial.completion_tokens,
        "total_cached_tokens": trial.cache_read_tokens,
        "total_cost_usd": trial.cost_usd,
        "total_steps": steps,
    }
    extra = {
        "total_cache_write_input_tokens": trial.cache_write_tokens,
        "reasoning_output_tokens": trial.reasoning_tokens,
    }
    kept = {name: value for name, value in extra.items() if value}
    totals = {name: value for name, value in totals.items() if value is not None}
    return {**totals, "extra": kept} if kept else totals


class _Writer:
    """Writes the steps of one trajectory; `inside` are those of the subagents that its own calls started."""

    def __init__(self, one: Trajectory, began: dict[int, float] | None = None) -> None:
        self._one = one
        self._began = began if began is not None else one.moments()
        self.inside: list[Document] = []

    def steps(self, steps: list[Step]) -> list[Document]:
        """Return steps as documents."""
        return [self._step(step) for step in steps]

    def _step(self, step: Step) -> Document:
        document: Document = {"source": step.source}
        first: Event = step.first.event
        if first.at is not None:
            document["timestamp"] = iso_time(self._began[first.turn] + first.at)
        if step.other is not None:
            return {**document, "message": shown(step.other.event), "extra": {OURS: {"event": step.other.data("text")}}}
        if step.source != "agent":
            assert step.message is not None
            extra = {OURS: {"event": step.message.data("text")}}
            return {**document, "message": step.message.event.text, "extra": extra}
        return {**document, **self._of_agent(step)}

    def _of_agent(self, step: Step) -> Document:
        ours: Document = {"agent": True}
        document: Document = {"message": ""}
        if step.message is not None:
            document["message"] = step.message.event.text
            ours["message"] = step.message.data("text")
            if step.message.event.model:
                document["model_name"] = step.message.event.model
        if step.reasoning is not None:
            document["reasoning_content"] = step.reasoning.event.text
            ours["reasoning"] = step.reasoning.data("text")
        if step.calls:
            document["tool_calls"] = [self._call(call.event, call.data("arguments")) for call in step.calls]
            results = [result for call in step.calls for result in self._results(call.event, step)]
            if results:
                document["observation"] = {"results": results}
        return {**document, "extra": {OURS: ours}}

    def _call(self, call: CallEvent, ours: Document) -> Document:
        whole = isinstance(call.arguments, dict)
        if not whole:
            ours = {**ours, "arguments": call.arguments}  # the format takes an object only
        given: Any = call.arguments if whole else {} if call.arguments is None else {"arguments": call.arguments}
        return {
            "tool_call_id": call.id,
            "function_name": tool_name(call),
            "arguments": given,
            "extra": {OURS: ours},
        }

    def _results(self, call: CallEvent, step: Step) -> list[Document]:
        result, inner = step.results.get(call.id), step.inside.get(call.id)
        document: Document = {"source_call_id": call.id}
        if inner is not None:
            document["subagent_trajectory_ref"] = [{"trajectory_id": self._subagent(call, inner)}]
        if result is not None:
            document |= {"content": result.event.text, "extra": {OURS: result.data("text")}}
        return [document] if result is not None or inner is not None else []

    def _subagent(self, call: CallEvent, steps: list[Step]) -> str:
        writer = _Writer(self._one, self._began)
        written = _numbered(writer.steps(steps))
        name = f"{self._one.told.trial.trial_id}/{call.id}"
        document: Document = {
            "schema_version": _VERSION,
            "trajectory_id": name,
            "agent": {**_agent(self._one), "name": steps[0].first.event.agent or "subagent"},
            "steps": written,
        }
        if writer.inside:
            document["subagent_trajectories"] = writer.inside
        self.inside.append(document)
        return name
