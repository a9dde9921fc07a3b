"""Every kind of target against the real thing: a real HTTP server, real processes, the real embedded model."""

import sys
from pathlib import Path

import msgspec
import pytest

from fairtrial.core import registry
from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import TargetUnusableError
from fairtrial.core.experiment import DEFAULT_PARAMS, TargetSpec
from fairtrial.core.options import read
from fairtrial.core.target import Target
from fairtrial.engine import ladder
from tests.limits import limit_reached_when
from tests.processes import ended, unmistakable


def request(text: str = "Question?", **changes) -> Request:
    base = Request(trial_id="t", case_id="c", input=text, params=dict(DEFAULT_PARAMS))
    return msgspec.structs.replace(base, **changes)


async def opened(kind: str, *, folder: Path = Path(), options: dict | None = None, **spec) -> Target:
    cls = registry.load("targets", kind)
    problems: list = []
    given = read(cls.options_type, options or {}, problems)
    assert not problems
    target = cls(TargetSpec(id="t", kind=kind, provider=spec.pop("provider", kind), **spec), given, folder)
    await target.open(5)
    return target


@pytest.fixture(params=["openai_api", "anthropic_api"])
async def http_target(request, model_server):
    """A target of each HTTP kind, made by a function that also starts its server."""
    made = []

    async def make(provider: str = "lab", model: str = "m", **behaviour):
        state = await model_server(**behaviour)
        target = await opened(
            request.param, base_url=f"{state.address}/v1/", api_key="sk-12345678", model=model, provider=provider
        )
        made.append(target)
        return target, state

    yield make
    for target in made:
        await target.close()


@pytest.mark.parametrize("stream", [True, False])
class TestHttpTargets:
    async def test_an_answer(self, http_target, stream):
        target, state = await http_target(answer="It is 42, naïve 🙂.", latency=0.02)
        answer = await target.ask(request("What?", system="Be brief", stream=stream))
        assert isinstance(answer, Answer)
        assert answer.text == "It is 42, naïve 🙂."
        assert answer.finish_reason == "stop"
        assert answer.model == "mock"
        assert (answer.usage.prompt, answer.usage.completion) == (2, len(answer.text) // 4 + 1)
        assert answer.latency_ms >= 20
        assert (answer.first_token_ms is not None) is stream
        assert bool(state.bodies[-1].get("stream")) is stream

    @pytest.mark.parametrize(("fault", "kind"), [("429", "rate_limited"), ("500", "server"), ("blank", "malformed")])
    async def test_faults_are_values(self, http_target, stream, fault, kind):
        target, _ = await http_target(faults={fault: 1}, retry_after=7)
        failure = await target.ask(request(stream=stream))
        assert isinstance(failure, Failure)
        assert (failure.kind, failure.retryable) == (kind, True)
        assert failure.retry_after == (7 if fault == "429" else None)

    async def test_a_broken_connection(self, http_target, stream):
        target, _ = await http_target(faults={"reset": 1})
        failure = await target.ask(request(stream=stream))
        assert (failure.kind, failure.retryable) == ("stream" if stream else "connection", True)

    async def test_an_empty_answer_is_an_answer(self, http_target, stream):
        target, _ = await http_target(faults={"empty": 1})
        assert (await target.ask(request(stream=stream))).text == ""

    async def test_a_wrong_key_and_a_wrong_model(self, http_target, stream):
        target, _ = await http_target(key="another-key")
        assert (await target.ask(request(stream=stream))).kind == "auth"
        target, _ = await http_target(models=("other",))
        assert (await target.ask(request(stream=stream))).kind == "model"

    async def test_nobody_there(self, http_target, stream):
        target, _ = await http_target()
        target.url = lambda **_: "http://127.0.0.1:9/v1/chat"
        failure = await target.ask(request(stream=stream))
        assert (failure.kind, failure.retryable) == ("connection", True)


async def test_a_stream_that_ends_too_early(http_target):
    target, _ = await http_target(faults={"cut": 1})
    failure = await target.ask(request())
    assert (failure.kind, failure.retryable) == ("stream", True)


async def test_nobody_listens(http_target):
    with pytest.raises(TargetUnusableError, match="cannot connect to"):
        await opened("openai_api", base_url="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(TargetUnusableError, match="is not a web address"):
        await opened("openai_api", base_url="localhost", model="m")


async def test_what_is_sent_to_openai(model_server):
    state = await model_server(strict=False)  # a server of one's own may take more than OpenAI
    target = await opened("openai_api", provider="lab", base_url=f"{state.address}/v1", model="m")
    params = {"temperature": 0.2, "max_tokens": 9, "seed": 3, "stop": ["x"], "extra": {"top_k": 5}}
    await target.ask(request("Q", system="S", params=params, stream=False))
    assert state.bodies[-1] == {
        "model": "m",
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}],
        "temperature": 0.2,
        "max_tokens": 9,
        "seed": 3,
        "stop": ["x"],
        "top_k": 5,
    }
    await target.close()


async def test_what_is_sent_to_anthropic(model_server):
    state = await model_server()
    target = await opened("anthropic_api", base_url=state.address, api_key="k", model="m")
    await target.ask(request("Q", system="S", params={**DEFAULT_PARAMS, "stop": ["x"]}, stream=False))
    assert state.bodies[-1] == {
        "model": "m",
        "max_tokens": 2048,
        "messages": [{"role": "user", "content": "Q"}],
        "system": "S",
        "temperature": 0.7,
        "stop_sequences": ["x"],
    }
    await target.close()


class TestMock:
    async def test_answers_by_case_by_prompt_and_by_repeat(self):
        options = {"answers": {"first": ["one", "two"], "capital": "Paris"}, "answer": "no idea"}
        target = await opened("mock", model="x", options=options)
        said = [
            (await target.ask(request("q", case_id=case, repeat=repeat))).text
            for case, repeat in (("first", 0), ("first", 1), ("first", 2))
        ]
        assert said == ["one", "two", "one"]
        assert (await target.ask(request("the capital?", case_id="z"))).text == "Paris"
        assert (await target.ask(request("?", case_id="z"))).text == "no idea"

    async def test_echo(self):
        assert (await (await opened("mock", model="echo")).ask(request("hello"))).text == "hello"

    async def test_the_same_trial_has_the_same_luck(self):
        target = await opened("mock", model="echo", options={"faults": {"500": 0.5}})
        results = [[await target.ask(request(trial_id=str(n))) for n in range(40)] for _ in range(2)]
        kinds = [[type(result).__name__ for result in row] for row in results]
        assert kinds[0] == kinds[1]
        assert 5 < kinds[0].count("Failure") < 35


class TestPythonCall:
    @pytest.fixture
    def agent(self, tmp_path):
        (tmp_path / "my_agent.py").write_text(
            "def plain(user_query, system_prompt, mcp_servers):\n    return f'{system_prompt}|{user_query}'\n"
            "async def rich(user_query, system_prompt, mcp_servers):\n    return {'text': 'hi', 'steps': 3}\n"
            "def broken(q, s, m):\n    raise RuntimeError('oh')\n"
            "def odd(q, s, m):\n    return 3\n"
        )
        return tmp_path

    async def test_calls(self, agent):
        plain = await opened("python_call", folder=agent, model="my_agent.py:plain")
        assert (await plain.ask(request("Q", system="S"))).text == "S|Q"
        rich = await opened("python_call", folder=agent, model="my_agent.py:rich")
        answer = await rich.ask(request())
        assert (answer.text, answer.trace) == ("hi", {"steps": 3})

    async def test_what_it_raises_is_a_failure(self, agent):
        broken = await opened("python_call", folder=agent, model="my_agent.py:broken")
        failure = await broken.ask(request())
        assert (failure.kind, failure.retryable) == ("crashed", False)
        assert "RuntimeError: oh" in failure.message
        odd = await opened("python_call", folder=agent, model="my_agent.py:odd")
        assert (await odd.ask(request())).kind == "malformed"


class TestCommand:
    async def test_prompt_on_stdin(self):
        target = await opened("command", options={"command": ["cat"]})
        assert (await target.ask(request("héllo"))).text == "héllo"

    async def test_prompt_as_argument_and_system_in_the_environment(self):
        code = "import os,sys; print(os.environ['FAIRTRIAL_SYSTEM_PROMPT'], sys.argv[1])"
        target = await opened("command", options={"command": [sys.executable, "-c", code], "prompt": "argument"})
        assert (await target.ask(request("; rm -rf /", system="S"))).text == "S ; rm -rf /"

    async def test_json_output(self):
        code = "import json; print(json.dumps(dict(text='hi', prompt_tokens=3, completion_tokens=1, cost_usd=0.5)))"
        target = await opened("command", options={"command": [sys.executable, "-c", code], "output": "json"})
        answer = await target.ask(request())
        assert (answer.text, answer.usage.prompt, answer.cost_usd) == ("hi", 3, 0.5)

    async def test_failures_have_reasons(self):
        code = "import sys; sys.stderr.write('no luck'); sys.exit(3)"
        target = await opened("command", options={"command": [sys.executable, "-c", code]})
        failure = await target.ask(request())
        assert failure.kind == "crashed" and "exited with 3: no luck" in failure.message
        target = await opened("command", options={"command": ["echo", "x"], "output": "json"})
        assert (await target.ask(request())).kind == "malformed"

    @pytest.mark.slow
    async def test_the_time_limit_ends_it_with_its_children(self, run_suite, tmp_path, monkeypatch):
        nap = unmistakable(987)
        code = f"import subprocess,sys,time; subprocess.Popen(['sleep','{nap}']); open('{tmp_path}/up','w'); time.sleep(9999)"
        target = {"id": "slow", "target": "command", "options": {"command": [sys.executable, "-c", code]}}
        monkeypatch.setattr(ladder, "time_limit", limit_reached_when((tmp_path / "up").exists))
        run = await run_suite(targets=[target])
        (trial,) = run.trials()
        assert (trial.failure_kind, trial.limit, trial.score) == (None, "time", 0.0)
        assert ended(nap)


ANSWERS = ("The capital of France is Paris.", "Paris is France's capital city.", "I like to ride my bicycle.")


@pytest.mark.slow
class TestLocal:
    @pytest.mark.slow
    @pytest.mark.model
    async def test_the_embedded_model_answers_and_is_deterministic(self, run_suite):
        from fairtrial.providers.weights import fetch

        fetch("smollm2")
        run = await run_suite(
            targets=[{"id": "small", "target": "local:smollm2", "options": {"threads": 1}}],
            system="You are a helpful assistant.",
            params={"temperature": 0, "max_tokens": 12},
            repeats=2,
            scorer="boolean",
            cases=[{"id": "fr", "input": "What is the capital of France?", "expected": "Paris"}],
        )
        first, second = run.trials()
        assert run.status == "completed"
        assert first.answer == second.answer
        assert first.score == 1.0
        assert first.prompt_tokens > 5 and 0 < first.completion_tokens <= 12
        assert first.model == "smollm2" and first.cost_usd == 0
        assert first.first_token_ms < first.latency_ms

    @pytest.mark.model
    async def test_its_embeddings_tell_topics_apart(self, run_suite):
        from fairtrial.providers.weights import fetch

        fetch("smollm2")
        cases = [{"id": answer, "input": answer, "expected": "The capital of France is Paris."} for answer in ANSWERS]
        run = await run_suite(cases=cases, scorer={"type": "similar", "embedder": "local:smollm2"})
        same, close, far = (trial.score for trial in run.trials())
        assert same == pytest.approx(1, abs=1e-3) and same > close > far
        assert run.arms[0].cost_usd == 0

    @pytest.mark.parametrize(("name", "embed"), [("local:mine", False), ("embedder local:mine", True)])
    async def test_only_the_server_that_is_needed_is_started(self, tmp_path, monkeypatch, name, embed):
        from fairtrial.core.experiment import TargetSpec
        from fairtrial.engine.targets import build_target
        from fairtrial.targets import local

        started = []

        def start(path, options, key, *, embed):
            started.append(embed)
            raise TargetUnusableError("no such model")

        monkeypatch.setattr(local, "_start", start)
        spec = TargetSpec(id=name, kind="local", provider="local", model="mine", options={"path": "mine.gguf"})
        with pytest.raises(TargetUnusableError, match="no such model"):
            await build_target(spec, tmp_path).open(1)
        assert started == [embed]

    @pytest.mark.model
    async def test_without_weights_it_says_how_to_get_them(self, run_suite, tmp_path, monkeypatch):
        monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "empty"))
        with pytest.raises(TargetUnusableError, match="fairtrial fetch smollm2"):
            await run_suite(targets=["local:smollm2"])
