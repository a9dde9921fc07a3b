"""Where the answer of a program is: in all that it writes, in the last line, in JSON, in events, or in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure
from fairtrial.core.experiment import McpServer
from fairtrial.targets._reported import as_answer
from fairtrial.text.json_path import follow, parse_path

Output = Literal["text", "last_line", "json", "lines"]


class TokenPaths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the token counts are; `prompt` includes what was read from the provider's cache."""

    prompt: str = ""
    completion: str = ""
    cache_read: str = ""
    cache_write: str = ""
    reasoning: str = ""


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are in the JSON that a program writes."""

    answer: str = ""
    tokens: TokenPaths = TokenPaths()
    cost: str = ""
    tool_calls: str = ""
    model: str = ""

    def problems(self, output: Output) -> Iterable[str]:
        """Yield what is wrong with these paths."""
        for path in (self.answer, self.cost, self.tool_calls, self.model, *msgspec.structs.astuple(self.tokens)):
            try:
                parse_path(path)
            except ValueError as error:
                yield str(error)
        if output in ("text", "last_line") and self != Paths():
            yield f"`output: {output}` is not JSON: paths need `output: json`, or `lines` for a JSON value per line"
        if output == "lines" and not self.answer:
            yield "`output: lines` needs `answer`, the path of the answer in one of the lines"


def read_output(
    output: bytes, kind: Output, paths: Paths, servers: Sequence[McpServer], latency_ms: float
) -> Answer | Failure:
    """Return the answer in what a program wrote."""
    if kind in ("text", "last_line"):
        text = output.decode("utf-8", "replace").strip()
        return Answer(text=text if kind == "text" else text.rpartition("\n")[2].strip(), latency_ms=latency_ms)
    try:
        # It accepts NaN, which is rejected later as a cost.
        values = _events(output) if kind == "lines" else [json.loads(output)]
    except ValueError as error:
        return Failure(kind="malformed", message=f"the command's output is not valid JSON: {error}")
    report = _report(values, paths) if paths.answer else values[0]
    if isinstance(report, dict) and isinstance(report.get("text"), str):
        return as_answer(report, servers, latency_ms)
    missing = f"has no text at `{paths.answer}`" if paths.answer else "is not a JSON object with a string `text`"
    return Failure(kind="malformed", message=f"the command's output {missing}")


def _events(output: bytes) -> list[Any]:
    """Return the values of the lines that are JSON: programs also print what is not."""
    events = []
    for line in output.splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def _report(values: Sequence[Any], paths: Paths) -> dict[str, Any]:
    """Return a report as `targets/_reported.py` describes it; of several values, the last that has something counts."""
    tokens = {f"{name}_tokens": path for name, path in msgspec.structs.asdict(paths.tokens).items() if path}
    wanted = {
        "text": paths.answer,
        "cost_usd": paths.cost,
        "tool_calls": paths.tool_calls,
        "model": paths.model,
        **tokens,
    }
    return {name: _last(values, path) for name, path in wanted.items() if path}


def _last(values: Sequence[Any], path: str) -> Any:
    for value in reversed(values):
        try:
            return follow(value, parse_path(path))
        except LookupError:
            continue
    return None
