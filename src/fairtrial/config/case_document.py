"""The keys of the suite file that are about cases and what they are asked with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from fairtrial.core.amounts import MOST_REPEATS, not_finite
from fairtrial.core.extraction import Extraction
from fairtrial.webpage.checks import Check

Repeats = Annotated[
    int, Meta(ge=1, le=MOST_REPEATS, description="How many times each case is answered, independently.")
]
Weight = Annotated[float, Meta(ge=0, description="Its weight in the mean; 0 is shown but not counted.")]


class Keys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of all entries in the suite file: an unknown key is an error."""


def listed(value: str | list[str]) -> list[str]:
    """Return a key that takes a text or a list of texts as a list."""
    return [value] if isinstance(value, str) else value


class ParamsEntry(Keys, frozen=True, kw_only=True):
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

    def find_problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield where a number is none that a server could be sent."""
        return not_finite("extra", self.extra)

    def given(self) -> dict[str, Any]:
        """Return only the parameters that are set in the file."""
        return {
            name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not msgspec.UNSET
        }


class MessageEntry(Keys, frozen=True, kw_only=True):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class PromptFile(Keys, frozen=True, kw_only=True):
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


class GitEntry(Keys, frozen=True, kw_only=True):
    """A commit of a git repository; its files without its history."""

    shorthand: ClassVar[str] = "url"
    url: Annotated[str, Meta(description="An address, or a folder relative to the suite.")]
    ref: Annotated[str, Meta(description="A branch, a tag or a commit.")] = "HEAD"


class WorkspaceEntry(Keys, frozen=True, kw_only=True):
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


class ToolEntry(Keys, frozen=True, kw_only=True):
    """A tool call that a case asks for."""

    shorthand: ClassVar[str] = "name"
    name: Annotated[str, Meta(description="`tool` or `server.tool`.")]
    arguments: Annotated[
        dict[str, Any] | None, Meta(description="What its arguments must contain; others are allowed.")
    ] = None


class SolutionEntry(Keys, frozen=True, kw_only=True):
    """A known good solution of a case, for `fairtrial audit` alone: it is never sent. A text is an answer."""

    shorthand: ClassVar[str] = "answer"
    answer: Annotated[str, Meta(description="What a right answer says.")] = ""
    files: Annotated[
        str | list[str],
        Meta(description="Folders, files or archives that are put into the workspace, relative to the suite."),
    ] = []
    patch: Annotated[str, Meta(description="A diff that `git apply` applies in the workspace.")] = ""
    run: Annotated[str, Meta(description="A shell script that is run in the workspace, after files and patch.")] = ""

    def find_problems(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield that it says nothing."""
        if not (self.answer or self.files or self.patch or self.run):
            yield (), "a solution is an `answer`, `files`, a `patch`, or something to `run`"


class CaseSettings(Keys, frozen=True, kw_only=True):
    """What a case may say in addition to its question; under `case_defaults`, for all cases."""

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
    extract: Annotated[Extraction | None, Meta(description="Which part of its answers is scored.")] = None
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
    solution: Annotated[
        SolutionEntry | None, Meta(description="A known good solution, for `fairtrial audit`; it is never sent.")
    ] = None
