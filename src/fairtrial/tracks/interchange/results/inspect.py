"""Logs of inspect-ai: `.eval` (a zip file, read sample by sample) and `.json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from fairtrial.core.answer import Usage
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, picked
from fairtrial.foreign.source import Source
from fairtrial.text.printable import counted
from fairtrial.tracks.interchange.results._inspect_file import (
    LogDocument,
    Output,
    SampleEntry,
    ScoreEntry,
    Tokens,
    damage,
    whole_document,
    zipped_header,
    zipped_samples,
)
from fairtrial.tracks.interchange.values import (
    expected_of,
    failure_of,
    mark_of,
    name_of,
    params_of,
    scrub,
    seconds_of,
    text_of,
    tidy,
    tool_trace,
)

_ZIP = b"PK\x03\x04"
_ATTACHMENT = "attachment://"
_HOW = ("max_retries", "timeout", "attempt_timeout", "max_connections", "adaptive_connections", "batch", "cache")


class Inspect:
    """Reads logs of inspect-ai."""

    def recognises(self, source: Source) -> bool:
        """An `.eval` log begins with its journal; a `.json` log with the facts about its task."""
        if source.head.startswith(_ZIP):
            return source.suffix == ".eval" or any(mark in source.head[:200] for mark in (b"_journal/", b"samples/"))
        return b'"eval"' in source.head and {"eval", "version"} <= source.keys and b'"task' in source.head

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield one log per file."""
        for source in sources:
            packed = source.head.startswith(_ZIP)
            with damage(source):
                document = zipped_header(source) if packed else whole_document(source)
            yield _InspectLog(source, document, columns, packed=packed).log()


class _InspectLog:
    def __init__(self, source: Source, head: tuple[LogDocument, bool], columns: Columns, *, packed: bool) -> None:
        self.source, self.packed = source, packed
        self.document, self.ended = head
        self.eval = self.document.eval
        scorers = self.eval.get("scorers") or []
        options = [metric.get("options") or {} for scorer in scorers for metric in _metrics_of(scorer)]
        found = {"category": "group_key", "cluster": "cluster"}
        named = {ours: option[theirs] for ours, theirs in found.items() for option in options if option.get(theirs)}
        chosen = {name: value for name, value in named.items() if not getattr(columns, name) and isinstance(value, str)}
        self.columns = msgspec.structs.replace(columns, **chosen)
        self.arm = name_of(self.eval.get("model") or "model")
        self.cancelled = self.repeated = 0
        self.result: Log | None = None

    def log(self) -> Log:
        evaluation, stats = self.eval, self.document.stats or {}
        packages = evaluation.get("packages") or {}
        config = evaluation.get("config") or {}
        self.result = Log(
            tool="inspect-ai",
            version=str(packages.get("inspect_ai") or ""),
            name=name_of(evaluation.get("task") or self.source.name),
            sources=(self.source,),
            samples=self.samples,
            arms={self.arm: self.contestant()},
            metrics=self.metrics(),
            repeats=config.get("epochs") if isinstance(config.get("epochs"), int) else 1,
            created=seconds_of(evaluation.get("created")) or seconds_of(stats.get("started_at")),
            ended=seconds_of(stats.get("completed_at")),
            lineage=str(evaluation.get("task_id") or ""),
            unfinished=self.unfinished(),
            notes=self.notes(config),
            missing=[],
        )
        return self.result

    def contestant(self) -> Contestant:
        plan = self.document.plan or {}
        provider, _, model = self.arm.rpartition("/")
        given = {**(self.eval.get("model_generate_config") or {}), **(plan.get("config") or {})}
        params = params_of({name: value for name, value in given.items() if name not in _HOW})
        systems = [
            step.get("params", {}).get("template")
            for step in plan.get("steps") or []
            if step.get("solver") == "system_message"
        ]
        return Contestant(
            name=self.arm,
            model=model,
            provider=provider,
            system="\n\n".join(scrub(text) for text in systems if isinstance(text, str)),
            params=params if self.document.plan is not None else None,
        )

    def metrics(self) -> tuple[str, ...]:
        reported = [name_of(score["name"]) for score in (self.document.results or {}).get("scores") or []]
        scorers = [name_of(scorer["name"]) for scorer in self.eval.get("scorers") or [] if "name" in scorer]
        return tuple(dict.fromkeys(reported or scorers))

    def unfinished(self) -> str:
        if not self.ended:
            return "the log has no end: inspect was still working on it, or was killed"
        status = self.document.status
        if status in (None, "success"):
            return ""
        error = self.document.error
        reason = f" ({failure_of(error.message).message[:200]})" if error else ""
        return f"inspect ended with status `{status}`{reason}"

    def notes(self, config: dict[str, Any]) -> list[str]:
        reducers = config.get("epochs_reducer") or []
        others = [name_of(name) for name in reducers if name != "mean"] if isinstance(reducers, list) else []
        if not others:
            return []
        return [f"inspect reduces epochs by {', '.join(others)} as well; here the mean over epochs counts"]

    def samples(self) -> Iterator[Sample]:
        self.cancelled = self.repeated = 0
        with damage(self.source):
            for sample in zipped_samples(self.source) if self.packed else self.document.samples or []:
                if sample.error is not None and "CancelledError" in sample.error.message:
                    self.cancelled += 1  # it was in flight when another one ended the run
                    continue
                self.repeated += len(sample.error_retries or ())
                yield self.sample(sample)
        self.remark()

    def remark(self) -> None:
        """Add notes about what was seen in the samples; reading them again adds nothing."""
        notes = []
        if self.cancelled:
            left_out = counted(self.cancelled, "sample")
            notes.append(f"{left_out} in flight when the run ended, left out: no model failed there")
        if self.repeated:
            notes.append(f"{counted(self.repeated, 'attempt')} repeated by inspect; the cost is in its totals alone")
        if self.result is not None:
            self.result.notes = list(dict.fromkeys([*self.result.notes, *notes]))

    def sample(self, sample: SampleEntry) -> Sample:
        output = sample.output
        texts = _SampleTexts(sample)
        answer, finish = texts.completion(output)
        scores, unscored, notes = _marks(sample)
        failure = failure_of(sample.error.message) if sample.error is not None else None
        usage, cost = _usage(sample.model_usage)
        working = sample.working_time if sample.working_time is not None else sample.total_time
        waited = max(0.0, (sample.total_time or 0.0) - working) if working is not None else 0.0
        metadata = tidy(sample.metadata) if sample.metadata else {}
        if sample.choices:
            metadata = {**metadata, "choices": tidy(sample.choices)}
        return Sample(
            question=Question(
                id=name_of(sample.id),
                input=texts.text(sample.input),
                expected=expected_of(sample.target),
                metadata=metadata,
                **(picked(metadata, self.columns) if metadata else {}),
            ),
            arm=self.arm,
            repeat=max(0, sample.epoch - 1),
            answer=answer if failure is None else None,
            failure=failure,
            scores=scores,
            unscored=unscored,
            notes=notes,
            usage=usage,
            cost_usd=cost,
            latency_ms=None if working is None else 1000 * working,
            waited_ms=1000 * waited,
            finish_reason=_FINISHES.get(finish or "", finish),
            model=output.model if output is not None else None,
            trace=tool_trace(msgspec.json.decode(sample.messages))
            if b'"tool_calls"' in bytes(sample.messages)
            else None,
            started_at=seconds_of(sample.started_at),
            tried=tuple(failure_of(one.message).message for one in sample.error_retries or ()),
        )


_FINISHES = {"max_tokens": "length", "model_length": "length"}


class _SampleTexts:
    """Texts of a sample; those that are long are separate from it, as attachments."""

    def __init__(self, sample: SampleEntry) -> None:
        self._raw = sample.attachments

    def text(self, value: Any) -> str:
        text = text_of(value)
        if _ATTACHMENT not in text:
            return scrub(text)
        for key, content in (msgspec.json.decode(self._raw) or {}).items():
            text = text.replace(f"{_ATTACHMENT}{key}", str(content))
        return scrub(text)

    def completion(self, output: Output | None) -> tuple[str, str | None]:
        if output is None:
            return "", None
        first = next(iter(output.choices or ()), None)
        if output.completion is not None:
            text = output.completion
        else:
            text = first.message.content if first is not None and first.message is not None else ""
        return self.text(text), first.stop_reason if first is not None else None


def _marks(sample: SampleEntry) -> tuple[dict[str, float], dict[str, str], dict[str, str]]:
    """Return values, reasons for none, and explanations by metric; a scorer of several values has several metrics."""
    scores = sample.scores if sample.scores is not None else {"score": sample.score} if sample.score else {}
    values: dict[str, float] = {}
    unscored: dict[str, str] = {}
    notes: dict[str, str] = {}
    for scorer, score in scores.items():
        for name, value in _entries(scorer, score.value, scores):
            mark = mark_of(value)
            if mark is None:
                unscored[name] = "the scorer gave no value" if value is None else f"`{str(value)[:50]}` is not a number"
            else:
                values[name] = mark
            if score.explanation:
                notes[name] = scrub(score.explanation)
    return values, unscored, notes


def _entries(scorer: str, value: Any, scorers: dict[str, ScoreEntry]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield name_of(f"{scorer}/{key}" if key in scorers and key != scorer else key), item
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield name_of(f"{scorer}/{number}"), item
    else:
        yield scorer if scorer.isidentifier() else name_of(scorer), value


def _usage(usage: dict[str, Tokens] | None) -> tuple[Usage | None, float | None]:
    """Return the tokens of all models together, and their cost if every model has one."""
    if not usage:
        return None, None
    used = [_tokens(one) for one in usage.values()]
    costs = [one.total_cost for one in usage.values()]
    known = [cost for cost in costs if cost is not None]
    total = used[0] if len(used) == 1 else sum(used[1:], used[0])
    return total, sum(known) if len(known) == len(costs) else None


def _tokens(tokens: Tokens) -> Usage:
    read, write = tokens.input_tokens_cache_read or 0, tokens.input_tokens_cache_write or 0
    return Usage(
        prompt=tokens.input_tokens + read + write,  # inspect counts tokens of the cache apart
        completion=tokens.output_tokens,
        cache_read=read,
        cache_write=write,
        reasoning=tokens.reasoning_tokens or 0,
    )


def _metrics_of(scorer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of a scorer: a list, or a list by value."""
    metrics = scorer.get("metrics") or []
    listed = metrics if isinstance(metrics, list) else chain.from_iterable(metrics.values())
    return [metric for metric in listed if isinstance(metric, dict)]
