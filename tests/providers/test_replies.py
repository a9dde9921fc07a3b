"""Replies of every kind: what providers served to their own clients, refusals, and servers that behave badly."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.cli.main import _run
from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import DEFAULT_PARAMS
from fairtrial.providers.bounds import believed
from fairtrial.providers.errors import error_of_status
from fairtrial.providers.streams import AnswerTooLargeError, EventStream
from fairtrial.providers.transport import endpoint
from fairtrial.reports import md
from fairtrial.reports.json import document
from fairtrial.workflows.resume import arescore
from tests.targets.test_targets import opened

DATA = Path(__file__).parents[1] / "data" / "providers"
KINDS = ["openai_api", "anthropic_api"]


def asked(stream: bool = False) -> Request:
    return Request(trial_id="t", case_id="c", input="hi", params=dict(DEFAULT_PARAMS), stream=stream)


def http(body: bytes, status: int = 200, media: str = "application/json", **headers: str) -> bytes:
    """A whole reply, ready to be sent."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {media}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def sse(body: bytes, **headers: str) -> bytes:
    return http(body, media="text/event-stream", **headers)


@asynccontextmanager
async def serving(*replies: bytes):
    """A server that sends these bytes, one reply a request, the last one for ever; and the requests that came."""
    requests: list[bytes] = []

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        requests.append(head + await reader.readexactly(length))
        writer.write(replies[min(len(requests), len(replies)) - 1])
        writer.close()

    async def connected(reader, writer):
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # somebody only looked whether we listen, or has heard enough

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
    finally:
        server.close()


async def said(kind: str, reply: bytes, *, stream: bool = False) -> Answer | Failure:
    """What a target makes of such a reply."""
    async with serving(reply) as (url, _):
        target = await opened(kind, base_url=url, api_key="k", model="m", provider="lab")
        try:
            return await target.ask(asked(stream))
        finally:
            await target.close()


def completion(message: dict | None = None, finish: object = "stop", **rest) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", "content": "ok", **(message or {})}, "finish_reason": finish}
    return {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}, **rest}


def message(text: str = "ok", **rest) -> dict:
    usage = {"input_tokens": 3, "output_tokens": 1}
    content = [{"type": "text", "text": text}] if text else []
    return {"type": "message", "model": "m", "content": content, "stop_reason": "end_turn", "usage": usage, **rest}


def whole(value: dict) -> bytes:
    return http(json.dumps(value).encode())


def recorded(name: str) -> bytes:
    served = json.loads((DATA / f"{name}.json").read_text("utf-8"))["answer_served"]
    if isinstance(served["body"], str):
        return sse(served["body"].encode())
    return http(json.dumps(served["body"]).encode(), served["status"])


class TestRecorded:
    """Answers that the providers' own clients accept."""

    @pytest.mark.parametrize(
        ("name", "text", "finish"),
        [
            ("openai-chat-refusal", "I can't help.", "refusal"),
            ("openai-chat-content-filter-finish", "part", "content_filter"),
            ("azure-filter-completion", "", "content_filter"),
            ("azure-stream", "ok", "stop"),
            ("openai-chat-stream", "ok", "stop"),
            ("openai-chat-reasoning", "ok", "stop"),
            ("openai-chat-tools", "", "tool_calls"),
            ("anthropic-refusal", "cyber: x", "refusal"),
            ("anthropic-tools", "", "tool_calls"),
            ("anthropic-json-schema", '{"score":1}', "stop"),
            ("anthropic-thinking-budget", "ok", "stop"),
            ("anthropic-window-exceeded-stop", None, "length"),
            ("anthropic-stream", None, None),
        ],
    )
    async def test_answers(self, name, text, finish):
        kind = "anthropic_api" if name.startswith("anthropic") else "openai_api"
        answer = await said(kind, recorded(name), stream=name.endswith("-stream"))
        assert isinstance(answer, Answer), answer
        assert text is None or (answer.text, answer.finish_reason) == (text, finish)
        if name not in ("azure-stream",):
            assert (answer.usage.prompt, answer.usage.completion, answer.usage.reasoning) == (12, 30, 20)
            assert answer.usage.cache_read == 8

    @pytest.mark.parametrize("name", ["openai-chat-tools", "anthropic-tools"])
    async def test_calls_that_nobody_made_are_kept(self, name):
        answer = await said("anthropic_api" if name.startswith("anthropic") else "openai_api", recorded(name))
        assert [(call["tool"], call["arguments"]) for call in answer.trace["tool_calls"]] == [("f", {"x": "1"})]

    async def test_a_prompt_that_a_filter_stops(self):
        answer = await said("openai_api", recorded("azure-filter-prompt"))
        assert answer.finish_reason == "content_filter" and answer.text.startswith("The response was filtered due to")
        assert answer.usage.prompt == 0  # the model was not asked, and nothing is billed

    @pytest.mark.parametrize(
        ("name", "kind", "retryable"),
        [
            ("openai-chat-error-429-quota", "auth", False),
            ("openai-chat-error-409", "server", True),
            ("openai-chat-error-400", "refused", True),  # without what it names, once
            ("openai-chat-stream-cut", "stream", True),
            ("openai-chat-stream-error-midway", "server", True),
            ("anthropic-stream-cut", "stream", True),
            ("anthropic-stream-error", "server", True),
        ],
    )
    async def test_failures(self, name, kind, retryable):
        target = "anthropic_api" if name.startswith("anthropic") else "openai_api"
        failure = await said(target, recorded(name), stream="-stream-" in name)
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.retryable) == (kind, retryable)

    async def test_what_was_read_before_an_error_in_the_stream_is_counted(self):
        assert (await said("anthropic_api", recorded("anthropic-stream-error"), stream=True)).usage.prompt == 12


def streamed_refusal(kind: str) -> bytes:
    if kind == "openai_api":
        deltas = [{"refusal": "I can"}, {"refusal": "'t."}, {}]
        events = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
        events[-1]["choices"][0]["finish_reason"] = "stop"
        return sse(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n")
    events = [
        {"type": "message_start", "message": message("")},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I can't."}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    return sse(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))


class TestRefusals:
    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_streamed_one(self, kind):
        answer = await said(kind, streamed_refusal(kind), stream=True)
        assert (answer.text, answer.finish_reason) == ("I can't.", "refusal")

    @pytest.mark.slow
    async def test_streamed_calls_of_tools(self):
        pieces = [{"index": 0, "function": {"name": "f", "arguments": ""}}]
        pieces += [{"index": 0, "function": {"arguments": part}} for part in ('{"x"', ": 1}")]
        events = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
        events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
        body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
        answer = await said("openai_api", sse(body), stream=True)
        assert (answer.text, answer.finish_reason) == ("", "tool_calls")
        assert answer.trace["tool_calls"][0]["arguments"] == {"x": 1}

    REPLIES = {
        "refusal": whole(completion({"content": None, "refusal": "I can't help."})),
        "filter": whole(completion({"content": ""}, "content_filter")),
        "prompt": recorded("azure-filter-prompt"),
        "tools": whole(completion({"content": None, "tool_calls": [{"function": {"name": "f"}}]})),
    }

    @pytest.mark.parametrize(
        ("reply", "how", "score", "counts"),
        [
            ("refusal", None, 0.0, (1, 0)),
            ("refusal", "right", 1.0, (1, 0)),
            ("refusal", "unscored", None, (1, 0)),
            ("filter", None, 0.0, (0, 1)),
            ("prompt", "unscored", None, (0, 1)),
            ("tools", None, 0.0, (0, 0)),
        ],
    )
    async def test_in_a_run(self, run_suite, reply, how, score, counts):
        async with serving(self.REPLIES[reply]) as (url, requests):
            keys = {"on_refusal": how} if how else {}
            run = await run_suite(
                targets=["lab:m"], providers={"lab": {"base_url": url}}, stream=False, scorer="boolean", **keys
            )
        (trial,) = run.trials()
        assert len(requests) == 1 and trial.attempts == 1  # it is never asked again for it
        assert trial.score == score and trial.failure_kind is None
        (arm,) = run.arms
        assert (arm.refused, arm.filtered, arm.failed) == (*counts, 0)
        if reply == "refusal":
            assert trial.answer == "I can't help." and trial.finish_reason == "refusal"
            assert (trial.notes or trial.unscored_message) == "refused: I can't help."
            assert trial.unscored_kind == ("refused" if how == "unscored" else None)

    async def test_nobody_judges_one(self, run_suite, store):
        """No judge is bought for a refusal; on each metric it is as bad as it can be."""
        async with serving(self.REPLIES["refusal"]) as (url, _):
            run = await run_suite(
                targets=["lab:m"],
                providers={"lab": {"base_url": url}},
                stream=False,
                scorer="golden_judge",
                judge={"target": "mock:j", "options": {"verdict": {"otherwise": 5}}},
            )
        (arm,) = run.arms
        assert (arm.aggregate.mean, arm.judge_calls, arm.metrics["completeness"].mean) == (0.0, 0, 1.0)
        rescored = await arescore(run.id, store=store)
        assert rescored.arms[0].judge_calls == 0 and next(rescored.trials()).notes == "refused: I can't help."

    async def test_they_are_counted_apart_wherever_results_stand(self, run_suite, store, capsys):
        async with serving(self.REPLIES["refusal"], self.REPLIES["filter"], whole(completion())) as (url, _):
            cases = [{"id": str(n), "input": f"{n}?", "expected": "ok"} for n in range(4)]
            run = await run_suite(
                targets=["lab:m"], providers={"lab": {"base_url": url}}, stream=False, concurrency=1, cases=cases
            )
        summary = run.summary()
        (arm,) = document(summary)["arms"]
        assert (arm["refused"], arm["filtered"], arm["scored"], arm["failed"]) == (1, 1, 4, 0)
        line = "answers declined: 1 refused, 1 filtered of 4"
        assert line in md.render(summary)
        assert _run(["show", run.id, "--store", f"sqlite:///{store.address}"]) == 0
        assert line in capsys.readouterr().out

    async def test_an_agents_model_may_refuse_too(self, run_suite):
        for reply, finish in (("refusal", "refusal"), ("prompt", "content_filter")):
            async with serving(self.REPLIES[reply]) as (url, requests):
                run = await run_suite(targets=["tool-agent:lab:m"], providers={"lab": {"base_url": url}})
            (trial,) = run.trials()
            assert (trial.finish_reason, trial.score, len(requests)) == (finish, 0.0, 1) and trial.answer


class TestDecoration:
    """Nothing that is not needed makes a good answer malformed."""

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        "odd",
        [
            {"model": 7},
            {"model": None},
            {"usage": None},
            {"usage": []},
            {"usage": "many"},
            {"usage": {"prompt_tokens": {}, "input_tokens": []}},
            {"usage": {"prompt_tokens_details": 3, "prompt_tokens": -5, "input_tokens": -5}},
            {"usage": {"cost": 10**400, "prompt_tokens": 10**400, "input_tokens": 10**400}},
            {"id": 5, "object": None, "created": "now", "system_fingerprint": [{}], "service_tier": 3},
            {"stop_sequence": 4, "stop_details": 5, "container": [], "role": 0},
        ],
    )
    async def test_odd_fields(self, kind, odd):
        made = {**(completion() if kind == "openai_api" else message()), **odd}
        answer = await said(kind, whole(made))
        assert isinstance(answer, Answer) and answer.text == "ok", answer
        assert "usage" not in odd or answer.usage is None

    async def test_whole_numbers_written_as_fractions(self):
        usage = {"prompt_tokens": 10.0, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9}}
        answer = await said("openai_api", whole(completion(usage=usage)))
        assert (answer.usage.prompt, answer.usage.completion, answer.usage.cache_read) == (10, 2, 9)
        assert believed(answer, None) is answer

    @pytest.mark.parametrize(
        "odd",
        [
            {"prompt_tokens_details": {"cached_tokens": 99}},  # more than the whole prompt
            {"prompt_tokens_details": {"cache_write_tokens": "some"}},
            {"completion_tokens_details": {"reasoning_tokens": 3}},
            {"total_tokens": 13},  # somebody is billed for one more
        ],
    )
    async def test_details_that_cannot_be_make_the_cost_unknown(self, odd):
        usage = {"prompt_tokens": 10, "completion_tokens": 2, **odd}
        answer = await said("openai_api", whole(completion(usage=usage)))
        assert answer.text == "ok" and believed(answer, None).usage is None

    async def test_totals_may_be_too_small(self):
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 0}
        assert (await said("openai_api", whole(completion(usage=usage)))).usage == Usage(prompt=10, completion=2)

    async def test_reasoning_beside_the_completion_is_billed(self):
        """As xAI counts it."""
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 312}
        usage["completion_tokens_details"] = {"reasoning_tokens": 300}
        answer = await said("openai_api", whole(completion(usage=usage)))
        assert answer.usage == Usage(prompt=10, completion=302, reasoning=300)

    @pytest.mark.parametrize("count", [-1, 2**53 + 1, 2**63, 10**30, 0.5, True, "7", None])
    async def test_counts_that_cannot_be_are_unknown(self, count):
        for usage in (
            {"prompt_tokens": count, "completion_tokens": 1},
            {"prompt_tokens": 1, "completion_tokens": count},
        ):
            assert (await said("openai_api", whole(completion(usage=usage)))).usage is None
        for usage in ({"input_tokens": count, "output_tokens": 1}, {"input_tokens": 1, "output_tokens": count}):
            assert (await said("anthropic_api", whole(message(usage=usage)))).usage is None

    async def test_contents_in_parts(self):
        parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "o"}, 5, {"type": "text", "text": "k"}]
        assert (await said("openai_api", whole(completion({"content": parts, "reasoning": 5})))).text == "ok"

    async def test_in_a_stream(self):
        events = [
            {"model": 7, "choices": None, "usage": "x"},
            {"model": [], "choices": [{"delta": {"content": "ok", "reasoning": {}}, "logprobs": 3}]},
            {
                "choices": [{"delta": None, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1.0, "completion_tokens": 1},
            },
            {"choices": [], "usage": None},
        ]
        body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
        answer = await said("openai_api", sse(body), stream=True)
        assert (answer.text, answer.usage.prompt, answer.model) == ("ok", 1, None)


def bomb(megabytes: int) -> bytes:
    """A few bytes that inflate to so many megabytes, and then do not end."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * megabytes


class TestSizes:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        ("make", "stream"),
        [
            pytest.param(lambda: http(bomb(4000), Content_Encoding="gzip"), False, id="bomb"),
            pytest.param(lambda: sse(bomb(4000), Content_Encoding="gzip"), True, id="bomb as a line"),
            pytest.param(lambda: sse(b"data: " + b"x" * (40 << 20)), True, id="long line"),
            pytest.param(lambda: sse((b"data: " + b"x" * 5000 + b"\n") * 8000), True, id="event of many lines"),
            pytest.param(lambda: http(b" " * (40 << 20)), False, id="large body"),
            pytest.param(lambda: http(bomb(4000), 500, Content_Encoding="gzip"), False, id="large error"),
        ],
    )
    async def test_memory_is_bounded_and_it_is_not_asked_again(self, kind, make, stream):
        reply = make()
        tracemalloc.start()
        try:
            failure = await said(kind, reply, stream=stream)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert isinstance(failure, Failure) and peak < 100 << 20
        if b" 500 " not in reply[:20]:
            assert (failure.kind, failure.retryable) == ("malformed", False) and "more than" in failure.message

    async def test_a_flood_of_small_events(self):
        event = b"data: " + json.dumps({"choices": [{"delta": {"content": "x" * 2**20}}]}).encode() + b"\n\n"
        failure = await said("openai_api", sse(event * 20), stream=True)
        assert (failure.kind, failure.retryable) == ("malformed", False) and "million characters" in failure.message

    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_compressed_answer_is_read(self, stream):
        body = json.dumps(completion({"content": "ok" * 5000})).encode()
        if stream:
            body = b"data: " + body.replace(b'"message"', b'"delta"') + b"\n\ndata: [DONE]\n\n"
        for packed in (gzip.compress(body), zlib.compress(body)):
            reply = (sse if stream else http)(packed, Content_Encoding="gzip")
            assert (await said("openai_api", reply, stream=stream)).text == "ok" * 5000

    async def test_a_compressed_answer_that_breaks_off(self):
        packed = gzip.compress(json.dumps(completion()).encode())
        for body in (packed[:-9], b"no gzip at all"):
            failure = await said("openai_api", http(body, Content_Encoding="gzip"))
            assert (failure.kind, failure.retryable) == ("malformed", True)


class TestBadServers:
    @pytest.mark.parametrize("kind", KINDS)
    async def test_answers_that_are_not_utf8(self, kind):
        made = completion({"content": "X"}) if kind == "openai_api" else message("X")
        body = json.dumps(made).encode().replace(b'"X"', b'"\xff\xfe"')
        failure = await said(kind, http(body))
        assert (failure.kind, failure.retryable) == ("malformed", True) and "not UTF-8" in failure.message
        event = b'{"choices": [{"delta": {"content": "\xff"}}], "delta": {"type": "text_delta", "text": "\xff"}}'
        failure = await said(kind, sse(b"data: " + event + b"\n\n"), stream=True)
        assert (failure.kind, failure.retryable) == ("stream", True) and "not UTF-8" in failure.message

    @pytest.mark.parametrize("kind", KINDS)
    async def test_what_breaks_after_status_200_may_have_been_billed(self, kind):
        cut = whole(completion())[:-20]
        failure = await said(kind, cut)
        assert (failure.kind, failure.retryable) == ("malformed", True) and "was cut off" in failure.message

    @pytest.mark.parametrize("kind", KINDS)
    async def test_deep_nesting(self, kind):
        nested = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        failure = await said(kind, http(nested))
        assert (failure.kind, failure.retryable) == ("malformed", True)

    @pytest.mark.parametrize(
        ("status", "headers", "kind", "retryable", "after"),
        [
            (408, {}, "server", True, None),
            (409, {}, "server", True, None),
            (429, {"retry-after-ms": "1500", "Retry-After": "9"}, "rate_limited", True, 1.5),
            (429, {"retry-after-ms": "soon", "Retry-After": "9"}, "rate_limited", True, 9.0),
            (503, {"x-should-retry": "false"}, "server", False, None),
            (400, {"x-should-retry": "true", "Retry-After": "2"}, "refused", True, 2.0),
            (400, {}, "refused", False, None),
            (402, {}, "auth", False, None),
            (529, {"Retry-After": "Fri, 01 Jan 1999 00:00:00 GMT"}, "server", True, 0.0),
            (529, {"Retry-After": "whenever"}, "server", True, None),
        ],
    )
    def test_what_a_status_means(self, status, headers, kind, retryable, after):
        failure = error_of_status(status, b'{"error": {"message": "no"}}', headers)
        assert (failure.kind, failure.retryable, failure.retry_after) == (kind, retryable, after)
        assert failure.message == f"HTTP {status}: no"

    async def test_headers_are_found_whatever_their_case(self):
        failure = await said("openai_api", http(b"{}", 503, X_SHOULD_RETRY="true", Retry_After_Ms="250"))
        assert (failure.retryable, failure.retry_after) == (True, 0.25)

    async def test_an_error_object_in_a_stream(self):
        body = b'data: {"object": "error", "message": "CUDA out of memory", "code": 500}\n\n'
        failure = await said("openai_api", sse(body), stream=True)
        assert (failure.kind, failure.retryable) == ("server", True) and "CUDA" in failure.message

    def test_an_address_keeps_its_query(self):
        azure = "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21"
        assert endpoint(azure, "/chat/completions") == (
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
        )
        assert endpoint("http://h:1/v1/", "/chat/completions") == "http://h:1/v1/chat/completions"
        for base in ("http://h:1", "http://h:1/v1", "http://h:1/v1/"):
            assert endpoint(base, "/v1/messages") == "http://h:1/v1/messages"

    async def test_that_query_is_sent(self):
        async with serving(whole(completion())) as (url, requests):
            target = await opened("openai_api", base_url=f"{url}/d?api-version=1", api_key="k", model="m")
            await target.ask(asked())
            await target.close()
        assert requests[0].startswith(b"POST /d/chat/completions?api-version=1 ")


PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12).map(str.encode)


def events_of(body: bytes, cuts: list[int] | None = None) -> list[bytes]:
    stream, found, begin = EventStream(), [], 0
    for end in [*sorted(cut % (len(body) + 1) for cut in cuts or []), len(body)]:
        found += stream.feed(body[begin:end])
        begin = end
    return found + stream.end()


class TestEvents:
    @pytest.mark.parametrize(
        ("body", "events"),
        [
            (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
            (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
            (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
            (b"data: a\ndata: b\n\n", [b"a\nb"]),
            (b"data:a\n\ndata\n\ndata:\n\ndata: \n\n", [b"a"]),
            (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
            (b": a comment\nevent: x\nid: 1\nretry: 5\ndata: a\n\n:\n\n", [b"a"]),
            (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
            (b"dataset: a\n\n data: b\n\n", []),
            (b"", []),
            (b"\n\n\r\r\n", []),
        ],
    )
    def test_the_standard(self, body, events):
        assert events_of(body) == events

    @pytest.mark.slow
    @given(
        st.lists(st.lists(PRINTABLE, min_size=1, max_size=3), max_size=5),
        st.sampled_from([b"\n", b"\r", b"\r\n"]),
        st.booleans(),
        st.lists(st.integers(0, 10_000), max_size=12),
    )
    def test_however_it_is_cut(self, events, end, marked, cuts):
        body = b"\xef\xbb\xbf" if marked else b""
        for event in events:
            body += b"".join(b"data: " + line + end for line in event) + b": x" + end + end
        wanted = [data for event in events if (data := b"\n".join(event).strip())]
        assert events_of(body, cuts) == wanted

    @pytest.mark.slow
    @given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
    def test_any_bytes_cut_anywhere_mean_the_same(self, body, cuts):
        assert events_of(body, cuts) == events_of(body)

    def test_an_event_that_does_not_end(self):
        stream = EventStream()
        with pytest.raises(AnswerTooLargeError):
            for _ in range(100):
                stream.feed(b"x" * 2**16)

    def test_many_events_are_not_one(self):
        stream = EventStream()
        for _ in range(300):
            assert stream.feed(b"data: " + b"x" * 2**16 + b"\n\n") == [b"x" * 2**16]
