"""One contract for every vendor's API, against servers that are as strict as the real ones and that official clients
accept (tests/providers/test_official.py): what goes wrong has its kind, and nothing is lost of what a model says."""

import json
import sys
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from fairtrial.agents.record import Record
from fairtrial.core import registry
from fairtrial.core.answer import Answer, EarlierTurn, Failure, Request
from fairtrial.core.chat import Message
from fairtrial.core.events import Event
from fairtrial.core.experiment import DEFAULT_PARAMS, Arm, Case, Condition, McpServer, ScorerSpec, TargetSpec
from fairtrial.core.file import File
from fairtrial.core.money import Cost
from fairtrial.core.options import read
from fairtrial.core.settings import PriceSpec, RetrySpec, Settings
from fairtrial.core.trace import with_views, without_views
from fairtrial.core.trial import Trial
from fairtrial.engine.budget import Budget
from fairtrial.engine.ladder import Ladder
from fairtrial.engine.limits import Limiter
from fairtrial.providers.prices import find_price
from fairtrial.providers.tools import Tool, ToolResult
from tests.servers import facts
from tests.servers.pairing import conversation
from tests.servers.vendors import SECRET, Say, vendors

SHAPE = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 10}},
    "required": ["score"],
    "additionalProperties": False,
}
TOOL = Tool(name="look", server="s", tool="look", description="Looks.", schema={"type": "object", "properties": {}})
# kind, model, where below the server's address, options
VENDORS = {
    "openai": ("openai_api", "gpt-5.1", "/v1", {}),
    "openai-responses": ("openai_responses_api", "gpt-5.1", "/v1", {}),
    "anthropic": ("anthropic_api", "claude-sonnet-4-5", "", {}),
    "anthropic-adaptive": ("anthropic_api", "claude-opus-5", "", {}),
    "google": ("google_api", "gemini-2.5-flash", "", {}),
    "vertex": ("vertex_api", "gemini-3-flash", "/v1beta1/projects/p/locations/global", {}),
    "vertex-claude": ("vertex_api", "claude-opus-4-5", "/v1beta1/projects/p/locations/global", {}),
    "azure": ("azure_api", "my-dep", "?api-version=2024-10-21", {"model": "gpt-5.1"}),
    "azure-v1": ("azure_api", "my-dep", "?api-version=", {"model": "gpt-5.1"}),
    "bedrock": ("bedrock_api", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "", {}),
    "mistral": ("mistral_api", "magistral-medium-latest", "/mistral/v1", {}),
    "groq": ("openai_api", "openai/gpt-oss-120b", "/openai/v1", {}),
}
FILTERS = {"openai", "openai-responses", "azure", "azure-v1", "google", "vertex", "bedrock", "mistral", "groq"}
BLOCKS = FILTERS - {"bedrock", "mistral"}  # they say so of a prompt
REFUSES = {
    "openai",
    "openai-responses",
    "azure",
    "azure-v1",
    "groq",
    "anthropic",
    "anthropic-adaptive",
    "vertex-claude",
}
_LENGTH = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
_OPENAI = {"error": {"message": _LENGTH, "type": "invalid_request_error", "code": "context_length_exceeded"}}
_CLAUDE = {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}
_GEMINI = "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
TOO_LONG = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "groq": _OPENAI,
    "anthropic": {"type": "error", "error": _CLAUDE},
    "google": {"error": {"code": 400, "message": _GEMINI, "status": "INVALID_ARGUMENT"}},
    "vertex": {"error": {"code": 400, "message": _GEMINI, "status": "INVALID_ARGUMENT"}},
    "bedrock": {"message": "The model returned the following errors: Input is too long for requested model."},
    "mistral": {
        "object": "error",
        "message": "Prompt contains 140000 tokens, too large for model with 131072 maximum context length",
        "type": "invalid_request_prompt",
        "code": "3051",
    },
}
UNCOUNTED = {"bedrock"}  # it does not say how much of an answer was reasoning
UNWRITTEN = {"google", "vertex"}  # they do not say what was written to the cache


def asked(**changes) -> Request:
    base = {"trial_id": "t", "case_id": "c", "input": "hi", "params": dict(DEFAULT_PARAMS), "stream": False}
    return Request(**{**base, **changes})


@pytest.fixture(scope="module")
async def server():
    async with vendors() as running:
        yield running


@pytest.fixture(params=VENDORS)
def vendor(request, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    return request.param


@pytest.fixture
async def target(vendor, server, tmp_path):
    kind, model, path, options = VENDORS[vendor]
    cls = registry.load("targets", kind)
    problems: list = []
    given = read(cls.options_type, options, problems)
    assert not problems
    key = "" if vendor == "bedrock" else "Bearer tok" if vendor.startswith("vertex") else "sk-secret-0001"
    spec = TargetSpec(
        id=vendor, kind=kind, provider=vendor.split("-adap")[0].split("-v1")[0].replace("vertex-claude", "vertex"),
        model=model, base_url=f"{server.url}{path}", api_key=key, options=options,
    )  # fmt: skip
    assert not list(cls.check(spec, given, tmp_path))
    made = cls(spec, given, tmp_path)
    server.say = Say()
    server.heard.clear()
    await made.open(2)
    yield made
    await made.close()


@pytest.mark.parametrize("stream", [False, True])
class TestEveryVendor:
    async def test_an_answer_with_its_counts(self, target, server, vendor, stream):
        answer = await target.ask(asked(system="Be brief.", stream=stream))
        assert isinstance(answer, Answer), answer
        assert (answer.text, answer.finish_reason) == ("ok", "stop")
        usage = answer.usage
        assert (usage.prompt, usage.completion, usage.cache_read) == (14, 30, 8)
        assert usage.cache_write == (0 if vendor in UNWRITTEN else 2)
        assert usage.reasoning == (0 if vendor in UNCOUNTED else 20)
        assert (answer.first_token_ms is not None) == stream
        assert "Be brief." in str(server.heard[-1].body)

    async def test_reasoning_is_kept_apart(self, target, server, stream):
        server.say = Say(thinking="Let me think.")
        answer = await target.ask(asked(params={**DEFAULT_PARAMS, "reasoning": "high"}, stream=stream))
        assert isinstance(answer, Answer), answer
        assert (answer.text, answer.reasoning) == ("ok", "Let me think.")
        sent = target.sent(asked(params={**DEFAULT_PARAMS, "reasoning": "high"}))
        assert sent["reasoning"] in ("high", 24_576) and sent["max_tokens"] > 2048 + 20_000

    async def test_calls_that_nobody_made(self, target, server, stream):
        server.say = Say(text="", calls=(("look", {"x": 1}), ("look", {"y": "ü"})))
        answer = await target.ask(asked(stream=stream))
        assert isinstance(answer, Answer), answer
        assert answer.finish_reason == "tool_calls"
        assert [(c["tool"], c["arguments"]) for c in answer.trace["tool_calls"]] == [
            ("look", {"x": 1}),
            ("look", {"y": "ü"}),
        ]

    async def test_an_answer_that_is_too_long(self, target, server, stream):
        server.say = Say(finish="length")
        assert (await target.ask(asked(stream=stream))).finish_reason == "length"

    async def test_refusals_and_filters(self, target, server, vendor, stream):
        if vendor in REFUSES:
            server.say = Say(text="I can't.", finish="refusal")
            answer = await target.ask(asked(stream=stream))
            assert (answer.text, answer.finish_reason) == ("I can't.", "refusal")
        if vendor in FILTERS:
            server.say = Say(finish="filter")
            assert (await target.ask(asked(stream=stream))).finish_reason == "content_filter"
        if vendor in BLOCKS and not (stream and vendor not in ("google", "vertex")):
            server.say = Say(finish="blocked")
            answer = await target.ask(asked(stream=stream))
            assert isinstance(answer, Answer) and answer.finish_reason == "content_filter" and answer.text

    @pytest.mark.parametrize(
        ("status", "kind", "retryable"),
        [
            (400, "refused", False), (401, "auth", False), (403, "auth", False), (404, "model", False),
            (413, "refused", False), (429, "rate_limited", True), (500, "server", True), (503, "server", True),
        ],
    )  # fmt: skip
    async def test_errors_have_their_kind(self, target, server, vendor, stream, status, kind, retryable):
        body = {"message": "it is so"} if vendor == "bedrock" else {"error": {"message": "it is so", "code": status}}
        server.say = Say(error=(status, body), headers={"retry-after": "7"})
        failure = await target.ask(asked(stream=stream))
        assert isinstance(failure, Failure) and (failure.kind, failure.retryable) == (kind, retryable)
        assert "it is so" in failure.message and failure.retry_after == (7.0 if retryable else None)

    async def test_a_prompt_that_is_too_long_has_a_kind_of_its_own(self, target, server, vendor, stream):
        server.say = Say(error=(400, TOO_LONG[vendor.split("-")[0]]))
        failure = await target.ask(asked(stream=stream))
        assert isinstance(failure, Failure) and (failure.kind, failure.retryable) == ("context", False), failure
        assert any(word in failure.message for word in ("tokens", "too long"))

    async def test_a_picture_goes_before_the_text(self, target, server, stream):
        png = File(name="a.png", media="image/png", body=b"\x89PNG")
        pdf = File(name="a.pdf", media="application/pdf", body=b"%PDF-1.4")
        assert isinstance(await target.ask(asked(files=(png, pdf), stream=stream)), Answer)
        sent = str(server.heard[-1].body)
        assert "iVBORw==" in sent and sent.index("iVBORw==") < sent.index("'hi'")

    async def test_what_a_judge_needs(self, target, server, stream):
        server.say = Say(text='{"score": 3}')
        answer = await target.ask(asked(schema=SHAPE, params={**DEFAULT_PARAMS, "reasoning": "low"}, stream=stream))
        assert isinstance(answer, Answer) and answer.text == '{"score": 3}'
        assert "score" in str(server.heard[-1].body)


# What cannot be true of a request that says "hi" and lets the model write 2,048 tokens: prompt and completion.
IMPOSSIBLE = {
    "nothing beside an answer": (0, 0),
    "no prompt": (0, 5),
    "no answer": (14, 0),
    "negative": (-14, -30),
    "more than may be written": (14, 2049),
    "more than was sent": (10_000, 30),
    "huge": (2**70, 2**70),
    "no whole number": (1.5, "many"),
    "a truth": (True, True),
}


@pytest.mark.parametrize("stream", [False, True])
class TestMoney:
    """A call through the ladder, at one dollar per thousand tokens."""

    PRICES: ClassVar = {"priced": PriceSpec(input=1000.0, output=1000.0)}
    MOST = 0.001 * (len("hi") + 64 + 2048)

    async def cost(self, target, stream, *, limit=None):
        budget = Budget(limit)
        price = find_price(msgspec.structs.replace(target.spec, id="priced"), self.PRICES)
        settings = Settings(retry=RetrySpec(attempts=1, empty=0))
        ladder = Ladder(target, settings, gate=Limiter(1), limiter=Limiter(1), budget=budget, price=price)
        outcome = await ladder.ask(asked(stream=stream))
        assert budget.spent == outcome.cost.charged
        return outcome

    async def test_what_is_reported_is_known(self, target, server, stream):
        outcome = await self.cost(target, stream)
        assert outcome.cost == Cost(known=pytest.approx(0.044), charged=pytest.approx(0.044))

    @pytest.mark.parametrize("limit", [None, 20.0])
    @pytest.mark.parametrize("counts", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
    async def test_what_cannot_be_true_is_unknown_and_charged_at_its_most(self, target, server, stream, counts, limit):
        server.say = Say(counts=counts)
        outcome = await self.cost(target, stream, limit=limit)
        assert isinstance(outcome.result, Answer) and outcome.result.text == "ok"
        assert outcome.result.usage is None and outcome.cost.unknown == 1 and outcome.cost.known == 0
        assert self.MOST <= outcome.cost.charged <= self.MOST + 0.128  # what some models are always told

    @pytest.mark.parametrize("counts", [(14, 0), (14, 2048), (66, 1)])
    async def test_what_is_rare_but_possible(self, target, server, stream, counts):
        calls = (("look", {}),) if not counts[1] else ()  # of calls, some count nothing
        server.say = Say(text="" if calls else "ok", calls=calls, counts=counts)
        outcome = await self.cost(target, stream)
        assert outcome.cost.unknown == 0 and outcome.cost.known == pytest.approx(0.001 * sum(counts))

    @pytest.mark.parametrize("status", [201, 202])
    async def test_any_status_of_success_is_an_answer_with_its_price(self, target, server, stream, status):
        server.say = Say(status=status)
        outcome = await self.cost(target, stream)
        assert isinstance(outcome.result, Answer) and outcome.cost.known == pytest.approx(0.044)

    async def test_an_answer_that_cannot_be_read_was_paid_for(self, target, server, stream):
        server.say = Say(error=(202, {"accepted": True}))
        outcome = await self.cost(target, stream)
        assert outcome.result.kind == "malformed" and "HTTP 200" not in outcome.result.message
        assert outcome.cost.unknown == 1 and outcome.cost.charged >= self.MOST


class TestMoneyOfAgents:
    """A model in a loop, at one dollar per thousand tokens: what a turn does not tell is counted at its most."""

    CALLS = Say(text="", calls=(("nothing", {}),))

    async def outcome(self, vendor, server, tmp_path, *says, limit):
        kind, model, path, _ = VENDORS[vendor]
        spec = TargetSpec(
            id="a", kind="tool_agent", api=kind, provider=vendor, model=model, base_url=f"{server.url}{path}",
            api_key="sk-secret-0001",
        )  # fmt: skip
        agent = registry.load("targets", "tool_agent")
        target = agent(spec, agent.options_type(), tmp_path)
        server.say = list(says)
        server.heard.clear()
        await target.open(1)
        try:
            price = find_price(spec, {"a": PriceSpec(input=1000.0, output=1000.0)})
            settings, budget = Settings(retry=RetrySpec(attempts=1, empty=0)), Budget(limit)
            ladder = Ladder(target, settings, gate=Limiter(1), limiter=Limiter(1), budget=budget, price=price)
            return await ladder.ask(asked(params={"max_tokens": 1000}))
        finally:
            await target.close()

    @pytest.mark.parametrize("vendor", ["openai", "anthropic"])
    async def test_turns_that_tell_nothing_use_up_the_budget(self, server, tmp_path, vendor):
        silent = Say(text="", calls=self.CALLS.calls, counts=(0, 0))
        outcome = await self.outcome(vendor, server, tmp_path, *[silent] * 20, limit=10.0)
        assert outcome.result.kind == "steps" and "could exceed" in outcome.result.message
        assert 2 <= len(server.heard) < 5 and outcome.cost.unknown == 1 and outcome.cost.charged == 10.0

    @pytest.mark.parametrize("vendor", ["openai", "anthropic"])
    async def test_a_turn_that_cannot_be_read_was_paid_for(self, server, tmp_path, vendor):
        broken = Say(error=(200, {"accepted": True}))
        outcome = await self.outcome(vendor, server, tmp_path, self.CALLS, broken, limit=10.0)
        assert outcome.result.kind == "malformed" and outcome.cost.known == pytest.approx(0.044)
        assert outcome.cost.unknown == 1 and outcome.cost.charged == 10.0

    @pytest.mark.parametrize("vendor", ["openai", "anthropic"])
    async def test_what_every_turn_tells_is_known(self, server, tmp_path, vendor):
        outcome = await self.outcome(vendor, server, tmp_path, self.CALLS, Say(), limit=10.0)
        assert outcome.result.text == "ok" and outcome.cost.unknown == 0
        assert outcome.cost.known == pytest.approx(0.088)


class TestStreams:
    async def test_a_cut_stream_is_a_failure(self, target, server):
        server.say = Say(text="half an answer", cut=True)
        failure = await target.ask(asked(stream=True))
        assert isinstance(failure, Failure) and (failure.kind, failure.retryable) == ("stream", True)

    async def test_an_error_in_the_middle_is_a_failure(self, target, server):
        server.say = Say(text="half an answer", fails=True)
        failure = await target.ask(asked(stream=True))
        assert isinstance(failure, Failure) and (failure.kind, failure.retryable) == ("server", True), failure
        assert failure.maybe_billed


class TestConversations:
    async def test_a_turn_with_tools_goes_back(self, target, server):
        """What the model said, with its thoughts, and what the tool returned, as strict servers take it."""
        server.say = Say(text="", thinking="Hm.", calls=(("look", {"x": 1}),))
        talk = target.conversation(target.spec, asked(), [TOOL])

        async def receive(response):
            return talk.read(await response.read())

        import msgspec

        turn = await target.post(msgspec.json.encode(talk.body()), receive)
        assert [call.arguments for call in turn.calls] == [{"x": 1}] and turn.thinking == "Hm."
        talk.add(turn, [ToolResult(call=turn.calls[0], text="4711")])
        server.say = Say(text="It is 4711.")
        last = await target.post(msgspec.json.encode(talk.body()), receive)
        assert last.text == "It is 4711." and not last.calls
        assert "4711" in str(server.heard[-1].body) and "look" in str(server.heard[-1].body)

    async def test_a_chat(self, target, server):
        history = (Message(role="user", content="I am Ann."), Message(role="assistant", content="Hello Ann."))
        assert isinstance(await target.ask(asked(history=history, input="My name?")), Answer)
        sent = str(server.heard[-1].body)
        assert sent.index("I am Ann.") < sent.index("Hello Ann.") < sent.index("My name?")


class TestEarlierTurns:
    """The built-in agent in a conversation: in turn 2, its model sees what it called in turn 1, and what that returned."""

    FACTS = McpServer(name="facts", command=sys.executable, args=(str(Path(facts.__file__)),), env={"BEHAVE": ""})
    ARM = Arm(
        name="a", position=0, target=TargetSpec(id="t", kind="tool_agent", provider="x", model="m"),
        condition=Condition(name="c", system="Be brief.", mcp=(FACTS,)), params={}, scorer=ScorerSpec(type="match"),
    )  # fmt: skip
    CASE = Case(id="c", position=0, input="What is the code?", turns=("And again?", "Thanks."))

    @pytest.fixture
    async def agent(self, vendor, server, tmp_path):
        kind, model, path, options = VENDORS[vendor]
        spec = TargetSpec(
            id="t", kind="tool_agent", api=kind, model=model, base_url=f"{server.url}{path}", options=options,
            provider=vendor.split("-adap")[0].split("-v1")[0].replace("vertex-claude", "vertex"),
            api_key="" if vendor == "bedrock" else "Bearer tok" if vendor.startswith("vertex") else "sk-secret-0001",
        )  # fmt: skip
        agent = registry.load("targets", "tool_agent")
        target = agent(spec, read(agent.options_type, options, []), tmp_path)
        server.heard.clear()
        await target.open(1)
        yield target
        await target.close()

    @staticmethod
    async def ask(agent, server, turns, *says) -> EarlierTurn:
        """Ask the next turn; what the model says in it is a script."""
        server.say = list(says)
        trial = Trial("t", TestEarlierTurns.CASE, TestEarlierTurns.ARM, 0, {**DEFAULT_PARAMS})
        request = trial.request(stream=False, turns=turns)
        answer = await agent.ask(request)
        assert isinstance(answer, Answer), (answer, server.refused)
        # As it is after a run that was interrupted: its trace has been in the store.
        stored = msgspec.json.decode(msgspec.json.encode(without_views(answer.trace)))
        return EarlierTurn(question=request.input, answer=msgspec.structs.replace(answer, trace=with_views(stored)))

    async def test_calls_and_results_come_back(self, agent, server, vendor):
        both = (("facts__lookup", {"topic": "code"}), ("facts__add", {"a": 1, "b": 2}))
        wrong = (("nope", {}), ("facts__add", {"a": 3, "b": 4}))
        say = Say(text="Let me look.", calls=both), Say(text="", calls=wrong), Say(text="It is 4711.")
        first = await self.ask(agent, server, [], *say)
        second = await self.ask(agent, server, [first], Say(text="", calls=both[1:]), Say(text="Still 4711."))
        begun = server.heard[-2]
        await self.ask(agent, server, [first, second], Say(text="Bye."))
        told = conversation(begun.path, begun.body)
        assert [text for said in told for _, text in said.results] == ["The code is 4711.", "3", "7"]
        assert [(name, arguments) for said in told for _, name, arguments in said.calls] == [*both, wrong[1]]
        words = [(said.role, said.text) for said in told if said.text and said.role != "system"]
        assert words == [
            ("user", "What is the code?"), ("assistant", "Let me look."), ("assistant", "It is 4711."),
            ("user", "And again?"),
        ]  # fmt: skip
        assert told.index(next(said for said in told if said.text == "It is 4711.")) == len(told) - 2
        # All three turns: each call once, with an id of its own where there are ids.
        told = conversation(server.heard[-1].path, server.heard[-1].body)
        assert [text for said in told for _, text in said.results] == ["The code is 4711.", "3", "7", "3"]
        ids = [identity for said in told for identity, _, _ in said.calls]
        assert len(set(ids)) == 4 or vendor in ("google", "vertex")

    async def test_a_conversation_without_tools_is_sent_as_it_was(self, target, server):
        """Calls of earlier turns, which nobody made, are no part of it."""
        history = (Message(role="user", content="Look!"), Message(role="assistant", content="I looked."))
        await target.ask(asked(history=history))
        plain = server.heard[-1].body
        happened = {1: call_and_result()}
        await target.ask(asked(history=history, happened=happened))
        assert json.dumps(server.heard[-1].body) == json.dumps(plain)

    async def test_tools_that_are_gone_and_very_long_results(self, target, server):
        """Only what is offered now is sent; a result that the record has cut says so."""
        long = [*call_and_result(), *call_and_result("other", "gone"), *call_and_result(text="word " * 9000)]
        history = (Message(role="user", content="Look!"), Message(role="assistant", content="I looked."))
        talk = target.conversation(target.spec, asked(history=history, happened={1: tuple(long)}), [TOOL])
        server.say = Say(text="ok")

        async def receive(response):
            return talk.read(await response.read())

        turn = await target.post(msgspec.json.encode(talk.body()), receive)
        assert not isinstance(turn, Failure), (turn, server.refused)
        told = conversation(server.heard[-1].path, server.heard[-1].body)
        results = [text for said in told for _, text in said.results]
        assert results[0] == "4711" and results[1].endswith("(45000 characters)") and len(results) == 2


def call_and_result(identity="1", tool="look", *, text="4711") -> tuple[Event, ...]:
    """What the record has of one call."""
    record = Record([])
    record.call(identity + text[:1], tool, "s", {"x": 1})
    record.returned(identity + text[:1], text)
    return tuple(record.events())


class TestReasoning:
    @pytest.mark.parametrize("wanted", ["none", "low", "medium", "high", 1, 1500, 5000, 100_000])
    async def test_whatever_is_wanted_is_something_that_the_model_takes(self, target, server, wanted):
        answer = await target.ask(asked(params={**DEFAULT_PARAMS, "reasoning": wanted}))
        assert isinstance(answer, Answer), answer


async def test_a_server_without_schemas_is_told_by_the_prompt(server, tmp_path):
    cls = registry.load("targets", "openai_api")
    spec = TargetSpec(
        id="lab:m", kind="openai_api", provider="lab", model="m", base_url=f"{server.url}/v1", api_key="k"
    )
    target = cls(spec, cls.options_type(), tmp_path)
    await target.open(1)
    server.say = Say(error=(400, {"error": {"message": "'response_format' of type json_schema is not supported"}}))
    failure = await target.ask(asked(schema=SHAPE))
    assert failure.retryable and failure.retry_after == 0
    server.say = Say(text='{"score": 3}')
    assert (await target.ask(asked(schema=SHAPE))).text == '{"score": 3}'
    assert "response_format" not in server.heard[-1].body
    await target.close()
