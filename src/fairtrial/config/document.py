"""The keys of the suite file. The published JSON schema is generated from these types."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from fairtrial.core.extraction import Extraction
from fairtrial.core.gate import GateSpec
from fairtrial.core.settings import PanelSpec, PriceSpec, RetrySpec
from fairtrial.webpage.checks import Check

Repeats = Annotated[int, Meta(ge=1, description="How many times each case is answered, independently.")]
Weight = Annotated[float, Meta(ge=0, description="Its weight in the mean; 0 is shown but not counted.")]


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of all entries in the suite file."""


class ParamsEntry(Document, frozen=True, kw_only=True):
    """Sampling parameters; a parameter with an empty value is not sent."""

    temperature: Annotated[float, Meta(ge=0)] | msgspec.UnsetType | None = msgspec.UNSET
    top_p: Annotated[float, Meta(ge=0, le=1)] | msgspec.UnsetType | None = msgspec.UNSET
    max_tokens: Annotated[int, Meta(ge=1)] | msgspec.UnsetType | None = msgspec.UNSET
    frequency_penalty: float | msgspec.UnsetType | None = msgspec.UNSET
    presence_penalty: float | msgspec.UnsetType | None = msgspec.UNSET
    seed: int | msgspec.UnsetType | None = msgspec.UNSET
    stop: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    reasoning: Annotated[
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
        | Annotated[int, Meta(ge=0)]
        | msgspec.UnsetType
        | None,
        Meta(description="How much a model reasons: a level, or a number of tokens; what comes nearest is sent."),
    ] = msgspec.UNSET
    extra: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    def given(self) -> dict[str, Any]:
        """Return only the parameters that are set in the file."""
        return {
            name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not msgspec.UNSET
        }


class MessageEntry(Document, frozen=True, kw_only=True):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class PromptFile(Document, frozen=True, kw_only=True):
    """A prompt in a file of its own (text, or a chat as JSON or YAML), or made by a function."""

    file: str | None = None
    python: Annotated[
        str | None,
        Meta(description="`file.py:function`; it gets the variables and returns a text or a list of messages."),
    ] = None


Prompt = Annotated[
    str | list[MessageEntry] | PromptFile,
    Meta(description="A wording: a text, a chat, a file with either, or a function; {{ input }} stands for the case."),
]
Vars = Annotated[dict[str, Any], Meta(description="Values for templates: {{ name }} in prompts and instructions.")]


class GitEntry(Document, frozen=True, kw_only=True):
    """A commit of a git repository; its files without its history."""

    shorthand: ClassVar[str] = "url"
    url: Annotated[str, Meta(description="An address, or a folder relative to the suite.")]
    ref: Annotated[str, Meta(description="A branch, a tag or a commit.")] = "HEAD"


class WorkspaceEntry(Document, frozen=True, kw_only=True):
    """A fresh folder for every trial of an agent; every key of a case, condition or target replaces the suite's."""

    files: Annotated[
        str | list[str] | None,
        Meta(description="Folders, files or archives (zip, tar) whose contents it starts with, relative to the suite."),
    ] = None
    git: Annotated[GitEntry | None, Meta(description="A commit whose files it starts with, before `files`.")] = None
    setup: Annotated[
        str | list[str] | None, Meta(description="Shell commands in the folder, before the agent starts.")
    ] = None
    keep: Annotated[
        Literal["none", "failed", "all"] | None,
        Meta(description="Which folders stay on disk: none, those without full score, or all; default: none."),
    ] = None
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Seconds for each setup command; default: 300.")
    ] = None
    max_mb: Annotated[
        Annotated[float, Meta(gt=0, le=1000)] | None,
        Meta(description="The most that it may start with, and that an agent may change, in MB; default: 50."),
    ] = None
    sandbox: Annotated[
        Literal["none", "bubblewrap", "docker"] | None,
        Meta(description="What agent, setup commands and checks run in; default: none."),
    ] = None
    network: Annotated[
        bool | str | list[str] | None,
        Meta(description="In a sandbox: `false` (the default), `true`, `model` (the agent's model alone), or hosts."),
    ] = None
    read: Annotated[
        str | list[str] | None,
        Meta(description="Further files and folders that can be read in a sandbox, relative to the suite."),
    ] = None
    image: Annotated[str | None, Meta(description="The image of a docker sandbox.")] = None
    processes: Annotated[
        Annotated[int, Meta(ge=16)] | None,
        Meta(description="In a sandbox: how many processes and threads there may be at once; default: 1024."),
    ] = None
    memory_mb: Annotated[
        Annotated[float, Meta(ge=64)] | None,
        Meta(description="In a sandbox: the memory of all programs together, in MB; default: 8192."),
    ] = None
    disk_mb: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        Meta(description="In a sandbox: how much may be on disk, with what it starts with, in MB; default: 10240."),
    ] = None


Workspace = Annotated[WorkspaceEntry | None, Meta(description="A fresh folder for every trial of an agent.")]


class ToolEntry(Document, frozen=True, kw_only=True):
    """A tool call that a case asks for."""

    shorthand: ClassVar[str] = "name"
    name: Annotated[str, Meta(description="`tool` or `server.tool`.")]
    arguments: Annotated[
        dict[str, Any] | None, Meta(description="What its arguments must contain; others are allowed.")
    ] = None


class CaseSettings(Document, frozen=True, kw_only=True):
    """What a case may say beside its question; under `case_defaults`, for all cases."""

    attach: Annotated[
        str | list[str], Meta(description="Images, PDFs or text files to send with `input`, relative to the suite.")
    ] = []
    vars: Vars = {}
    expected: Annotated[
        Any,
        Meta(description="The right answer, a pattern or a number, depending on the scorer; in a list, any is right."),
    ] = None
    weight: Weight = 1.0
    tags: list[str] = []
    category: str | None = None
    difficulty: str | None = None
    cluster: Annotated[str | None, Meta(description="Cases with the same cluster are not independent.")] = None
    scorer: Any = None
    extract: Annotated[Extraction | None, Meta(description="What of its answers is scored.")] = None
    choices: Annotated[
        list[str] | None,
        Meta(description="The choices of a multiple-choice question, for `choice`; they are not sent."),
    ] = None
    workspace: Workspace = None
    tools: Annotated[
        list[ToolEntry] | None,
        Meta(description="The tool calls that it asks for; empty: no tool should be called. For `fairtrial tools`."),
    ] = None
    params: ParamsEntry | None = None
    repeats: Repeats | None = None
    targets: Annotated[list[str], Meta(description="The targets that are asked, by `id`; default: all.")] = []
    conditions: Annotated[
        list[str], Meta(description="The conditions (or prompts) under which it is asked; default: all.")
    ] = []
    checks: Annotated[list[Check], Meta(description="What the page must do; for `browser` and `code_judge`.")] = []
    metadata: dict[str, Any] | None = None


class CaseEntry(CaseSettings, frozen=True, kw_only=True):
    """One case."""

    input: str | msgspec.UnsetType = msgspec.UNSET
    turns: Annotated[
        list[str], Meta(description="Instead of `input`: what the user says, each after an answer; the last is scored.")
    ] = []
    id: str | None = None


class TargetEntry(Document, frozen=True, kw_only=True):
    """A model or agent to evaluate."""

    shorthand: ClassVar[str] = "target"
    target: str
    id: Annotated[str | None, Meta(description="Its name in all outputs; default: `target`.")] = None
    params: ParamsEntry | None = None
    scorer: Any = None
    repeats: Repeats | None = None
    options: Annotated[dict[str, Any], Meta(description="Options for this kind of target.")] = {}
    concurrency: Annotated[int, Meta(ge=1)] | None = None
    batch: Annotated[
        bool, Meta(description="Ask through the provider's batch API: half the price, answers within a day.")
    ] = False
    resources: Annotated[
        dict[str, Annotated[float, Meta(gt=0)]],
        Meta(description="What one of its calls takes of a machine, such as {cpu: 1}: no more run at once than fit."),
    ] = {}
    conditions: Annotated[
        list[str], Meta(description="The conditions (or prompts) under which it is asked; default: all.")
    ] = []
    extract: Annotated[Extraction | None, Meta(description="What of its answers is scored.")] = None
    workspace: Workspace = None


class AuthEntry(Document, frozen=True, kw_only=True):
    """Access to a server that OAuth protects: a token, or the credentials of a client to get tokens with."""

    shorthand: ClassVar[str] = "token"
    token: Annotated[str | None, Meta(description="A bearer token, such as ${MY_TOKEN}.")] = None
    client_id: str | None = None
    client_secret: Annotated[str | None, Meta(description="Such as ${MY_CLIENT_SECRET}.")] = None
    issuer: Annotated[
        str | None, Meta(description="The authorization server: the secret is sent there and nowhere else.")
    ] = None
    scope: Annotated[str | None, Meta(description="What to ask for, separated by blanks.")] = None


class McpEntry(Document, frozen=True, kw_only=True):
    """An MCP server, in the format of desktop clients."""

    command: Annotated[str | None, Meta(description="A program that speaks MCP on stdin and stdout.")] = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: Annotated[str | None, Meta(description="Its working directory; default: the suite's folder.")] = None
    url: Annotated[str | None, Meta(description="The address of a running server.")] = None
    type: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"] | None = None
    transport: Literal["stdio", "http", "streamable-http", "streamable_http", "streamableHttp", "sse"] | None = None
    headers: dict[str, str] = {}
    auth: Annotated[AuthEntry | None, Meta(description="For a server that OAuth protects.")] = None
    description: str = ""
    disabled: bool = False
    auto_approve: Annotated[Any, Meta(description="For desktop clients; ignored here.")] = msgspec.field(
        default=None, name="autoApprove"
    )
    always_allow: Any = msgspec.field(default=None, name="alwaysAllow")
    timeout: Annotated[float, Meta(gt=0, le=3600, description="Seconds it may take to start.")] = 120.0
    roots: Annotated[
        bool, Meta(description="Tell it the folder in which the agent works, in the place of its own folders.")
    ] = False


class ConditionEntry(Document, frozen=True, kw_only=True):
    """The system prompt, prompts and tools that a target gets with each case."""

    system: str | None = None
    system_file: str | None = None
    prompt: Annotated[
        str | list[str] | None, Meta(description="The prompt or prompts around the case; {{input}} stands for it.")
    ] = None
    prompt_file: str | None = None
    style: Annotated[str | None, Meta(description="A built-in style: polite, strict, neutral, terse, expert, …")] = None
    mcp: Annotated[list[str], Meta(description="The `mcp_servers` that an agent can use; no others.")] = []
    mcp_tools: Annotated[
        dict[str, list[str]], Meta(description="Of a server of `mcp`, only these tools; by the server's name.")
    ] = {}
    skills: Annotated[
        str | list[str],
        Meta(description="Folders with a SKILL.md; agents that do not take skills get it in the system prompt."),
    ] = []
    require_tool_use: Annotated[bool, Meta(description="Mark trials in which no tool was used.")] = False
    require_tool_success: Annotated[bool, Meta(description="Mark trials in which no tool call succeeded.")] = False
    on_missing_tool_use: Annotated[
        Literal["mark", "fail"], Meta(description="Whether marked trials keep their score (mark) or lose it (fail).")
    ] = "mark"
    workspace: Workspace = None
    params: ParamsEntry | None = None
    scorer: Any = None
    repeats: Repeats | None = None


class JudgeEntry(Document, frozen=True, kw_only=True):
    """A judge model; `instructions` are added to the scorer's prompt."""

    shorthand: ClassVar[str] = "target"
    target: str
    id: Annotated[str | None, Meta(description="Its name in all outputs; default: `target`.")] = None
    temperature: Annotated[float, Meta(ge=0)] | msgspec.UnsetType | None = msgspec.UNSET
    params: ParamsEntry | None = None
    instructions: str = ""
    vision: Annotated[bool | None, Meta(description="Whether it accepts images; known for common models.")] = None
    batch: Annotated[
        bool, Meta(description="Ask through the provider's batch API: half the price, verdicts within a day.")
    ] = False
    options: dict[str, Any] = {}


class UserEntry(Document, frozen=True, kw_only=True):
    """A model that plays the user: after every answer it says the next thing, until it has what it wants."""

    target: str
    persona: Annotated[str, Meta(description="Who the user is; a template.")] = ""
    goal: Annotated[str, Meta(description="What the user wants; a template.")] = ""
    max_turns: Annotated[int, Meta(ge=1, le=100, description="Answers after which the conversation ends.")] = 8
    params: ParamsEntry | None = None
    options: dict[str, Any] = {}


class DatasetEntry(Document, frozen=True, kw_only=True):
    """Cases from data files or from the Hugging Face Hub; `input` to `turns` are names of columns.

    Rows are selected by `where`, then by `offset` and `limit`, then by `sample`.
    """

    shorthand: ClassVar[str] = "path"
    path: Annotated[
        str,
        Meta(
            description="A file, relative to the suite (csv, tsv, json, jsonl, parquet, xlsx; text may be packed: "
            ".csv.gz), a pattern such as data/*.csv, or hf://owner/name."
        ),
    ]
    input: str = "input"
    expected: str | None = None
    id: str | None = None
    weight: str | None = None
    scorer: str | None = None
    tags: str | None = None
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    attach: Annotated[
        str | None,
        Meta(
            description="A column with images, PDFs or text files to send: a path, relative to the suite, or a web "
            "address; several as a list, or with `;` between them."
        ),
    ] = None
    turns: Annotated[
        str | None,
        Meta(description="A column with a list of what the user says (in a table, as JSON), instead of `input`."),
    ] = None
    delimiter: Annotated[
        str | None,
        Meta(description="Between the columns of a .csv or .tsv file; default: found out from the file."),
    ] = None
    quote: Annotated[
        str | None,
        Meta(description='Around cells of a .csv or .tsv file; default: `"`; empty: cells are not quoted.'),
    ] = None
    encoding: Annotated[
        str | None, Meta(description="Such as cp1252 or latin-1; default: UTF-8, or UTF-16 if it is marked.")
    ] = None
    sheet: Annotated[str | None, Meta(description="The sheet of an .xlsx file that has several.")] = None
    records: Annotated[
        str | None, Meta(description="Where the list of rows is in a .json file, such as data.items.")
    ] = None
    split: Annotated[str | None, Meta(description="Of hf://: such as train or test.")] = None
    config: Annotated[str | None, Meta(description="Of hf://: the configuration (subset).")] = None
    revision: Annotated[
        str | None, Meta(description="Of hf://: a branch, tag or commit; the commit is recorded with the run.")
    ] = None
    where: Annotated[
        dict[str, Any],
        Meta(
            description="Only rows with these values: a value, a list of values, {min: …, max: …}, or {not: …}, "
            "by column."
        ),
    ] = {}
    sample: Annotated[int, Meta(ge=1, description="So many rows, drawn at random.")] | None = None
    seed: Annotated[int, Meta(description="Of the sample: another seed draws other rows.")] = 0
    limit: Annotated[int, Meta(ge=1, description="At most so many rows, from the start.")] | None = None
    offset: Annotated[int, Meta(ge=0, description="Leave out so many rows at the start.")] = 0


class SuiteEntry(Document, frozen=True, kw_only=True):
    """Cases that come with fairtrial; keys that are not set do not filter. Most keys are for optimisation only."""

    shorthand: ClassVar[str] = "kind"
    kind: Literal["optimisation", "code_arena"]
    ids: Annotated[str | list[str], Meta(description="Exactly these cases, such as box_qp-10 or calculator.")] = []
    problems: Annotated[
        str | list[str],
        Meta(description="Problems of your own: files (YAML, JSON, MPS, LP, `model.py:name`) and folders of them."),
    ] = []
    answers: Annotated[
        str | None, Meta(description="A folder of answers: its instances are the cases (`fairtrial optim evaluate`).")
    ] = None
    family: str | list[str] = []
    n: Annotated[int, Meta(ge=1)] | list[Annotated[int, Meta(ge=1)]] = []
    difficulty: Literal["easy", "medium", "hard"] | list[Literal["easy", "medium", "hard"]] = []
    count: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=1)] = 1
    time_limit: Annotated[float, Meta(gt=0, description="Seconds to solve a baseline that is not included.")] = 60.0
    answer: Annotated[
        Literal["point", "code"],
        Meta(description="What is asked for: the numbers, or a program that finds them and is run in a sandbox."),
    ] = "point"
    sandbox: Annotated[
        Literal["bubblewrap", "none"],
        Meta(description="What keeps programs from the rest of the machine; with none, they have your rights."),
    ] = "bubblewrap"
    seconds: Annotated[float, Meta(gt=0, description="Processor time of each program.")] = 60.0
    memory_mb: Annotated[float, Meta(gt=0, description="Memory of each program.")] = 2048.0
    partial_credit: Annotated[
        bool, Meta(description="Also give credit by the `constraint_violations` that answers report.")
    ] = False
    styles: Annotated[
        list[str] | None,
        Meta(
            description="Styles used as conditions if the suite has no `conditions`: built in, or files "
            "(`styles.yaml`, `styles.yaml:pirate`, `pirate.md`)."
        ),
    ] = None
    match_length: Annotated[
        bool, Meta(description="Make the wordings of all styles equally long by neutral sentences.")
    ] = False

    def own_styles(self) -> list[str]:
        """Return the styles that become conditions: for problems, polite and strict unless others are set."""
        if self.kind == "code_arena":
            return []
        return ["polite", "strict"] if self.styles is None else self.styles


class ProviderEntry(Document, frozen=True, kw_only=True):
    """Your own model server."""

    base_url: str
    kind: Annotated[str, Meta(description="The API it provides: openai_api, anthropic_api …")] = "openai_api"
    api_key: str = ""
    headers: dict[str, str] = {}


class SuiteDocument(Document, frozen=True, kw_only=True):
    """A fairtrial suite: cases, the targets that answer them, and how answers are scored."""

    name: Annotated[str, Meta(min_length=1)]
    description: str = ""
    targets: Annotated[list[TargetEntry], Meta(min_length=1)]
    cases: list[CaseEntry] = []
    case_defaults: Annotated[
        CaseSettings,
        Meta(description="What every case and every row of the dataset says unless it says otherwise itself."),
    ] = CaseSettings()
    dataset: DatasetEntry | None = None
    suite: Annotated[SuiteEntry | None, Meta(description="Cases that come with fairtrial.")] = None
    params: ParamsEntry | None = None
    benchmark_mode: bool = False
    vars: Vars = {}
    prompts: Annotated[
        dict[str, Prompt], Meta(description="Wordings by name, each a condition; with `conditions`, every pair.")
    ] = {}
    system: str | None = None
    system_file: str | None = None
    mcp_servers: Annotated[dict[str, McpEntry], Meta(description="MCP servers that conditions can use.")] = {}
    mcp_servers_as_desktop: Annotated[
        dict[str, McpEntry], Meta(description="The same key as desktop clients spell it.")
    ] = msgspec.field(default={}, name="mcpServers")
    conditions: dict[str, ConditionEntry] = {}
    workspace: Workspace = None
    judge: JudgeEntry | None = None
    judges: Annotated[list[JudgeEntry], Meta(description="Several judges, as a panel.")] = []
    panel: PanelSpec = PanelSpec()
    user: Annotated[UserEntry | None, Meta(description="A simulated user: every case is a conversation with it.")] = (
        None
    )
    scorer: Any = "match"
    extract: Annotated[Extraction | None, Meta(description="What of an answer is scored.")] = None
    on_refusal: Annotated[
        Literal["wrong", "unscored", "right"],
        Meta(description="The score of a refusal or of a filtered answer: 0, no score, or 100."),
    ] = "wrong"
    primary_metric: Annotated[str | None, Meta(description="The metric used in comparisons; default: the score.")] = (
        None
    )
    gate: Annotated[GateSpec | None, Meta(description="What a run must fulfil before a merge.")] = None
    repeats: Repeats = 1
    concurrency: Annotated[int, Meta(ge=1)] = 5
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds for one request; default: 120 for a model, 600 for an agent's session."),
    ] = None
    budget_usd: Annotated[float, Meta(ge=0)] | None = None
    stream: bool = True
    cache: Annotated[bool, Meta(description="Reuse answers to the same trial from earlier runs.")] = False
    retry: RetrySpec = RetrySpec()
    providers: dict[str, ProviderEntry] = {}
    prices: Annotated[dict[str, PriceSpec], Meta(description="USD per million tokens, by target.")] = {}
