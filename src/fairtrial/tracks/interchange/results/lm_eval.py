"""Results of lm-evaluation-harness: `results_DATE.json` and `samples_TASK_DATE.jsonl`.

A task becomes a run, and so does a group of tasks, with the task as category.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.core.errors import FairtrialError
from fairtrial.core.score import Scale
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source, picked
from fairtrial.tracks.interchange.results._fields import Fields
from fairtrial.tracks.interchange.values import (
    chat_or_text,
    dict_of,
    expected_of,
    list_of,
    mark_of,
    name_of,
    number_of,
    params_of,
    scrub,
    tidy,
)

_RESULTS = re.compile(r"results_(?P<date>.+)\.json")
_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT.+)\.jsonl")
_LOWER: Scale = (None, 0.0)
_SHORTEST = 8  # of a text in a document that can be the question


class LmEval:
    """Reads results of lm-evaluation-harness."""

    def recognises(self, source: Source) -> bool:
        """The results have versions of tasks; samples have documents and the metrics that were computed."""
        if source.suffix == ".jsonl":
            return {"doc_id", "doc", "resps"} <= source.first.keys()
        older, newer = {"results", "versions", "n-shot"}, {"results", "configs", "lm_eval_version"}
        return older <= source.keys or newer <= source.keys

    def read(self, sources: Sequence[Source], columns: Columns) -> Iterator[Log]:
        """Yield a log for every group of tasks, and for every task in no group."""
        results = {source.path: source for source in sources if source.suffix == ".json"}
        samples = {source.path: source for source in sources if source.suffix == ".jsonl"}
        for source in samples.values():
            if match := _SAMPLES.fullmatch(source.name):
                found = source.beside(f"results_{match['date']}.json")
                results |= {found.path: found} if found and found.path not in results else {}
        for path, source in results.items():
            beside = {found: samples.pop(found) if found in samples else Source(found) for found in _samples_of(path)}
            if not beside:
                raise FairtrialError(
                    f"{source.name} has means alone: put samples_TASK_DATE.jsonl next to it (lm-eval writes them with "
                    "--log_samples)"
                )
            by_task = {_task(one): one for one in beside.values()}
            yield from _Results(source, by_task, columns).logs()
        for source in samples.values():
            yield from _Results(None, {_task(source): source}, columns).logs()


def _task(source: Source) -> str:
    match = _SAMPLES.fullmatch(source.name)
    return match["task"] if match else source.name.removesuffix(".jsonl").removeprefix("samples_")


def _samples_of(results: Path) -> list[Path]:
    """Return the samples of exactly this run: the same date, and a task of its own in the name."""
    match = _RESULTS.fullmatch(results.name.removesuffix(".gz"))
    date = match["date"] if match else ""
    found: dict[str, Path] = {}
    for path in sorted(results.parent.glob("samples_*.jsonl*")):
        named = _SAMPLES.fullmatch(path.name.removesuffix(".gz"))
        if named and named["date"] == date:
            found.setdefault(named["task"], path)
    return list(found.values())


class _Results:
    def __init__(self, source: Source | None, samples: dict[str, Source], columns: Columns) -> None:
        self.source, self.samples, self.columns = source, samples, columns
        self.facts = Fields(source.document if source else None)
        if source:
            source.release()
        self.arm = self._arm_name()

    def _arm_name(self) -> str:
        given = self.facts.get("config.model_args")
        if not isinstance(given, dict):
            given = dict(part.split("=", 1) for part in str(given or "").split(",") if "=" in part)
        name = (
            self.facts.get("model_name") or Fields(given).get("model", "pretrained") or self.facts.get("config.model")
        )
        return name_of(name or next(iter(self.samples.values())).path.parent.name or "model")

    def logs(self) -> Iterator[Log]:
        groups = self._groups()
        grouped = {task for tasks in groups.values() for task in tasks}
        for group, tasks in groups.items():
            yield self._log(group, [task for task in tasks if task in self.samples], in_group=True)
        for task in self.samples:
            if task not in grouped:
                yield self._log(task, [task], in_group=False)

    def _groups(self) -> dict[str, list[str]]:
        """Return the tasks of every group that is in no other one, if there are samples of them."""
        given = self.facts.below("group_subtasks").mapping
        subtasks = {name: list_of(tasks) for name, tasks in given.items() if tasks}
        inner = {task for tasks in subtasks.values() for task in tasks}

        def leaves(name: str, depth: int) -> Iterator[str]:
            for task in subtasks.get(name, []):
                yield from leaves(task, depth + 1) if task in subtasks and depth < 20 else [task]

        groups = {name: list(dict.fromkeys(leaves(name, 0))) for name in subtasks if name not in inner}
        return {name: tasks for name, tasks in groups.items() if any(task in self.samples for task in tasks)}

    def _log(self, name: str, tasks: list[str], *, in_group: bool) -> Log:
        facts, config = self.facts, Fields(self.facts.below("configs").mapping.get(tasks[0]))
        higher = [dict_of(self.facts.below("higher_is_better").mapping.get(task)) for task in tasks]
        lower = [metric for one in higher for metric, is_better in one.items() if is_better is False]
        sources = tuple(self.samples[task] for task in tasks)
        log = Log(
            tool="lm-eval",
            version=str(facts.get("lm_eval_version") or ""),
            name=name_of(name),
            part=name,
            sources=(*((self.source,) if self.source else ()), *sources),
            samples=lambda: (sample for task in tasks for sample in self._samples(task, in_group=in_group, log=log)),
            arms={self.arm: self._contestant(config)},
            metrics=tuple(self._metrics(tasks)),
            scales=dict.fromkeys(lower, _LOWER),
            created=facts.number("date"),
            missing=["tokens, time and cost of single answers"],
        )
        return log

    def _contestant(self, config: Fields) -> Contestant:
        kwargs = {**config.below("generation_kwargs").mapping, **self.facts.below("config.gen_kwargs").mapping}
        shots = config.get("num_fewshot")
        params = {**params_of(kwargs), **({"num_fewshot": shots} if isinstance(shots, int) else {})}
        return Contestant(
            name=self.arm,
            model=self.arm,
            provider=self.facts.name("model_source", default="lm-eval"),
            system=self.facts.text("system_instruction"),
            params=params if self.facts else None,
        )

    def _metrics(self, tasks: list[str]) -> Iterator[str]:
        """Yield the metrics that lm-eval reports for the first of these tasks, as they are named here."""
        reported = dict_of(self.facts.below("results").mapping.get(tasks[0]))
        pairs = [key.split(",", 1) for key in reported if "," in key and "_stderr," not in key]
        filters = {pair[1] for pair in pairs}
        for metric, kind in pairs:
            yield name_of(_metric_name(metric, kind, several=len(filters) > 1))

    def _samples(self, task: str, *, in_group: bool, log: Log) -> Iterator[Sample]:
        """Yield one sample per document; its rows, one for each filter, are joined."""
        rows: dict[Any, list[dict[str, Any]]] = {}
        for row in self.samples[task].records():
            rows.setdefault(row["doc_id"], []).append(row)
        filters = {str(row.get("filter", "none")) for group in rows.values() for row in group}
        answers = max(
            (len(list_of(resp)) for group in rows.values() for resp in list_of(group[0].get("resps"))), default=1
        )
        if answers > 1 and not _choices(next(iter(rows.values()))[0]):
            note = f"{task}: {answers} answers per question became one before scoring: how they vary is not known"
            log.notes = list(dict.fromkeys([*log.notes, note]))
        for group in rows.values():
            yield self._sample(task, group, several=len(filters) > 1, in_group=in_group)

    def _sample(self, task: str, rows: list[dict[str, Any]], *, several: bool, in_group: bool) -> Sample:
        row = rows[0]
        scores, unscored = {}, {}
        for one in rows:
            for metric in list_of(one.get("metrics")):
                name = name_of(_metric_name(str(metric), str(one.get("filter", "none")), several=several))
                mark = mark_of(one.get(metric))
                if mark is None:
                    unscored[name] = "lm-eval has no number for a single sample"
                else:
                    scores[name] = mark
        choices = _choices(row)
        return Sample(
            question=self._question(task, row, choices, in_group=in_group),
            arm=self.arm,
            repeat=0,
            answer=scrub(_answer(row, choices)),
            scores=scores,
            unscored=unscored,
        )

    def _question(self, task: str, row: dict[str, Any], choices: list[str], *, in_group: bool) -> Question:
        prompt = _prompt(row)
        asked = scrub(_asked(prompt, row))
        doc = dict_of(row.get("doc"))
        facts = picked({**doc, **dict_of(doc.get("metadata"))}, self.columns)
        metadata: dict[str, Any] = {"prompt": scrub(prompt)} if asked != prompt else {}
        metadata |= {"choices": choices} if choices else {}
        target: Any = row.get("target")
        if choices and str(target).isdigit() and int(target) < len(choices):
            target = choices[int(target)]
        return Question(
            id=name_of(f"{task}/{row['doc_id']}" if in_group else row["doc_id"]),
            input=asked,
            expected=expected_of(target.strip() if isinstance(target, str) else target),
            metadata=tidy(metadata),
            **{**facts, **({"category": name_of(task)} if in_group and not self.columns.category else {})},
        )


def _metric_name(metric: str, kind: str, *, several: bool) -> str:
    return f"{metric},{kind}" if several else metric


def _arguments(row: dict[str, Any]) -> list[Any]:
    given = row.get("arguments")
    if isinstance(given, list):  # of older versions
        return given
    named = dict_of(given)
    found: list[Any] = []
    for number in count():
        one = named.get(f"gen_args_{number}")
        if one is None:
            return found
        found.append([one[key] for key in sorted(dict_of(one))])
    return found


def _prompt(row: dict[str, Any]) -> str:
    arguments = _arguments(row)
    return chat_or_text(arguments[0][0]) if arguments and arguments[0] else ""


def _asked(prompt: str, row: dict[str, Any]) -> str:
    """Return the question: the one text of the document that is in the prompt, else the end of the prompt.

    A prompt has examples and words around the question, which other tools do not have or have in other ways.
    """
    target = str(row.get("target", "")).strip()
    texts = [
        t
        for t in dict_of(row.get("doc")).values()
        if isinstance(t, str) and len(t) >= _SHORTEST and t.strip() != target
    ]
    inside = {text for text in texts if text in prompt}
    inside = {text for text in inside if not any(text != other and text in other for other in inside)}
    if len(inside) == 1:
        return inside.pop()
    return prompt[min((prompt.rfind(text) for text in inside), default=0) :]


def _choices(row: dict[str, Any]) -> list[str]:
    """Return the choices of a question whose answers were compared by likelihood."""
    arguments = _arguments(row)
    if len(arguments) < 2 or not all(len(one) == 2 and isinstance(one[1], str) for one in arguments):
        return []
    return [one[1].strip() for one in arguments]


def _answer(row: dict[str, Any], choices: list[str]) -> str:
    responses = list_of(row.get("resps"))
    if choices:
        likelihoods = [number_of(one[0]) for one in list_of(row.get("filtered_resps")) if isinstance(one, list) and one]
        if len(likelihoods) < len(choices) or None in likelihoods[: len(choices)]:
            return ""
        known = [value for value in likelihoods[: len(choices)] if value is not None]
        return choices[known.index(max(known))]
    first: Any = responses[0] if responses else ""
    while isinstance(first, list) and first:
        first = first[0]
    return first if isinstance(first, str) else msgspec.json.encode(first).decode()
