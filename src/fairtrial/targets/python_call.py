"""`python:module:function`: anything that can be called as `query(user_query, system_prompt, mcp_servers)`."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.code import load_function
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.suite import TargetSpec
from fairtrial.core.target import Target
from fairtrial.core.threads import call_in_thread


class PythonCall(Target):
    """A function, sync or async, that returns a text, or a mapping with `text` and what else is worth keeping.

    Of such a mapping, `tool_calls` (a list of `tool`, `server`, `arguments`, `result`, `error`) is counted.
    """

    uses_tools: ClassVar[bool] = True

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

    async def ask(self, request: Request) -> Answer | Failure:
        servers = {server.name: server.as_config() for server in request.mcp}
        arguments: tuple[Any, ...] = (request.input, request.system, servers)
        started = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(*arguments)
            else:
                result = await call_in_thread(self._function, *arguments)
            return _as_answer(result, (time.perf_counter() - started) * 1000)
        except (Exception, SystemExit) as error:  # the function is foreign: whatever it raises is the trial's failure
            return Failure(kind="crashed", message=f"{self.spec.model} raised {type(error).__name__}: {error}")


def _as_answer(result: Any, latency_ms: float) -> Answer | Failure:
    if isinstance(result, str):
        return Answer(text=result, latency_ms=latency_ms)
    if isinstance(result, Answer | Failure):
        return result
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        trace = {key: value for key, value in result.items() if key != "text"}
        return Answer(text=result["text"], latency_ms=latency_ms, trace=trace or None)
    return Failure(kind="malformed", message=f"the function returned {type(result).__name__}, not a text")
