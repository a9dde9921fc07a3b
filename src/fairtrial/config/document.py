"""The keys of the suite file. The published JSON schema is generated from these types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from fairtrial.config.case_document import (
    CaseEntry,
    CaseSettings,
    Keys,
    OnLimitEntry,
    ParamsEntry,
    Prompt,
    Repeats,
    Vars,
    Workspace,
)
from fairtrial.config.mcp_document import McpEntry
from fairtrial.core.amounts import not_finite
from fairtrial.core.extraction import Extraction
from fairtrial.core.gate import GateSpec
from fairtrial.core.settings import PanelSpec, PriceSpec, RetrySpec


class TargetEntry(Keys, frozen=True, kw_only=True):
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
        Meta(description="What one of its calls takes up on a machine, such as {cpu: 1}: only as many run as fit."),
    ] = {}
    conditions: Annotated[
        list[str], Meta(description="The conditions (or prompts) under which it is asked; default: all.")
    ] = []
    extract: Annotated[Extraction | None, Meta(description="Which part of its answers is scored.")] = None
    workspace: Workspace = None
    on_limit: OnLimitEntry = None

    def find_problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield where a number is none that a machine could have."""
        return not_finite("resources", self.resources)


class DescriptionEntry(Keys, frozen=True, kw_only=True):
    """What a condition says of a tool or a skill, instead of what its server or its SKILL.md says."""

    text: str | None = None
    file: Annotated[str | None, Meta(description="A file with the text, relative to the suite.")] = None
    parameters: Annotated[
        dict[str, str], Meta(description="Of a tool: what its parameters are, by their names; the rest stays.")
    ] = {}


class ConditionEntry(Keys, frozen=True, kw_only=True):
    """The system prompt, prompts and tools that a target gets with each case."""

    system: str | None = None
    system_file: str | None = None
    prompt: Annotated[
        str | list[str] | None, Meta(description="The prompt or prompts around the case; {{input}} stands for it.")
    ] = None
    prompt_file: str | None = None
    style: Annotated[str | None, Meta(description="A built-in style: polite, strict, neutral, terse, expert, …")] = None
    mcp: Annotated[
        list[str] | dict[str, str],
        Meta(
            description="The `mcp_servers` that an agent can use; no others. {shop: shop-v2}: shop-v2, which the agent "
            "sees as `shop`."
        ),
    ] = []
    mcp_tools: Annotated[
        dict[str, list[str]], Meta(description="Only these tools of a server in `mcp`, by the server's name.")
    ] = {}
    skills: Annotated[
        str | list[str],
        Meta(description="Folders with a SKILL.md; agents that do not take skills get it in the system prompt."),
    ] = []
    descriptions: Annotated[
        dict[str, str | DescriptionEntry],
        Meta(description="Other descriptions for tools (`server.tool`) and skills (by name) than their own."),
    ] = {}
    require_tool_use: Annotated[bool, Meta(description="Mark trials in which no tool was used.")] = False
    require_tool_success: Annotated[bool, Meta(description="Mark trials in which no tool call succeeded.")] = False
    on_missing_tool_use: Annotated[
        Literal["mark", "fail"], Meta(description="Whether marked trials keep their score (mark) or lose it (fail).")
    ] = "mark"
    workspace: Workspace = None
    params: ParamsEntry | None = None
    scorer: Any = None
    repeats: Repeats | None = None


class JudgeEntry(Keys, frozen=True, kw_only=True):
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


class SecondJudgeEntry(JudgeEntry, frozen=True, kw_only=True):
    """A better judge that judges a random part of the cases, too, and by that corrects what the other judges said."""

    share: Annotated[float, Meta(gt=0, lt=1, description="The part of the cases that it judges.")] = 0.2


class UserEntry(Keys, frozen=True, kw_only=True):
    """A model that plays the user: after every answer it says the next thing, until it has what it wants."""

    target: str
    persona: Annotated[str, Meta(description="Who the user is; a template.")] = ""
    goal: Annotated[str, Meta(description="What the user wants; a template.")] = ""
    max_turns: Annotated[int, Meta(ge=1, le=100, description="Answers after which the conversation ends.")] = 8
    end: Annotated[
        Any, Meta(description="A scorer or a list: once all are satisfied, by what is there, the conversation ends.")
    ] = None
    params: ParamsEntry | None = None
    options: dict[str, Any] = {}


class DatasetEntry(Keys, frozen=True, kw_only=True):
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
        Meta(description="Between the columns of a .csv or .tsv file; default: detected from the file."),
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
    split: Annotated[str | None, Meta(description="For hf://: such as train or test.")] = None
    config: Annotated[str | None, Meta(description="For hf://: the configuration (subset).")] = None
    revision: Annotated[
        str | None, Meta(description="For hf://: a branch, tag or commit; the commit is recorded with the run.")
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
    limit: Annotated[int, Meta(ge=1, description="At most this many rows, from the start.")] | None = None
    offset: Annotated[int, Meta(ge=0, description="Leave out this many rows at the start.")] = 0


class SuiteEntry(Keys, frozen=True, kw_only=True):
    """Cases that come with fairtrial; keys that are not set do not filter. Most keys are for optimisation only."""

    shorthand: ClassVar[str] = "kind"
    kind: Literal["optimisation", "code_arena"]
    ids: Annotated[str | list[str], Meta(description="Exactly these cases, such as box_qp-10 or calculator.")] = []
    problems: Annotated[
        str | list[str],
        Meta(description="Your own problems: files (YAML, JSON, MPS, LP, `model.py:name`) and folders of them."),
    ] = []
    answers: Annotated[
        str | None, Meta(description="A folder of answers: its instances are the cases (`fairtrial optim evaluate`).")
    ] = None
    family: str | list[str] = []
    n: Annotated[int, Meta(ge=1, le=10_000)] | list[Annotated[int, Meta(ge=1, le=10_000)]] = []
    difficulty: Literal["easy", "medium", "hard"] | list[Literal["easy", "medium", "hard"]] = []
    count: Annotated[int, Meta(ge=1, le=10_000)] | None = None
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


class ProviderEntry(Keys, frozen=True, kw_only=True):
    """Your own model server."""

    base_url: str
    kind: Annotated[str, Meta(description="The API it provides: openai_api, anthropic_api …")] = "openai_api"
    api_key: str = ""
    headers: dict[str, str] = {}


class SuiteDocument(Keys, frozen=True, kw_only=True):
    """A fairtrial suite: cases, the targets that answer them, and how answers are scored."""

    name: Annotated[str, Meta(min_length=1)]
    description: str = ""
    targets: Annotated[list[TargetEntry], Meta(min_length=1)]
    cases: list[CaseEntry] = []
    case_defaults: Annotated[
        CaseSettings,
        Meta(description="Defaults for every case and every row of the dataset."),
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
    second_judge: Annotated[
        SecondJudgeEntry | None,
        Meta(description="A better judge of a random part of the cases; it corrects what the others said."),
    ] = None
    user: Annotated[UserEntry | None, Meta(description="A simulated user: every case is a conversation with it.")] = (
        None
    )
    scorer: Any = "match"
    extract: Annotated[Extraction | None, Meta(description="Which part of an answer is scored.")] = None
    on_refusal: Annotated[
        Literal["wrong", "unscored", "right"],
        Meta(description="The score of a refusal or of a filtered answer: 0, no score, or 100."),
    ] = "wrong"
    on_limit: OnLimitEntry = None
    solved: Annotated[
        float, Meta(gt=0, le=1, description="The score from which on a trial counts as solved; 1 is full marks.")
    ] = 1.0
    primary_metric: Annotated[str | None, Meta(description="The metric used in comparisons; default: the score.")] = (
        None
    )
    largest: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="No case can differ between two arms by more than this (points); narrows intervals."),
    ] = None
    cluster_by: Annotated[
        Literal["question"] | None,
        Meta(description="Cases that ask the same, word for word, are one cluster: they are not independent."),
    ] = None
    looks: Annotated[
        Annotated[int, Meta(ge=0, le=20)] | None,
        Meta(description="Stop at one of this many planned looks, once the question is answered."),
    ] = None
    race: Annotated[bool, Meta(description="Ask no more of an arm that a look has shown to be worse than another.")] = (
        False
    )
    gap: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="The difference that looks are for (points); they stop where it cannot show any more."),
    ] = None
    gate: Annotated[GateSpec | None, Meta(description="What a run must satisfy before a merge.")] = None
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
