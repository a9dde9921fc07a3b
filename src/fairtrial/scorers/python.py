"""`python`: your own function, from a module or a file next to the suite."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.agents.workspace.making import WorkspaceError
from fairtrial.core.calling import call, named_arguments, unknown_parameter
from fairtrial.core.experiment import Case
from fairtrial.core.functions import is_given, own_name
from fairtrial.core.registry import nearest
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.time_limit import time_limit
from fairtrial.core.user_functions import find_function, load_function
from fairtrial.scorers._results import as_score


class Python(Scorer, frozen=True, kw_only=True):
    """Calls `function` (`package.module:name` or `file.py:name`) with the arguments that it names.

    It may take `response`, `expected`, `input`, `vars` (the other columns), `messages` (the chat that was sent),
    `trace`, `tool_calls`, `latency_ms`, `cost_usd`, `tokens`, `finish_reason`, `reasoning`, `case`, `workspace` (the
    path of the folder as the agent left it) and every key of `arguments`. It may be sync or async, and must return a
    bool, a number from 0 to 1, a Score, or a mapping: `score` (0 to 1) with perhaps `notes` and `metrics`, or several
    metrics by name, whose mean is the score. Anything else, or an exception, leaves the trial unscored.
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
        if is_given(self.function):  # checked where it was given
            return
        try:
            function = find_function(self.function, folder)
        except ValueError as error:
            yield str(error)
        else:
            yield from self.function_problems(self.function, function, self.arguments)

    @staticmethod
    def function_problems(name: str, function: Any, arguments: Iterable[str] = ()) -> Iterable[str]:
        """Return why a function cannot be called with what a scorer is given."""
        return _parameter_problems(name, function, arguments)

    async def score(self, context: ScoreContext) -> Score | Unscored:
        name = own_name(self.function)
        try:
            function = load_function(self.function, context.folder, context.functions)
            arguments = named_arguments(function, {**context.facts(), **self.arguments})
            if "workspace" in arguments and context.workspace is not None:
                async with context.workspace() as workspace:
                    return await self._call(function, {**arguments, "workspace": workspace.folder})
            return await self._call(function, arguments)
        except WorkspaceError as error:
            return Unscored(kind="workspace", message=str(error), retryable=True)
        except TimeoutError:
            return Unscored(kind="timeout", message=f"{name} took longer than {self.timeout:g} s")
        except (
            Exception,
            SystemExit,
        ) as error:  # user code: anything it raises leaves the trial unscored, without a crash
            return Unscored(kind="crashed", message=f"{name} raised {type(error).__name__}: {error}")

    async def _call(self, function: Any, arguments: dict[str, Any]) -> Score | Unscored:
        async with time_limit(self.timeout):
            return as_score(await call(function, **arguments))


def _parameter_problems(name: str, function: Any, arguments: Iterable[str]) -> Iterable[str]:
    """Yield why a function cannot be called with what a scorer is given."""
    known = [*ScoreContext(response="", case=Case(id="", input="")).facts(), *arguments]
    parameter = unknown_parameter(function, known)
    if parameter is not None:
        yield (
            f"`{name}` asks for `{parameter}`, which a scorer is not given{nearest(parameter, known)}; "
            f"it may take {', '.join(known)}"
        )
