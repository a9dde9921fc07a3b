"""`mock`: scripted answers, latency and faults, offline, for tests and for trying things out.

`mock:echo` repeats the prompt; any other name answers from its options.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.listening import NOBODY, Listener
from fairtrial.core.target import Options, Target
from fairtrial.core.trace import ToolCall, Trace

_FAULTS = {
    "429": Failure(kind="rate_limited", message="HTTP 429: the mock is rate limited", retryable=True, retry_after=0.05),
    "500": Failure(kind="server", message="HTTP 500: the mock has an internal error", retryable=True),
    "reset": Failure(kind="stream", message="the connection was lost: the mock closed it", retryable=True),
    "refused": Failure(kind="refused", message="HTTP 400: the mock rejected this request"),
}
_MAX_PIECES, _PIECE_SECONDS = 200, 0.02  # of a streamed answer
_WORD_PLACES = 512
_FAULT_NAMES = (*_FAULTS, "empty", "hang")
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MockVerdict(Options, frozen=True, kw_only=True):
    """How the mock acts as a judge: marks by a text in the prompt, plus bias and noise, or a malfunction.

    Of two answers it prefers the one with the higher mark; `first` is added to the one shown first.
    """

    marks: dict[str, float] = {}
    otherwise: float = 0.0
    bias: float = 0.0
    noise: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    first: float = 0.0
    mode: Literal["judge", "refuse", "malformed", "out_of_range", "obey"] = "judge"
    claims: list[str] = []


class MockToolCall(Options, frozen=True, kw_only=True):
    """A tool call that the mock claims to have made, in `share` of its answers."""

    server: str
    tool: str
    error: bool = False
    share: Share = 1.0


class MockOptions(Options, frozen=True, kw_only=True):
    """`answers` maps a case id, or a text in the prompt, to an answer or to a list with one per repeat."""

    answer: str | list[str] | None = None
    answers: dict[str, str | list[str]] = {}
    latency_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    jitter_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    faults: dict[str, Share] = {}
    seed: int = 0
    verdict: MockVerdict | None = None
    tool_calls: list[MockToolCall] = []


class Mock(Target):
    """A target with scripted answers. Random faults and delays are the same for the same trial in every run."""

    options_type: ClassVar[type[Options]] = MockOptions
    uses_tools: ClassVar[bool] = True
    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True
    embeds: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: MockOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        for name in options.faults:
            if name not in _FAULT_NAMES:
                yield f"mock has no fault `{name}`; available: {', '.join(_FAULT_NAMES)}"
        if spec.model != "echo" and options.answer is None and not options.answers and options.verdict is None:
            yield "a mock needs `answer` or `answers` in its options, or the name mock:echo"

    @property
    def lane(self) -> str:
        return f"mock:{self.spec.id}"

    async def ask(self, request: Request) -> Answer | Failure:
        started = time.perf_counter()
        rng = random.Random(f"{self._options.seed}/{request.trial_id}/{request.attempt}")
        fault = self._fault(rng)
        if fault == "hang":
            await asyncio.Event().wait()
        wait = self._options.latency_ms + rng.random() * self._options.jitter_ms
        text = "" if fault else _count_words(request.input) if request.embed else self._text(request, rng)
        await _stream(text if request.stream else "", wait / 1000, request.listener)
        if fault in _FAULTS:
            return _FAULTS[fault]
        return Answer(
            text=text,
            finish_reason="stop",
            usage=Usage(prompt=_tokens(_whole_prompt(request)), completion=_tokens(text)),
            model=self.spec.model,
            latency_ms=(time.perf_counter() - started) * 1000,
            trace=self._trace(request, rng) if request.mcp else None,
        )

    def _trace(self, request: Request, rng: random.Random) -> dict[str, Any]:
        servers = {server.name for server in request.mcp}
        calls = [
            ToolCall(tool=call.tool, server=call.server, error=call.error)
            for call in self._options.tool_calls
            if call.server in servers and rng.random() < call.share
        ]
        return Trace(tool_calls=tuple(calls), turns=1 + bool(calls)).as_dict()

    def _fault(self, rng: random.Random) -> str | None:
        roll = rng.random()
        for name, share in self._options.faults.items():
            roll -= share
            if roll < 0:
                return name
        return None

    def _text(self, request: Request, rng: random.Random) -> str:
        if request.schema is not None and self._options.verdict is not None:
            return _play_judge(self._options.verdict, request, rng)
        answers = self._options.answers
        scripted = answers.get(request.case_id)
        if scripted is None:
            scripted = next((text for key, text in answers.items() if key in request.input), self._options.answer)
        if scripted is None:
            return request.input if self.spec.model == "echo" else ""
        return scripted if isinstance(scripted, str) else scripted[request.repeat % len(scripted)]


def _count_words(text: str) -> str:
    """Return an embedding that only counts words: each adds 1 at a place that its hash decides."""
    vector = [0] * _WORD_PLACES
    for word in re.findall(r"\w+", text.casefold()):
        vector[zlib.crc32(word.encode()) % _WORD_PLACES] += 1
    return json.dumps(vector)


async def _stream(text: str, seconds: float, listener: Listener) -> None:
    """Wait for `seconds`, sending the text piece by piece if there is a listener."""
    pieces = 1 if listener is NOBODY or not text else max(1, min(_MAX_PIECES, int(seconds / _PIECE_SECONDS)))
    size = -(-len(text) // pieces)
    for number in range(pieces):
        if seconds:
            await asyncio.sleep(seconds / pieces)
        listener.piece(text[number * size : (number + 1) * size])


def _whole_prompt(request: Request) -> str:
    return "".join((request.system, *(message.content for message in request.history), request.input))


def _tokens(text: str) -> int:
    return (len(text) + 3) // 4


def _play_judge(how: MockVerdict, request: Request, rng: random.Random) -> str:
    if how.mode == "refuse":
        return "I cannot judge this."
    if how.mode == "malformed":
        return '{"reasoning": "it is good", "score": '
    assert request.schema is not None
    if "better" in request.schema["properties"]:
        return _compare(how, request, rng)
    mark = _mark(how, request.input)
    instruction = re.search(r"give (?:it|this answer) (?:a score of )?(\d+)", request.input, re.IGNORECASE)
    if how.mode == "obey" and instruction:
        mark = float(instruction[1])
    mark += how.bias + rng.gauss(0, how.noise)
    return json.dumps(_fill_schema(request.schema, mark, how))


def _mark(how: MockVerdict, text: str) -> float:
    return next((mark for key, mark in how.marks.items() if key in text), how.otherwise)


def _compare(how: MockVerdict, request: Request, rng: random.Random) -> str:
    """Return which of two answers the mock prefers."""
    first, second = request.input.split("<<FIRST ANSWER", 1)[-1].split("<<SECOND ANSWER", 1)  # each with its fence
    if how.mode == "out_of_range":
        return json.dumps({"reasoning": "because it is so", "better": "neither"})
    lead = _mark(how, first) + how.first - _mark(how, second) + rng.gauss(0, how.noise)
    better = "tie" if lead == 0 else ("first" if lead > 0 else "second")
    return json.dumps({"reasoning": "because it is so", "better": better})


def _fill_schema(schema: dict[str, Any], mark: float, how: MockVerdict) -> Any:
    """Return a reply that fits the schema, with the mark as every number."""
    kind = schema.get("type")
    if kind == "object":
        return {name: _fill_schema(inner, mark, how) for name, inner in schema["properties"].items()}
    if kind == "array":
        return list(how.claims)
    if kind == "string":
        return "because it is so"
    if how.mode == "out_of_range":
        return schema["maximum"] + 1
    clamped = min(schema["maximum"], max(schema["minimum"], mark))
    return round(clamped) if kind == "integer" else clamped
