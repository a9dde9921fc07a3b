"""Logs of sessions become runs like any other: shown, scored, compared, grouped; without keys, and whatever they hold."""

from __future__ import annotations

import json
import shutil
import time
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner

import fairtrial as ft
from fairtrial.cli.main import cli
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import CallEvent, MessageEvent, ResultEvent
from fairtrial.core.place import Place
from fairtrial.core.trace import events_of
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_sessions import import_logs, sessions_in
from tests.tracks.interchange.logs import DATA
from tests.tracks.interchange.logs.test_formats import CLAUDE, CODEX, lines

KEY = "sk-proj-" + "Zq7" * 16


def said(kind: str, text: str, **more: object) -> dict:
    return {
        "timestamp": "2026-01-01T10:00:00Z",
        "type": "event_msg",
        "payload": {"type": kind, "message": text, **more},
    }


def rollout(path: Path, *entries: dict, model: str = "m", folder: str = "/w/one", **git: str) -> Path:
    """A session of Codex, as short as can be."""
    meta = {"id": path.stem, "cli_version": "1", "cwd": folder, "git": git}
    head = [{"type": "session_meta", "payload": meta}, {"type": "turn_context", "payload": {"model": model}}]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(*head, *entries))
    return path


def chat(path: Path, asked: str, answered: str, **more: str) -> Path:
    return rollout(path, said("user_message", asked), said("agent_message", answered), **more)


class TestARun:
    def test_a_session_is_a_trial_with_everything_that_happened(self, store):
        (done,) = import_logs(DATA / "claude-code", store=store)
        run, origin = done.run, done.origin
        (trial,) = run.trials()
        assert run.status == "completed" and trial.arm == "claude-code:claude-sonnet-5"
        assert (trial.input, trial.answer) == (
            "Write hello into b.txt, then delegate: count files.",
            "You are welcome.",
        )
        assert (trial.prompt_tokens, trial.completion_tokens, trial.cache_read_tokens) == (1120, 56, 320)
        assert trial.cost_usd == pytest.approx(0.00278) and len(trial.trace["tool_calls"]) == 4
        assert trial.score is None and origin["missing"] == ["scores"]
        (session,) = sessions_in(CLAUDE)
        assert events_of(trial.trace) == session.events
        assert run.trajectory(Place(0, 0, 0), run.store.cases(run.plan.id, 0, 1)[0], trial) == session.events

    async def test_it_can_be_scored_as_any_other(self, tmp_path):
        url = str(tmp_path / "s.db")
        (done,) = import_logs(DATA / "codex", store=Store(url))
        scorer = {"type": "tool_calls", "names": ["exec_command"], "max": 1}
        again = await ft.arescore(done.run.id, scorer=scorer, store=url)
        scores = {trial.arm: trial.score for trial in again.trials()}
        assert scores == {"codex:mock-model": 1.0, "codex:m1": 0.0}

    def test_a_job_of_harbor(self, store):
        (done,) = import_logs(DATA / "harbor/demo-job", store=store)
        rows = [(trial.arm, trial.repeat, trial.score, trial.failure_kind) for trial in done.run.trials()]
        assert sorted(rows, key=str) == [
            ("nop", 1, None, "crashed"),
            ("nop", 2, 0.0, None),
            ("oracle", 1, 1.0, None),
            ("oracle", 2, 1.0, None),
        ]
        assert [arm.aggregate.mean for arm in done.run.summary().arms] == [0.0, 1.0], "a failure is no 0"
        assert done.origin["metric"] == "reward" and done.origin["missing"] == ["what was asked"]

    def test_the_same_prompt_again_is_a_repeat_and_another_agent_another_arm(self, store, tmp_path):
        for number in range(2):
            chat(tmp_path / f"rollout-{number}.jsonl", "What is 2+2?", f"{number}")
        chat(tmp_path / "rollout-x.jsonl", "What is 2+2?", "4", model="other")
        chat(tmp_path / "rollout-y.jsonl", "What is 3+3?", "6", model="other")
        (done,) = import_logs(tmp_path, store=store)
        assert {(t.case_id[:-7], t.arm, t.repeat) for t in done.run.trials()} == {
            ("what-is-2-2", "codex:m", 1), ("what-is-2-2", "codex:m", 2), ("what-is-2-2", "codex:other", 1), ("what-is-3-3", "codex:other", 1),
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("group_by", "names"),
        [(None, ["sessions"]), ("cwd", ["one", "two"]), ("branch", ["sessions dev", "sessions main"]),
         ("model", ["sessions a", "sessions b"]), ("agent", ["sessions codex"]), ("day", ["sessions 2026-01-01"])],
    )  # fmt: skip
    def test_groups(self, group_by, names, store, tmp_path):
        chat(tmp_path / "rollout-1.jsonl", "Hi", "1", folder="/w/one", branch="main", model="a")
        chat(tmp_path / "rollout-2.jsonl", "Hi", "2", folder="/w/two", branch="dev", model="b")
        done = import_logs(tmp_path, store=store, group_by=group_by)
        assert sorted(one.run.record.suite_name for one in done) == names
        assert sum(len(list(one.run.trials())) for one in done) == 2

    def test_folders_are_categories_by_their_last_name_alone(self, store, tmp_path):
        chat(tmp_path / "rollout-1.jsonl", "Hi", "1", folder="/home/ann/one")
        chat(tmp_path / "rollout-2.jsonl", "Ho", "2", folder="/home/ann/two")
        (done,) = import_logs(tmp_path, store=store)
        assert {trial.category for trial in done.run.trials()} == {"one", "two"}
        assert "/home/ann" not in json.dumps([trial.trace for trial in done.run.trials()])

    def test_again_is_the_same_run_and_a_session_that_grew_takes_its_place(self, store, tmp_path):
        path = chat(tmp_path / "rollout-1.jsonl", "Hi", "1")
        (first,) = import_logs(path, store=store)
        (again,) = import_logs(path, store=store)
        assert (first.happened, again.happened, first.run.id) == ("imported", "already there", again.run.id)
        later = {**said("agent_message", "2"), "timestamp": "2026-01-01T11:00:00Z"}
        with path.open("a") as file:
            file.write(lines(later))
        (grown,) = import_logs(path, store=store)
        assert grown.happened == "imported" and grown.replaced == (first.run.id,)
        assert [trial.answer for trial in grown.run.trials()] == ["2"]

    def test_keys_never_reach_the_store(self, tmp_path):
        call = {"type": "function_call", "name": "shell", "call_id": "c",
                "arguments": json.dumps({"command": f"curl -H 'Authorization: Bearer {KEY}'", "api_key": KEY})}  # fmt: skip
        output = {"type": "function_call_output", "call_id": "c", "output": f"OPENAI_API_KEY={KEY}"}
        items = [{"type": "response_item", "payload": payload} for payload in (call, output)]
        rollout(tmp_path / "rollout-1.jsonl", said("user_message", f"Use {KEY}"), *items, said("agent_message", KEY))
        store = Store(str(tmp_path / "s.db"))
        (done,) = import_logs(tmp_path / "rollout-1.jsonl", store=store)
        (trial,) = done.run.trials()
        store.close()
        assert len(trial.trace["tool_calls"]) == 1 and KEY not in json.dumps([trial.input, trial.answer, trial.trace])
        assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.glob("s.db*"))


class TestWhatIsNotUnderstood:
    def test_it_is_counted_and_said(self, store, tmp_path):
        path = chat(tmp_path / "rollout-1.jsonl", "Hi", "Hello")
        strange = [{"type": "of_tomorrow"}] * 3 + [
            {"type": "event_msg", "payload": {"type": "odd"}},
            {"type": "response_item", "payload": 7},
        ]
        with path.open("a") as file:
            file.write(lines(*strange) + "not JSON\n[1]\n")
        (done,) = import_logs(path, store=store)
        (note,) = done.origin["notes"]
        assert note.startswith("not understood and left out: 3 × of_tomorrow, ")
        assert (
            "1 × event odd" in note and "1 × line that is not JSON" in note and "1 × line that is not an object" in note
        )

    def test_a_half_written_last_line_is_said(self, store, tmp_path):
        path = shutil.copy(CODEX, tmp_path / "rollout-1.jsonl")
        body = path.read_bytes()
        path.write_bytes(body[: len(body) - 40])
        (done,) = import_logs(path, store=store)
        assert "1 session without its end" in done.origin["notes"][0] and done.run.status == "completed"

    @pytest.mark.parametrize("ending", ["atif.jsonl", "otlp.json"])
    def test_what_is_whole_of_other_formats_is_read_as_well(self, ending, store, tmp_path):
        (done,) = import_logs(DATA / "codex", store=store)
        path = ft.export(done.run, tmp_path / f"run.{ending}")
        body = path.read_bytes()
        path.write_bytes(body[: len(body) - 300])
        (back,) = import_logs(path, store=store)
        assert 1 <= len(list(back.run.trials())) <= 2 and any(
            "without its end" in note for note in back.origin["notes"]
        )

    def test_other_files_of_a_folder_are_passed_over_and_a_broken_log_is_said(self, store, tmp_path):
        chat(tmp_path / "rollout-1.jsonl", "Hi", "Hello")
        (tmp_path / "notes.md").write_text("# Notes")
        (tmp_path / "trajectory.json").write_text(
            '{"schema_version": "ATIF-v1.7", "steps": [], "x": "'
            + "\ud83d".encode("utf-8", "surrogatepass").decode("latin-1")
        )
        (done,) = import_logs(tmp_path, store=store)
        assert len(list(done.run.trials())) == 1

    @pytest.mark.parametrize("body", ["", "nothing", "{}", '{"type": "session_meta"}\n'])
    def test_what_is_no_log_is_refused_in_a_sentence(self, body, store, tmp_path):
        (tmp_path / "x.jsonl").write_text(body)
        with pytest.raises(FairtrialError) as caught:
            import_logs(tmp_path / "x.jsonl", store=store)
        assert "\n" not in str(caught.value)
        with pytest.raises(FairtrialError):
            import_logs(tmp_path / "nowhere", store=store)


@pytest.mark.slow
def test_ten_thousand_events_in_a_few_seconds_and_little_memory(store, tmp_path):
    """Read line by line: what is in memory is little more than the events, not the log, which is much larger."""
    path = tmp_path / "rollout-big.jsonl"
    filler = "word " * 800
    with path.open("w") as file:
        file.write(lines({"type": "session_meta", "payload": {"id": "big"}}, said("user_message", "Go")))
        for number in range(5_000):
            call = {"type": "function_call", "name": "shell", "call_id": f"c{number}", "arguments": '{"cmd": "ls"}'}
            output = {"type": "function_call_output", "call_id": f"c{number}", "output": filler}
            file.write(lines({"type": "response_item", "payload": call}, {"type": "response_item", "payload": output}))
            if number % 2:
                file.write(lines({"type": "world_state", "payload": {"state": filler * 4}}))
    began = time.process_time()
    (session,) = sessions_in(path)
    took = time.process_time() - began
    assert len(session.events) == 10_001
    assert took < 20, f"{took:.1f} s of processor time"
    held = sum(len(event.text) for event in session.events if isinstance(event, ResultEvent))
    tracemalloc.start()
    try:
        (session,) = sessions_in(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 3 * held and peak < 1.5 * held, f"{peak >> 20} MB for {held >> 20} MB of results"


class TestCases:
    def run(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["import", "log", *arguments])
        return result.exit_code, result.stderr

    def test_a_suite_of_what_users_asked(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        code, told = self.run(
            str(DATA / "claude-code"), str(DATA / "gemini-cli"), "--as-cases", "asked.yaml", "--expected", "tools"
        )
        assert code == 0 and "written: asked.yaml (2 cases)" in told and "1 session with the same first message" in told
        text = Path("asked.yaml").read_text()
        text = text.replace("- claude-code:claude-sonnet-5", "- mock:echo")
        Path("asked.yaml").write_text(text)
        suite = ft.load_suite("asked.yaml")
        first, second = suite.cases()
        assert first.turns == ("Thanks!",) and [call.name for call in first.tools or ()] == ["Write", "Bash", "Agent"]
        assert second.input == "List the folder."
        assert CliRunner().invoke(cli, ["validate", "asked.yaml"]).exit_code == 0

    def test_what_it_must_not_overwrite_or_mix(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("asked.yaml").write_text("mine")
        assert self.run(str(CODEX), "--as-cases", "asked.yaml")[0] == 1 and Path("asked.yaml").read_text() == "mine"
        assert self.run(str(CODEX), "--as-cases", "asked.yaml", "--force")[0] == 0
        assert self.run(str(CODEX), "--expected", "tools")[0] != 0
        assert self.run(str(CODEX), "--as-cases", "asked.json")[0] == 1

    def test_personal_data_and_templates(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        chat(tmp_path / "rollout-1.jsonl", f"Mail ann@example.org with {KEY} and ${{HOME}} {{{{ input }}}}", "Done")
        code, told = self.run("rollout-1.jsonl", "--as-cases", "asked.yaml", "--expected", "answer")
        text = Path("asked.yaml").read_text()
        assert code == 0 and "ann@example.org" not in text and KEY not in text and "e-mail address" in told
        Path("asked.yaml").write_text(text.replace("codex:m", "mock:echo"))
        (case,) = ft.load_suite("asked.yaml").cases()
        assert "${HOME} {{ input }}" in case.input and case.expected == "Done"


def test_the_command_says_what_became_of_the_logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    result = runner.invoke(cli, ["import", "log", str(DATA / "codex")])
    assert result.exit_code == 0 and "codex:mock-model, codex:m1: 2 cases, 2 without a score" in result.stdout
    assert "not recorded: scores" in result.stdout and "fairtrial show" in result.stdout
    document = json.loads(runner.invoke(cli, ["import", "log", str(DATA / "codex"), "--json"]).stdout)
    assert document["runs"][0]["happened"] == "already there" and document["schema_version"]
    shown = runner.invoke(cli, ["show", "latest"])
    assert shown.exit_code == 0 and "no score came with it" in shown.stdout
    refused = runner.invoke(cli, ["import", "log", str(tmp_path)])
    assert refused.exit_code == 1


def test_python(tmp_path):
    run = ft.import_log(DATA / "claude-code", store=str(tmp_path / "s.db"))
    assert isinstance(run, ft.Run) and run.status == "completed"
    runs = ft.import_log([DATA / "codex"], group_by="model", store=str(tmp_path / "s.db"))
    assert isinstance(runs, list) and len(runs) == 2
    kinds = {type(event) for one in runs for trial in one.trials() for event in events_of(trial.trace) or ()}
    assert {MessageEvent, CallEvent} <= kinds
