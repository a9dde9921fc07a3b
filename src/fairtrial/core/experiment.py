"""What is tried: cases, targets, conditions, and the arms they make."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

DEFAULT_PARAMS: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 1,
    "max_tokens": 2048,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
BENCHMARK_LOCK = {"temperature": 0, "frequency_penalty": 0, "presence_penalty": 0}

_CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)  # names of variables
INPUT = re.compile(r"\{\{\s*(?:input|problem)\s*\}\}")  # where a wording has the case
PLACE = re.compile(r"\{\{-?\s*([^\W\d][\w.]*)\b[^{}]*\}\}")  # what looks like a place to be filled in
ScorerSpec = dict[str, Any]  # {"type": name, **options}
Expected = str | tuple[str, ...] | None  # one right answer, several of which any will do, or none


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One question, and what a right answer is measured by."""

    id: str
    input: str
    expected: Expected = None
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    scorer: ScorerSpec | None = None
    params: dict[str, Any] | None = None
    repeats: int | None = None
    metadata: dict[str, Any] | None = None
    position: int = 0

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every right answer, without blanks around it and without those that are nothing but blanks."""
        given = (self.expected,) if isinstance(self.expected, str) else self.expected or ()
        return tuple(text for text in map(str.strip, given) if text)

    @property
    def columns(self) -> dict[str, Any]:
        """What its row in a dataset has beside that."""
        return (self.metadata or {}).get("columns") or {}


def read_expected(value: Any) -> Expected:
    """What is right, as it was written: a text, anything that has a text form, or a list of those."""
    if isinstance(value, list | tuple):
        texts = tuple(dict.fromkeys(_text(item) for item in value if item is not None))
        return texts if len(texts) > 1 else next(iter(texts), None)
    return None if value is None else _text(value)


def show_expected(expected: Expected) -> str:
    """What is right, for people."""
    return expected or "" if not isinstance(expected, tuple) else "\nor\n".join(expected)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer used the tools of its condition's servers: {"server.tool": [calls, errors]}."""

    tools: dict[str, tuple[int, int]] = {}

    @property
    def calls(self) -> int:
        """How often any of them was called."""
        return sum(calls for calls, _ in self.tools.values())

    @property
    def errors(self) -> int:
        """How many of the calls failed."""
        return sum(errors for _, errors in self.tools.values())


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A model or agent as configured: which adapter (`kind`), which model, where, with which options."""

    id: str
    kind: str
    provider: str
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}
    options: dict[str, Any] = {}
    concurrency: int | None = None
    folder: str = ""  # where its code lies, for targets that are the user's own code
    api: str = ""  # which kind of API an agent's model has

    def identity(self) -> dict[str, Any]:
        """What makes an answer this target's: everything but the credentials."""
        known = {
            "kind": self.kind,
            "model": self.model,
            "base_url": self.base_url,
            "options": self.options,
            "folder": self.folder,
        }
        return {**known, "api": self.api} if self.api else known


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server of tools that an agent is given: a program to start, or an address."""

    name: str
    transport: Literal["stdio", "http", "sse"] = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 120.0  # seconds to start and to list its tools: npx, uvx and docker may have to download it
    tools: tuple[str, ...] = ()  # what it offered before the run

    def identity(self) -> dict[str, Any]:
        """Which tools these are: everything but the credentials."""
        return {
            "env": {name: value for name, value in self.env.items() if not _CREDENTIAL.search(name)},
            "name": self.name,
            "transport": self.transport,
            "command": self.command,
            "args": self.args,
            "cwd": self.cwd,
            "url": self.url,
        }

    def shown(self) -> str:
        """How it is started or reached."""
        return " ".join((self.command, *self.args)) if self.transport == "stdio" else self.url

    def as_config(self) -> dict[str, Any]:
        """The shape that desktop clients and agents know."""
        if self.transport == "stdio":
            config = {"type": "stdio", "command": self.command, "args": list(self.args), "env": dict(self.env)}
            return {**config, "cwd": self.cwd} if self.cwd else config
        return {"type": self.transport, "url": self.url, "headers": dict(self.headers)}


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What a target is told and given beside the case, and what it is expected to do with it."""

    name: str = "default"
    system: str = ""
    prompts: tuple[str, ...] = ()  # wordings around the case, {{input}} in each; a repeat takes the next one
    mcp: tuple[McpServer, ...] = ()
    require_tool_use: bool = False
    require_tool_success: bool = False
    on_missing_tool_use: Literal["mark", "fail"] = "mark"

    def identity(self) -> dict[str, Any]:
        """What makes an answer one under this condition: what the target was told and given."""
        told: dict[str, Any] = {"name": self.name, "system": self.system}
        if self.prompts:
            told["prompts"] = self.prompts
        return {**told, "mcp": [server.identity() for server in self.mcp]} if self.mcp else told

    def asked(self, text: str, repeat: int) -> str:
        """What a target is asked: the case in this condition's words."""
        if not self.prompts:
            return text
        wording = self.prompts[repeat % len(self.prompts)]
        return INPUT.sub(lambda _: text, wording)

    def missing(self, tools: ToolUse | None) -> str:
        """What the answer lacks that this condition requires; empty where nothing is."""
        if tools is None:
            return "nobody knows which tools were used" if self.require_tool_use or self.require_tool_success else ""
        calls, errors = tools.calls, tools.errors
        if self.require_tool_use and not calls:
            return "no tool was used"
        if self.require_tool_success and calls == errors:
            return "no tool call succeeded"
        return ""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A target under a condition: what is compared."""

    name: str
    target: TargetSpec
    condition: Condition
    params: dict[str, Any]
    defaulted: tuple[str, ...] = ()  # parameters that nobody wrote down
    scorer: ScorerSpec
    repeats: int = 1
    position: int = 0

    def repeats_of(self, case: Case) -> int:
        """How often this arm answers this case; the nearest setting wins."""
        return self.repeats if case.repeats is None else case.repeats

    def scorer_of(self, case: Case) -> ScorerSpec:
        """What scores this arm's answers to this case; the nearest setting wins."""
        return self.scorer if case.scorer is None else case.scorer

    def params_of(self, case: Case, *, benchmark_mode: bool = False) -> dict[str, Any]:
        """The effective parameters of this arm on this case."""
        if not case.params:
            return self.params
        lock = BENCHMARK_LOCK if benchmark_mode else {}
        merged = {**self.params, **case.params, **lock}
        return {name: value for name, value in merged.items() if value is not None}


class RetrySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often and how patiently a call is made again."""

    attempts: int = 8
    wait: float = 0.5
    max_wait: float = 60.0
    empty: int = 2
    empty_wait: float = 0.4
    timeouts: Annotated[
        int | None,
        msgspec.Meta(description="After a timeout; unless given, 1 for a model and 0 for an agent."),
    ] = None


class PriceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price from the suite, in USD per million tokens."""

    input: float
    output: float


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A model that judges, and how it is asked; parameters that are not given are the scorer's choice."""

    name: str
    target: TargetSpec
    params: dict[str, Any] = {}
    instructions: str = ""
    vision: bool | None = None  # whether it sees pictures; None: its name tells


class PanelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the verdicts of several judges, or of one judge asked several times, become one score."""

    combine: Literal["mean", "median", "majority"] = "mean"
    own_family: Literal["flag", "leave_out"] = "flag"
    judgements: Annotated[int, msgspec.Meta(ge=1)] = 1


class StopSpec(msgspec.Struct, frozen=True, kw_only=True):
    """When a run may end before its cases do: every pair of arms is decided, or shown to be (not) equivalent.

    With a margin (0–1), arms that are equivalent within it count as decided too.
    """

    when: Literal["decided", "equivalent"]
    margin: float | None = None
    over: bool = False  # somebody wanted the rest all the same: the run goes on to its end


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out; nothing here changes what is asked but `benchmark_mode`."""

    concurrency: int = 5
    timeout: float | None = None  # None: as long as is usual for a model or an agent
    budget_usd: float | None = None
    stream: bool = True
    cache: bool = False
    benchmark_mode: bool = False
    retry: RetrySpec = RetrySpec()
    prices: dict[str, PriceSpec] = {}
    judges: tuple[JudgeSpec, ...] = ()
    panel: PanelSpec = PanelSpec()
    stop: StopSpec | None = None
    on_refusal: Literal["wrong", "unscored", "right"] = "wrong"
    primary_metric: str | None = None  # what comparisons decide by; None: the score


def target_specs(arms: Iterable[Arm], settings: Settings) -> list[TargetSpec]:
    """Everybody who may be asked: the arms' targets and the judges."""
    return [arm.target for arm in arms] + [judge.target for judge in settings.judges]
