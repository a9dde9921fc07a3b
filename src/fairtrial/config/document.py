"""The suite file, key by key. This is also what the published JSON schema is made from."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from fairtrial.core.experiment import PanelSpec, PriceSpec, RetrySpec
from fairtrial.webpage.checks import Check

Repeats = Annotated[int, Meta(ge=1, description="How often each case is answered, independently.")]
Weight = Annotated[float, Meta(ge=0, description="Its share in the mean; 0 is shown, not counted.")]


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything in the file."""


class ParamsEntry(Document, frozen=True, kw_only=True):
    """Sampling parameters; an empty value means that the parameter is not sent."""

    temperature: Annotated[float, Meta(ge=0)] | msgspec.UnsetType | None = msgspec.UNSET
    top_p: Annotated[float, Meta(ge=0, le=1)] | msgspec.UnsetType | None = msgspec.UNSET
    max_tokens: Annotated[int, Meta(ge=1)] | msgspec.UnsetType | None = msgspec.UNSET
    frequency_penalty: float | msgspec.UnsetType | None = msgspec.UNSET
    presence_penalty: float | msgspec.UnsetType | None = msgspec.UNSET
    seed: int | msgspec.UnsetType | None = msgspec.UNSET
    stop: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    extra: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    def given(self) -> dict[str, Any]:
        """Only what was written down."""
        return {
            name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not msgspec.UNSET
        }


class CaseEntry(Document, frozen=True, kw_only=True):
    """One case."""

    input: str
    id: str | None = None
    expected: Annotated[
        Any,
        Meta(description="The right answer, a pattern or a number, as the scorer needs; a list: any of them is right."),
    ] = None
    weight: Weight = 1.0
    tags: list[str] = []
    category: str | None = None
    difficulty: str | None = None
    cluster: Annotated[str | None, Meta(description="Cases that share one are not independent.")] = None
    scorer: Any = None
    params: ParamsEntry | None = None
    repeats: Repeats | None = None
    checks: Annotated[list[Check], Meta(description="What the page must do, for `browser` and `code_judge`.")] = []
    metadata: dict[str, Any] | None = None


class TargetEntry(Document, frozen=True, kw_only=True):
    """A model or agent to try."""

    shorthand: ClassVar[str] = "target"
    target: str
    id: Annotated[str | None, Meta(description="Its name in every output; `target` unless given.")] = None
    params: ParamsEntry | None = None
    scorer: Any = None
    repeats: Repeats | None = None
    options: Annotated[dict[str, Any], Meta(description="Options of this kind of target.")] = {}
    concurrency: Annotated[int, Meta(ge=1)] | None = None


class McpEntry(Document, frozen=True, kw_only=True):
    """A server of tools, in the shape that desktop clients have it."""

    command: Annotated[str | None, Meta(description="A program that speaks MCP on stdin and stdout.")] = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: Annotated[str | None, Meta(description="Where it is started; the suite's folder unless given.")] = None
    url: Annotated[str | None, Meta(description="The address of a server that is running.")] = None
    type: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"] | None = None
    transport: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"] | None = None
    headers: dict[str, str] = {}
    description: str = ""
    disabled: bool = False
    auto_approve: Annotated[Any, Meta(description="Of desktop clients; means nothing here.")] = msgspec.field(
        default=None, name="autoApprove"
    )
    always_allow: Any = msgspec.field(default=None, name="alwaysAllow")
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds that it may take to start.")] = 120.0


class ConditionEntry(Document, frozen=True, kw_only=True):
    """What a target is told and given beside the case."""

    system: str | None = None
    system_file: str | None = None
    prompt: Annotated[str | list[str] | None, Meta(description="Wordings around the case; {{input}} is the case.")] = (
        None
    )
    prompt_file: str | None = None
    style: Annotated[str | None, Meta(description="A built-in style: polite, strict, neutral, terse, expert, …")] = None
    mcp: Annotated[list[str], Meta(description="Which of `mcp_servers` an agent is given; no others.")] = []
    require_tool_use: Annotated[bool, Meta(description="Mark trials in which no tool was used.")] = False
    require_tool_success: Annotated[bool, Meta(description="Mark trials in which no tool call succeeded.")] = False
    on_missing_tool_use: Annotated[
        Literal["mark", "fail"], Meta(description="Whether marked trials still have a score.")
    ] = "mark"
    params: ParamsEntry | None = None
    scorer: Any = None
    repeats: Repeats | None = None


class JudgeEntry(Document, frozen=True, kw_only=True):
    """A model that judges; `instructions` are added to what the scorer tells it."""

    shorthand: ClassVar[str] = "target"
    target: str
    id: Annotated[str | None, Meta(description="Its name in every output; `target` unless given.")] = None
    temperature: Annotated[float, Meta(ge=0)] | msgspec.UnsetType | None = msgspec.UNSET
    params: ParamsEntry | None = None
    instructions: str = ""
    vision: Annotated[bool | None, Meta(description="Whether it sees pictures; known of common models.")] = None
    options: dict[str, Any] = {}


class DatasetEntry(Document, frozen=True, kw_only=True):
    """Cases from a table; the values are names of columns."""

    shorthand: ClassVar[str] = "path"
    path: Annotated[str, Meta(description="A .csv, .tsv, .jsonl or .json file, relative to the suite.")]
    input: str = "input"
    expected: str | None = None
    id: str | None = None
    weight: str | None = None
    scorer: str | None = None
    tags: str | None = None
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None


class SuiteEntry(Document, frozen=True, kw_only=True):
    """Cases that come with fairtrial; what is not given does not choose. The rest is for optimisation alone."""

    shorthand: ClassVar[str] = "kind"
    kind: Literal["optimisation", "code_arena"]
    ids: Annotated[str | list[str], Meta(description="Exactly these, such as box_qp-10 or calculator.")] = []
    family: str | list[str] = []
    n: Annotated[int, Meta(ge=3)] | list[Annotated[int, Meta(ge=3)]] = []
    difficulty: Literal["easy", "medium", "hard"] | list[Literal["easy", "medium", "hard"]] = []
    count: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=1)] = 1
    time_limit: Annotated[float, Meta(gt=0, description="Seconds for a baseline that does not ship.")] = 60.0
    styles: Annotated[list[str] | None, Meta(description="Conditions, where the suite names none.")] = None

    def own_styles(self) -> list[str]:
        """The styles that become conditions: of problems, polite and strict unless others are given."""
        if self.kind == "code_arena":
            return []
        return ["polite", "strict"] if self.styles is None else self.styles


class ProviderEntry(Document, frozen=True, kw_only=True):
    """A server of your own."""

    base_url: str
    kind: Annotated[str, Meta(description="The API that it speaks: openai_api, anthropic_api …")] = "openai_api"
    api_key: str = ""
    headers: dict[str, str] = {}


class SuiteDocument(Document, frozen=True, kw_only=True):
    """A fairtrial suite: cases, the targets that answer them, and how they are scored."""

    name: Annotated[str, Meta(min_length=1)]
    description: str = ""
    targets: Annotated[list[TargetEntry], Meta(min_length=1)]
    cases: list[CaseEntry] = []
    dataset: DatasetEntry | None = None
    suite: Annotated[SuiteEntry | None, Meta(description="Problems that come with fairtrial.")] = None
    params: ParamsEntry | None = None
    benchmark_mode: bool = False
    system: str | None = None
    system_file: str | None = None
    mcp_servers: Annotated[dict[str, McpEntry], Meta(description="Servers of tools, for conditions.")] = {}
    mcp_servers_as_desktop: Annotated[
        dict[str, McpEntry], Meta(description="The same, as desktop clients write it.")
    ] = msgspec.field(default={}, name="mcpServers")
    conditions: dict[str, ConditionEntry] = {}
    judge: JudgeEntry | None = None
    judges: Annotated[list[JudgeEntry], Meta(description="Several judges: a panel.")] = []
    panel: PanelSpec = PanelSpec()
    scorer: Any = "match"
    on_refusal: Annotated[
        Literal["wrong", "unscored", "right"],
        Meta(description="What a refusal, or an answer that a filter stopped, is worth: 0, no score, or 100."),
    ] = "wrong"
    primary_metric: Annotated[
        str | None, Meta(description="The metric that comparisons decide by; the score, unless given.")
    ] = None
    repeats: Repeats = 1
    concurrency: Annotated[int, Meta(ge=1)] = 5
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds for one request; unless given, 120 for a model and 600 for an agent's session."),
    ] = None
    budget_usd: Annotated[float, Meta(ge=0)] | None = None
    stream: bool = True
    cache: Annotated[bool, Meta(description="Take answers to the same trial from earlier runs.")] = False
    retry: RetrySpec = RetrySpec()
    providers: dict[str, ProviderEntry] = {}
    prices: Annotated[dict[str, PriceSpec], Meta(description="USD per million tokens, by target.")] = {}
