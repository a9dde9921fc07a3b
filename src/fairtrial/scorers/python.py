"""`python`: your own function, from a module or a file beside the suite."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.code import load_function
from fairtrial.core.experiment import Case
from fairtrial.core.results import as_score
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.threads import call_in_thread


class Python(Scorer, frozen=True, kw_only=True):
    """Calls `function` (`package.module:name` or `file.py:name`) with the arguments that it names.

    It may take `response`, `expected`, `input`, `vars` (the other columns), `messages` (the chat that was sent),
    `trace`, `tool_calls`, `latency_ms`, `cost_usd`, `tokens`, `finish_reason`, `reasoning`, `case` and every key of
    `arguments`. It may be sync or async, and must return a bool, a number from 0 to 1, a Score, or a mapping with
    `score` (0 to 1) and perhaps `notes` and `metrics`. Anything else, or an exception, leaves the trial unscored.
    """

    guide: ClassVar = Guide(
        scale="set by the function",
        reproducibility="as the function",
        best_for="anything that no other scorer measures",
    )
    function: str
    arguments: dict[str, Any] = {}
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 30.0

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        try:
            load_function(self.function, folder)
        except ValueError as error:
            yield str(error)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        function = load_function(self.function, context.folder)
        try:
            async with asyncio.timeout(self.timeout):
                return as_score(await _call(function, {**context.facts(), **self.arguments}))
        except TimeoutError:
            return Unscored(kind="timeout", message=f"{self.function} took longer than {self.timeout:g} s")
        except (
            Exception,
            SystemExit,
        ) as error:  # user code: anything it raises leaves the trial unscored, without a crash
            return Unscored(kind="crashed", message=f"{self.function} raised {type(error).__name__}: {error}")


async def _call(function: Callable[..., Any], available: dict[str, Any]) -> Any:
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    arguments = available if takes_all else {p.name: available[p.name] for p in parameters if p.name in available}
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    return await call_in_thread(function, **arguments)
