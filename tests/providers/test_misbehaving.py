"""Servers that misbehave: an answer that can be read is read, and no answer belongs to another question."""

import asyncio
import codecs
import gzip
import json
import zlib
from contextlib import asynccontextmanager

import msgspec
import pytest

from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.providers.bounds import maybe_billed
from tests.providers.test_replies import asked, completion, http, message, said, sse
from tests.targets.test_targets import opened

KINDS = {"openai_api": lambda text: completion({"content": text}), "anthropic_api": message}
NEARLY = {
    "a byte order mark": lambda text: codecs.BOM_UTF8 + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-be"),
    "UTF-32": lambda text: text.encode("utf-32"),
    "something behind it": lambda text: text.encode() + b"\n\0 bye",
    "NaN": lambda text: text.encode()[:-1] + b', "logprobs": [NaN, -Infinity, 1e999]}',
    "a number without end": lambda text: text.encode()[:-1] + b', "seed": ' + b"9" * 5000 + b"}",
    "a line break in a text": lambda text: text.encode().replace(b"42 is", b"42\nis"),
    "blanks before it": lambda text: b"\r\n \t" + text.encode(),
    "everything twice": lambda text: text.encode()[:-1] + b"," + text.encode()[1:],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", NEARLY)
async def test_a_reply_that_is_almost_json_is_read(kind, how):
    answer = await said(kind, http(NEARLY[how](json.dumps(KINDS[kind]("42 is it")))))
    assert isinstance(answer, Answer), answer
    assert answer.text.split() == ["42", "is", "it"] and answer.usage == Usage(prompt=3, completion=1)


@pytest.mark.parametrize("kind", KINDS)
async def test_half_of_a_pair_is_one_character(kind):
    body = json.dumps(KINDS[kind]("so \ud83d far \U0001f600")).encode()
    assert b"\\ud83d far" in body
    assert (await said(kind, http(body))).text == "so \ufffd far \U0001f600"


async def test_events_that_are_almost_json_are_read():
    start = b'data: {"choices": [{"delta": {"content": "4\\ud83d"}, "logprobs": NaN}]}\n\n'
    end = b'data: {"choices": [{"delta": {"content": "2"}, "finish_reason": "stop"}]}bye\n\ndata: [DONE]\n\n'
    assert (await said("openai_api", sse(start + end), stream=True)).text == "4\ufffd2"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_reply_in_the_charset_of_its_header(kind):
    body = json.dumps(KINDS[kind]("über"), ensure_ascii=False)
    for media, coded in {
        "application/json; charset=iso-8859-1": body.encode("latin-1"),
        "application/json; charset=ISO-8859-1": body.encode(),  # a header of habit: JSON is UTF-8
        "application/json; charset=utf-16": body.encode("utf-16"),
        "application/json; charset=klingon": body.encode(),
    }.items():
        assert (await said(kind, http(coded, media=media))).text == "über", media


async def test_what_is_behind_an_answer_may_not_be_another_answer():
    body = json.dumps(completion()).encode()
    failure = await said("openai_api", http(body + body))
    assert failure.kind == "malformed" and maybe_billed(failure)


PACKED = {
    "gzip in parts": ("gzip", lambda body: gzip.compress(body[:50]) + gzip.compress(body[50:])),
    "gzip with padding": ("gzip", lambda body: gzip.compress(body) + b"\0" * 20),
    "x-gzip": ("x-gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "bare deflate": ("deflate", lambda body: zlib.compress(body, wbits=-15)),
    "bare deflate of nothing much": ("deflate", lambda body: zlib.compress(body, 0, wbits=-15)),
    "packed twice": ("gzip, deflate", lambda body: zlib.compress(gzip.compress(body))),
    "named only": ("gzip", bytes),
    "identity": ("identity", bytes),
    "not at all": ("", bytes),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("how", PACKED)
async def test_whatever_was_compressed_as_we_asked_is_read(how, stream):
    encoding, pack = PACKED[how]
    body = json.dumps(completion({"content": "ok" * 200})).encode()
    if stream:
        body = b"data: " + body.replace(b'"message"', b'"delta"') + b"\n\ndata: [DONE]\n\n"
    reply = (sse if stream else http)(pack(body), Content_Encoding=encoding)
    assert (await said("openai_api", reply, stream=stream)).text == "ok" * 200


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "x" * 9000, ", ".join(["gzip"] * 40)])
async def test_other_compressions_are_named(encoding):
    failure = await said("openai_api", http(b"\x1b\x03\x00", Content_Encoding=encoding[:7000]))
    assert (failure.kind, failure.retryable) == ("malformed", False) and maybe_billed(failure)
    assert f"compressed as `{encoding.removeprefix('gzip, ')[:4]}" in failure.message or "gzip, gzip" in failure.message
    assert len(failure.message) < 200 and "cut off" not in failure.message


@pytest.mark.parametrize("first", [1, 0])
async def test_of_several_choices_the_one_with_index_0_counts(first):
    choices = [
        {"index": place, "message": {"content": f"choice {place}"}, "finish_reason": "stop"} for place in (1, 0, 2)
    ]
    if first == 0:
        choices.reverse()
    assert (await said("openai_api", http(json.dumps({"choices": choices}).encode()))).text == "choice 0"
    candidates = [
        {"index": place, "content": {"parts": [{"text": f"choice {place}"}]}, "finishReason": "STOP"}
        for place in (1, 0, 2)
    ]
    if first == 0:
        del candidates[1]["index"]  # the API leaves out zeros
    assert (await said("google_api", http(json.dumps({"candidates": candidates}).encode()))).text == "choice 0"


async def test_of_several_choices_in_a_stream_the_one_with_index_0_counts():
    events = [
        {"choices": [{"index": place, "delta": {"content": f"{place}{part}"}, "finish_reason": end}]}
        for part, end in (("a", None), ("b", "stop"))
        for place in (1, 0)
    ]
    events[0]["choices"].append({"index": 0, "delta": {"content": "<"}})
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    assert (await said("openai_api", sse(body), stream=True)).text == "<0a0b"
    parts = [
        {"candidates": [{"index": place, "content": {"parts": [{"text": f"{place}{part}"}]}, "finishReason": end}]}
        for part, end in (("a", None), ("b", "STOP"))
        for place in (1, 0)
    ]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in parts)
    assert (await said("google_api", sse(body), stream=True)).text == "0a0b"


@pytest.mark.parametrize("kind", [*KINDS, "google_api"])
async def test_words_that_servers_choose_are_of_limited_length(kind):
    long = "x" * 100_000
    made = {
        "openai_api": completion(finish=long) | {"model": long},
        "anthropic_api": message(stop_reason=long, model=long),
        "google_api": {
            "modelVersion": long, "candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": long}],
        },
    }[kind]  # fmt: skip
    answer = await said(kind, http(json.dumps(made).encode()))
    assert answer.text == "ok" and len(answer.finish_reason) < 200 and len(answer.model) < 500


@pytest.mark.parametrize("kind", KINDS)
async def test_messages_of_errors_are_of_limited_length(kind):
    words = "no such thing " * 20_000
    for body in (json.dumps({"error": {"message": words}}).encode(), words.encode(), b"x" * 260_000):
        failure = await said(kind, http(body, 400))
        assert failure.kind == "refused" and len(failure.message) < 10_000, len(failure.message)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_is_too_long_whole_or_not_was_paid_for(stream):
    text = "x" * (17 << 20)
    if stream:
        pieces = [{"choices": [{"delta": {"content": text[: 1 << 20]}}]}] * 17
        reply = sse(b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces))
    else:
        reply = http(json.dumps(completion({"content": text})).encode())
    failure = await said("openai_api", reply, stream=stream)
    assert isinstance(failure, Failure) and (failure.kind, failure.retryable) == ("malformed", False)
    assert "16 million characters" in failure.message and maybe_billed(failure)
    assert failure.usage == (None if stream else Usage(prompt=3, completion=1))


class Echo:
    """A server that answers each question with the question, and then says more, when a test says so."""

    def __init__(self):
        self.more = lambda body: b""  # in the same breath
        self.connections = 0
        self.heard: list[str] = []
        self.writers: list[asyncio.StreamWriter] = []

    def reply(self, text: str) -> bytes:
        return http(json.dumps(completion({"content": text})).encode())

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    int(row[15:]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:")
                )
                text = json.loads(await reader.readexactly(length))["messages"][-1]["content"]
                self.heard.append(text)
                writer.write(self.reply(text) + self.more(text))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def echoing():
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    target = await opened("openai_api", base_url=url, api_key="k", model="m", provider="lab")

    async def ask(text):
        return (await target.ask(msgspec.structs.replace(asked(), input=text))).text

    try:
        yield echo, ask
    finally:
        await target.close()
        server.close()
        for writer in echo.writers:
            writer.close()


async def test_connections_are_used_again():
    async with echoing() as (echo, ask):
        for number in range(5):
            assert await ask(f"q{number}") == f"q{number}"
        assert echo.connections == 2  # the first one only looked whether there is a server


async def test_a_second_answer_in_the_same_breath_answers_nothing():
    async with echoing() as (echo, ask):
        echo.more = lambda text: echo.reply(f"again {text}")
        for number in range(5):
            assert await ask(f"q{number}") == f"q{number}"


async def test_half_of_a_second_answer_answers_nothing():
    async with echoing() as (echo, ask):
        echo.more = lambda text: echo.reply(f"again {text}")[:-20]
        for number in range(5):
            assert await ask(f"q{number}") == f"q{number}"


@pytest.mark.parametrize("read", [True, False])
async def test_a_late_second_answer_answers_nothing(read):
    async with echoing() as (echo, ask):
        assert await ask("q1") == "q1"
        late = echo.writers[-1]
        late.write(echo.reply("again q1"))
        if read:  # it has arrived and was noticed; otherwise, it waits in the socket when the next question comes
            with pytest.raises(ConnectionError):
                while True:
                    late.write(b" ")
                    await late.drain()
                    await asyncio.sleep(0)
        assert await ask("q2") == "q2"
        assert echo.heard == ["q1", "q2"]


async def test_a_server_that_speaks_out_of_turn_gets_a_new_connection_for_every_question():
    async with echoing() as (echo, ask):
        echo.more = lambda text: echo.reply(f"again {text}")
        await ask("q1")
        echo.more, before = (lambda text: b""), echo.connections
        for number in range(3):
            assert await ask(f"q{number}") == f"q{number}"
        assert echo.connections == before + 3
