"""A run as logs of inspect-ai, one per arm: what stands where in them; `inspect` and `inspect_json` write the files."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fairtrial.analyse import Run
from fairtrial.analyse.run import Told
from fairtrial.analyse.summary import ArmSummary, RunSummary
from fairtrial.core.chat import Chat
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import Arm
from fairtrial.reports.json import iso_time
from fairtrial.store import totals

Document = dict[str, Any]
_UNSCORED = msgspec.Raw(b"NaN")  # how inspect-ai marks a score that counts for nothing
_VERSION = 2  # of the log format
_SEVERAL = "score"  # the name of the score where cases have scorers of their own
_CONFIG = ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty", "seed")
_STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_SHORT = 1000  # characters of a text in the summary of a sample
_PLAIN = re.compile(r"[^A-Za-z0-9.-]+")
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class Log(NamedTuple):
    """The log of one arm: `header` is all of it but the samples."""

    arm: Arm
    header: Document
    scorer: str
    model: str

    @property
    def file_name(self) -> str:
        """Return the name under which inspect-ai would store this log."""
        task = self.header["eval"]
        stamp = task["created"].replace(":", "-")
        return f"{stamp}_{_PLAIN.sub('-', task['task'])}_{task['eval_id']}.eval"

    def sample(self, told: Told) -> Document:
        """Return a trial as a sample."""
        return _sample(told, self.model, self.scorer)


def encode(document: Any) -> bytes:
    """Return a document as JSON; numbers that JSON does not have are written as inspect-ai does."""
    return _encode(document)


def only_log(run: Run) -> Log:
    """Return the log of a run with one arm."""
    logs = logs_of(run)
    if len(logs) > 1:
        raise FairtrialError(
            f"a log of inspect-ai holds one arm, and this run has {len(logs)}; "
            "write a folder of logs: `fairtrial export RUN --format inspect -o logs/`"
        )
    return logs[0]


def logs_of(run: Run) -> list[Log]:
    """Return the log of every arm of a run, without samples."""
    summary = run.summary()
    scores = totals.case_scores(run.store, run.id, run.plan.id, run.record.scoring)
    metrics = totals.metric_scores(run.store, run.id, run.plan.id, run.record.scoring)
    scorers = totals.scorers(run.store, run.id, run.record.scoring)
    ids = _case_ids(run)
    logs = []
    for arm, arm_summary in zip(run.plan_arms, summary.arms, strict=True):
        names = scorers.get(arm.position) or [arm.scorer["type"]]
        name = names[0] if len(names) == 1 else _SEVERAL
        measured = _Measured(
            name,
            scores.get(arm.position, totals.CaseScores()),
            metrics.get(arm.position, {}),
            arm_summary,
        )
        header = _header(run, summary, arm, arm_summary, measured, ids)
        logs.append(Log(arm, header, name, header["eval"]["model"]))
    return logs


def _case_ids(run: Run) -> list[str]:
    steps = range(0, run.plan.case_count, 2000)
    return [case.id for first in steps for case in run.store.cases(run.plan.id, first, 2000)]


class _Measured(NamedTuple):
    """The scores and metrics of an arm by case."""

    scorer: str
    scores: totals.CaseScores
    metrics: Mapping[str, totals.MetricScores]
    summary: ArmSummary

    @property
    def cluster(self) -> Document:
        return {"cluster": "cluster"} if self.scores.clustered else {}

    def scorers(self) -> list[Document]:
        """Return the scorers as inspect-ai computes its metrics from them."""
        metrics = [
            {"name": "inspect_ai/mean", "options": {}},
            {"name": "inspect_ai/stderr", "options": self.cluster},
        ]
        return [{"name": name, "options": {}, "metrics": metrics, "metadata": {}} for name in self.names()]

    def names(self) -> list[str]:
        return [self.scorer, *(name for name in self.metrics if name != self.scorer)]

    def results(self) -> list[Document]:
        """Return mean and standard error as inspect-ai computes them, and our interval beside them."""
        score = self._result(self.scorer, list(self.scores.means), self.scores.clusters)
        score["metrics"] |= _ours(self.summary)
        cluster_of = dict(zip(self.scores.positions, self.scores.clusters, strict=True))
        others = []
        for name, metric in self.metrics.items():
            means = metric.means()
            clusters = [cluster_of.get(case, -case - 1) for case in means]
            others.append(self._result(name, list(means.values()), clusters))
        return [score, *(other for other in others if other["name"] != self.scorer)]

    def _result(self, name: str, values: Sequence[float], clusters: Sequence[int]) -> Document:
        metrics = {}
        if values:
            error = _clustered(values, clusters) if self.scores.clustered else _standard_error(values)
            metrics = {
                "mean": _metric("mean", float(np.mean(values))),
                "stderr": _metric("stderr", error, self.cluster),
            }
        return {
            "name": name,
            "scorer": name,
            "reducer": "mean",
            "scored_samples": len(values),
            "params": {},
            "metrics": metrics,
        }


def _ours(summary: ArmSummary) -> dict[str, Document]:
    """Return fairtrial's own mean, which has the weights of the cases, and its interval."""
    numbers = summary.aggregate
    if numbers.mean is None:
        return {}
    own = {"weighted_mean": numbers.mean}
    if numbers.ci95 is not None:
        own |= {"ci95_low": numbers.ci95[0], "ci95_high": numbers.ci95[1]}
    return {name: _metric(name, value, {"by": "fairtrial", "method": numbers.method}) for name, value in own.items()}


def _metric(name: str, value: float, params: Document | None = None) -> Document:
    return {"name": name, "value": value, "params": params or {}}


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def _clustered(values: Sequence[float], clusters: Sequence[int]) -> float:
    """Return the standard error of a mean over clusters, with the correction for a finite number of them."""
    _, numbers = np.unique(np.asarray(clusters), return_inverse=True)
    deviations = np.asarray(values, float) - np.mean(values)
    count = int(numbers.max()) + 1
    if count < 2:
        return 0.0
    sums = np.bincount(numbers, weights=deviations)
    return float(np.sqrt(np.sum(sums**2) * count / (count - 1)) / len(values))


def _header(
    run: Run, summary: RunSummary, arm: Arm, arm_summary: ArmSummary, measured: _Measured, ids: list[str]
) -> Document:
    spec = arm.target
    model = f"{spec.provider}/{spec.model}" if spec.model else arm.target.id
    created = iso_time(summary.created_at)
    sent = run.sent(arm) or {}
    identity = hashlib.sha256(f"{run.plan.id}/{arm.name}".encode()).hexdigest()
    return {
        "version": _VERSION,
        "status": _status(summary.status, arm_summary.waiting),
        "eval": {
            "eval_id": f"{run.id}-{arm.position}",
            "run_id": run.id,
            "created": created,
            "task": summary.suite,
            "task_id": identity[:22],
            "task_version": 0,
            "task_display_name": f"{summary.suite} ({arm.condition.name})",
            "task_attribs": {},
            "task_args": {"condition": arm.condition.name},
            "task_args_passed": {},
            "dataset": {"name": summary.suite, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": model,
            "model_generate_config": {name: sent[name] for name in _CONFIG if sent.get(name) is not None},
            "model_args": {},
            "config": {"epochs": arm.repeats, "epochs_reducer": ["mean"], "fail_on_error": False, "log_samples": True},
            "packages": {"fairtrial": version("fairtrial")},
            "metadata": {
                "arm": arm.name,
                "target": spec.id,
                "condition": arm.condition.name,
                "dataset_sha256": summary.dataset_sha256,
                "fairtrial_status": summary.status,
            },
            "scorers": measured.scorers(),
        },
        "plan": {"name": "plan", "steps": [{"solver": "fairtrial", "params": {}, "params_passed": {}}], "config": {}},
        "results": {
            "total_samples": arm_summary.trials,
            "completed_samples": arm_summary.scored + arm_summary.unscored,
            "scores": measured.results(),
            "headline": {"scorer": measured.scorer, "score": measured.scorer, "metric": "mean"},
        },
        "stats": {
            "started_at": created,
            "completed_at": iso_time(summary.ended_at) or "",
            "model_usage": {model: _total_usage(arm_summary)},
            "role_usage": {},
        },
        "invalidated": False,
        "tags": [],
        "metadata": {},
    }


def _status(status: str, waiting: int) -> str:
    """Return inspect-ai's word: samples with an error belong to a log that succeeded, missing ones do not."""
    if status == "running":
        return "started"
    return "success" if status in ("completed", "stopped") or not waiting else "cancelled"


def _total_usage(summary: ArmSummary) -> Document:
    prompt, completion = summary.prompt_tokens, summary.completion_tokens
    usage = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    return usage if summary.cost_usd is None else {**usage, "total_cost": summary.cost_usd}


def _sample(told: Told, model: str, scorer: str) -> Document:
    trial, case, chat = told.trial, told.case, told.chat
    asked = _asked(chat, case.input)
    usage = _usage(told)
    output: Document = {"model": trial.model or model, "choices": [], "completion": ""}
    messages = [*asked, *_tool_messages(told)]
    if trial.answer is not None:
        answer = _answer(told, trial.model or model)
        messages.append(answer)
        stop = _STOP_REASONS.get(trial.finish_reason or "stop", "unknown")
        output |= {"choices": [{"message": answer, "stop_reason": stop}], "completion": trial.answer}
    if usage:
        output["usage"] = usage
    seconds = None if trial.latency_ms is None else trial.latency_ms / 1000
    waited = trial.waited_ms / 1000
    sample = {
        "id": trial.case_id,
        "epoch": trial.repeat,
        "input": asked[0]["content"] if len(asked) == 1 else asked,
        "choices": list(case.choices) or None,
        "target": _target(trial.expected),
        "messages": messages,
        "output": output if seconds is None else {**output, "time": seconds},
        "scores": dict(_scores(told, scorer)),
        "metadata": _metadata(told),
        "store": {},
        "events": _events(told, asked, output),
        "model_usage": {model: usage} if usage else {},
        "role_usage": {},
        "started_at": iso_time(trial.started_at),
        "completed_at": None if seconds is None else iso_time(trial.started_at + waited + seconds),
        "total_time": None if seconds is None else waited + seconds,
        "working_time": seconds,
        "uuid": trial.trial_id,
        "error_retries": [],
        "attachments": {},
    }
    if trial.failure_kind is not None:
        text = f"{trial.failure_kind}: {trial.failure_message}"
        sample["error"] = {"message": text, "traceback": text, "traceback_ansi": text}
    return sample


def summary_of(sample: Document) -> Document:
    """Return the summary of a sample, which viewers list without opening it."""
    asked = sample["input"]
    kept = ("id", "epoch", "target", "scores", "model_usage", "started_at", "completed_at", "total_time", "uuid")
    summary = {
        **{name: sample[name] for name in kept},
        "working_time": sample["working_time"],
        "input": asked[:_SHORT] if isinstance(asked, str) else [_shortened(message) for message in asked],
        "metadata": {name: value for name, value in sample["metadata"].items() if isinstance(value, str | float)},
        "completed": True,
        "retries": 0,
        "message_count": len(sample["messages"]),
    }
    summary["scores"] = {name: _shortened(score) for name, score in sample["scores"].items()}
    return {**summary, "error": sample["error"]["message"]} if "error" in sample else summary


def _shortened(document: Document) -> Document:
    return {
        key: value[:_SHORT] if isinstance(value, str) else value
        for key, value in document.items()
        if key not in ("metadata", "tool_calls")
    }


def _asked(chat: Chat | None, question: str) -> list[Document]:
    if chat is None:
        return [{"role": "user", "content": question, "source": "input"}]
    return [{**message, "source": "input"} for message in chat.as_dicts()]


def _target(expected: str | tuple[str, ...] | None) -> str | list[str]:
    return list(expected) if isinstance(expected, tuple) else expected or ""


def _answer(told: Told, model: str) -> Document:
    content: Any = told.trial.answer
    if told.trial.reasoning:
        content = [{"type": "reasoning", "reasoning": told.trial.reasoning}, {"type": "text", "text": content}]
    return {"role": "assistant", "content": content, "source": "generate", "model": model}


def _calls(told: Told) -> Iterator[tuple[str, Document]]:
    """Yield an id and the record of every tool call of a trial."""
    calls = (told.trial.trace or {}).get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else (), 1):
        if isinstance(call, dict) and isinstance(call.get("tool"), str):
            yield f"{told.trial.trial_id}-{number}", call


def _tool_messages(told: Told) -> Iterator[Document]:
    for name, call in _calls(told):
        function, arguments = _function(call), _arguments(call.get("arguments"))
        request = {"id": name, "function": function, "arguments": arguments, "type": "function"}
        yield {"role": "assistant", "content": "", "source": "generate", "tool_calls": [request]}
        message = {"role": "tool", "content": _text(call.get("result")), "tool_call_id": name, "function": function}
        error = _tool_error(call)
        yield {**message, "error": error} if error else message


def _function(call: Document) -> str:
    return f"{call['server']}.{call['tool']}" if call.get("server") else str(call["tool"])


def _arguments(value: Any) -> Document:
    if isinstance(value, dict):
        return value
    return {} if value is None else {"arguments": value}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else encode(value).decode()


def _tool_error(call: Document) -> Document | None:
    if call.get("unfinished"):
        return {"type": "cancelled", "message": "abandoned before it returned"}
    return {"type": "unknown", "message": _text(call.get("result")) or "failed"} if call.get("error") else None


def _scores(told: Told, scorer: str) -> Iterator[tuple[str, Document]]:
    trial = told.trial
    common: Document = {"answer": trial.answer, "history": []}
    metadata: Document = {"scorer": trial.scorer, "confidence": trial.confidence, **(trial.details or {})}
    if told.comments:
        metadata["judges"] = [comment._asdict() for comment in told.comments]
    metadata = {name: value for name, value in metadata.items() if value is not None}
    if trial.score is not None:
        yield scorer, {"value": trial.score, "explanation": trial.notes or None, "metadata": metadata, **common}
    elif trial.unscored_kind is not None:
        reason = {"reason": trial.unscored_kind, "explanation": trial.unscored_message}
        yield scorer, {"value": _UNSCORED, **reason, "metadata": metadata, **common}
    for name, value in trial.metrics.items():
        if name != scorer:
            yield name, {"value": value if math.isfinite(value) else _UNSCORED, "history": []}


def _metadata(told: Told) -> Document:
    trial = told.trial
    facts = {
        "trial_id": trial.trial_id,
        "weight": trial.weight,
        "tags": list(trial.tags),
        "category": trial.category,
        "difficulty": trial.difficulty,
        "cluster": told.case.cluster or trial.case_id,
        "attempts": trial.attempts,
        "cached": trial.cached,
        "attached": [file.name for file in told.case.attach],
        "missing": trial.missing,
        "steps": (trial.trace or {}).get("messages"),
        **(trial.columns or {}),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", [], ())}


def _usage(told: Told) -> Document | None:
    trial = told.trial
    if trial.prompt_tokens is None:
        return None
    read, written = trial.cache_read_tokens or 0, trial.cache_write_tokens or 0
    completion = trial.completion_tokens or 0
    usage = {
        "input_tokens": max(0, trial.prompt_tokens - read - written),  # inspect-ai counts cached ones apart
        "output_tokens": completion,
        "total_tokens": trial.prompt_tokens + completion,
        "input_tokens_cache_read": read,
        "input_tokens_cache_write": written,
        "reasoning_tokens": trial.reasoning_tokens or 0,
    }
    return usage if trial.cost_usd is None else {**usage, "total_cost": trial.cost_usd}


def _events(told: Told, asked: list[Document], output: Document) -> list[Document]:
    """Return the trial as a transcript: the call with its tool calls. When each step began is not known."""
    trial = told.trial
    start: Document = {"timestamp": iso_time(trial.started_at), "working_start": 0.0}
    tools = [
        {
            **start,
            "event": "tool",
            "type": "function",
            "id": name,
            "function": _function(call),
            "arguments": _arguments(call.get("arguments")),
            "result": _text(call.get("result")),
            "error": _tool_error(call),
            "events": [],
        }
        for name, call in _calls(told)
    ]
    call: Document = {
        **start,
        "event": "model",
        "model": output["model"],
        "input": asked,
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": output,
        "retries": trial.attempts - 1,
    }
    if trial.failure_kind is not None:
        call["error"] = f"{trial.failure_kind}: {trial.failure_message}"
    return [*tools, call]
