"""Recorded calls become cases: select, remove duplicates, sample, redact, and write a suite or a dataset."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
import yaml

from fairtrial.config.document import DatasetEntry
from fairtrial.config.selection import Numbered, RowSelection, where_problems
from fairtrial.core.errors import FairtrialError
from fairtrial.core.private import replacing
from fairtrial.core.providers import known_providers
from fairtrial.core.trace import ToolCall
from fairtrial.core.variables import escape_all
from fairtrial.foreign.suites import NO_JUDGE
from fairtrial.tables import Row
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.traces import Call, asides_of, calls_of
from fairtrial.tracks.interchange.traces.redact import Redactor

_PROMPT = "system_prompt"  # the variable that has a case's system prompt
_CONTEXT = "context"  # the variable that has what was retrieved for it
_TOOLS = "tools"  # as `expected`: what tools must be called
_MAX_ASIDE = 64 * 2**20  # characters of retrieved texts and tools' results that are kept until their cases are written
_SCORERS = {"answer": "f1", _TOOLS: "tool_calls"}
_ABOUT = {  # what to know about a count, after its noun
    "conversations": ("conversation", ": the user's turns are kept, the answers between them are given anew"),
    "with_tools": ("case", " with tool calls, which are kept; `--expected tools` makes them the expected calls"),
    "with_context": ("case", f" with retrieved texts: use the variable `{_CONTEXT}` in a prompt"),
    "asides_left_out": ("record", " of tools and retrievers left out: too large together"),
    "left_out": ("conversation", " left out: a dataset has no turns, write a .yaml file"),
    "unlabelled": ("case", " without an expected answer: scored by `length` alone until you choose a scorer"),
}
_NO_LABEL = {"type": "length", "min": 1}
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls become cases, and how.

    by: Every call is a case, or of each trace or session the call with the most turns.
    expected: None takes a label that was recorded with a call, `answer` the recorded answer, `tools` the recorded calls
        of tools, else a column.
    """

    where: dict[str, Any] = {}
    sample: int | None = None
    seed: int = 0
    redact: tuple[str, ...] = ()
    form: str | None = None
    by: Literal["call", "trace", "session"] = "call"
    expected: str | None = None
    target: str | None = None


class TracesRead(msgspec.Struct, kw_only=True):
    """What was read and written."""

    path: Path
    calls: int = 0
    cases: int = 0
    duplicates: int = 0
    labelled: int = 0
    conversations: int = 0
    with_tools: int = 0
    with_context: int = 0
    asides_left_out: int = 0
    left_out: int = 0
    models: Counter[str] = msgspec.field(default_factory=Counter)
    redacted: Counter[str] = msgspec.field(default_factory=Counter)

    def lines(self) -> list[str]:
        """Return what the user should know about it."""
        read = counted(self.calls, "recorded call")
        lines = [f"{read}, {counted(self.cases, 'case')}, {counted(self.duplicates, 'duplicate')} left out"]
        if self.redacted:
            found = ", ".join(f"{count} × {kind}" for kind, count in self.redacted.most_common())
            lines.append(f"redacted: {found}")
        if self.models:
            lines.append(f"recorded with {', '.join(f'{name} ({n})' for name, n in self.models.most_common(5))}")
        for name, (what, about) in _ABOUT.items():
            if count := self.cases - self.labelled if name == "unlabelled" else getattr(self, name):
                lines.append(counted(count, what) + about)
        return lines


def import_traces(files: Sequence[str | Path], output: str | Path, options: TraceOptions | None = None) -> TracesRead:
    """Write the recorded calls of files as a suite (.yaml) or as a dataset (.jsonl); the files are never in memory."""
    return _Import([Path(file) for file in files], Path(output), options or TraceOptions()).write()


class _Import:
    def __init__(self, files: list[Path], output: Path, options: TraceOptions) -> None:
        self._files, self._output, self._options = files, output, options
        self._read = TracesRead(path=output)
        self._redactor = Redactor(options.redact)
        self._systems: Counter[str] = Counter()
        self._ids: Counter[str] = Counter()
        self._contexts: dict[str, tuple[str, ...]] = {}
        self._tool_spans: dict[str, tuple[ToolCall, ...]] = {}
        if output.suffix not in (".yaml", ".yml", ".jsonl"):
            raise FairtrialError(f"{output}: write a suite (.yaml) or a dataset (.jsonl)")
        for column, problem in where_problems(options.where):
            raise FairtrialError(f"--where {column}: {problem}")

    def write(self) -> TracesRead:
        """Write the cases to a temporary file first: what comes above them is known only at the end."""
        try:
            with (
                tempfile.TemporaryFile("w+", encoding="utf-8") as cases,
                replacing(self._output, private=False) as file,
            ):
                lines = self._output.suffix == ".jsonl"
                self._write_cases(cases, lines=lines)
                if not self._read.cases:
                    raise FairtrialError(self._nothing())
                cases.seek(0)
                if not lines:
                    file.write(self._head().encode())
                while piece := cases.read(1 << 20):
                    file.write(piece.encode())
        except OSError as error:
            raise FairtrialError(f"{self._output} cannot be written: {error.strerror or error}") from None
        self._read.redacted = self._redactor.counts
        return self._read

    def _nothing(self) -> str:
        names = ", ".join(map(str, self._files))
        if not self._read.calls:
            return f"{names}: no recorded call of a model with its messages; were prompts recorded?"
        return f"{names}: none of the {counted(self._read.calls, 'recorded call')} can become a case here"

    def _read_asides(self) -> None:
        """Keep what was retrieved, by trace; and what tools did, where a case is a whole trace."""
        size = 0
        for file in self._files:
            for aside in asides_of(file, self._options.form):
                tools = aside.tool_calls if self._options.by == "trace" else ()
                size += sum(map(len, aside.contexts)) + sum(len(call.result) for call in tools)
                if size > _MAX_ASIDE:
                    self._read.asides_left_out += 1
                    continue
                if aside.contexts:
                    self._contexts[aside.trace] = (*self._contexts.get(aside.trace, ()), *aside.contexts)
                if tools:
                    self._tool_spans[aside.trace] = (*self._tool_spans.get(aside.trace, ()), *tools)

    def _write_cases(self, file: IO[str], *, lines: bool) -> None:
        self._read_asides()
        for recorded in self._selected():
            if lines and len(recorded.questions) > 1:
                self._read.left_out += 1
                continue
            beside = self._tool_spans.get(recorded.trace, ())
            call = recorded if recorded.tool_calls else msgspec.structs.replace(recorded, tool_calls=beside)
            case = self._case(call, as_row=lines)
            self._count(call, case)
            if lines:
                file.write(msgspec.json.encode(case).decode() + "\n")
            else:
                file.write(_as_yaml([escape_all(case)]))

    def _count(self, call: Call, case: Mapping[str, Any]) -> None:
        read = self._read
        read.cases += 1
        read.labelled += "expected" in case
        read.conversations += len(call.questions) > 1
        read.with_tools += bool(call.tool_calls)
        read.with_context += call.trace in self._contexts
        if call.model:
            read.models[f"{call.provider}:{call.model}" if call.provider else call.model] += 1

    def _selected(self) -> Iterator[Call]:
        """Yield the calls that become cases: those that `where` selects, without duplicates, then a sample of them."""
        entry = DatasetEntry(path="", where=self._options.where, id="id")
        sample = DatasetEntry(path="", sample=self._options.sample, seed=self._options.seed, id="id")
        matching = RowSelection(entry)
        kept = self._longest(lambda: _checked(matching.rows(self._rows)))
        for item in _checked(RowSelection(sample).rows(lambda: self._distinct(kept()))):
            yield item.row.fields["_call"]

    def _rows(self) -> Iterator[Numbered]:
        """Yield the calls as rows, which `where` and `sample` know."""
        number = 0
        for file in self._files:
            for call in calls_of(file, self._options.form):
                if call.questions:
                    row = Row(number + 1, {**call.columns(), "_call": call})
                    yield Numbered(number, str(file), row)
                    number += 1
        self._read.calls = number

    def _distinct(self, items: Iterator[Numbered]) -> Iterator[Numbered]:
        seen: set[bytes] = set()
        self._read.duplicates = 0
        for item in items:
            call: Call = item.row.fields["_call"]
            content = msgspec.json.encode([call.system, call.questions])
            digest = hashlib.blake2b(content, digest_size=16).digest()
            if digest in seen:
                self._read.duplicates += 1
            else:
                seen.add(digest)
                yield item

    def _longest(self, read: Callable[[], Iterator[Numbered]]) -> Callable[[], Iterator[Numbered]]:
        """Return the reader for one call of each trace or session; it needs the files read once more beforehand."""
        by = self._options.by
        if by == "call":
            return read
        best: dict[str, tuple[int, int]] = {}
        for item in read():
            call: Call = item.row.fields["_call"]
            group = getattr(call, by) or f"\0{item.number}"
            turns = (len(call.questions), item.number)
            best[group] = max(best.get(group, (0, -1)), turns)
        chosen = {number for _, number in best.values()}
        return lambda: (item for item in read() if item.number in chosen)

    def _case(self, call: Call, *, as_row: bool) -> dict[str, Any]:
        redact = self._redactor.text
        questions = [redact(text) for text in call.questions]
        system = redact(call.system)
        self._systems[system] += 1
        case: dict[str, Any] = {"id": self._id(call)}
        case |= {"input": questions[0]} if len(questions) == 1 else {"turns": questions}
        expected = self._expected(call)
        if expected:
            case |= {"expected": redact(expected)}
            if not as_row:
                case["scorer"] = _SCORERS.get(self._options.expected or "", "match")
        if call.tags:
            case["tags"] = [redact(tag) for tag in call.tags]
        if call.name:
            case["category"] = redact(call.name)
        if call.session:
            case["cluster"] = hashlib.sha256(call.session.encode()).hexdigest()[:12]
        tools = [self._tool(called) for called in call.tool_calls]
        contexts = [redact(text) for text in self._contexts.get(call.trace, ())]
        if as_row:
            row = {**case, _PROMPT: system, "recorded_model": call.model, "recorded_at": call.started_at}
            return {**row, "tool_calls": tools, _CONTEXT: "\n\n".join(contexts)}
        recorded = {"trace": call.trace, "model": call.model, "at": call.started_at, "tool_calls": tools}
        case["metadata"] = {"recorded": {name: value for name, value in recorded.items() if value}}
        return {**case, "vars": {_PROMPT: system, **({_CONTEXT: "\n\n".join(contexts)} if contexts else {})}}

    def _tool(self, call: ToolCall) -> dict[str, Any]:
        redact = self._redactor.all
        kept = {"tool": call.tool, "arguments": redact(call.arguments), "result": redact(call.result)}
        return {**kept, "error": True} if call.error else kept

    def _expected(self, call: Call) -> str | None:
        column = self._options.expected
        if column is None:
            return call.expected
        if column == _TOOLS:
            wanted = [{"name": called.tool, "arguments": called.arguments or {}} for called in call.tool_calls]
            return msgspec.json.encode(wanted).decode() if wanted else None
        value = call.columns().get(column)
        return None if value in (None, "") else str(value)

    def _id(self, call: Call) -> str:
        name = call.id or "call"
        self._ids[name] += 1
        return name if self._ids[name] == 1 else f"{name}-{self._ids[name]}"

    def _head(self) -> str:
        """Return the beginning of a suite, with comments on where its cases come from."""
        names = ", ".join(file.name for file in self._files)
        self._read.redacted = self._redactor.counts
        comments = [
            f"# Imported from the traces in {' '.join(names.split())}.",
            *(f"# {' '.join(line.split())}" for line in self._read.lines()),
        ]
        suite = {
            "name": self._output.stem,
            "targets": [self._options.target or self._usual_target()],
            "scorer": _NO_LABEL,
        }
        if any(self._systems):
            suite["system"] = "{{ " + _PROMPT + " }}"
        if self._read.with_context:
            suite["vars"] = {_CONTEXT: ""}  # of cases for which nothing was retrieved
        return "\n".join(comments) + "\n" + _as_yaml(suite) + "cases:\n"

    def _usual_target(self) -> str:
        """Return the model that most calls went to, if its provider is known here."""
        for name, _ in self._read.models.most_common():
            if name.partition(":")[0] in known_providers() and ":" in name:
                return name
        return NO_JUDGE


def _checked(items: Iterator[Numbered]) -> Iterator[Numbered]:
    for item in items:
        if item.row.problem:
            raise FairtrialError(item.row.problem.replace(", _call)", ")"))
        yield item


def _as_yaml(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=110))
