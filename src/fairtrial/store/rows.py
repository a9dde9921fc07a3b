"""Convert between the core's objects and the rows of the tables."""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import sqlalchemy
from sqlalchemy import Table

from fairtrial.agents.workspace.changes import with_texts
from fairtrial.core.answer import Answer, EarlierTurn, Failure, Outcome, Usage
from fairtrial.core.expected import Expected
from fairtrial.core.experiment import Arm, Case, ScorerSpec, ToolUse
from fairtrial.core.file import File
from fairtrial.core.judge import Judgement
from fairtrial.core.money import Cost
from fairtrial.core.score import ANY, Scale, Score, Unscored
from fairtrial.core.trace import tool_use, with_views, without_views
from fairtrial.core.trial import Trial
from fairtrial.core.types_in_threads import look_into
from fairtrial.core.variables import Variables, display
from fairtrial.store import schema
from fairtrial.store.hash_column import content
from fairtrial.text.printable import paired

_encode = msgspec.json.Encoder(enc_hook=repr).encode
_MAX_MESSAGE = 500
_PACKED_FROM, _EFFORT = 1000, 3  # bytes of a trace; zlib's level
_USAGE = tuple(name.removesuffix("_tokens") for name in schema.TOKENS)
_token_counts = itemgetter(*schema.TOKENS)
WORKSPACE = "workspace"  # the name of an attachment with what an agent changed
_MAX_TOKENS = 2**53


def _empty(table: Table) -> dict[str, Any]:
    return {str(column.name): None for column in content(table)}


# Every row has every column, so that one statement works for all rows.
_EMPTY_TRIAL: dict[str, Any] = _empty(schema.trials)
_EMPTY_TURN: dict[str, Any] = _empty(schema.turns)
_EMPTY_SCORE: dict[str, Any] = {**_empty(schema.scores), "automatic": False, "retryable": False}


def encode(value: Any) -> bytes:
    """Encode any value from a plug-in as JSON; what JSON does not support is written as text, never an error."""
    try:
        return _encode(value)
    except (TypeError, ValueError):
        return paired(json.dumps(value, default=repr, skipkeys=True, ensure_ascii=False)).encode()


def message(text: str, variables: Variables) -> str:
    """Return a reason of limited length; secrets are hidden before truncating, or part of one might remain."""
    hidden = variables.hide(paired(text))
    if len(hidden) <= _MAX_MESSAGE:
        return hidden
    half = _MAX_MESSAGE // 2
    return f"{hidden[:half]} … {hidden[-half:]}"


def packed(text: bytes) -> bytes:
    """Return JSON as it is stored where it may be long: compressed. `decode` reads both."""
    return text if len(text) < _PACKED_FROM else zlib.compress(text, _EFFORT)


def decode(value: bytes | None) -> Any:
    """Decode JSON from a column that may be empty, and compressed: no JSON begins with the `x` of zlib."""
    if value is None:
        return None
    return msgspec.json.decode(zlib.decompress(value) if value[:1] == b"x" else value)


class StoredFields:
    """The fields of a struct that are columns of a table: a new one is written and read back without more ado.

    Args:
        apart: Fields that are converted by hand.
        prefix: What the names of the columns begin with in the rows that are read.
    """

    def __init__(
        self, kind: type[msgspec.Struct], table: Table, apart: tuple[str, ...] = (), *, prefix: str = ""
    ) -> None:
        fields = [f for f in msgspec.structs.fields(kind) if f.name in table.c and f.name not in apart]
        types = {field.name: table.c[field.name].type for field in fields}
        hints = get_type_hints(kind)
        required = [field for field in fields if NoneType not in get_args(hints[field.name])]
        blanks = {field.name: "" for field in required}
        self.names = tuple(types)
        self._values = itemgetter(*(prefix + name for name in types))  # of at least two columns
        self._json = tuple((name, _converter(hints[name])) for name in types if isinstance(types[name], schema.Json))
        self._texts = tuple((n, blanks.get(n)) for n in types if isinstance(types[n], sqlalchemy.Text))
        self._plain = tuple(name for name in types if name not in {**dict(self._json), **dict(self._texts)})
        self._defaults = tuple((field.name, field) for field in required if not field.required)

    def write(self, struct: msgspec.Struct, variables: Variables) -> dict[str, Any]:
        """Return the columns, with values of variables hidden in texts and JSON."""
        row = {name: getattr(struct, name) for name in self._plain}
        for name, blank in self._texts:
            text = getattr(struct, name)
            row[name] = variables.hide(paired(text)) if text else blank
        for name, _ in self._json:
            value = getattr(struct, name)
            row[name] = encode(variables.hide_all(value)) if value else None
        if row.get("trace"):
            row["trace"] = packed(row["trace"])
        return row

    def read(self, row: Any) -> dict[str, Any]:
        """Return the fields; where a column is empty and its field cannot be, the field's default."""
        fields = dict(zip(self.names, self._values(row), strict=True))
        for name, convert in self._json:
            if fields[name] is not None:
                fields[name] = convert(decode(fields[name]))
        for name, field in self._defaults:
            if fields[name] is None:
                fields[name] = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        return fields


def _converter(hint: Any) -> Callable[[Any], Any]:
    """Return what makes a field's value of decoded JSON: mappings and lists stay as they were stored."""
    (kind,) = [one for one in get_args(hint) if one is not NoneType] if NoneType in get_args(hint) else [hint]
    if (get_origin(kind) or kind) in (dict, list, str):
        return lambda value: value
    if kind == tuple[str, ...]:
        return tuple
    look_into(kind)
    return partial(msgspec.convert, type=kind)


_ANSWER = StoredFields(Answer, schema.trials, ("cost_usd",))
_TURN_ANSWER = StoredFields(Answer, schema.turns, ("cost_usd",))
_SCORE = StoredFields(Score, schema.scores, ("metrics",))
# What a verdict took is not taken again when it is kept.
_VERDICT = StoredFields(Judgement, schema.judgements, ("asked", "prompt_tokens", "completion_tokens"))
_CASE_JSON = {
    column.name: _converter(get_type_hints(Case)[column.name])
    for column in schema.cases.c
    if isinstance(column.type, schema.Json)
}
_CASE_TEXTS = tuple(
    column.name for column in schema.cases.c if isinstance(column.type, sqlalchemy.Text) and column.name != "expected"
)


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
    for name, convert in _CASE_JSON.items():
        if name in fields:
            blob = fields.pop(name)
            if value := decode(blob):
                fields[name] = convert(variables.reveal_all(value) if variables and b"${" in blob else value)
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


def turn_row(run_id: str, trial: Trial, number: int, turn: EarlierTurn, variables: Variables) -> dict[str, Any]:
    """Return the row of a turn of a conversation."""
    return {
        **_EMPTY_TURN,
        "run_id": run_id,
        **place(trial),
        "number": number,
        "question": variables.template(turn.question),
        **_answer_columns(turn.answer, variables, _TURN_ANSWER),
        **_usage_columns(turn.answer.usage),
        **cost_columns(turn.cost),
        "reply": None if turn.reply is None else variables.template(paired(turn.reply)),
        **{f"user_{name}": value for name, value in cost_columns(turn.user_cost).items()},
    }


def read_turn(row: Any, variables: Variables) -> EarlierTurn:
    """Read a stored turn with its variables filled in."""
    return EarlierTurn(
        question=variables.reveal(row["question"]),
        answer=_read_answer(row, variables, _TURN_ANSWER, None),  # its cost is not that of a trial
        cost=read_cost(row),
        reply=None if row["reply"] is None else variables.reveal(row["reply"]),
        user_cost=read_cost({name: row[f"user_{name}"] for name in schema.COSTS}),
    )


def cost_columns(cost: Cost) -> dict[str, Any]:
    """Return the cost of calls as columns."""
    return {"cost_usd": cost.known, "charged_usd": cost.charged, "unknown_costs": cost.unknown}


def read_cost(row: Any) -> Cost:
    """Read the cost of calls from the cost columns of any table."""
    return Cost(known=row["cost_usd"] or 0.0, charged=row["charged_usd"] or 0.0, unknown=int(row["unknown_costs"] or 0))


def _tool_columns(used: ToolUse | None) -> dict[str, Any]:
    if used is None:
        return {}
    return {"tool_calls": used.calls, "tool_errors": used.errors, "tools": encode(used.tools) if used.tools else None}


def _answer_columns(answer: Answer, variables: Variables, stored: StoredFields = _ANSWER) -> dict[str, Any]:
    answer = msgspec.structs.replace(answer, trace=without_views(answer.trace))
    return {**stored.write(answer, variables), "answer": variables.conceal(paired(answer.text))}


def _failure_columns(failure: Failure, variables: Variables) -> dict[str, Any]:
    return {
        "failure_kind": failure.kind,
        "failure_message": message(failure.message, variables),
        "trace": packed(encode(variables.hide_all(without_views(failure.trace)))) if failure.trace else None,
    }


def _usage_columns(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    counts = [getattr(usage, name) for name in _USAGE]
    if min(counts) < 0 or max(counts) >= _MAX_TOKENS:
        return {}  # these counts cannot be right
    return dict(zip(schema.TOKENS, counts, strict=True))


def read_answer(row: Any, variables: Variables) -> Answer:
    """Read a stored answer with its variables filled in."""
    return _read_answer(row, variables, _ANSWER, None if row["cached"] else read_cost(row).usd)


def _read_answer(row: Any, variables: Variables, stored: StoredFields, cost_usd: float | None) -> Answer:
    fields = stored.read(row)
    fields["trace"] = with_views(fields["trace"])
    fields["text"], fields["cost_usd"] = variables.reveal(row["answer"]), cost_usd
    if row["prompt_tokens"] is not None:
        fields["usage"] = Usage(**dict(zip(_USAGE, _token_counts(row), strict=True)))
    return Answer(**fields)


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
        row |= _SCORE.write(result, variables)
        if result.metrics:
            row["metrics"] = encode({n: [v, *(scales or {}).get(n, ANY)] for n, v in result.metrics.items()})
        return row
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
    return {
        "run_id": run_id,
        "scoring": scoring,
        **place(trial),
        **_VERDICT.write(judgement, variables),
        "judge": variables.hide(judgement.judge),
        "params": encode(variables.hide_all(judgement.params)),
        "asked": judgement.asked,
        "prompt_tokens": judgement.prompt_tokens,
        "completion_tokens": judgement.completion_tokens,
        **cost_columns(judgement.cost),
        "failure_message": message(judgement.failure_message, variables) if judgement.failure_message else None,
        "judged_at": time.time(),
    }


def read_judgement(row: Any) -> Judgement:
    """Read a stored, usable verdict."""
    return Judgement(**_VERDICT.read(row), asked=0, stored=row["scoring"])
