"""`javascript`: your own expression or function in JavaScript, in an engine without any access to the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.calling import call_in_thread
from fairtrial.core.errors import NotInstalledError
from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.trust import within
from fairtrial.scorers._results import as_score

_MEMORY = 64 * 2**20
_STACK = 512 * 2**10
_MAX_MESSAGE = 300
_READING = 5.0  # seconds for the syntax of a program
_NAMES = (
    "input",
    "expected",
    "response",
    "vars",
    "messages",
    "trace",
    "tool_calls",
    "latency_ms",
    "cost_usd",
    "tokens",
)
_BODY = re.compile(r"\breturn\b")
_CALL = """
const __facts = JSON.parse(__json);
const __context = {
  test: {vars: __facts.vars}, provider: {}, metadata: {},
  latencyMs: __facts.latency_ms, cost: __facts.cost_usd, tokenUsage: __facts.tokens, ...__facts,
};
const __show = (value) => {
  if (value && typeof value.then === "function") throw new Error("a promise cannot be awaited: return a value");
  return JSON.stringify(value === undefined ? null : value);
};
"""


class Javascript(Scorer, frozen=True, kw_only=True):
    """An expression such as `output.includes('Paris')`, a body with `return`, or a file that sets `module.exports`.

    `output` is the answer and `context.vars` has the other columns, as in promptfoo; `input`, `expected`, `response`,
    `vars`, `messages`, `trace`, `tool_calls`, `latency_ms`, `cost_usd` and `tokens` are there as well. A `file` exports
    a function of `(output, context)`. The result is a bool, a number from 0 to 1, or an object with `pass`, `score` and
    `reason`. The code has no files, no network, no modules, 64 MB of memory and `timeout` seconds of computing. Needs
    `pip install 'fairtrial[javascript]'`.
    """

    guide: ClassVar = Guide(
        scale="set by the code",
        reproducibility="as the code",
        best_for="assertions from promptfoo, small rules in one line",
    )
    code: str | None = None
    file: str | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 5.0

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if (self.code is None) == (self.file is None):
            yield "a javascript scorer needs exactly one of `code` and `file`"
            return
        reason = _engine_problem()
        if not reason:
            try:
                reason = _syntax_problem(self._program(folder))
            except OSError as error:
                reason = f"{self.file} cannot be read: {error.strerror}"
            except UnicodeDecodeError:
                reason = f"{self.file} is not a UTF-8 text file"
        if reason:
            yield reason

    def _program(self, folder: Path) -> str:
        if self.file is not None:
            return _file_program(within(folder, self.file).read_text("utf-8"))
        code = (self.code or "").strip()
        names = ", ".join(("output", "context", *_NAMES))
        values = ", ".join(("__facts.response", "__context", *(f"__facts.{name}" for name in _NAMES)))
        body = code if _is_body(code) else f"return (\n{code.rstrip(';')}\n);"
        # A function inside of the other, so that the code may use a name such as `expected` for something of its own.
        return f"__show((function ({names}) {{ return (() => {{\n{body}\n}})();\n}})({values}))"

    async def score(self, context: ScoreContext) -> Score | Unscored:
        facts = context.facts()
        del facts["case"]
        facts["prompt"] = context.messages[-1]["content"] if context.messages else context.case.input
        program = self._program(context.folder)
        result = await call_in_thread(_evaluate, program, json.dumps(facts, default=str), self.timeout)
        return result if isinstance(result, Unscored) else as_score(result)


def _is_body(code: str) -> bool:
    """Return whether the code is a function's body: it has a `return` and is not an expression by itself."""
    return bool(_BODY.search(code)) and _syntax_problem(f"(\n{code.rstrip(';')}\n)") != ""


def _file_program(text: str) -> str:
    """Return the program of a file: CommonJS, or a module with a default export."""
    text = re.sub(r"^\s*export\s+default\s+", "module.exports = ", text, count=1, flags=re.MULTILINE)
    return (
        f"const module = {{exports: {{}}}}; let exports = module.exports;\n(function () {{\n{text}\n}})();\n"
        "const __found = typeof module.exports === 'function' ? module.exports : module.exports.default;\n"
        "if (typeof __found !== 'function') throw new Error('the file must set module.exports to a function');\n"
        "__show(__found(__facts.response, __context))"
    )


def _engine_problem() -> str:
    try:
        import quickjs  # noqa: F401
    except ImportError:
        return str(NotInstalledError("a javascript scorer", "javascript"))
    return ""


@lru_cache(maxsize=256)
def _syntax_problem(program: str) -> str:
    """Return what is wrong with a program's syntax; it is read, but not run."""
    import quickjs

    context = quickjs.Context()
    context.set_memory_limit(_MEMORY)
    context.set_time_limit(_READING)
    try:
        context.eval(f"new Function({json.dumps(_CALL + program)})")  # which cannot end before its text does
    except quickjs.JSException as error:
        return f"the JavaScript cannot be read: {_first_line(error)}"
    return ""


def _evaluate(program: str, facts: str, timeout: float) -> Any:
    """Run a program in an engine of its own; return its result, or the reason why there is none."""
    import quickjs

    context = quickjs.Context()
    context.set_memory_limit(_MEMORY)
    context.set_max_stack_size(_STACK)
    try:
        context.set("__json", facts)
        context.eval(_CALL)
        context.set_time_limit(timeout)
        return msgspec.json.decode(context.eval(program))
    except quickjs.StackOverflow:
        return Unscored(kind="crashed", message="the JavaScript calls itself too deeply")
    except quickjs.JSException as error:
        return _unscored(_first_line(error), timeout)
    except (msgspec.DecodeError, MemoryError) as error:
        return Unscored(kind="crashed", message=f"the JavaScript returned nothing that can be read: {error}")


def _unscored(message: str, timeout: float) -> Unscored:
    if message == "InternalError: interrupted":
        return Unscored(kind="timeout", message=f"the JavaScript took longer than {timeout:g} s")
    if message in ("InternalError: out of memory", "null"):
        return Unscored(kind="crashed", message=f"the JavaScript needs more than {_MEMORY // 2**20} MB of memory")
    return Unscored(kind="crashed", message=f"the JavaScript raised {message}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["an error"])[0][:_MAX_MESSAGE]
