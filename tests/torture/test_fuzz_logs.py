"""Logs of sessions that were changed at random or cut anywhere: each becomes a run, or is refused in a sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from fairtrial.analyse.run import Run
from fairtrial.core import registry
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_sessions import import_logs, sessions_in
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, cut_everywhere, fuzz
from tests.tracks.interchange.logs import DATA
from tests.tracks.interchange.logs.test_formats import CLAUDE, CODEX, CODEX_OLD, GEMINI, JOB, OPENCODE

_STORED_OF = 8  # inputs, one of which is stored too
_LINES = 40  # of a log: what is read sooner is changed more often


def _head(path: Path) -> bytes:
    return b"\n".join(path.read_bytes().split(b"\n")[:_LINES])


def _spans() -> bytes:
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x", "gen_ai.tool.call.arguments": "{}"}
    ours = {"fairtrial.call": '{"n": 1, "type": "call", "id": "a", "tool": "x"}', **values}
    asked = {
        "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "1",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "x"}]}]',
    }  # fmt: skip
    spans = [
        {"traceId": trace, "spanId": str(number), "parentSpanId": "0", "startTimeUnixNano": str(number),
         "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]}
        for trace, own in (("1", values), ("2", ours)) for number, attributes in enumerate((asked, own))
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def _written() -> bytes:
    """A trajectory as we write it, with a subagent inside."""

    def event(n: int, kind: str, **more: object) -> dict[str, object]:
        return {"fairtrial": {"n": n, "type": kind, **more}}

    call = {"tool_call_id": "c", "function_name": "x", "arguments": {}, "extra": event(1, "call", id="c", tool="x")}
    result = {"source_call_id": "c", "content": "y", "extra": event(3, "result", call="c"),
              "subagent_trajectory_ref": [{"trajectory_id": "i"}]}  # fmt: skip
    message = {"fairtrial": {"message": {"n": 2, "type": "message", "within": "c"}}}
    inner = {
        "trajectory_id": "i",
        "agent": {"name": "b"},
        "steps": [{"source": "agent", "message": "z", "extra": message}],
    }
    steps = [
        {"step_id": 1, "source": "user", "message": "Hi", "timestamp": "2026-01-01T00:00:00Z",
         "extra": {"fairtrial": {"event": {"n": 0, "type": "message", "role": "user"}}}},
        {"step_id": 2, "source": "agent", "message": "", "tool_calls": [call], "observation": {"results": [result]}},
    ]  # fmt: skip
    ours = {"case": "a", "arm": "m", "repeat": 1, "rewards": {"match": 1.0}, "started_at": "2026-01-01T00:00:00Z"}
    return json.dumps({"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": steps,
                       "subagent_trajectories": [inner], "extra": {"fairtrial": ours}}).encode()  # fmt: skip


SEEDS: dict[str, list[Document]] = {
    "claude_code": [Document(CLAUDE.name, _head(CLAUDE))],
    "codex": [Document(path.name, _head(path)) for path in (CODEX, CODEX_OLD)],
    "gemini_cli": [Document(GEMINI.name, _head(GEMINI)), Document("session-1.json", json.dumps(
        {"sessionId": "s", "projectHash": "h", "messages": [{"id": "1", "type": "user", "content": "Hi"}]}).encode())],
    "opencode": [Document("export.json", OPENCODE.read_bytes())],
    "harbor": [Document("result.json", path.read_bytes()) for path in sorted(JOB.glob("*/result.json"))[:2]],
    "atif": [
        *(Document("trajectory.json", path.read_bytes()) for path in sorted(DATA.glob("harbor/trajectory.*.json"))),
        Document("ours.atif.json", _written()),
    ],
    "otlp": [Document("spans.json", _spans())],
}  # fmt: skip


def test_every_format_has_seeds():
    assert set(SEEDS) == set(registry.built_in("logs"))


class Reading:
    """Reads logs as an import does, with what stands beside them, and now and then stores them."""

    def __init__(self, name: str, folder: Path, store: Store) -> None:
        self.name, self.folder, self.store, self.count = name, folder / "theirs", store, 0
        if name == "claude_code":
            shutil.copytree(CLAUDE.parent, self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if name == "harbor":
            (self.folder / "agent").mkdir()
            shutil.copy(DATA / "harbor/trajectory.codex.json", self.folder / "agent")

    def __call__(self, document: Document) -> str:
        self.count += 1
        path = self.folder / document.kind
        path.write_bytes(document.body)
        if self.count % _STORED_OF == 0:
            for one in import_logs(path, store=self.store, form=self.name):
                Run(self.store, one.run.record).summary()
            return "stored"
        sessions = list(sessions_in(path, self.name))
        kinds = {type(event).__name__ for session in sessions for event in session.events}
        return f"{sorted(kinds)} {any(session.unknown for session in sessions)}"


@pytest.mark.parametrize("name", SEEDS)
def test_logs(name: str, tmp_path: Path, campaign: Campaign):
    with closing(Store(str(tmp_path / "s.db"))) as store:
        fuzz(campaign, SEEDS[name], Reading(name, tmp_path, store), short=1)


def test_logs_that_are_cut(tmp_path: Path, campaign: Campaign):
    with closing(Store(str(tmp_path / "s.db"))) as store:
        readings = {name: Reading(name, tmp_path / name, store) for name in SEEDS}

        def read(document: Document) -> str:
            name, _, kind = document.kind.partition("/")
            return readings[name](Document(kind, document.body))

        cut_everywhere(campaign, list(_named()), read)


def _named() -> Iterator[Document]:
    for name, seeds in SEEDS.items():
        yield from (Document(f"{name}/{one.kind}", one.body) for one in seeds)
