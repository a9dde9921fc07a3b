"""One contract for every kind of target: what configuration, engine and record rely on, whatever the target does."""

import sys

import msgspec
import pytest

from fairtrial.core import registry
from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.experiment import DEFAULT_PARAMS, TargetSpec
from fairtrial.core.options import read
from fairtrial.core.providers import known_providers
from fairtrial.core.target import Options, Target
from tests.scripted import look_up
from tests.servers.vendors import vendors

CHAT = {"model": "m", "messages": "{{ messages }}"}

KINDS = registry.builtin_names("targets")
OUTSIDE = {"local", "litellm"}  # weights, a library: tests/targets asks the real ones
OUTSIDE |= {"claude_code", "codex", "gemini_cli", "opencode"}  # programs: test_agents.py asks the real ones
HERE = {"openai_api", "anthropic_api", "tool_agent", "replay", "python_call", "command", "mock", "http"}
HERE |= {
    "openai_responses_api",
    "azure_responses_api",
    "google_api",
    "vertex_api",
    "azure_api",
    "bedrock_api",
    "mistral_api",
}


def spec(kind: str, **changes) -> TargetSpec:
    return TargetSpec(id="t", kind=kind, **{"provider": kind, "model": "m", **changes})


def build(kind: str, folder, options: dict | None = None, **changes) -> Target:
    cls = registry.load("targets", kind)
    problems: list = []
    given = read(cls.options_type, options or {}, problems)
    assert not problems
    return cls(spec(kind, **changes), given, folder)


@pytest.fixture
async def usable(tmp_path, model):
    """Every kind that can be asked without anything from outside, ready to answer."""
    served = await model(look_up)
    async with vendors() as other:
        yield _maker(tmp_path, served, other.url)


def _maker(tmp_path, served, url):
    (tmp_path / "answers" / "c").mkdir(parents=True)
    (tmp_path / "answers" / "c" / "polite_1.txt").write_text("Paris")
    (tmp_path / "own.py").write_text("def ask(prompt, system, servers):\n    return 'Paris'\n")
    program = [sys.executable, "-c", "print('Paris')"]

    def make(kind: str) -> Target:
        given = {
            "openai_api": {"base_url": f"{served.url}/v1", "api_key": "k"},
            "anthropic_api": {"base_url": served.url, "api_key": "k"},
            "tool_agent": {"base_url": f"{served.url}/v1", "api_key": "k", "api": "openai_api"},
            "replay": {"model": "answers", "options": {"prefix": "polite"}},
            "python_call": {"model": "own.py:ask"},
            "command": {"options": {"command": program}},
            "mock": {"options": {"answer": "Paris"}},
            "http": {"options": {"url": f"{url}/v1/chat/completions", "headers": {"api-key": "k"}, "body": CHAT}},
            "openai_responses_api": {"base_url": f"{url}/v1", "api_key": "k"},
            "google_api": {"base_url": url, "api_key": "k"},
            "vertex_api": {"base_url": f"{url}/v1beta1/projects/p/locations/l", "api_key": "Bearer k"},
            "azure_api": {"base_url": f"{url}?api-version=", "api_key": "k"},
            "bedrock_api": {"base_url": url, "api_key": "k"},
            "mistral_api": {"base_url": f"{url}/mistral/v1", "api_key": "k"},
            "azure_responses_api": {"base_url": url, "api_key": "k"},
        }[kind]
        return build(kind, tmp_path, given.pop("options", None), **given)

    return make


def test_every_kind_is_asked_here_or_for_real():
    assert set(KINDS) == HERE | OUTSIDE, "add a new kind to `usable`"


@pytest.mark.parametrize("kind", KINDS)
class TestEveryTarget:
    def test_it_says_what_it_is(self, kind):
        cls = registry.load("targets", kind)
        assert issubclass(cls, Target) and cls.__doc__
        assert issubclass(cls.options_type, Options)
        flags = ("priced", "names_its_cost", "many_calls", "agent", "runs_own_code", "uses_tools", "takes_files")
        assert all(isinstance(getattr(cls, flag), bool) for flag in flags)

    def test_an_option_that_it_does_not_know_is_a_problem(self, kind):
        problems: list = []
        read(registry.load("targets", kind).options_type, {"no_such_option": 1}, problems)
        assert any("no_such_option" in f"{path} {message}" for path, message in problems)

    @pytest.mark.slow
    def test_checking_tells_reasons_and_never_raises(self, kind, tmp_path):
        cls = registry.load("targets", kind)
        options = read(cls.options_type, {}, [])
        reasons = [] if options is None else list(cls.check(spec(kind), options, tmp_path))
        assert all(isinstance(reason, str) and reason for reason in reasons)

    async def test_what_was_never_opened_can_be_closed(self, kind, tmp_path):
        cls = registry.load("targets", kind)
        options = read(cls.options_type, {}, [])
        if options is None:
            pytest.skip("it has options that must be given")
        changes = {"api": "openai_api"} if kind == "tool_agent" else {}
        await cls(spec(kind, **changes), options, tmp_path).close()

    async def test_one_question_gets_one_answer(self, kind, usable):
        if kind in OUTSIDE:
            pytest.skip("tests/targets asks the real one")
        target = usable(kind)
        await target.open(2)
        try:
            request = Request(
                trial_id="t", case_id="c", input="What is the capital of France?", params=dict(DEFAULT_PARAMS)
            )
            answer = await target.ask(request)
            assert isinstance(answer, Answer), answer
            assert isinstance(answer.text, str) and answer.latency_ms >= 0
            sent = target.sent(request)
            assert sent.items() <= {**request.params, "max_tokens": sent.get("max_tokens")}.items()
            assert all(isinstance(item, str) for pair in target.versions().items() for item in pair)
        finally:
            await target.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.endswith("_api")])
class TestEveryApi:
    """A vendor's API is one file: what is sent, and how replies and turns are read; where its models live is a row."""

    def test_it_has_a_home(self, kind):
        kind = kind.replace("azure_responses", "azure")  # to which `azure:` targets are led where they have to be
        homes = [provider for provider in known_providers().values() if provider.kind == kind]
        assert homes and all(home.base_url and home.api_key.startswith("${") for home in homes)

    def test_the_key_goes_out_in_a_header_and_nowhere_else(self, kind, tmp_path):
        target = build(kind, tmp_path, base_url="http://x", api_key="sk-secret-0001")
        assert "sk-secret-0001" in " ".join(target.headers(target.spec).values())
        body = target.body(Request(trial_id="t", case_id="c", input="q", params=dict(DEFAULT_PARAMS)))
        assert b"sk-secret" not in msgspec.json.encode(body) and "sk-secret" not in str(target.url())

    @pytest.mark.parametrize(
        "reply", [b"", b"null", b"[]", b"{}", b'"x"', b"\xff\xfe", b'{"choices": 1, "content": 1}']
    )
    def test_nonsense_is_a_failure(self, kind, reply, tmp_path):
        target = build(kind, tmp_path, base_url="http://x", api_key="k")
        assert isinstance(target.read_whole(reply, 0.0), Failure)
        request = Request(trial_id="t", case_id="c", input="q")
        turn = target.conversation(target.spec, request, ()).read(reply)
        assert isinstance(turn, Failure)

    async def test_nobody_at_the_address_is_said_before_anything_is_asked(self, kind, tmp_path):
        from fairtrial.core.errors import TargetUnusableError

        target = build(kind, tmp_path, base_url="http://127.0.0.1:9", api_key="k")
        with pytest.raises(TargetUnusableError, match=r"127\.0\.0\.1:9"):
            await target.open(1)
        await target.close()


def test_a_plain_target_has_no_code_of_its_own_and_no_hosts(tmp_path):
    mock = build("mock", tmp_path, {"answer": "x"})
    assert (mock.code(mock.spec, None, tmp_path), tuple(mock.model_hosts())) == ("", ())
