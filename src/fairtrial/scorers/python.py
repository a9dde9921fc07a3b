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
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.threads import call_in_thread


class Python(Scorer, frozen=True, kw_only=True):
    """Calls `function` (`package.module:name` or `file.py:name`) with the arguments that it names.

    It may take `response`, `expected`, `input`, `case`, `finish_reason` and every key of `arguments`, may be sync or
    async, and must return a bool, a number from 0 to 1, or a Score. Anything else, or an exception, leaves the trial
    unscored.
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
        available = {
            "response": context.response,
            "expected": context.case.expected,
            "input": context.case.input,
            "case": context.case,
            "finish_reason": context.finish_reason,
            **self.arguments,
        }
        try:
            async with asyncio.timeout(self.timeout):
                return _as_score(await _call(function, available))
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


def _as_score(result: Any) -> Score | Unscored:
    if isinstance(result, Score | Unscored):
        return result
    if isinstance(result, bool | int | float) and 0 <= result <= 1:
        return Score(value=float(result), raw=float(result))
    return Unscored(kind="range", message=f"the function returned {result!r}, not a number from 0 to 1")
