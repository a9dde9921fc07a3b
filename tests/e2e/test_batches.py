"""Batches at the command line: the example of the documentation, looking, cancelling, and what cannot be batched."""

import json
import re
from pathlib import Path

import pytest

from fairtrial import pipeline
from fairtrial.core.errors import ProblemsError
from fairtrial.engine import activity, batching
from fairtrial.workflows.estimate import estimate
from tests.conftest import numbered
from tests.servers.batches import batch_vendors
from tests.servers.vendors import Say

DOCS = Path(__file__).parents[2] / "docs"
VERDICT = '{"reasoning": "right", "score": 9}'


@pytest.fixture
async def server(monkeypatch):
    async with batch_vendors() as running:
        for name, path in (("OPENAI", "/v1"), ("ANTHROPIC", ""), ("GEMINI", "")):
            monkeypatch.setenv(f"{name}_BASE_URL", f"{running.url}{path}")
            monkeypatch.setenv(f"{name}_API_KEY", "sk-secret-0001")
        monkeypatch.setattr(activity, "QUIET", 0.05)
        monkeypatch.setattr(batching, "FIRST_PAUSE", 0.01)
        monkeypatch.setattr(batching, "LONGEST_PAUSE", 0.05)
        running.say = Say(text=VERDICT)
        running.reply = lambda text, body: Say(text=VERDICT if "marker" in json.dumps(body) else "42")
        yield running


async def test_the_example_of_the_documentation(server, tmp_path, store):
    page = (DOCS / "targets.md").read_text("utf-8")
    text = re.search(r"## Half price: batch.*?```yaml\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "suite.yaml").write_text(text, "utf-8")
    suite = pipeline.load(tmp_path / "suite.yaml")
    run = await pipeline.arun(suite, store=store)
    assert run.status == "completed"
    assert len(server.asked) == 6  # two answers and four verdicts
    (tmp_path / "direct.yaml").write_text(text.replace(", batch: true", ""), "utf-8")
    half, whole = estimate(suite), estimate(pipeline.load(tmp_path / "direct.yaml"))
    assert half.arms[0].most_usd == pytest.approx(whole.arms[0].most_usd / 2) and half.arms[1] == whole.arms[1]
    assert half.judge_usd == pytest.approx(whole.judge_usd / 2)


async def test_batches_are_shown_and_cancelled(server, write_suite, store, monkeypatch):
    """Stopped while it waits, looked at, cancelled: what was answered is stored, the rest can be retried."""
    from fairtrial.workflows.batches import look_at_batches
    from fairtrial.workflows.resume import aresume

    server.hours = 1000
    suite = pipeline.load(write_suite(targets=[{"target": "openai:gpt-4o-mini", "batch": True}], cases=numbered(3)))
    sessions = []

    def watch(session):
        from contextlib import nullcontext

        sessions.append(session)
        return nullcontext()

    import asyncio

    running = asyncio.create_task(pipeline.arun(suite, store=store, watch=watch))
    while not any("GET" not in one.path and "/v1/batches/openai_1" in one.path for one in server.heard):
        await asyncio.sleep(0.01)
    words = " ".join(sessions[0].progress.held_back())
    assert "waits for a batch: 0 of 3 answered" in words and "no answer" not in words
    sessions[0].interrupt()
    run = await running
    assert run.status == "interrupted"
    (one,) = await look_at_batches(run.id, store=store)
    assert one.state == "0 of 3 answered" and one.unstored == 3
    (one,) = await look_at_batches(run.id, store=store, cancel=True)
    assert one.state == "cancelled"
    run = await aresume(run.id, store=store)
    (answered,) = [trial for trial in run.trials() if trial.answer == "42"]  # the first of the batch
    assert {trial.failure_kind for trial in run.trials() if trial is not answered} >= {"cancelled"}
    (one,) = await look_at_batches(run.id, store=store)
    assert one.state == "stored"
    server.hours = 1
    run = await aresume(run.id, store=store, mode="retry")
    assert run.status == "completed" and server.asked.count(answered.input) == 1


def test_the_command(cli, store, write_suite):
    code, _, err = cli("run", write_suite(), "--quiet")
    assert code == 0
    code, out, err = cli("batches")
    assert code == 0 and "no batches" in err
    code, out, _ = cli("batches", "--json")
    assert json.loads(out)["batches"] == []


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"targets": [{"target": "mock:echo", "batch": True}]}, "not asked through an API with batches"),
        ({"targets": [{"target": "groq:m", "batch": True}]}, "knows no batch API of groq"),
        ({"targets": [{"target": "mistral:m", "batch": True}]}, "knows no batch API of mistral"),
        ({"targets": [{"target": "tool-agent:openai:m", "batch": True}]}, "an agent needs every answer"),
        (
            {"targets": [{"target": "openai:m", "batch": True}], "cases": [{"turns": ["a", "b"], "expected": "x"}]},
            "each turn needs the answer before it",
        ),
        (
            {
                "targets": ["mock:echo"],
                "judge": {"target": "ollama:m", "batch": True},
                "scorer": "llm_judge",
            },
            "knows no batch API of ollama",
        ),
    ],
)
def test_what_cannot_be_batched_is_said_before(keys, reason, write_suite, monkeypatch):
    for name in ("OPENAI", "GROQ", "MISTRAL"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-secret-0001")
    with pytest.raises(ProblemsError, match=reason):
        pipeline.load(write_suite(**keys))
