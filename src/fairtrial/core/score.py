"""The score of an answer, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from fairtrial.core.answer import Answer, Failure
from fairtrial.core.events import Event, as_data
from fairtrial.core.experiment import INPUT_NAMES, Case
from fairtrial.core.file import File
from fairtrial.core.functions import Functions
from fairtrial.core.judge import Judgement, JudgementPlace, Panel
from fairtrial.core.templates import fill
from fairtrial.core.trajectory import Exchanged, trajectory
from fairtrial.core.workshop import Workshop
from fairtrial.core.workspace import Workspace

Scale = tuple[float | None, float | None]  # worst and best; best below worst: lower is better; None: unbounded
ANY: Scale = (None, None)
MakeWorkspace = Callable[[], AbstractAsyncContextManager[Workspace]]


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """A value from 0 to 1, and how it came about."""

    value: float
    confidence: float | None = None
    notes: str = ""
    automatic: bool = False  # assigned without looking at the answer
    raw: float | None = None
    max: float = 1.0
    details: dict[str, Any] | None = None
    metrics: dict[str, float] = {}  # measured in addition to the score, each on its own scale
    judgements: tuple[Judgement, ...] = ()
    files: tuple[File, ...] = ()


UNRECORDED = "recording"  # the kind of unscored answers whose agents called what was not recorded


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """Scoring failed. This is never a 0: the trial counts as unscored, for this reason."""

    kind: str
    message: str
    retryable: bool = False
    judgements: tuple[Judgement, ...] = ()


class Earlier(NamedTuple):
    """The answer of a turn before the last one, and what makes the workspace as it was then."""

    answer: Answer
    workspace: MakeWorkspace | None = None


class ScoreContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a scorer can use."""

    response: str  # the part of the answer that is scored
    case: Case
    answer: Answer | None = None  # the whole answer; None outside a run
    original: str | None = None  # the answer's text before `response` was taken out of it; None if it is all of it
    vars: Mapping[str, Any] = {}
    messages: tuple[dict[str, Any], ...] = ()  # the chat that was sent
    conversation: bool = False  # whether there were turns before the answer
    turns: tuple[Exchanged, ...] = ()  # what was asked and answered, turn by turn; the last one is this answer
    earlier: tuple[Earlier, ...] = ()  # the answers before this one, as far as they are stored
    part: str = ""  # what of the trial is scored, if not all of it; a judge's verdict on one part is none on another
    files: tuple[File, ...] = ()  # sent with the question; only there if a judge can see them
    finish_reason: str | None = None
    on_refusal: Literal["wrong", "unscored", "right"] = "wrong"
    folder: Path = Path()
    functions: Functions = {}  # given in Python, without an importable name
    panel: Panel | None = None
    family: str = ""  # the maker of the target's model
    workshop: Workshop | None = None
    embed: Callable[[str, str], Awaitable[Sequence[float] | Failure]] | None = None  # by an embedder's name, and a text
    workspace: MakeWorkspace | None = None  # makes it, as the agent left it
    kept: Mapping[JudgementPlace, Judgement] = {}  # valid judgements of this answer from an earlier session

    @property
    def question(self) -> str:
        """What was asked, as a judge should see it: of a conversation, everything before the answer."""
        if not (self.case.turns or self.conversation) or not self.messages:
            return self.case.input
        said = [message for message in self.messages if message["role"] != "system"]
        return "\n\n".join(f"{message['role'].upper()}: {message['content']}" for message in said)

    def fill(self, instructions: str) -> str:
        """Return a judge's instructions with the variables of the case filled in."""
        return fill(instructions, {**self.vars, **dict.fromkeys(INPUT_NAMES, self.case.input)})

    @property
    def expected(self) -> str:
        """The expected text, stripped; empty if there is none.

        With several accepted answers, a scorer sees one of them at a time, unless it sets `sees_all`.
        """
        return next(iter(self.case.accepted), "")

    @property
    def accepted(self) -> tuple[str, ...]:
        """All accepted answers."""
        return self.case.accepted

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened in the trial, over all turns, in its order."""
        answer = self.answer
        reasoning = answer.reasoning if answer else None
        turns = self.turns or (Exchanged(self.case.input, self.original or self.response, reasoning),)
        return trajectory(turns, answer.trace if answer else None)

    @property
    def tool_calls(self) -> list[Any] | None:
        """The tool calls of all turns; None if its target does not report them."""
        calls = (self.answer.trace or {}).get("tool_calls") if self.answer else None
        return list(calls) if isinstance(calls, list | tuple) else None

    @property
    def tokens(self) -> dict[str, int] | None:
        """The token counts of the answer, with their `total`; None if they are unknown."""
        usage = self.answer.usage if self.answer else None
        if usage is None:
            return None
        counts = msgspec.structs.asdict(usage)
        del counts["cache_write_1h"]  # a part of `cache_write`, for its price
        return {**counts, "total": usage.prompt + usage.completion}

    def facts(self) -> dict[str, Any]:
        """Return what users' own code may ask for, by name."""
        answer = self.answer
        return {
            "input": self.case.input,
            "expected": self.case.expected,
            "response": self.response,
            "vars": dict(self.vars),
            "messages": list(self.messages),
            "trace": answer.trace if answer else None,
            "tool_calls": self.tool_calls or [],
            "events": as_data(self.events),
            "latency_ms": answer.latency_ms if answer else None,
            "cost_usd": answer.cost_usd if answer else None,
            "tokens": self.tokens,
            "case": self.case,
            "finish_reason": self.finish_reason,
            "reasoning": answer.reasoning if answer else None,
            "workspace": None,  # made for those who ask for it
        }
