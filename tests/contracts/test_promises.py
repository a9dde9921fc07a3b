"""What a run can cost at most, as told before it starts, is never less than what it costs."""

import json

import pytest
from aiohttp import web

from fairtrial import pipeline
from fairtrial.store.ledger import spent
from fairtrial.workflows.estimate import estimate
from tests.conftest import numbered

VERDICTS = {
    "factual_adherence": {"reasoning": "r", "score": 4},
    "completeness": {"reasoning": "r", "score": 4},
    "helpfulness_and_clarity": {"reasoning": "r", "score": 4},
    "unverified_claims": [],
}


class Greedy:
    """A server that counts as much as a request can contain, and writes as much as it may."""

    def __init__(self):
        self.cached = 0.0  # the share of the prompt that is written to the cache

    async def chat(self, request):
        body = await request.json()
        texts = [message["content"] for message in body["messages"]]
        shape = body.get("response_format")
        prompt = sum(len(text.encode()) if isinstance(text, str) else 5000 for text in texts)
        prompt += 30 * len(texts) + len(json.dumps(shape) if shape else "")
        longest = body.get("max_completion_tokens") or body["max_tokens"]
        usage = {"prompt_tokens": prompt, "completion_tokens": longest * body.get("n", 1)}
        usage["prompt_tokens_details"] = {"cache_write_tokens": int(self.cached * prompt)}
        content = self.verdict(shape) if shape else "x" * longest
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        return web.json_response({"model": body["model"], "choices": [choice], "usage": usage})

    def verdict(self, shape):
        properties = shape["json_schema"]["schema"]["properties"]
        if "scores" in properties:
            return json.dumps({"reasoning": "r", "scores": dict.fromkeys(properties["scores"]["properties"], 5)})
        known = {**VERDICTS, "reasoning": "r", "score": 5, "winner": "tie", "better": "tie"}
        return json.dumps({name: known[name] for name in properties})

    async def embeddings(self, request):
        text = (await request.json())["input"]
        text = text[0] if isinstance(text, list) else text
        usage = {"prompt_tokens": len(text.encode()), "total_tokens": len(text.encode())}
        return web.json_response({"data": [{"embedding": [1.0, 2.0]}], "usage": usage})


@pytest.fixture
async def greedy(monkeypatch):
    server, app = Greedy(), web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_post("/v1/embeddings", server.embeddings)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-greedy-0001")
    yield server
    await runner.cleanup()


OWN = {"input": 1000, "output": 2000}
JUDGED = {"judge": "openai:j", "scorer": "llm_judge", "prices": {"openai:m": OWN, "openai:j": OWN}}
SUITES = {
    "the id": {"prices": {"openai:m": OWN}},
    "the model": {"prices": {"m": OWN}},
    "a slash": {"prices": {"openai/m": OWN}},
    "a name of its own": {"targets": [{"id": "mine", "target": "openai:m"}], "prices": {"mine": OWN}},
    "a listed price": {"targets": ["openai:gpt-4o-mini"]},
    "a mock with a price": {"targets": ["mock:echo"], "prices": {"mock:echo": OWN}},
    "caches that cost more": {"prices": {"openai:m": {**OWN, "cache_write": 5000}}},
    "output only": {"prices": {"openai:m": {"input": 0, "output": 10}}},
    "several replies": {"prices": {"openai:m": OWN}, "params": {"max_tokens": 20, "extra": {"n": 3}}},
    "reasoning": {"targets": ["openai:gpt-5-mini"], "params": {"max_tokens": 20, "reasoning": "high"}},
    "prompts": {"conditions": {"c": {"prompt": ["{{ input }}", f"{'so ' * 99}{{{{ input }}}}"]}}, "repeats": 3},
    "long texts": {"cases": [{"input": "ü" * 5000, "expected": "é"}], "system": "ä" * 1000},
    "turns": {"cases": [{"turns": ["One.", "Two.", "Three."], "expected": "3"}]},
    "a simulated user": {"user": {"target": "openai:u", "goal": "tea", "max_turns": 4, "params": {"max_tokens": 30}}},
    "a judge": JUDGED,
    "judges of a conversation": {**JUDGED, "cases": [{"turns": ["One.", "Two."], "expected": "2"}]},
    "a panel": {**JUDGED, "judge": None, "judges": ["openai:j", "openai:m"], "panel": {"judgements": 3}},
    "criteria": {**JUDGED, "scorer": {"type": "llm_judge", "criteria": [{"name": c} for c in "abc"]}},
    "both orders": {**JUDGED, "scorer": "pairwise"},
    "a golden answer": {**JUDGED, "scorer": "golden_judge"},
    "several marks": {**JUDGED, "scorer": {"type": "all_of", "scorers": ["llm_judge", "golden_judge"]}},
    "instructions": {
        **JUDGED,
        "judge": {"target": "openai:j", "instructions": "Mind {{ facts }}. " * 50},
        "cases": [{"input": "Why?", "expected": "so", "vars": {"facts": "f" * 3000}}],
    },
    "embeddings": {"scorer": {"type": "similar", "embedder": "openai:e"}},
}
DEFAULTS = {
    "targets": ["openai:m"],
    "params": {"max_tokens": 40},
    "cases": numbered(3),
    "stream": False,
    "prices": {f"openai:{name}": OWN for name in "mjue"},
}


@pytest.mark.parametrize("keys", SUITES.values(), ids=SUITES)
async def test_no_run_costs_more_than_was_said(greedy, write_suite, store, keys):
    greedy.cached = 0.5 if "cache_write" in str(keys) else 0.0
    suite = pipeline.load(write_suite(**{**DEFAULTS, **{k: v for k, v in keys.items() if v is not None}}))
    promised = estimate(suite)
    run = await pipeline.arun(suite, store=store)
    cost = spent(store, run.id)
    assert run.status == "completed" and cost.unknown == 0
    assert 0 < cost.known == pytest.approx(cost.charged)
    assert cost.known <= promised.total_usd < 200 * cost.known


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"targets": ["openai:nobody-knows"], "prices": {}}, "no price is known"),
        ({"params": {"max_tokens": None}}, "set `max_tokens`"),
        ({"targets": ["tool-agent:openai:m"], "prices": {"openai:m": OWN}}, "afterwards"),
        ({"targets": [{"target": "http://x.invalid/", "id": "h"}], "prices": {"h": OWN}}, "afterwards"),
    ],
)
def test_what_nobody_can_know_is_unknown_and_not_free(greedy, write_suite, keys, why):
    found = estimate(pipeline.load(write_suite(**{**DEFAULTS, **keys})))
    assert found.most_usd is None and found.total_usd is None and found.arms[0].most_usd is None
    assert why in found.arms[0].unknown


@pytest.mark.parametrize("part", ["judge_usd", "embedder_usd", "user_usd"])
def test_what_others_cost_may_be_unknown_too(greedy, write_suite, part):
    asked = {
        "judge_usd": {"judge": "openai:j", "scorer": "llm_judge"},
        "embedder_usd": {"scorer": {"type": "similar", "embedder": "openai:e"}},
        "user_usd": {"user": {"target": "openai:u", "goal": "tea"}},
    }[part]
    found = estimate(pipeline.load(write_suite(**{**DEFAULTS, "prices": {"openai:m": OWN}, **asked})))
    assert getattr(found, part) is None and found.total_usd is None and found.most_usd > 0


def test_what_is_free_costs_nothing(write_suite):
    found = estimate(pipeline.load(write_suite(**{**DEFAULTS, "targets": ["mock:echo"]})))
    assert found.total_usd == 0 and not found.arms[0].unknown
