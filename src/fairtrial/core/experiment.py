"""The parts of an experiment: cases, targets and conditions, and the arms built from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from fairtrial.core.chat import Chat, Message, made_by_function, single
from fairtrial.core.double import ServerDouble
from fairtrial.core.events import OnLimit
from fairtrial.core.expected import Expected, text_of
from fairtrial.core.file import Attachment
from fairtrial.core.skill import Skill
from fairtrial.core.templates import fill
from fairtrial.core.tool_text import ToolText
from fairtrial.core.trust import may_run_code
from fairtrial.core.turn_checks import scorer_of_turns, turn_checks
from fairtrial.core.types_in_threads import look_into
from fairtrial.core.workspace import WorkspaceSpec

DEFAULT_PARAMS: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 1,
    "max_tokens": 2048,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
BENCHMARK_LOCK = {"temperature": 0, "frequency_penalty": 0, "presence_penalty": 0}

_CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)  # names of variables
INPUT = re.compile(r"\{\{\s*(?:input|problem)\s*\}\}")  # the placeholder for the case in a prompt
INPUT_NAMES = ("input", "problem")
_WORKSPACE = re.compile(r"\{\{\s*workspace\s*\}\}")  # the placeholder for a trial's folder
EMBEDDER = "embedder "  # begins the id of a target that only makes embeddings
ScorerSpec = dict[str, Any]  # {"type": name, **options}
Resources = Mapping[str, float]  # what a call or a scorer takes of a machine: {"cpu": 1}
ExtractSpec = dict[str, Any]  # which part of an answer is scored, as in `core/extraction.py`


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One question, and what its answers are scored against."""

    id: str
    input: str
    expected: Expected = None
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    scorer: ScorerSpec | None = None
    extract: ExtractSpec | None = None
    params: dict[str, Any] | None = None
    repeats: int | None = None
    metadata: dict[str, Any] | None = None
    position: int = 0
    vars: dict[str, Any] = {}  # for templates, in addition to the columns
    attach: tuple[Attachment, ...] = ()  # files sent with `input`
    turns: tuple[str, ...] = ()  # of a conversation: what the user says after `input`, each after an answer
    targets: tuple[str, ...] = ()  # the ids of those that are asked; empty: all
    conditions: tuple[str, ...] = ()  # the names of those under which it is asked; empty: all
    on_limit: OnLimit | None = None  # None: as the target or the suite says

    @property
    def accepted(self) -> tuple[str, ...]:
        """All accepted answers, stripped; blank ones are left out."""
        if isinstance(self.expected, str):
            text = self.expected.strip()
            return (text,) if text else ()
        return tuple(text for text in map(str.strip, self.expected or ()) if text)

    @property
    def columns(self) -> dict[str, Any]:
        """The other columns of its dataset row."""
        return (self.metadata or {}).get("columns") or {}

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices of a multiple-choice question, from the case or its column `choices`; empty if there are none."""
        choices = (self.metadata or {}).get("choices") or self.columns.get("choices")
        if isinstance(choices, str):  # a cell of a table has a list as JSON
            choices = _json_list(choices)
        return tuple(map(text_of, choices)) if isinstance(choices, list | tuple) else ()

    @property
    def workspace(self) -> dict[str, Any]:
        """What the case says about its workspace, as the fields of a `WorkspaceSpec`."""
        return (self.metadata or {}).get("workspace") or {}

    @property
    def tools(self) -> tuple[ExpectedCall, ...] | None:
        """The tool calls that the case asks for; empty if no tool should be called, None if it does not say."""
        calls = (self.metadata or {}).get("tools")
        return None if calls is None else tuple(msgspec.convert(calls, list[ExpectedCall]))


class ExpectedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that a case asks for: `tool` or `server.tool`, and what its arguments must contain."""

    name: str
    arguments: dict[str, Any] | None = None


def _json_list(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer's calls to the tools of its condition's servers: {"server.tool": [calls, errors]}."""

    tools: dict[str, tuple[int, int]] = {}

    @property
    def calls(self) -> int:
        """The total number of tool calls."""
        return sum(calls for calls, _ in self.tools.values())

    @property
    def errors(self) -> int:
        """The number of failed tool calls."""
        return sum(errors for _, errors in self.tools.values())


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A configured model or agent: its adapter (`kind`), model, address and options."""

    id: str
    kind: str
    provider: str
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}
    options: dict[str, Any] = {}
    concurrency: int | None = None
    folder: str = ""  # where the code is, for targets that run the user's own code
    api: str = ""  # the API kind of an agent's model
    code: str = ""  # a hash of the code, for targets that run the user's own
    resources: dict[str, float] | msgspec.UnsetType = msgspec.UNSET  # what a call takes of a machine
    batch: bool | msgspec.UnsetType = msgspec.UNSET  # whether it is asked through its provider's batch API

    def __repr__(self) -> str:
        return f"<Target {self.id}: {self.kind} {self.model}>"  # options and headers may hold keys

    @property
    def model_behind(self) -> str:
        """The model that answers: `options: {model: …}` names the one behind a deployment with another name."""
        return str(self.options.get("model") or self.model)

    def identity(self) -> dict[str, Any]:
        """Return what identifies this target: everything but the credentials."""
        identity = {
            "kind": self.kind,
            "model": self.model,
            "base_url": self.base_url,
            "options": self.options,
            "folder": self.folder,
        }
        more = {"api": self.api, "code": self.code}
        return identity | {name: value for name, value in more.items() if value}


class McpAuth(msgspec.Struct, frozen=True, kw_only=True):
    """How to get a token for a server that OAuth protects: with the credentials of a client."""

    client_id: str
    client_secret: str
    issuer: str = ""  # the authorization server that the credentials belong to
    scope: str = ""

    def __repr__(self) -> str:
        return f"<McpAuth {self.client_id}>"


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server that an agent may use: a program to start, or an address."""

    name: str
    transport: Literal["stdio", "http", "sse"] = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 120.0  # seconds to start and to list its tools: npx, uvx and docker may have to download it
    tools: tuple[str, ...] = ()  # the tools it listed before the run
    roots: bool = False  # whether it is told of the folder in which the agent works (what MCP calls a root)
    only: tuple[str, ...] = ()  # the tools that the condition gives; empty: all
    auth: McpAuth | None = None
    double: ServerDouble | msgspec.UnsetType = msgspec.UNSET  # what answers in its place, or records it
    texts: tuple[ToolText, ...] = ()  # what the condition says of its tools, instead of what it says itself
    entry: str = ""  # the entry of `mcp_servers` that is in its place, if that has another name

    def __repr__(self) -> str:
        return f"<McpServer {self.name}: {self.transport}>"  # arguments, environment and headers may hold keys

    def identity(self) -> dict[str, Any]:
        """Return what identifies this server: everything but the credentials."""
        identity = {
            "env": {name: value for name, value in self.env.items() if not _CREDENTIAL.search(name)},
            "name": self.name,
            "transport": self.transport,
            "command": self.command,
            "args": self.args,
            "cwd": self.cwd,
            "url": self.url,
            **({"roots": True} if self.roots else {}),
        }
        identity |= {"texts": msgspec.to_builtins(self.texts)} if self.texts else {}
        identity |= {"only": self.only} if self.only else {}
        return self.double.identity(identity) if self.double else identity

    def offers(self, tool: str) -> bool:
        """Return whether the condition gives this tool of the server."""
        return not self.only or tool in self.only

    @property
    def wants_workspace(self) -> bool:
        """Whether its settings have a place for the folder in which the agent works."""
        return any(map(_WORKSPACE.search, (*self.args, *self.env.values(), self.cwd)))

    def placed(self, folder: Path) -> McpServer:
        """Return the server with the path of a workspace in its settings, where it wants it."""
        if not self.wants_workspace:
            return self

        def fill(text: str) -> str:
            return _WORKSPACE.sub(lambda _: str(folder), text)

        environment = {name: fill(value) for name, value in self.env.items()}
        return msgspec.structs.replace(self, args=tuple(map(fill, self.args)), env=environment, cwd=fill(self.cwd))

    def shown(self) -> str:
        """Return its command line or address, for display; or what answers in its place."""
        if self.double and not self.double.asks:
            return str(self.double)
        return " ".join((self.command, *self.args)) if self.transport == "stdio" else self.url

    def as_config(self) -> dict[str, Any]:
        """Return the configuration in the format that desktop clients and agents use."""
        if self.transport == "stdio":
            config = {"type": "stdio", "command": self.command, "args": list(self.args), "env": dict(self.env)}
            return {**config, "cwd": self.cwd} if self.cwd else config
        return {"type": self.transport, "url": self.url, "headers": dict(self.headers)}


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """The system prompt, prompts and tools that a target gets with each case, and the tool use required of it."""

    name: str = "default"
    system: str = ""
    prompts: tuple[str, ...] = ()  # prompts with {{input}} for the case; each repeat takes the next one
    chat: tuple[Message, ...] = ()  # instead of a prompt: a chat that ends with a user's message
    function: str = ""  # instead of a prompt: `file.py:function` that makes a text or a chat of the variables
    folder: str = ""  # where the function is
    templates: bool = False  # whether the texts above are templates, beyond {{input}} in a prompt
    vars: dict[str, Any] = {}  # values for templates, for cases that have none of their own
    mcp: tuple[McpServer, ...] = ()
    skills: tuple[Skill, ...] = ()
    require_tool_use: bool = False
    require_tool_success: bool = False
    on_missing_tool_use: Literal["mark", "fail"] = "mark"

    @property
    def history(self) -> bool:
        """Whether targets get more than one message."""
        return len(self.chat) > 1

    def identity(self) -> dict[str, Any]:
        """Return what identifies this condition: everything that the target gets."""
        identity: dict[str, Any] = {"name": self.name, "system": self.system}
        if self.prompts:
            identity["prompts"] = self.prompts
        if self.chat:
            identity["chat"] = [[message.role, message.content] for message in self.chat]
        if self.function:
            identity["function"] = self.function
        if self.skills:
            identity["skills"] = [skill.identity() for skill in self.skills]
        return {**identity, "mcp": [server.identity() for server in self.mcp]} if self.mcp else identity

    def render(self, case: Case, repeat: int) -> Chat:
        """Return what the target receives: this condition's texts with the case filled in.

        Raises TemplateError if a template cannot be filled in, which `validate` finds beforehand.
        """
        if not self.templates:
            prompt = self.prompts[repeat % len(self.prompts)] if self.prompts else ""
            return single(INPUT.sub(lambda _: case.input, prompt) if prompt else case.input, self.system)
        values = self.values(case)
        system = fill(self.system, values)
        if self.function and not may_run_code():
            return single(f"(what {self.function} makes of this case when it is asked)", system)
        if self.function:
            return made_by_function(self.function, Path(self.folder), values, system)
        if not self.chat:
            prompt = self.prompts[repeat % len(self.prompts)] if self.prompts else ""
            return single(fill(prompt, values) if prompt else case.input, system)
        messages = tuple(Message(role=one.role, content=fill(one.content, values)) for one in self.chat)
        return Chat(system=system, messages=messages)

    def values(self, case: Case) -> dict[str, Any]:
        """Return every name that a template may use, with its value for this case; the most specific value wins."""
        return {**self.variables(case), **dict.fromkeys(INPUT_NAMES, case.input)}

    def variables(self, case: Case) -> dict[str, Any]:
        """Return the variables of a case: its own, its columns, and the suite's for all others."""
        return {**self.vars, **case.columns, **case.vars}

    def missing(self, tools: ToolUse | None) -> str:
        """Return the tool use that this condition requires and the answer lacks; empty if nothing is missing."""
        if tools is None:
            return (
                "the target does not report which tools were used"
                if self.require_tool_use or self.require_tool_success
                else ""
            )
        calls, errors = tools.calls, tools.errors
        if self.require_tool_use and not calls:
            return "no tool was used"
        if self.require_tool_success and calls == errors:
            return "no tool call succeeded"
        return ""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A target under a condition; arms are what is compared."""

    name: str
    target: TargetSpec
    condition: Condition
    params: dict[str, Any]
    defaulted: tuple[str, ...] = ()  # parameters that only have their default value
    scorer: ScorerSpec
    extract: ExtractSpec | None = None
    workspace: WorkspaceSpec | None = None
    repeats: int = 1
    position: int = 0
    on_limit: OnLimit | msgspec.UnsetType = msgspec.UNSET  # by default, what is there is scored

    @property
    def chosen_params(self) -> dict[str, Any]:
        """The parameters that the suite sets: all but defaults of ours."""
        return {name: value for name, value in self.params.items() if name not in self.defaulted}

    def is_asked(self, targets: Sequence[str], conditions: Sequence[str]) -> bool:
        """Return whether this arm is asked a case that is for these targets and conditions only; empty: for all."""
        return (not targets or self.target.id in targets) and (not conditions or self.condition.name in conditions)

    def repeats_of(self, case: Case) -> int:
        """Return how many times this arm answers this case; the most specific setting wins."""
        if not self.is_asked(case.targets, case.conditions):
            return 0
        return self.repeats if case.repeats is None else case.repeats

    def scorer_of(self, case: Case, override: ScorerSpec | None = None) -> ScorerSpec:
        """Return the scorer of this arm's answers to this case, with what it extracts; the most specific setting wins.

        A scorer that replaces all others (`override`), or one on the case, is more specific than the case's `extract`.
        """
        if override is None and (checks := turn_checks(case.metadata)):
            return scorer_of_turns(checks, case, self.scorer, case.extract or self.extract)
        own = case.scorer if override is None else override
        scorer = self.scorer if own is None else own
        if self.extract is None and case.extract is None:
            return scorer
        by_scorer, by_case = scorer.get("extract"), case.extract
        settings = (by_case, by_scorer) if own is None else (by_scorer, by_case)
        return {**scorer, "extract": next((value for value in settings if value is not None), self.extract)}

    def workspace_of(self, case: Case) -> WorkspaceSpec | None:
        """Return what the workspace of this arm on this case is made from, if the suite says anything about it."""
        own = case.workspace
        return (self.workspace or WorkspaceSpec()).with_own(own) if own else self.workspace

    def params_of(self, case: Case, *, benchmark_mode: bool = False) -> dict[str, Any]:
        """Return the effective parameters of this arm on this case."""
        if not case.params:
            return self.params
        lock = BENCHMARK_LOCK if benchmark_mode else {}
        merged = {**self.params, **case.params, **lock}
        return {name: value for name, value in merged.items() if value is not None}


look_into(Arm, ExpectedCall)
