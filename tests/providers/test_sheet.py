"""The model sheet: its layers, its patterns, and models that it does not know."""

from __future__ import annotations

import json
from datetime import date

import pytest

from benchmarks.refusals import Refusal, openai_error
from fairtrial.cli.main import _run
from fairtrial.core.errors import FairtrialError
from fairtrial.core.experiment import TargetSpec
from fairtrial.providers import sheet
from fairtrial.providers.endpoints import api_for
from fairtrial.providers.params import remarks, supported_params
from fairtrial.providers.sheet import read_rows, sheet_of
from tests.servers.vendors import Say, vendors


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """A sheet of which only the shipped layer is there."""
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FAIRTRIAL_MODELS", str(tmp_path / "models.yaml"))
    sheet.forget()
    yield tmp_path
    sheet.forget()


def refreshed(folder, name, *models, names=""):
    place = folder / "cache" / "models"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps({"names": names, "models": models}))
    sheet.forget()


def own(folder, text):
    (folder / "models.yaml").write_text(text)
    sheet.forget()


@pytest.mark.parametrize("path", sorted(sheet._SHIPPED.glob("*.json")), ids=lambda path: path.stem)
def test_what_is_shipped_can_be_used(path):
    rows = read_rows(path)
    assert (rows.models or rows.names or rows.cheapest) and date.fromisoformat(rows.checked)


def test_the_users_rows_come_before_what_was_refreshed_and_that_before_what_is_shipped(fresh):
    assert sheet_of("openai", "gpt-6-luna").output == 128_000
    refreshed(fresh, "openai", {"model": "gpt-6-luna$", "output": 64_000, "ends": "2027-09-01"}, names="gpt-")
    assert (sheet_of("openai", "gpt-6-luna").output, sheet_of("openai", "gpt-6-sol").output) == (64_000, 128_000)
    own(fresh, "gpt-6-luna: {output: 1000, sampling: refused}")
    known = sheet_of("openai", "gpt-6-luna")
    assert (known.output, known.sampling, known.ends) == (1000, "refused", date(2027, 9, 1))


def test_a_provider_has_rows_of_its_own(fresh):
    refreshed(fresh, "openrouter", {"model": "claude-opus-5", "context": 7})
    assert sheet_of("openrouter", "anthropic/claude-opus-5").context == 7
    assert sheet_of("anthropic", "claude-opus-5").context == 1_000_000


def test_what_a_user_says_holds_at_every_endpoint(fresh):
    own(fresh, "gpt-6-luna: {reasoning: {levels: [low], default: low}}")
    for endpoint in ("chat", "responses"):
        assert sheet_of("openai", "gpt-6-luna", endpoint).reasoning.levels == ("low",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gpt-x: {colour: red}", "unknown field `colour`"),
        ("gpt-(: {output: 1}", "unterminated subpattern"),
        ("- gpt", "expected `PATTERN: {…}`"),
        ("a: b: c", "mapping values"),
        ("gpt-x: {sampling: perhaps}", "perhaps"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_to_be_so(fresh, text, reason, capsys):
    own(fresh, text)
    with pytest.raises(FairtrialError, match=r"models\.yaml is not a sheet of models") as caught:
        sheet_of("openai", "gpt-6-luna")
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_a_damaged_file_of_the_cache_is_said_to_be_so(fresh):
    refreshed(fresh, "openai", names="gpt-")
    (fresh / "cache/models/openai.json").write_text("{")
    sheet.forget()
    with pytest.raises(FairtrialError, match=r"openai\.json is not a sheet of models"):
        sheet_of("openai", "gpt-6-luna")


def test_an_unknown_model_is_taken_for_the_newest_of_its_family():
    for name, like in (
        ("gpt-7-nova", "gpt-6.1-sol"),
        ("claude-opus-7", "claude-opus-5-5"),
        ("gemini-5", "gemini-4-argon"),
    ):
        unknown, newest = sheet_of("x", name), sheet_of("x", like)
        assert not unknown.known and unknown.like == like and newest.known and not newest.like
        assert (unknown.reasoning, unknown.sampling, unknown.tools) == (newest.reasoning, newest.sampling, newest.tools)
    assert sheet_of("x", "llama-9") == sheet.Sheet()


@pytest.mark.parametrize(
    ("kind", "provider", "model", "tools", "api"),
    [
        ("openai_api", "openai", "gpt-6.1-sol", True, "openai_responses_api"),
        ("openai_api", "openai", "gpt-6.1-sol", False, "openai_api"),
        ("openai_api", "openai", "gpt-5.6-luna", True, "openai_responses_api"),
        ("openai_api", "openai", "gpt-5.2", True, "openai_api"),
        ("openai_api", "openai", "gpt-5.2-pro", False, "openai_responses_api"),
        ("openai_api", "openai", "gpt-4o", True, "openai_api"),
        ("azure_api", "azure", "gpt-6-astra", True, "azure_responses_api"),
        ("openai_api", "mine", "gpt-5.6-luna", True, "openai_api"),  # with an effort of `none`
        ("openai_api", "regional", "gpt-5.6-luna", True, "openai_responses_api"),
        ("openai_api", "mine", "gpt-6-astra", True, "openai_responses_api"),
        ("openai_api", "openrouter", "openai/gpt-6-astra", True, "openai_api"),
        ("anthropic_api", "anthropic", "claude-opus-5-5", True, "anthropic_api"),
    ],
)
def test_the_api_that_has_the_model_is_asked(kind, provider, model, tools, api):
    address = "https://eu.api.openai.com/v1" if provider == "regional" else "https://gateway.example.com/v1"
    spec = TargetSpec(id="x", kind=kind, provider=provider, model=model, base_url=address)
    assert api_for(spec, tools=tools) == api


def _spec(name, kind):
    provider, model = name.split(":")
    return TargetSpec(id=name, kind=kind, provider=provider, model=model)


@pytest.mark.parametrize(
    ("name", "kind", "params", "words"),
    [
        ("openai:gpt-6.1-sol", "openai_api", {"temperature": 0}, "does not accept temperature: not sent"),
        ("google:gemini-3.8-flash", "google_api", {"temperature": 0}, "ignores temperature: not sent"),
        ("anthropic:claude-fable-5-1", "anthropic_api", {"reasoning": "none"}, "`reasoning: none` is sent as `low`"),
        ("anthropic:claude-opus-4-1", "anthropic_api", {"max_tokens": 10**6}, "writes 32,000 tokens at most"),
        ("openai-responses:gpt-6-luna", "openai_responses_api", {"max_tokens": 5}, "no `max_tokens` below 16"),
        ("openai:gpt-6-luna", "openai_api", {"reasoning": "max"}, "`reasoning: max` is sent as `xhigh`"),
        ("openai:gpt-6-luna", "openai_api", {"reasoning": "high"}, ""),
    ],
)
def test_what_is_not_sent_as_it_was_set_is_said(name, kind, params, words):
    said = "; ".join(remarks(_spec(name, kind), params))
    assert words in said and bool(words) == bool(said)


def test_with_tools_a_chat_that_takes_none_while_reasoning_is_told_not_to():
    spec = _spec("mine:gpt-5.6-luna", "openai_api")
    assert supported_params(spec, {"reasoning": "high"}, tools=True) == {"reasoning": "none"}
    assert "accepts tools only without reasoning" in next(iter(remarks(spec, {"reasoning": "high"}, tools=True)))


REFUSALS = {
    "temperature": "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) value is supported.",
    "top_p": "Unsupported parameter: 'top_p' is not supported with this model.",
    "stop": "Argument not supported on this model: stop",
    "presence_penalty": "Model nova-1 does not support parameter presencePenalty.",
    "reasoning": "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
}


async def test_requests_that_are_on_their_way_are_sent_again_too(run_suite, monkeypatch):
    async with vendors() as server:
        monkeypatch.setattr(
            "tests.servers.vendors.refusal",
            lambda path, headers, body, alike: (
                _refused(body, "temperature", REFUSALS["temperature"]) or _refused(body, "top_p", REFUSALS["top_p"])
            ),
        )
        cases = [{"id": str(number), "input": f"say {number}", "expected": "ok"} for number in range(40)]
        run = await run_suite(
            providers={"nova": {"kind": "openai_api", "base_url": f"{server.url}/v1", "api_key": "k-0001"}},
            targets=[{"id": "new", "target": "nova:nova-1", "params": {"temperature": 0.3, "top_p": 0.5}}],
            cases=cases,
            scorer="exact",
        )
    assert {trial.failure_message for trial in run.trials()} == {None}
    assert run.context["arms"][0]["refused"] == ["temperature", "top_p"]


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_a_server_refuses_is_left_out_from_then_on_and_recorded(
    name, run_suite, monkeypatch, tmp_path, capsys
):
    """A model that nobody knows yet: one refusal, and all cases are answered."""
    params = {"temperature": 0.3, "top_p": 0.5, "stop": ["x"], "presence_penalty": 0.5, "reasoning": "low"}
    key = "reasoning_effort" if name == "reasoning" else name
    async with vendors() as server:
        monkeypatch.setattr(
            "tests.servers.vendors.refusal", lambda path, headers, body, alike: _refused(body, key, REFUSALS[name])
        )
        provider = {"nova": {"kind": "openai_api", "base_url": f"{server.url}/v1", "api_key": "k-0001"}}
        server.say = Say()
        cases = [{"id": str(number), "input": f"say {number}", "expected": "ok"} for number in range(5)]
        run = await run_suite(
            providers=provider,
            targets=[{"id": "new", "target": "nova:nova-1", "params": params, "concurrency": 1}],
            cases=cases,
            scorer="exact",
        )
    assert [trial.failure_message for trial in run.trials()] == [None] * 5
    sent = run.sent(run.plan_arms[0])
    assert name not in sent and {*params} - {name} <= {*sent}
    assert sum(key in heard.body for heard in server.heard) == 1
    assert run.context["arms"][0]["refused"] == [name]
    assert _run(["show", run.id, "--store", f"sqlite:///{tmp_path}/test.db"]) == 0
    assert f"{name}: refused by its server, and left out" in " ".join(capsys.readouterr().out.split())


def _refused(body, key, message):
    return Refusal(400, openai_error(message, key, "unsupported_parameter")) if key in body else None


async def test_a_server_that_wants_another_name_for_the_limit_gets_it(run_suite, monkeypatch):
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    async with vendors() as server:
        monkeypatch.setattr(
            "tests.servers.vendors.refusal", lambda path, headers, body, alike: _refused(body, "max_tokens", message)
        )
        run = await run_suite(
            providers={"nova": {"kind": "openai_api", "base_url": f"{server.url}/v1", "api_key": "k-0001"}},
            targets=[{"id": "new", "target": "nova:nova-1", "params": {"max_tokens": 99}}],
            cases=[{"id": "a", "input": "say", "expected": "ok"}],
            scorer="exact",
        )
    assert [trial.failure_message for trial in run.trials()] == [None]
    assert server.heard[-1].body["max_completion_tokens"] == 99 and run.sent(run.plan_arms[0])["max_tokens"] == 99


def test_validate_says_it_before_anything_is_asked(write_suite, monkeypatch, capsys):
    monkeypatch.setenv("GEMINI_API_KEY", "k-0001-0002")
    target = {"target": "google:gemini-3.8-flash", "params": {"temperature": 0}}
    _run(["validate", str(write_suite(targets=[target]))])
    assert "ignores temperature" in " ".join(capsys.readouterr().err.split())


async def test_what_is_not_sent_stands_in_the_record(run_suite, monkeypatch, tmp_path, capsys):
    async with vendors() as server:
        server.say = Say()
        monkeypatch.setenv("GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("GEMINI_API_KEY", "k-0001-0002")
        target = {"id": "g", "target": "google:gemini-3.8-flash", "params": {"temperature": 0, "reasoning": "none"}}
        run = await run_suite(targets=[target], cases=[{"id": "a", "input": "say", "expected": "ok"}], scorer="exact")
    assert run.sent(run.plan_arms[0]) == {"max_tokens": 6144, "reasoning": "low"}
    assert _run(["show", run.id, "--context", "--store", f"sqlite:///{tmp_path}/test.db"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "ignores temperature" in shown and "`reasoning: none` is sent as `low`" in shown


async def test_a_record_that_is_right_is_left_alone(run_suite, monkeypatch):
    """Nothing is read or written for it at the end of a run, when the store may be out of reach."""

    def touched(*_):
        raise AssertionError("nothing was refused")

    monkeypatch.setattr("fairtrial.pipeline._record_what_was_learned", touched)
    assert (await run_suite()).status == "completed"
