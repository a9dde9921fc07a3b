"""Servers at their worst: what any of them can send is read or refused in one sentence, and paid for as it was.

The first campaign cuts and twists replies of every API before they are read; the second one does so over a socket,
under a budget, and keeps books of its own.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from fairtrial.core import registry
from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.core.listening import NOBODY
from fairtrial.providers.bounds import Most, believed, can_be_true, maybe_billed
from fairtrial.providers.conversation import MAX_TEXT, read_turn
from fairtrial.providers.errors import error_of_status
from fairtrial.providers.streamed import Collected
from fairtrial.providers.transport import HttpTarget
from tests.servers.vendors import Say, dialect_of
from tests.torture.campaign import Campaign

# -- what is read ---------------------------------------------------------------------------------

PATHS = {
    "openai_api": ("/v1/chat/completions", "/v1/chat/completions"),
    "mistral_api": ("/v1/chat/completions", "/v1/chat/completions"),
    "openai_responses_api": ("/v1/responses", "/v1/responses"),
    "anthropic_api": ("/v1/messages", "/v1/messages"),
    "google_api": ("/v1beta/models/gemini:generateContent", "/v1beta/models/gemini:streamGenerateContent?alt=sse"),
    "bedrock_api": ("/model/anthropic.claude/converse", "/model/anthropic.claude/converse-stream"),
}
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}
SAYS = [
    Say(text="The answer is 42."),
    Say(text='42 \U0001f600 ünd\n"so"', thinking="Hm, let me see."),
    Say(text="", calls=(("look", {"x": [1, "two"]}),)),
    Say(text="no", finish="refusal"),
    Say(text="so", finish="length"),
]
NASTY = [
    None, True, False, 0, -1, 1, 1.5, -0.5, 10**20, -(10**20), 1e300, "", "x", "0", "NaN", [], {}, [None], [[]], {"a": None},
    "\ud83d", "\x00", "x" * 5000, [{}], {"type": "text"}, {"text": 5}, "stop", 2**53 + 1,
]  # fmt: skip
MOST = Most(10**6, 10**6)


def api_of(kind: str) -> type[HttpTarget]:
    loaded: type[HttpTarget] = registry.load("targets", kind)
    return loaded


def replies(kind: str, chance: random.Random) -> tuple[bytes, list[bytes]]:
    """A whole reply of an API, and one in pieces."""
    say = chance.choice(SAYS)
    whole, stream = PATHS[kind]
    status, value = dialect_of(whole).whole(say, BODY)
    assert status == 200
    return json.dumps(value).encode(), list(dialect_of(stream).pieces(say, {**BODY, "stream": True}))


def read_whole(kind: str, body: bytes) -> Answer | Failure:
    turn = read_turn(api_of(kind).conversation, body)
    return turn if isinstance(turn, Failure) else turn.answer(1.0)


def read_pieces(kind: str, chunks: list[bytes]) -> Answer | Failure:
    """What a target makes of a stream, without a connection."""
    api = api_of(kind)
    streamed, parser = api.streamed(Collected(NOBODY, 0.0)), api.event_parser()
    for chunk in chunks:
        ended = streamed.take_all(parser.feed(chunk))
        if ended is not None:
            return ended
        if streamed.over:
            break
    else:
        ended = streamed.take_all(parser.end())
        if ended is not None:
            return ended
    if not streamed.done:
        return Failure(kind="stream", message="cut", retryable=True)
    return streamed.turn().answer(1.0)


def check(result: Answer | Failure) -> bool:
    """Check what must hold of anything that was read; return whether it is an answer."""
    if isinstance(result, Failure):
        assert len(result.message) < 5000 and result.kind, result.message
        assert maybe_billed(result) or result.kind in ("server", "refused", "rate_limited", "auth", "model", "context")
        return False
    assert isinstance(result, Answer) and isinstance(result.text, str) and len(result.text) <= MAX_TEXT
    assert result.finish_reason is None or len(result.finish_reason) <= 200
    assert result.model is None or len(result.model) <= 200
    usage = believed(result, MOST).usage
    if usage not in (None, Usage()):
        assert can_be_true(usage, MOST, wrote=bool(result.text.strip()))
    result.text.encode("utf-8")
    return True


def twisted(value: Any, chance: random.Random) -> Any:
    """A reply in which one thing is another, missing, doubled, huge or deep."""
    value = json.loads(json.dumps(value))
    places = list(_places(value))
    for _ in range(chance.randint(1, 3) if places else 0):  # a text or a number by itself has none
        holder, key = chance.choice(places)
        with suppress(KeyError, IndexError, TypeError):
            how = chance.randrange(6)
            if how == 0:
                del holder[key]
            elif how == 1 and isinstance(holder, list):
                holder.insert(key, json.loads(json.dumps(holder[key])))
            elif how == 2:
                holder[key] = [holder[key]]
            elif how == 3:
                other, name = chance.choice(places)
                holder[key] = json.loads(json.dumps(other[name]))
            else:
                holder[key] = json.loads(json.dumps(chance.choice(NASTY)))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def garbled(body: bytes, chance: random.Random) -> bytes:
    """A body of which bytes are others, or are missing or doubled."""
    raw = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(raw) + 1)
        how = chance.randrange(4)
        if how == 0:
            raw[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 5)))
        elif how == 1:
            del raw[at : at + chance.randint(1, 8)]
        elif how == 2:
            raw[at : at + 1] = chance.choice(
                [b"\xff", b"\0", b"\\", b'"', b"{", b"}", b"\n", b"\\ud83d", b"NaN", b"9" * 400]
            )
        else:
            end = at + chance.randint(1, 30)
            raw[end:end] = raw[at:end]
    return bytes(raw)


def nested(body: bytes, chance: random.Random) -> bytes:
    """A body with something deep in it."""
    depth = chance.choice([10, 1000, 100_000])
    at = body.find(b":") + 1
    return body[:at] + b"[" * depth + b"]" * depth + b"," + body[at:] if at else body


CODINGS: list[Callable[[bytes], bytes]] = [
    lambda body: b"\xef\xbb\xbf" + body,
    lambda body: body.decode("utf-8", "replace").encode("utf-16"),
    lambda body: body.decode("utf-8", "replace").encode("utf-32-be"),
    lambda body: body.decode("utf-8", "replace").encode("latin-1", "replace"),
    lambda body: body + b" and more",
    lambda body: body + body,
    lambda body: body.replace(b"42", b"\\ud83d"),
]


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "replace")


def a_whole_reply(kind: str, body: bytes, chance: random.Random) -> None:
    """Read one reply that was twisted in some way."""
    how = chance.randrange(5)
    if how == 0:
        body = body[: chance.randrange(len(body) + 1)]
    elif how == 1:
        body = dumped(twisted(json.loads(body), chance))
    elif how == 2:
        body = garbled(body, chance)
    elif how == 3:
        body = chance.choice(CODINGS)(dumped(twisted(json.loads(body), chance)) if chance.random() < 0.5 else body)
    else:
        body = (
            nested(body, chance)
            if chance.random() < 0.01
            else garbled(dumped(twisted(json.loads(body), chance)), chance)
        )
    check(read_whole(kind, body))


def a_stream(kind: str, pieces: list[bytes], chance: random.Random) -> None:
    """Read one stream that was twisted in some way and cut into any chunks."""
    how, pieces = chance.randrange(5), list(pieces)
    if how == 0:
        del pieces[chance.randrange(len(pieces)) :]
    elif how == 1:
        at = chance.randrange(len(pieces))
        pieces.insert(chance.randrange(len(pieces)), pieces[at])
    elif how == 2:
        at = chance.randrange(len(pieces))
        pieces[at] = garbled(pieces[at], chance)
    elif how == 3:
        chance.shuffle(pieces)
    elif kind != "bedrock_api":
        at = chance.randrange(len(pieces))
        data = re.search(rb"data: (\{.*\})", pieces[at])
        if data:
            pieces[at] = pieces[at].replace(data[1], dumped(twisted(json.loads(data[1]), chance)))
    raw = b"".join(pieces)
    if chance.random() < 0.3:
        raw = raw[: chance.randrange(len(raw) + 1)]
    size = chance.choice([1, 7, 64, 1 << 20])
    check(read_pieces(kind, [raw[at : at + size] for at in range(0, len(raw), size)]))


@pytest.mark.parametrize("kind", PATHS)
def test_whatever_a_server_sends_is_an_answer_or_one_sentence(kind, campaign: Campaign):
    for chance in campaign.rounds(short=3):
        body, pieces = replies(kind, chance)
        assert check(read_whole(kind, body)) and check(read_pieces(kind, pieces))
        for _ in range(100):
            a_whole_reply(kind, body, chance)
            a_stream(kind, pieces, chance)
            status = chance.choice([400, 401, 403, 404, 408, 413, 429, 500, 503, 529])
            error_of_status(
                status, garbled(body, chance), {"Retry-After": chance.choice(["nan", "-1", "1e999", "x", "3"])}
            )
        campaign.count(inputs=302)


@pytest.mark.parametrize("kind", PATHS)
def test_no_reply_that_is_cut_is_taken_for_a_whole_one(kind, campaign: Campaign):
    """Cut at every byte, whole and in pieces; and every byte of a compressed one."""
    for chance in campaign.rounds(short=1):
        body, pieces = replies(kind, chance)
        whole = read_pieces(kind, pieces)
        raw = b"".join(pieces)
        for end in range(len(body)):
            assert not check(read_whole(kind, body[:end])), body[:end]
        for end in range(len(raw)):
            cut = read_pieces(kind, [raw[:end]])
            if check(cut):
                assert cut.text == whole.text, raw[:end]  # only what says nothing more is missing
        campaign.count(inputs=len(body) + len(raw) + 1)
