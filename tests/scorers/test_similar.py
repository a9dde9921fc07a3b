"""Embeddings: from a server with OpenAI's API, with its failures, its cost, and from the store."""

import json

import pytest
from aiohttp import web

import fairtrial as ft
from fairtrial import pipeline
from fairtrial.config import parse_suite
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.store import ledger
from fairtrial.workflows.resume import arescore

VECTORS = {"Paris": [1.0, 0.0], "The French capital": [0.8, 0.6], "Rome": [-1.0, 0.0], "0": [0.0, 0.0]}
SUITE = """\
name: similar
providers: {{lab: {{base_url: "{url}", api_key: "${{LAB_KEY}}"}}}}
scorer: {{type: similar, embedder: "lab:small"}}
prices: {{"lab:small": {{input: 2, output: 0}}}}
budget_usd: 1
targets: [{{target: mock:x, options: {{answers: {{same: Paris, near: The French capital, far: Rome, none: "0"}}}}}}]
cases:
  - {{id: same, input: q, expected: Paris}}
  - {{id: near, input: q, expected: Paris}}
  - {{id: far, input: q, expected: Paris}}
  - {{id: none, input: q, expected: Paris}}
"""


@pytest.fixture
async def server():
    """A server of embeddings: (address, what it was asked)."""
    asked: list[dict] = []

    async def embeddings(request: web.Request) -> web.Response:
        body = await request.json()
        asked.append({**body, "key": request.headers.get("Authorization")})
        vector = VECTORS[body["input"]]
        return web.json_response({"data": [{"embedding": vector}], "usage": {"prompt_tokens": 10}})

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked
    await runner.cleanup()


def results(run) -> dict:
    return {trial.case_id: trial.unscored_message or round(trial.score, 6) for trial in run.trials()}


async def test_from_a_server_and_from_the_store(server, store, monkeypatch):
    url, asked = server
    monkeypatch.setenv("LAB_KEY", "sk-lab-123456789")
    run = await pipeline.arun(parse_suite(SUITE.format(url=url)), store=store)
    reason = "the embeddings of lab:small cannot be compared"
    assert results(run) == {"same": 1, "near": 0.8, "far": 0, "none": reason}
    assert all(body["model"] == "small" and body["key"] == "Bearer sk-lab-123456789" for body in asked)
    assert 4 <= len(asked) <= 8  # the reference once, unless several answers came at the same time
    assert ledger.charged(store, run.id, None) == pytest.approx(2e-5 * len(asked))
    right = {"type": "similar", "embedder": "lab:small", "threshold": 0.75}
    again = await arescore(run.id, scorer={"type": "not", "scorer": right}, store=store)
    assert results(again) == {"same": 0, "near": 0, "far": 1, "none": f"similar: {reason}"}


async def test_a_server_that_fails_is_a_reason(server, store, monkeypatch):
    url, _ = server
    monkeypatch.setenv("LAB_KEY", "sk-lab-123456789")
    suite = SUITE.format(url=url.replace("/v1", "/v2")).replace("budget_usd: 1", "retry: {attempts: 1}")
    run = await pipeline.arun(parse_suite(suite), store=store)
    assert all("HTTP 404" in reason for reason in results(run).values())


@pytest.mark.parametrize(
    ("embedder", "words"),
    [("anthropic:claude", "has no embeddings"), ("nobody:x", "unknown provider `nobody`"), ("", "must not be empty")],
)
def test_embedders_are_checked_beforehand(embedder, words):
    suite = {
        "name": "x",
        "targets": ["mock:echo"],
        "scorer": {"type": "all_of", "scorers": [{"type": "similar", "embedder": embedder}]},
        "cases": [{"input": "q", "expected": "a"}],
    }
    with pytest.raises(ProblemsError, match=words):
        parse_suite(json.dumps(suite), environment={"ANTHROPIC_API_KEY": "sk-ant-12345678"})


def test_a_budget_needs_the_price(monkeypatch):
    suite = SUITE.format(url="http://127.0.0.1:9/v1").replace('prices: {"lab:small"', 'prices: {"other"')
    with pytest.raises(FairtrialError, match="price of embedder lab:small is unknown"):
        parse_suite(suite, environment={"LAB_KEY": "sk-lab-123456789"})


def test_one_answer_is_scored_outside_a_run():
    same = ft.score("similar", response="a tea", expected="a tea", embedder="mock:echo")
    other = ft.score("similar", response="a tea", expected="nothing like it", embedder="mock:echo")
    assert same.value == pytest.approx(1) and other.value < 0.5
    parts = [{"scorer": {"type": "similar", "embedder": "mock:echo"}}, {"scorer": "match"}]
    assert ft.score("weighted", response="a tea", expected="a tea", scorers=parts).value == pytest.approx(1)


def test_an_embedder_that_cannot_be_used_is_said(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-12345678")
    with pytest.raises(FairtrialError, match="unknown provider `nobody`"):
        ft.score("similar", response="a", expected="b", embedder="nobody:x")
    with pytest.raises(FairtrialError, match="has no embeddings"):
        ft.score("similar", response="a", expected="b", embedder="anthropic:claude")
