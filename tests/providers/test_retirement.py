"""When a model ends: what is said, from which day on, and what servers say of one that is gone."""

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest

from benchmarks.refusals import Row, rows
from fairtrial.core.experiment import TargetSpec
from fairtrial.providers import retirement
from fairtrial.providers.errors import error_of_status
from fairtrial.providers.retirement import gone, retiring
from fairtrial.providers.retirement import retirement as about
from fairtrial.providers.sheet import sheet_of

END = date(2026, 12, 11)  # of gpt-5-mini
_GONE = (
    "retired model",
    "model after its end of life",
    "model after its shutdown date",
    "model closed to new users",
    "unknown model",
)


@pytest.fixture
def on(monkeypatch):
    """Set the day."""

    def set_day(day: date) -> None:
        monkeypatch.setattr(retirement, "now", lambda: datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC))

    return set_day


def spec(model: str, provider: str = "openai", **more) -> TargetSpec:
    return TargetSpec(id=f"{provider}:{model}", kind="openai_api", provider=provider, model=model, **more)


@pytest.mark.parametrize(
    ("days", "level", "words"),
    [
        (91, None, ""),
        (90, "note", "ends on 11 December 2026, in 90 days"),
        (31, "note", "in 31 days"),
        (30, "warning", "in 30 days"),
        (1, "warning", "in 1 day;"),
        (0, "warning", "ends on 11 December 2026, today"),
        (-1, "over", "was to end on 11 December 2026: it is asked all the same"),
    ],
)
def test_from_which_day_on(on, days, level, words):
    on(END - timedelta(days=days))
    known = about("openai", "gpt-5-mini")
    if level is None:
        assert known is None
        return
    assert known.level == level and words in known.words
    assert known.words.startswith("openai:gpt-5-mini ") and known.words.endswith("its successor is gpt-5.6-terra")
    assert known.line.startswith("note: " if level == "note" else "warning: ")


def test_how_many_days_are_looked_ahead(on):
    on(END - timedelta(days=100))
    assert about("openai", "gpt-5-mini", within=99) is None
    assert about("openai", "gpt-5-mini", within=100).level == "note"


def test_a_day_before_which_nothing_ends_is_a_note(on):
    day = sheet_of("anthropic", "claude-opus-5").not_before
    on(day - timedelta(days=91))
    assert about("anthropic", "claude-opus-5") is None
    for days in (90, 1, -400):
        on(day - timedelta(days=days))
        known = about("anthropic", "claude-opus-5")
        assert known.level == "note" and f"may end from {retirement.in_words(day)} on" in known.words


def test_a_model_that_another_answers_for(on):
    on(date(2026, 11, 18))
    known = about("google", "gemini-3.7-flash")
    assert known.level == "note"
    assert known.words == "google:gemini-3.7-flash is served by gemini-3.8-flash: that model answers in its place"


def test_targets_are_called_what_the_suite_calls_them_and_named_once(on):
    on(date(2026, 11, 18))
    mine = msgspec.structs.replace(spec("gpt-5-mini"), id="small")
    deployed = msgspec.structs.replace(spec("my-deployment", "azure"), options={"model": "o3"})
    found = retiring([spec("gpt-6-luna"), spec("gpt-5-mini"), spec("gpt-5-mini"), mine, deployed, spec("o1")])
    assert [known.name for known in found] == [
        "openai:o1",
        "openai:gpt-5-mini",
        "small (openai:gpt-5-mini)",
        "azure:my-deployment (azure:o3)",
    ]


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (-3, "it ended on 11 December 2026; its successor is gpt-5.6-terra"),
        (0, "it ended on 11 December 2026; its successor is gpt-5.6-terra"),
        (23, "it is gone, before its end on 11 December 2026; its successor is gpt-5.6-terra"),
    ],
)
def test_what_happened_to_a_model_that_does_not_answer(on, days, words):
    on(END - timedelta(days=days))
    assert gone(spec("gpt-5-mini")) == words
    assert gone(spec("gpt-6-lunaa")) == "there is no such model"


def body_of(row: Row) -> bytes:
    """The error as each vendor writes it."""
    if row.provider == "bedrock":
        return msgspec.json.encode({"message": row.message})
    if row.provider == "anthropic":
        return msgspec.json.encode({"type": "error", "error": {"type": row.error_type, "message": row.message}})
    if row.provider in ("google", "vertex"):
        return msgspec.json.encode({"error": {"code": row.code, "message": row.message, "status": row.error_type}})
    error = {"message": row.message, "type": row.error_type, "param": row.param, "code": row.code}
    return msgspec.json.encode({"error": error})


def test_servers_that_say_that_a_model_is_gone_are_understood():
    told = [row for row in rows() if row.request_feature in _GONE]
    assert {row.provider for row in told} >= {"openai", "anthropic", "google", "vertex", "bedrock", "groq"}
    assert {row.status for row in told} == {400, 404}
    kinds = {row: error_of_status(row.status, body_of(row)) for row in told}
    assert {kind.kind for kind in kinds.values()} == {"model"}
    assert not any(kind.retryable for kind in kinds.values())


def test_a_model_that_a_router_has_but_not_with_tools_is_not_gone():
    told = [row for row in rows() if row.provider == "openrouter" and row.status == 404]
    assert told and {error_of_status(row.status, body_of(row)).kind for row in told} == {"refused"}
