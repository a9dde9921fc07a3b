"""`mock`: scripted answers, latency and faults, offline — for tests and for trying things out.

`mock:echo` says back what it was asked; any other name answers from its options.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.suite import TargetSpec
from fairtrial.core.target import Options, Target

_FAULTS = {
    "429": Failure(kind="rate_limited", message="HTTP 429: mock says slow down", retryable=True, retry_after=0.05),
    "500": Failure(kind="server", message="HTTP 500: mock has broken down", retryable=True),
    "reset": Failure(kind="stream", message="the connection broke: mock hung up", retryable=True),
    "refused": Failure(kind="refused", message="HTTP 400: mock does not like this"),
}
_FAULT_NAMES = (*_FAULTS, "empty", "hang")
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MockOptions(Options, frozen=True, kw_only=True):
    """`answers` maps a case id, or a text that occurs in the prompt, to an answer or to one per repeat."""

    answer: str | list[str] | None = None
    answers: dict[str, str | list[str]] = {}
    latency_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    jitter_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    faults: dict[str, Share] = {}
    seed: int = 0


class Mock(Target):
    """A target whose every answer is known in advance. The same trial meets the same luck in every run."""

    options_type: ClassVar[type[Options]] = MockOptions

    def __init__(self, spec: TargetSpec, options: MockOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        for name in options.faults:
            if name not in _FAULT_NAMES:
                yield f"mock knows no fault `{name}`; known: {', '.join(_FAULT_NAMES)}"
        if spec.model != "echo" and options.answer is None and not options.answers:
            yield "a mock needs `answer` or `answers` in its options, or the name mock:echo"

    @property
    def lane(self) -> str:
        return f"mock:{self.spec.id}"

    async def ask(self, request: Request) -> Answer | Failure:
        started = time.perf_counter()
        luck = random.Random(f"{self._options.seed}/{request.trial_id}/{request.attempt}")
        fault = self._fault(luck)
        if fault == "hang":
            await asyncio.Event().wait()
        wait = self._options.latency_ms + luck.random() * self._options.jitter_ms
        if wait:
            await asyncio.sleep(wait / 1000)
        if fault in _FAULTS:
            return _FAULTS[fault]
        text = "" if fault == "empty" else self._text(request)
        return Answer(
            text=text,
            finish_reason="stop",
            usage=Usage(prompt=_tokens(request.system + request.input), completion=_tokens(text)),
            model=self.spec.model,
            latency_ms=(time.perf_counter() - started) * 1000,
        )

    def _fault(self, luck: random.Random) -> str | None:
        roll = luck.random()
        for name, share in self._options.faults.items():
            roll -= share
            if roll < 0:
                return name
        return None

    def _text(self, request: Request) -> str:
        answers = self._options.answers
        scripted = answers.get(request.case_id)
        if scripted is None:
            scripted = next((text for key, text in answers.items() if key in request.input), self._options.answer)
        if scripted is None:
            return request.input if self.spec.model == "echo" else ""
        return scripted if isinstance(scripted, str) else scripted[request.repeat % len(scripted)]


def _tokens(text: str) -> int:
    return (len(text) + 3) // 4
