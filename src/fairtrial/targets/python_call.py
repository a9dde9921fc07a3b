"""`python:module:function`: any function that can be called as `query(user_query, system_prompt, mcp_servers)`."""

from __future__ import annotations

import inspect
import time
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar
from fairtrial.core.chat import Chat, Message
from fairtrial.core.code import load_function
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.reported import as_answer, normalise_calls
from fairtrial.core.target import Target
from fairtrial.core.threads import call_in_thread

_BY_NAME = ("steps", "messages", "files")  # what a function gets if it has a parameter of that name


class PythonCall(Target):
    """A function, sync or async, that returns text or a report as described in `core/reported.py`.

    If it has a parameter `steps`, it gets an empty list, and what it adds there is kept even if it times out. If it has
    a parameter `messages`, it gets the whole chat: a list of mappings with `role` and `content`. If it has a parameter
    `files`, it gets the images and PDFs of the case, each with `name`, `media` and `body`.
    """

    runs_own_code: ClassVar[bool] = True
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    takes_chats: ClassVar[bool] = True
    takes_files: ClassVar[bool] = True
    agent: ClassVar[bool] = True

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        try:
            function = load_function(spec.model, folder)
        except ValueError as error:
            yield str(error)
        else:
            yield from _signature_problems(spec.model, function)

    @property
    def lane(self) -> str:
        return f"python:{self.spec.model}"

    async def open(self, concurrency: int) -> None:
        try:
            self._function = load_function(self.spec.model, self.folder)
        except ValueError as error:
            raise TargetUnusableError(f"{self.spec.id}: {error}") from None

    def sent(self, request: Request) -> dict[str, Any]:
        """Return nothing: a function gets only the prompts and the servers."""
        return {}

    async def ask(self, request: Request) -> Answer | Failure:
        servers = {server.name: server.as_config() for server in request.mcp}
        arguments: tuple[Any, ...] = (request.input, request.system, servers)
        steps: list[Any] = []
        keywords = self._keywords(request, steps)
        request.journal.read = lambda: _so_far(steps, request)
        started = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(*arguments, **keywords)
            else:
                result = await call_in_thread(self._function, *arguments, **keywords)
            answer = as_answer(result, request.mcp, (time.perf_counter() - started) * 1000)
        except (Exception, SystemExit) as error:  # user code: anything it raises fails the trial
            answer = Failure(kind="crashed", message=f"{self.spec.model} raised {type(error).__name__}: {error}")
        return _with_steps(answer, steps, request)

    def _keywords(self, request: Request, steps: list[Any]) -> dict[str, Any]:
        """Return the arguments that the function asks for by name."""
        offered = {"steps": steps, "messages": _messages(request), "files": request.files}
        names = _parameters(self._function)
        return {name: value for name, value in offered.items() if name in names}


def _signature_problems(name: str, function: Any) -> Iterable[str]:
    """Yield why a function cannot be called with what it will get."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables have no signature
        return
    keywords = {name: None for name in _BY_NAME if name in signature.parameters}
    try:
        signature.bind("", "", {}, **keywords)
    except TypeError as error:
        yield (
            f"`{name}` takes {signature}, but is called as query(user_query, system_prompt, mcp_servers): {error}; "
            "give it these three parameters"
        )


def _parameters(function: Any) -> Container[str]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some callables have no signature
        return ()


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
