"""Which model answered, where it is not the one that was asked."""

import json

import pytest
from aiohttp import web

from fairtrial import pipeline
from fairtrial.analyse.answered import unlike_asked
from fairtrial.core.experiment import TargetSpec
from fairtrial.present.words.arm_notes import arm_lines
from fairtrial.reports.json import document
from tests.conftest import numbered


def target(model: str, provider: str = "openai", kind: str = "openai_api", **more) -> TargetSpec:
    return TargetSpec(id="t", kind=kind, provider=provider, model=model, **more)


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gpt-5-mini", "gpt-5-mini-2025-08-07"),
        ("gpt-4", "gpt-4-0613"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet-20250929"),
        ("mistral-small-latest", "mistral-small-2603"),
        ("gemini-2.5-flash", "models/gemini-2.5-flash-001"),
        ("z-ai/glm-9:free", "z-ai/glm-9"),
        ("gpt-6-luna", "GPT-6-Luna"),
    ],
)
def test_snapshots_of_a_model_are_that_model(asked, answered):
    assert unlike_asked(target(asked), [answered, None]) == []


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("gemini-3.7-flash", "gemini-3.8-flash"),
        ("gpt-5", "gpt-5-mini-2025-08-07"),
        ("gpt-5", "gpt-5.1"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"),
        ("grok-4.3", "grok-4.7"),
        ("openrouter/auto", "openai/gpt-6-luna"),
    ],
)
def test_another_model_is_named(asked, answered):
    assert unlike_asked(target(asked), [asked, answered]) == [answered]


def test_names_that_are_no_models_are_not_compared():
    assert unlike_asked(target("my-deployment", "azure", "azure_api"), ["gpt-5.1-2025-11-13"]) == []
    assert unlike_asked(target("my-deployment", "azure", "azure_api", options={"model": "gpt-5"}), ["gpt-5.1"]) == [
        "gpt-5.1"
    ]
    assert unlike_asked(target("", "claude-code", "claude_code"), ["claude-opus-5-5"]) == []
    assert unlike_asked(target("echo", "mock", "mock"), ["gpt-5"]) == []
    assert unlike_asked(target("my-model"), ["/srv/weights/my-model.gguf"]) == []


async def test_every_surface_says_who_answered(write_suite, store, monkeypatch):
    async def reply(request: web.Request) -> web.Response:
        await request.read()
        choice = {"index": 0, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        return web.json_response({"model": "grok-4.7", "choices": [choice], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", reply)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    monkeypatch.setenv("XAI_BASE_URL", f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    monkeypatch.setenv("XAI_API_KEY", "k-0001")
    try:
        suite = pipeline.load(write_suite(targets=["xai:grok-4.3"], cases=numbered(3)))
        run = await pipeline.arun(suite, store=store)
    finally:
        await runner.cleanup()
    summary = run.summary()
    line = "answered by grok-4.7, as the replies say"
    assert line in arm_lines(summary, summary.arms[0])
    assert document(summary)["arms"][0]["answered_by"] == ["grok-4.7"]
    assert json.loads(run.record.context)["models"]["checked"]
