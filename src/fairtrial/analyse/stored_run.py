"""Read a run from its store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from fairtrial.agents.workspace.making import kept_name
from fairtrial.analyse.sent import Exchange, conversation, sent_params, transcript
from fairtrial.core.chat import Chat
from fairtrial.core.errors import FairtrialError
from fairtrial.core.events import Event
from fairtrial.core.expected import Expected
from fairtrial.core.experiment import Arm, Case, ToolUse
from fairtrial.core.money import Cost
from fairtrial.core.place import Place, place_of
from fairtrial.core.showing import Brief
from fairtrial.core.trace import ending, join_turns, whole_trace
from fairtrial.core.trajectory import Exchanged, trajectory
from fairtrial.core.variables import display
from fairtrial.store import schema
from fairtrial.store.browsing import positions_of
from fairtrial.store.files import attachments, contents, kept_workspaces
from fairtrial.store.opinions import reasonings
from fairtrial.store.records import PlanRecord, RunRecord
from fairtrial.store.rows import StoredFields, decode, read_cost
from fairtrial.store.store import Store
from fairtrial.store.todo import status_of
from fairtrial.store.transcripts import turn_rows

_SLICE = 500
_BATCH, _MOST_HELD = 200, 10_000_000  # trials that are read at once, and characters of their answers and traces


class TrialRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One trial with everything known about it. Scores are 0–1, repeats count from 1."""

    trial_id: str
    case_id: str
    arm: str
    target: str
    condition: str
    repeat: int
    status: str
    input: str
    expected: Expected
    weight: float
    tags: tuple[str, ...]
    category: str | None
    difficulty: str | None
    columns: dict[str, Any] | None  # of the dataset, besides those that the suite uses
    answer: str | None
    score: float | None
    scorer: str | None
    confidence: float | None
    raw: float | None
    max: float | None
    notes: str | None
    details: dict[str, Any] | None
    metrics: dict[str, float]
    failure_kind: str | None
    failure_message: str | None
    unscored_kind: str | None
    unscored_message: str | None
    attempts: int
    tried: list[str]
    cached: bool
    started_at: float  # seconds since 1970, UTC
    waited_ms: float
    latency_ms: float | None
    first_token_ms: float | None
    finish_reason: str | None
    model: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None  # None unless it is known for every call
    cost_at_least_usd: float  # what is known of it
    charged_usd: float  # what counts towards a budget
    reasoning: str | None
    trace: dict[str, Any] | None
    tool_calls: int | None
    tool_errors: int | None
    missing: str  # what the condition requires but the answer lacks
    limit: str | None = None  # of the agent, which ended its work: time, turns, tokens or money
    limit_value: float | None = None

    @property
    def cost(self) -> Cost:
        """What all its calls cost."""
        return Cost(known=self.cost_at_least_usd, charged=self.charged_usd, unknown=int(self.cost_usd is None))


_OF_TRIAL = StoredFields(TrialRecord, schema.trials, ("repeat", "answer", "tried", "cost_usd"))
_OF_SCORE = StoredFields(TrialRecord, schema.scores, ("repeat", "metrics"), prefix="score_")


class JudgeComment(NamedTuple):
    """One judge's comment on an answer."""

    judge: str
    value: float | None
    reasoning: str


class Told(NamedTuple):
    """A trial with its case, the messages that its answer replies to, and the judges' comments on the answer."""

    trial: TrialRecord
    case: Case
    chat: Chat | None  # None if the prompt could not be filled in
    comments: list[JudgeComment]


class StoredRun(Brief):
    """A stored run as its store has it; it can be read while it is running and at any time later."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self.store, self.record = store, record
        self.made_of: Any = None  # the suite, if it was made in this process: it has the functions

    @classmethod
    def find(cls, name: str = "latest", store: Store | None = None) -> Self:
        """Return the run with this id or unambiguous prefix of an id, or the latest run."""
        store = store or Store(create=False)
        return cls(store, store.find_run(name))

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.record.id

    @property
    def status(self) -> str:
        """Return the status: completed, stopped, incomplete, interrupted or running."""
        return self.record.status

    @cached_property
    def plan(self) -> PlanRecord:
        """Return the run's plan."""
        return self.store.plan(self.record.plan_id)

    @cached_property
    def plan_arms(self) -> tuple[Arm, ...]:
        """Return the arms as planned, before variables are filled in."""
        return self.store.arms(self.plan)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that the run used."""
        return msgspec.json.decode(self.record.settings)  # type: ignore[no-any-return]

    @property
    def context(self) -> dict[str, Any]:
        """Return the recorded versions and machine."""
        return msgspec.json.decode(self.record.context)  # type: ignore[no-any-return]

    def sent(self, arm: Arm) -> dict[str, Any] | None:
        """Return the parameters sent to an arm's target, as recorded when the run began; None if not recorded."""
        return sent_params(self.record, arm)

    def trials(self) -> Iterator[TrialRecord]:
        """Yield every stored trial in the order of cases, arms and repeats."""
        return (trial for _, trial in self.placed_trials())

    def judged_trials(self) -> Iterator[tuple[TrialRecord, list[JudgeComment]]]:
        """Yield every stored trial with the judges' comments on its answer, in the same order."""
        comments = self._comments()
        return ((trial, comments(place)) for place, trial in self.placed_trials())

    def told_trials(self) -> Iterator[Told]:
        """Yield every stored trial with its chat and the judges' comments, in the same order."""
        comments = self._comments()
        for row, case in self._rows(0, self.plan.case_count):
            place = place_of(row)
            arm, turns = self.plan_arms[place.arm], self._turns(case, place)
            chat = conversation(arm, case, place.repeat, turns)
            yield Told(self._trial(row, case, turns), case, chat, comments(place))

    def _comments(self) -> Callable[[Place], list[JudgeComment]]:
        """Return a function for the comments on a trial, to be called in the order of places."""
        comments = reasonings(self.store, self.id, self.record.scoring)
        upcoming = next(comments, None)

        def comments_at(place: Place) -> list[JudgeComment]:
            nonlocal upcoming
            own = []
            while upcoming is not None and upcoming[0] <= place:  # both streams are in the order of places
                if upcoming[0] == place:
                    own.append(JudgeComment(*upcoming[1:]))
                upcoming = next(comments, None)
            return own

        return comments_at

    def placed_trials(self, first: int = 0, count: int | None = None) -> Iterator[tuple[Place, TrialRecord]]:
        """Yield (case, arm, repeat) and trial for every stored trial, or for a slice of the cases, in that order."""
        end = self.plan.case_count if count is None else first + count
        return ((place_of(row), self._trial(row, case)) for row, case in self._rows(first, end))

    def _rows(self, first: int, end: int) -> Iterator[tuple[dict[str, Any], Case]]:
        """Yield the rows of the trials of a range of cases, each with its case."""
        for start in range(first, end, _SLICE):
            size = min(_SLICE, end - start)
            cases = {c.position: c for c in self.store.cases(self.plan.id, start, size)}
            rows = self.store.trial_rows(self.id, self.record.scoring, first=start, count=size)
            yield from ((row, cases[row["case_position"]]) for row in rows)

    def trials_at(self, places: Iterable[Place]) -> Iterator[TrialRecord]:
        """Yield the stored trials at these places, in this order; places without a trial are passed over."""
        return (trial for _, trial in self.found_at(places))

    def found_at(self, places: Iterable[Place]) -> Iterator[tuple[Place, TrialRecord]]:
        """Yield the same trials with their places."""
        upcoming, size = iter(places), 1
        while batch := list(islice(upcoming, size)):
            stored = self.store.trial_rows(self.id, self.record.scoring, places=batch)
            rows = {place_of(row): row for row in stored}
            positions = [*dict.fromkeys(place.case for place in rows)]
            cases = {case.position: case for case in self.store.cases_at(self.plan.id, positions)}
            long = sum(map(_length, rows.values())) > _MOST_HELD
            size = max(1, size // 2) if long else min(_BATCH, 2 * size)
            yield from ((place, self._trial(rows.pop(place), cases[place.case])) for place in batch if place in rows)

    def trial(self, name: str) -> TrialRecord:
        """Return one trial by its id or an unambiguous prefix of it."""
        row = self._row(name)
        return self._trial(row, self.store.cases(self.plan.id, row["case_position"], 1)[0])

    def trial_at(self, place: Place) -> TrialRecord | None:
        """Return the trial of that case, arm and repeat; None if it has not been run."""
        return next(self.trials_at([place]), None)

    def chat_at(self, place: Place, case: Case) -> Chat | None:
        """Return the messages that the answer at this place replies to; None if the prompt could not be filled in."""
        return conversation(self.plan_arms[place.arm], case, place.repeat, self._turns(case, place))

    def turns_at(self, place: Place, case: Case) -> list[Exchange]:
        """Return the earlier turns of a trial's conversation: each answer, and what the user said next."""
        return self._turns(case, place)

    def locate(self, case_id: str, arm: str, repeat: int) -> tuple[Place, Case]:
        """Return where a trial is, by the id of its case, its arm and its repeat, which counts from 1; and its case."""
        position = positions_of(self.store, self.plan.id, case_id)[0]
        place = Place(position, next(own.position for own in self.plan_arms if own.name == arm), repeat - 1)
        return place, self.store.cases(self.plan.id, position, 1)[0]

    def trajectory(self, place: Place, case: Case, trial: TrialRecord) -> tuple[Event, ...]:
        """Return everything that happened in a trial, over all turns, in its order."""
        turns = self._turns(case, place)
        return self._trajectory(place, case, turns, trial.answer, trial.reasoning, trial.trace)

    def trajectory_so_far(self, place: Place, case: Case, trace: dict[str, Any] | None) -> tuple[Event, ...]:
        """Return what has happened in a trial that has not ended; `trace` is that of its present turn."""
        turns = self._turns(case, place)
        joined = join_turns([*(turn.trace for turn in turns), trace])
        return self._trajectory(place, case, turns, None, None, joined)

    def _trajectory(
        self,
        place: Place,
        case: Case,
        turns: Sequence[Exchange],
        answer: str | None,
        reasoning: str | None,
        trace: dict[str, Any] | None,
    ) -> tuple[Event, ...]:
        chat = conversation(self.plan_arms[place.arm], case, place.repeat, turns)
        earlier = [Exchanged(turn.question, turn.answer, turn.reasoning) for turn in turns]
        return trajectory([*earlier, Exchanged(chat.question if chat else case.input, answer, reasoning)], trace)

    def files(self, name: str) -> dict[str, tuple[str, bytes]]:
        """Return the files kept when a trial was scored, such as screenshots: media type and bytes, by name."""
        return self.files_at(place_of(self._row(name)))

    def files_at(self, place: Place) -> dict[str, tuple[str, bytes]]:
        """Return the same files, by case, arm and repeat."""
        hashes = attachments(self.store, self.id, place=place).get(place, {})
        files = contents(self.store, list(hashes.values()))
        return {name: files[sha256] for name, sha256 in hashes.items()}

    def kept_workspace(self, trial: TrialRecord) -> Path | None:
        """Return the folder in which an agent worked, if it was kept on this machine."""
        folder = kept_workspaces(self.store, self.id) / kept_name(trial.case_id, trial.trial_id)
        return folder if folder.is_dir() else None

    def judgements(self, name: str) -> list[dict[str, Any]]:
        """Return every judge's verdict on one trial's answer, with its full reply."""
        return self.judgements_at(place_of(self._row(name)))

    def judgements_at(self, place: Place) -> list[dict[str, Any]]:
        """Return the same verdicts, by case, arm and repeat."""
        rows = self.store.judgements(self.id, place, self.record.scoring)
        return [
            {key: decode(value) if isinstance(value, bytes) else value for key, value in item.items()}
            | {"cost_usd": read_cost(item).usd}
            for item in rows
        ]

    def _row(self, name: str) -> dict[str, Any]:
        rows = list(self.store.trial_rows(self.id, self.record.scoring, trial=name))
        if not rows:
            raise FairtrialError(f"run {self.id} has no trial `{name}`; `fairtrial show {self.id} --trials` lists them")
        if len({row["trial_id"] for row in rows}) > 1:
            raise FairtrialError(f"`{name}` matches {len(rows)} trials; give more of the id")
        return rows[0]

    def _trial(self, row: dict[str, Any], case: Case, turns: list[Exchange] | None = None) -> TrialRecord:
        turns = self._turns(case, place_of(row)) if turns is None else turns
        arm = self.plan_arms[row["arm_position"]]
        of_trial = _OF_TRIAL.read(row)
        of_trial["trace"] = whole_trace(of_trial["trace"], [turn.trace for turn in turns])
        return TrialRecord(
            case_id=case.id,
            arm=arm.name,
            target=arm.target.id,
            condition=arm.condition.name,
            repeat=row["repeat"] + 1,
            status=status_of(row),
            input=transcript(arm, case, row["repeat"], turns, ended=bool(ending(of_trial["trace"]))),
            expected=case.expected,
            columns=case.columns or None,
            weight=case.weight,
            tags=case.tags,
            category=case.category,
            difficulty=case.difficulty,
            score=row["score_value"],
            metrics={name: value for name, (value, _, _) in (decode(row["score_metrics"]) or {}).items()},
            answer=None if row["answer"] is None else display(row["answer"]),
            tried=decode(row["tried"]) or [],
            cost_usd=read_cost(row).usd,
            cost_at_least_usd=read_cost(row).known,
            missing=self._missing(row, arm),
            **_OF_SCORE.read(row),
            **of_trial,
        )

    def _turns(self, case: Case, place: Place) -> list[Exchange]:
        """Return the earlier turns of a conversation: each answer, and what the user said next."""
        if not case.turns and not self._has_user:
            return []
        rows = turn_rows(self.store, self.id, [case.position], place)
        scripted = dict(enumerate(case.turns))
        replies = [scripted.get(row["number"], "") if row["reply"] is None else row["reply"] for row in rows]
        pairs = zip(rows, replies, strict=True)
        return [
            Exchange(
                display(row["answer"]), display(reply), display(row["question"]), row["reasoning"], decode(row["trace"])
            )
            for row, reply in pairs
            if reply
        ]

    @cached_property
    def _has_user(self) -> bool:
        """Whether a model played the user."""
        return decode(self.record.settings).get("user") is not None

    def _missing(self, row: dict[str, Any], arm: Arm) -> str:
        """Return what the answer lacks of the condition's requirements; empty for a failed trial."""
        if row["failure_kind"] is not None:
            return ""
        reported = row["tool_calls"] is not None
        return arm.condition.missing(ToolUse(tools=decode(row["tools"]) or {}) if reported else None)


def _length(row: dict[str, Any]) -> int:
    """Return about how much memory a row takes."""
    return len(row["answer"] or "") + len(row["trace"] or b"")
