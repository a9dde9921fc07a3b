"""Convert between the core's objects and the rows of the tables."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from fairtrial.core.answer import Answer, Failure, Outcome, Turn, Usage
from fairtrial.core.experiment import Arm, Case, Expected, ScorerSpec, ToolUse
from fairtrial.core.file import Attachment, File
from fairtrial.core.judge import Judgement
from fairtrial.core.money import Cost
from fairtrial.core.score import ANY, Scale, Score, Unscored
from fairtrial.core.trace import tool_use
from fairtrial.core.trial import Trial
from fairtrial.core.variables import Variables, display
from fairtrial.store import schema
from fairtrial.workspace.changes import with_texts

_encode = msgspec.json.Encoder(enc_hook=repr).encode
_MAX_MESSAGE = 500
WORKSPACE = "workspace"  # the name of an attachment with what an agent changed
_MAX_TOKENS = 2**53
_CASE_TEXTS = ("id", "input", "category", "difficulty", "cluster")
_CASE_JSON = ("tags", "scorer", "extract", "params", "metadata", "vars", "turns", "attach", "targets", "conditions")
_CASE_LISTS = ("tags", "turns", "targets", "conditions")

# Every row has every column, so that one statement works for all rows.
_EMPTY_TRIAL: dict[str, Any] = dict.fromkeys(schema.trials.c.keys())
_EMPTY_TURN: dict[str, Any] = dict.fromkeys(schema.turns.c.keys())
# Numbers and names in an answer that are stored as they are.
_PLAIN_ANSWER_FIELDS = tuple(
    name
    for name in Answer.__struct_fields__
    if name in schema.trials.c and name not in ("model", "reasoning", "trace", "cost_usd")
)
_EMPTY_SCORE: dict[str, Any] = {**dict.fromkeys(schema.scores.c.keys()), "automatic": False, "retryable": False}


def encode(value: Any) -> bytes:
    """Encode any value from a plug-in as JSON; what JSON does not support is written as text, never an error."""
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return clean(json.dumps(value, default=repr, skipkeys=True, ensure_ascii=False)).encode()


def clean(text: str) -> str:
    """Replace unpaired surrogates, so that every database and file can store the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def message(text: str, variables: Variables) -> str:
    """Return a reason of limited length; secrets are hidden before truncating, or part of one might remain."""
    hidden = variables.hide(clean(text))
    if len(hidden) <= _MAX_MESSAGE:
        return hidden
    half = _MAX_MESSAGE // 2
    return f"{hidden[:half]} … {hidden[-half:]}"


def decode(value: bytes | None) -> Any:
    """Decode JSON from a column that may be empty."""
    return None if value is None else msgspec.json.decode(value)


def case_row(plan_id: str, case: Case, variables: Variables) -> dict[str, Any]:
    """Return a case's row: with templates, never with values of variables."""
    fields = msgspec.structs.asdict(case)
    fields["several"] = False
    if isinstance(case.expected, tuple):
        fields["several"], fields["expected"] = True, encode(variables.template_all(case.expected)).decode()
    elif case.expected:
        fields["expected"] = variables.template(case.expected)
    for name in _CASE_TEXTS:
        if fields[name]:
            fields[name] = variables.template(fields[name])
    for name in _CASE_JSON:
        fields[name] = encode(variables.template_all(fields[name])) if fields[name] else None
    fields["plan_id"] = plan_id
    return fields


def read_case(row: Any, variables: Variables | None) -> Case:
    """Read a case from its row: with `variables` filled in if given, otherwise for display."""
    fields = {name: value for name, value in row.items() if value is not None}  # most columns are empty
    del fields["plan_id"]
    several, expected = fields.pop("several", None), fields.pop("expected", None)
    fill = variables.reveal if variables else display
    for name in _CASE_TEXTS:
        if name in fields:
            fields[name] = fill(fields[name])
    for name in _CASE_JSON:
        if name in fields:
            blob = fields.pop(name)
            if value := decode(blob):
                fields[name] = variables.reveal_all(value) if variables and b"${" in blob else value
    for name in _CASE_LISTS:
        if name in fields:
            fields[name] = tuple(fields[name])
    if "attach" in fields:
        fields["attach"] = msgspec.convert(fields["attach"], tuple[Attachment, ...])
    return Case(**fields, expected=_read_expected(several, expected, fill))


def _read_expected(several: bool | None, expected: str | None, fill: Callable[[str], str]) -> Expected:
    if not expected:
        return expected
    return tuple(map(fill, msgspec.json.decode(expected))) if several else fill(expected)


def read_arms(blob: bytes, variables: Variables | None) -> tuple[Arm, ...]:
    """Read a plan's arms: with `variables` filled in if given, otherwise for display."""
    arms = msgspec.json.decode(blob)
    if variables:
        arms = variables.reveal_all(arms)
    else:
        for arm in arms:
            arm["condition"]["system"] = display(arm["condition"]["system"])
    return msgspec.convert(arms, tuple[Arm, ...])


def place(trial: Trial) -> dict[str, Any]:
    """Return the columns that identify a trial of a run."""
    return {
        "case_position": trial.case.position,
        "arm_position": trial.arm.position,
        "repeat": trial.repeat,
    }


def trial_row(run_id: str, trial: Trial, outcome: Outcome, variables: Variables) -> dict[str, Any]:
    """Return the row of an answer or a failure."""
    result = outcome.result
    columns = _answer_columns(result, variables) if isinstance(result, Answer) else _failure_columns(result, variables)
    used = tool_use(result.trace, [server.name for server in trial.arm.condition.mcp])
    return {
        **_EMPTY_TRIAL,
        "run_id": run_id,
        **place(trial),
        "trial_id": trial.id,
        "started_at": outcome.started_at,
        "attempts": outcome.attempts,
        "tried": encode([message(text, variables) for text in outcome.tried]) if outcome.tried else None,
        "cached": outcome.cached,
        "waited_ms": outcome.waited_ms,
        **cost_columns(outcome.cost),
        **columns,
        **_usage_columns(result.usage),
        **_tool_columns(used),
    }


def turn_row(run_id: str, trial: Trial, number: int, turn: Turn, variables: Variables) -> dict[str, Any]:
    """Return the row of a turn of a conversation."""
    return {
        **_EMPTY_TURN,
        "run_id": run_id,
        **place(trial),
        "number": number,
        "question": variables.template(turn.question),
        **{name: value for name, value in _answer_columns(turn.answer, variables).items() if name in _EMPTY_TURN},
        **_usage_columns(turn.answer.usage),
        **cost_columns(turn.cost),
        "reply": None if turn.reply is None else variables.template(clean(turn.reply)),
        **{f"user_{name}": value for name, value in cost_columns(turn.user_cost).items()},
    }


def read_turn(row: Any, variables: Variables) -> Turn:
    """Read a stored turn with its variables filled in."""
    answer = read_answer({**row, "cached": True}, variables)  # its cost is not that of a trial
    reply = None if row["reply"] is None else variables.reveal(row["reply"])
    question = variables.reveal(row["question"])
    return Turn(question=question, answer=answer, cost=read_cost(row), reply=reply, user_cost=read_user_cost(row))


def cost_columns(cost: Cost) -> dict[str, Any]:
    """Return the cost of calls as columns."""
    return {"cost_usd": cost.known, "charged_usd": cost.charged, "unknown_costs": cost.unknown}


def read_cost(row: Any) -> Cost:
    """Read the cost of calls from the cost columns of any table."""
    return Cost(known=row["cost_usd"] or 0.0, charged=row["charged_usd"] or 0.0, unknown=int(row["unknown_costs"] or 0))


def read_user_cost(row: Any) -> Cost:
    """Read what a simulated user's replies cost."""
    return read_cost({name: row[f"user_{name}"] for name in schema.COSTS})


def _tool_columns(used: ToolUse | None) -> dict[str, Any]:
    if used is None:
        return {}
    return {"tool_calls": used.calls, "tool_errors": used.errors, "tools": encode(used.tools) if used.tools else None}


def _answer_columns(answer: Answer, variables: Variables) -> dict[str, Any]:
    return {
        **{name: getattr(answer, name) for name in _PLAIN_ANSWER_FIELDS},
        "answer": variables.conceal(clean(answer.text)),
        "model": variables.hide(clean(answer.model)) if answer.model else None,
        "reasoning": variables.hide(clean(answer.reasoning)) if answer.reasoning else None,
        "trace": encode(variables.hide_all(answer.trace)) if answer.trace else None,
    }


def _failure_columns(failure: Failure, variables: Variables) -> dict[str, Any]:
    return {
        "failure_kind": failure.kind,
        "failure_message": message(failure.message, variables),
        "trace": encode(variables.hide_all(failure.trace)) if failure.trace else None,
    }


def _usage_columns(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    counts = (usage.prompt, usage.completion, usage.cache_read, usage.cache_write, usage.reasoning)
    if min(counts) < 0 or max(counts) >= _MAX_TOKENS:
        return {}  # these counts cannot be right
    return dict(zip(schema.TOKENS, counts, strict=True))


def read_answer(row: Any, variables: Variables) -> Answer:
    """Read a stored answer with its variables filled in."""
    usage = None
    if row["prompt_tokens"] is not None:
        usage = Usage(
            prompt=row["prompt_tokens"],
            completion=row["completion_tokens"],
            cache_read=row["cache_read_tokens"],
            cache_write=row["cache_write_tokens"],
            reasoning=row["reasoning_tokens"],
        )
    return Answer(
        text=variables.reveal(row["answer"]),
        finish_reason=row["finish_reason"],
        model=row["model"],
        usage=usage,
        latency_ms=row["latency_ms"],
        first_token_ms=row["first_token_ms"],
        reasoning=row["reasoning"],
        trace=decode(row["trace"]),
        cost_usd=None if row["cached"] else read_cost(row).usd,
    )


def score_row(
    run_id: str,
    trial: Trial,
    scoring: int,
    scorer: ScorerSpec,
    result: Score | Unscored,
    variables: Variables,
    scales: dict[str, Scale] | None = None,
) -> dict[str, Any]:
    """Return the row of a score, or of the reason for none; every metric includes its scale."""
    row = {
        **_EMPTY_SCORE,
        "run_id": run_id,
        **place(trial),
        "scoring": scoring,
        "scorer": scorer["type"],
        "scored_at": time.time(),
    }
    if isinstance(result, Score):
        return row | {
            "value": result.value,
            "confidence": result.confidence,
            "raw": result.raw,
            "max": result.max,
            "notes": variables.hide(clean(result.notes)),
            "automatic": result.automatic,
            "details": encode(variables.hide_all(result.details)) if result.details else None,
            "metrics": encode({n: [v, *(scales or {}).get(n, ANY)] for n, v in result.metrics.items()})
            if result.metrics
            else None,
        }
    return row | {
        "unscored_kind": result.kind,
        "unscored_message": message(result.message, variables),
        "retryable": result.retryable,
    }


def file_rows(run_id: str, trial: Trial, file: File) -> dict[str, dict[str, Any]]:
    """Return the rows of a file created while scoring, by table; equal content is stored once."""
    sha256 = hashlib.sha256(file.body).hexdigest()
    return {
        "files": {"sha256": sha256, "media": file.media, "body": file.body},
        "attachments": {"run_id": run_id, **place(trial), "name": file.name, "sha256": sha256},
    }


def changes_rows(
    run_id: str, trial: Trial, changes: File, turn: int | None, variables: Variables
) -> dict[str, dict[str, Any]]:
    """Return the rows of what an agent changed in its workspace: with references to variables, never their values."""
    body = with_texts(changes.body, variables.conceal)
    file = File(name=changes_name(turn), media=changes.media, body=body)
    return file_rows(run_id, trial, file)


def changes_name(turn: int | None) -> str:
    """Return the name under which changes are attached to a trial: its last, or those of an earlier turn."""
    return WORKSPACE if turn is None else f"{WORKSPACE}/{turn}"


def judgement_row(
    run_id: str, trial: Trial, scoring: int, judgement: Judgement, variables: Variables
) -> dict[str, Any]:
    """Return the row of a judge's verdict, with the whole reply."""
    hide = variables.hide_all
    return {
        "run_id": run_id,
        "scoring": scoring,
        **place(trial),
        "judge": variables.hide(judgement.judge),
        "judge_key": judgement.judge_key,
        "number": judgement.number,
        "value": judgement.value,
        "metrics": encode(judgement.metrics) if judgement.metrics else None,
        "reasoning": encode(hide(judgement.reasoning)) if judgement.reasoning else None,
        "claims": encode(hide(judgement.claims)) if judgement.claims else None,
        "reply": variables.hide(clean(judgement.reply)),
        "model": variables.hide(judgement.model) if judgement.model else None,
        "params": encode(hide(judgement.params)),
        "prompt_hash": judgement.prompt_hash,
        "asked": judgement.asked,
        "prompt_tokens": judgement.prompt_tokens,
        "completion_tokens": judgement.completion_tokens,
        **cost_columns(judgement.cost),
        "latency_ms": judgement.latency_ms,
        "failure_kind": judgement.failure_kind,
        "failure_message": message(judgement.failure_message, variables) if judgement.failure_message else None,
        "judged_at": time.time(),
    }


def read_judgement(row: Any) -> Judgement:
    """Read a stored, usable verdict."""
    return Judgement(
        judge=row["judge"],
        judge_key=row["judge_key"] or "",
        number=row["number"],
        value=row["value"],
        metrics=decode(row["metrics"]) or {},
        reasoning=decode(row["reasoning"]) or {},
        claims=tuple(decode(row["claims"]) or ()),
        prompt_hash=row["prompt_hash"],
        reply=row["reply"] or "",
        model=row["model"],
        params=decode(row["params"]) or {},
        latency_ms=row["latency_ms"],
        asked=0,
        stored=row["scoring"],
    )
