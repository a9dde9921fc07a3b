"""`python:module:function`: anything that can be called as `query(user_query, system_prompt, mcp_servers)`."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, SoFar
from fairtrial.core.code import load_function
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.reported import as_answer, called
from fairtrial.core.target import Target
from fairtrial.core.threads import call_in_thread


class PythonCall(Target):
    """A function, sync or async, that returns a text, or a report as `core/reported.py` describes it.

    One with a parameter `steps` is given an empty list: what it puts there is kept even when its time is over.
    """

    runs_own_code: ClassVar[bool] = True
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    uses_tools: ClassVar[bool] = True
    agent: ClassVar[bool] = True

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        try:
            load_function(spec.model, folder)
        except ValueError as error:
            yield str(error)

    @property
    def lane(self) -> str:
        return f"python:{self.spec.model}"

    async def open(self, concurrency: int) -> None:
        try:
            self._function = load_function(self.spec.model, self.folder)
        except ValueError as error:
            raise TargetUnusableError(f"{self.spec.id}: {error}") from None

    def sent(self, request: Request) -> dict[str, Any]:
        """Nothing: a function is given the prompts and the servers."""
        return {}

    async def ask(self, request: Request) -> Answer | Failure:
        servers = {server.name: server.as_config() for server in request.mcp}
        arguments: tuple[Any, ...] = (request.input, request.system, servers)
        steps: list[Any] = []
        more = {"steps": steps} if _takes_steps(self._function) else {}
        request.journal.read = lambda: _so_far(steps, request)
        started = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(*arguments, **more)
            else:
                result = await call_in_thread(self._function, *arguments, **more)
            answer = as_answer(result, request.mcp, (time.perf_counter() - started) * 1000)
        except (Exception, SystemExit) as error:  # the function is foreign: whatever it raises is the trial's failure
            answer = Failure(kind="crashed", message=f"{self.spec.model} raised {type(error).__name__}: {error}")
        return _with_steps(answer, steps, request)


def _takes_steps(function: Any) -> bool:
    try:
        return "steps" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some callables have none
        return False


def _so_far(steps: list[Any], request: Request) -> SoFar:
    """What a function has told of its steps."""
    calls = called(list(steps), request.mcp)
    if not calls:
        return SoFar()
    last = calls[-1]
    if not isinstance(last, dict) or "tool" not in last:
        return SoFar(trace={"tool_calls": calls})
    last["unfinished"] = last["result"] is None
    return SoFar(doing=f"the last step that it told of is {last['tool']}", trace={"tool_calls": calls})


def _with_steps(result: Answer | Failure, steps: list[Any], request: Request) -> Answer | Failure:
    """Steps that the function told of count, unless its report has tool calls."""
    if not steps or "tool_calls" in (result.trace or {}):
        return result
    return msgspec.structs.replace(result, trace={**(result.trace or {}), "tool_calls": called(steps, request.mcp)})
