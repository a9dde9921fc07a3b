"""The tables. Answers and scores are only added; a plan is written once and shared by its runs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, ForeignKey, Index, LargeBinary, MetaData, Table, and_
from sqlalchemy.types import TypeEngine

from fairtrial.core.place import COLUMNS, Place
from fairtrial.store.hash_column import changed_index, hash_column
from fairtrial.store.types import Float, Integer, String, Text

metadata = MetaData()
Json = LargeBinary  # encoded and decoded by msgspec; opaque to the database
LIMIT: dict[str, TypeEngine[Any]] = {"limit": String, "limit_value": Float}  # which one ended an agent's work
TOKENS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COSTS = ("cost_usd", "charged_usd", "unknown_costs")


def _cost(prefix: str = "") -> list[Column[Any]]:
    """Return the cost columns: the known cost, the cost charged to the budget, and the number of unknown costs."""
    kinds: tuple[TypeEngine[Any], ...] = (Float, Float, Integer)
    return [Column(f"{prefix}{name}", kind, server_default="0") for name, kind in zip(COSTS, kinds, strict=True)]


def _call() -> list[Column[Any]]:
    return [*_columns(Float, "latency_ms", "first_token_ms"), *_columns(Integer, *TOKENS)]


def _columns(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _run() -> Column[str]:
    return Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)


def _place_columns() -> list[Column[int]]:
    """Return the columns that identify a trial of a run."""
    return [Column(name, Integer, primary_key=True) for name in COLUMNS]


meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False))

plans = Table(
    "plans",
    metadata,
    Column("id", String, primary_key=True),
    Column("suite_name", Text, nullable=False),
    Column("suite_text", Text, nullable=False),  # before substitution
    Column("suite_sha256", String, nullable=False),
    Column("dataset_sha256", String, nullable=False),
    Column("folder", Text, nullable=False),
    Column("arms", Json, nullable=False),  # templates, without values of variables
    Column("case_count", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
)

# To find runs by target.
plan_targets = Table(
    "plan_targets",
    metadata,
    Column("plan_id", ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
    Column("target", String, primary_key=True, index=True),
)

# The files sent with the cases of a plan.
plan_files = Table(
    "plan_files",
    metadata,
    Column("plan_id", ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
    Column("sha256", String, primary_key=True, index=True),
)

cases = Table(
    "cases",
    metadata,
    Column("plan_id", ForeignKey("plans.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    Column("input", Text, nullable=False),
    Column("expected", Text),
    Column("several", Boolean),  # whether `expected` is a JSON list of texts, any of which is correct
    Column("weight", Float, nullable=False),
    Column("tags", Json),
    Column("category", Text),
    Column("difficulty", Text),
    Column("cluster", Text),
    Column("scorer", Json),
    Column("extract", Json),  # which part of an answer is scored; None: as the scorer or the suite says
    Column("params", Json),
    Column("repeats", Integer),
    Column("metadata", Json),
    Column("vars", Json),  # values for templates
    Column("turns", Json),  # what the user says after `input`
    Column("attach", Json),  # names, media types and hashes of the files sent with it
    Column("targets", Json),  # those that are asked; None: all
    Column("conditions", Json),  # those under which it is asked; None: all
    Column("on_limit", String, info={"since": 20}),  # None: as the target or the suite says
    hash_column(),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("plan_id", ForeignKey("plans.id"), nullable=False),
    Column("series_id", String),
    Column("status", String, nullable=False),  # running, completed, incomplete, interrupted, stopped
    Column("reason", Text),
    Column("settings", Json, nullable=False),
    Column("context", Json, nullable=False),
    Column("scoring", Integer, nullable=False),  # the number of the current scoring
    Column("created_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("number", Integer, nullable=False),  # the order in which runs started, independent of the clock
    Column("epoch", Integer, nullable=False, server_default="0", info={"since": 18}),  # its sessions: see `lease.py`
)

# What a run has cost in addition to its trials and verdicts: test calls to judges, calls cancelled or lost in a crash.
ledgers = Table(
    "ledgers",
    metadata,
    _run(),
    *_cost(),
    Column("at_risk_usd", Float, nullable=False),  # may be spent by calls in flight, and is in no row
)

# Requests that were handed in together at a provider's batch API.
batches = Table(
    "batches",
    metadata,
    _run(),
    Column("number", Integer, primary_key=True),
    Column("target", Text, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("batch_id", Text),  # the provider's; None until it is known whether the batch was submitted
    Column("created_at", Float, nullable=False),  # before it was submitted
    Column("ended_at", Float),
)

batch_requests = Table(
    "batch_requests",
    metadata,
    _run(),
    Column("batch", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("key", String, nullable=False),  # which trial or verdict it is for
    Column("usd", Float, nullable=False),  # what it may cost, until its result is stored
    Column("done", Boolean, nullable=False),  # its result is stored
)

trials = Table(
    "trials",
    metadata,
    _run(),
    *_place_columns(),
    Column("trial_id", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("answer", Text),
    Column("finish_reason", String),
    Column("model", Text),
    Column("failure_kind", String),
    Column("failure_message", Text),
    Column("attempts", Integer, nullable=False),
    Column("tried", Json),
    Column("cached", Boolean, nullable=False),
    Column("waited_ms", Float, nullable=False),
    *_call(),
    *_cost(),
    Column("reasoning", Text),
    Column("trace", Json),
    *_columns(Integer, "tool_calls", "tool_errors"),  # of the condition's servers; None if the target does not tell
    Column("tools", Json),  # {"server.tool": [calls, errors]}
    *(Column(name, kind, info={"since": 20}) for name, kind in LIMIT.items()),
    hash_column(),
    Index("trials_by_id", "trial_id"),
    # Which arms answered and which failed, read without the answers themselves, which may be long.
    Index("trials_by_failure", "run_id", "failure_kind", "case_position", "repeat", "arm_position"),
    changed_index("trials"),
)

# The turns of conversations before the last one. Once the trial is answered, its row has their cost and their events.
turns = Table(
    "turns",
    metadata,
    _run(),
    *_place_columns(),
    Column("number", Integer, primary_key=True),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("finish_reason", String),
    Column("model", Text),
    *_call(),
    *_cost(),
    Column("reasoning", Text),
    Column("trace", Json),
    Column("reply", Text),  # of a simulated user; empty: it is satisfied
    *_cost("user_"),  # of the replies, which no arm pays for
    hash_column(),
)

scorings = Table(
    "scorings",
    metadata,
    _run(),
    Column("number", Integer, primary_key=True),
    Column("scorer", Json),  # None: as the suite says
    Column("created_at", Float, nullable=False),
    Column("completed", Boolean, nullable=False),
)

scores = Table(
    "scores",
    metadata,
    _run(),
    Column("scoring", Integer, primary_key=True),
    *_place_columns(),
    Column("scorer", String, nullable=False),
    *_columns(Float, "value", "confidence", "raw", "max"),
    Column("notes", Text),
    Column("details", Json),
    Column("metrics", Json),  # {name: [value, lowest, highest]}
    Column("automatic", Boolean, nullable=False, server_default="0"),  # given without looking at the answer
    Column("unscored_kind", String),
    Column("unscored_message", Text),
    Column("retryable", Boolean, nullable=False),
    Column("scored_at", Float, nullable=False),
    hash_column(),
    # Sorting cases by score reads only this index, which takes a third of the time.
    Index("scores_by_case", "run_id", "scoring", "case_position", "arm_position", "value"),
)

judgements = Table(
    "judgements",
    metadata,
    _run(),
    Column("scoring", Integer, primary_key=True),
    *_place_columns(),
    Column("judge", String, primary_key=True),
    Column("prompt_hash", String, primary_key=True),  # a composite scorer may ask a judge several questions
    Column("number", Integer, primary_key=True),
    Column("judge_key", String),
    Column("value", Float),
    Column("metrics", Json),
    Column("reasoning", Json),
    Column("claims", Json),
    Column("reply", Text),
    Column("model", Text),
    Column("params", Json),
    Column("asked", Integer, nullable=False),
    *_columns(Integer, "prompt_tokens", "completion_tokens"),
    *_cost(),
    Column("latency_ms", Float),
    Column("failure_kind", String),
    Column("failure_message", Text),
    Column("judged_at", Float, nullable=False),
    hash_column(),
    changed_index("judgements"),
)

calibrations = Table(
    "calibrations",
    metadata,
    Column("id", String, primary_key=True),
    Column("judge", Text, nullable=False),
    Column("judge_key", String, nullable=False),
    Column("prompt_hash", String, nullable=False),
    Column("rating", String, nullable=False),
    Column("body", Json, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("calibrations_by_judge", "judge_key", "prompt_hash"),
)

# Two arms' answers to one case, compared by one judge in both orders.
pairs = Table(
    "pairs",
    metadata,
    _run(),
    Column("judge_key", String, primary_key=True),
    Column("prompt_hash", String, primary_key=True),
    Column("case_position", Integer, primary_key=True),
    Column("repeat", Integer, primary_key=True),
    Column("arm_one", Integer, primary_key=True),
    Column("arm_other", Integer, primary_key=True),
    Column("judge", Text, nullable=False),
    Column("forward", Float),  # the value of `one`: 1, ½ or 0
    Column("backward", Float),  # the same, with the answers swapped
    Column("verdicts", Json, nullable=False),  # both complete judgements
    Column("asked", Integer, nullable=False),
    *_cost(),
    Column("failure_kind", String),
    Column("failure_message", Text),
    Column("judged_at", Float, nullable=False),
    hash_column(),
    changed_index("pairs"),
)

labels = Table(
    "labels",
    metadata,
    _run(),
    *_place_columns(),
    Column("labeller", String, primary_key=True),
    Column("value", Float, nullable=False),
    Column("note", Text),
    Column("yardstick", String, nullable=False),  # a hash of the judges and prompts that the label is compared with
    Column("labelled_at", Float, nullable=False),
    Column("drawn", Boolean, info={"since": 19}),  # whether at random, as is needed to correct; of older labels unknown
    hash_column(),
)

# Files sent with cases or created while scoring, such as screenshots; equal content is stored once.
files = Table(
    "files",
    metadata,
    Column("sha256", String, primary_key=True),
    Column("media", String, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

attachments = Table(
    "attachments",
    metadata,
    _run(),
    *_place_columns(),
    Column("name", String, primary_key=True),
    Column("sha256", String, nullable=False, index=True),
)

# Answers and verdicts that a session had paid for when another had taken over its run: looked at, never scored.
late = Table(
    "late",
    metadata,
    _run(),
    Column("epoch", Integer, primary_key=True),  # of the session that had lost the run
    Column("number", Integer, primary_key=True),
    Column("kind", String, nullable=False),  # the table that the row was for
    *_columns(Integer, *COLUMNS),  # of a pair: without an arm
    *_cost(),
    Column("body", LargeBinary, nullable=False),  # the row, packed
    Column("kept_at", Float, nullable=False),
    hash_column(),
)

# Two arms' answers to one case, compared side by side by a person who did not know which arm gave which.
votes = Table(
    "votes",
    metadata,
    Column("id", String, primary_key=True),
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("case_position", Integer, nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("arm_one", Integer, nullable=False),
    Column("arm_other", Integer, nullable=False),
    Column("choice", String, nullable=False),  # one, other, tie or neither (both are bad)
    Column("left", Integer, nullable=False),  # the arm shown on the left
    Column("voter", Text, nullable=False),
    Column("voted_at", Float, nullable=False),
    hash_column(),
)

# A cache of results computed from runs, packed because JSON does not support infinity.
digests = Table(
    "digests",
    metadata,
    Column("name", String, primary_key=True),
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("stamp", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("made_at", Float, nullable=False),
)

tags = Table(
    "tags",
    metadata,
    Column("name", String, primary_key=True),
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("series_id", String),  # set if the tag is for the whole series, of which the run is the first
    Column("tagged_at", Float, nullable=False),
)


def same_trial(one: Table, other: Table) -> Any:
    """Return the join condition between two tables that have one row per trial."""
    return and_(*(one.c[name] == other.c[name] for name in ("run_id", *COLUMNS)))


def at(table: Table, place: Place) -> list[Any]:
    """Return the conditions for the rows of the trial at this place."""
    return [table.c[name] == value for name, value in zip(COLUMNS, place, strict=True)]


def place(table: Table) -> list[Column[Any]]:
    """Return the columns of a table that identify a trial of a run."""
    return [table.c[name] for name in COLUMNS]
