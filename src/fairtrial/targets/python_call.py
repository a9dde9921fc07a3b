"""`python:module:function`: any function, called with the input or with whatever its signature asks for."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar
from fairtrial.core.calling import call, parameters_of
from fairtrial.core.chat import Chat, Message
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.functions import own_name
from fairtrial.core.target import Target
from fairtrial.core.trust import may_run_code
from fairtrial.core.user_functions import find_function, load_function, module_hash
from fairtrial.core.workspace import WorkspaceSpec
from fairtrial.targets._reported import as_answer, normalise_calls

_ORDER = ("input", "system", "mcp_servers")  # what parameters of other names get, in this order
_ALIASES = {"user_query": "input", "system_prompt": "system"}
OFFERED = (*_ORDER, *_ALIASES, "messages", "files", "vars", "steps", "params", "workspace")


class PythonCall(Target):
    """A function, sync or async, that returns text or a report as described in `targets/_reported.py`.

    By name, it may ask for `input`, `system` (the system prompt), `messages` (the whole chat: mappings with `role` and
    `content`), `params`, `vars` (of the case), `files` (its images and PDFs, each with `name`, `media` and `body`),
    `mcp_servers`, `workspace` (the path of the trial's own folder), and `steps`: an empty list, and what it adds there
    is kept even if it times out. Required parameters with other names get the input, the system prompt and the MCP
    servers, in this order.

    An object with `invoke` instead gets the input, or the messages if there is more than the input.
    """

    runs_own_code: ClassVar[bool] = True
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    uses_workspace: ClassVar[bool] = True
    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True
    agent: ClassVar[bool] = True
    _function: Any = None  # until it is opened
    _invokes = False

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        try:
            function = find_function(spec.model, folder)
        except ValueError as error:
            yield str(error)
        else:
            yield from cls.function_problems(spec.model, function)

    @staticmethod
    def function_problems(name: str, function: Any) -> Iterable[str]:
        """Yield why a function or object cannot be called with what a target is given."""
        if _invokes(function):
            return
        try:
            positional, named = _binding(function)
        except TypeError as error:
            yield (
                f"`{name}` asks for `{error}`, which a target is not given; it may take {', '.join(OFFERED)}, "
                "or is called as query(user_query, system_prompt, mcp_servers)"
            )
            return
        if not {"input", "messages"} & {*positional, *named.values()}:
            yield f"`{name}` takes neither the input nor the messages: give it a parameter `input`"

    @classmethod
    def code(cls, spec: TargetSpec, options: Any, folder: Path) -> str:
        return module_hash(load_function(spec.model, folder), folder) if may_run_code() else ""

    @property
    def lane(self) -> str:
        return f"python:{self.spec.model}"

    async def open(self, concurrency: int) -> None:
        try:
            function: Any = load_function(self.spec.model, self.folder, self.functions)
        except ValueError as error:
            raise TargetUnusableError(f"{self.spec.id}: {error}") from None
        self._invokes = _invokes(function)
        self._function = function.invoke if self._invokes else function
        self._name = own_name(self.spec.model)

    def sent(self, request: Request) -> dict[str, Any]:
        """Return the parameters if the function asks for them; else it gets none."""
        if self._function is None or self._invokes:
            return {}
        return request.params if self._asks_for("params") else {}

    def _asks_for(self, name: str) -> bool:
        return any(parameter.name == name for parameter in parameters_of(self._function) or ())

    def workspace_of(self, spec: WorkspaceSpec | None) -> WorkspaceSpec | None:
        """Return an empty workspace for a function that asks for one, if the suite says nothing about it."""
        return spec or (WorkspaceSpec() if self._asks_for("workspace") else None)

    @classmethod
    def workspace_problem(cls, spec: TargetSpec, workspace: WorkspaceSpec) -> str:
        if workspace.sandbox == "none":
            return ""
        return f"{spec.id} runs inside fairtrial, where no sandbox can hold it: make it a program and use `command`"

    async def ask(self, request: Request) -> Answer | Failure:
        steps: list[Any] = []
        request.journal.read = lambda: _so_far(steps, request)
        arguments, keywords = self._arguments(request, steps)
        started = time.perf_counter()
        try:
            result = await call(self._function, *arguments, **keywords)
            answer = as_answer(result, request.mcp, (time.perf_counter() - started) * 1000)
        except (Exception, SystemExit) as error:  # user code: anything it raises fails the trial
            answer = Failure(kind="crashed", message=f"{self._name} raised {type(error).__name__}: {error}")
        return _with_steps(answer, steps, request)

    def _arguments(self, request: Request, steps: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        if self._invokes:
            return [_messages(request) if request.system or request.history else request.input], {}
        offered = {
            "input": request.input,
            "system": request.system,
            "mcp_servers": {server.name: server.as_config() for server in request.mcp},
            "messages": _messages(request),
            "files": request.files,
            "vars": request.vars,
            "steps": steps,
            "params": request.params,
            "workspace": str(request.workspace.folder) if request.workspace else None,
        }
        positional, named = _binding(self._function)
        arguments = [offered[name] for name in positional]
        return arguments, {parameter: offered[name] for parameter, name in named.items()}


def _invokes(function: Any) -> bool:
    """Return whether this is an object that is called by its method `invoke`, as those of LangChain are."""
    return callable(getattr(function, "invoke", None))


def _binding(function: Any) -> tuple[list[str], dict[str, str]]:
    """Return what a function gets by position, and what it gets by name; raise TypeError if it asks for more."""
    parameters = parameters_of(function)
    if parameters is None:
        return ["input"], {}
    rest = iter(name for name in _ORDER if name not in {_meaning(parameter.name) for parameter in parameters})
    positional: list[str] = []
    named: dict[str, str] = {}
    for place, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [] if named else rest
            continue
        meaning: str | None = _meaning(parameter.name)
        if meaning is None and (parameter.default is parameter.empty or place == 0):
            meaning = next(rest, None)
            if meaning is None or parameter.kind is parameter.KEYWORD_ONLY:
                raise TypeError(parameter.name)
        if meaning is None:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(meaning)
        else:
            named[parameter.name] = meaning
    return positional, named


def _meaning(parameter: str) -> str | None:
    return _ALIASES.get(parameter, parameter) if parameter in OFFERED else None


def _messages(request: Request) -> list[dict[str, str]]:
    """Return the whole chat, as the APIs of models have it."""
    question = Message(role="user", content=request.input)
    return Chat(system=request.system, messages=(*request.history, question)).as_dicts()


def _so_far(steps: list[Any], request: Request) -> SoFar:
    """Return the steps that a function has reported so far."""
    calls = normalise_calls(list(steps), request.mcp)
    if not calls:
        return SoFar()
    last = calls[-1]
    if not isinstance(last, dict) or "tool" not in last:
        return SoFar(trace={"tool_calls": calls})
    last["unfinished"] = last["result"] is None
    return SoFar(doing=f"its last reported step was {last['tool']}", trace={"tool_calls": calls})


def _with_steps(result: Answer | Failure, steps: list[Any], request: Request) -> Answer | Failure:
    """Add the steps that the function reported, unless its report has tool calls."""
    if not steps or "tool_calls" in (result.trace or {}):
        return result
    return msgspec.structs.replace(
        result, trace={**(result.trace or {}), "tool_calls": normalise_calls(steps, request.mcp)}
    )
