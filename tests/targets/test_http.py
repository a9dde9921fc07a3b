"""`http:` for anything with a URL, and `litellm:` for the rest."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairtrial import pipeline
from fairtrial.core.answer import Answer, Failure
from fairtrial.core.errors import FairtrialError, NotInstalledError
from tests.servers.vendors import Say, vendors
from tests.targets.test_targets import opened, request


@pytest.fixture
async def server():
    async with vendors() as running:
        yield running


CHAT = {"model": "m", "messages": "{{ messages }}", "max_tokens": 9, "user": "case {{ case_id }}"}
PATHS = {
    "answer": "choices[0].message.content",
    "tokens": {"prompt": "usage.prompt_tokens", "completion": "usage.completion_tokens"},
    "cost": "usage.cost",
}


async def test_a_url_is_asked_and_its_reply_is_read(server):
    options = {"headers": {"api-key": "k"}, "body": CHAT, **PATHS}
    target = await opened(
        "http", provider="http", model=f"{server.url[5:]}/v1/chat/completions", options=options, base_url=""
    )
    answer = await target.ask(request('Say "hi"', system="Be brief."))
    assert isinstance(answer, Answer), answer
    assert (answer.text, answer.usage.prompt, answer.usage.completion, answer.cost_usd) == ("ok", 14, 30, None)
    assert server.heard[-1].body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": 'Say "hi"'}],
        "max_tokens": 9,
        "user": "case c",
    }
    assert target.sent(request("x")) == {}  # no parameter is in the template
    server.say = Say(error=(429, {"error": {"message": "slow down"}}), headers={"retry-after": "3"})
    failure = await target.ask(request("x"))
    assert (failure.kind, failure.retryable, failure.retry_after) == ("rate_limited", True, 3.0)
    await target.close()


async def test_what_is_not_where_it_should_be_is_a_failure(server):
    options = {"url": f"{server.url}/v1/chat/completions", "headers": {"api-key": "k"}, "body": CHAT, "answer": "text"}
    target = await opened("http", options=options)
    failure = await target.ask(request("x"))
    assert isinstance(failure, Failure) and failure.message == "the reply has no `text`"
    await target.close()


async def test_a_text_may_be_a_template_and_the_whole_reply_the_answer(server):
    body = '{"model": "m", "messages": [{"role": "user", "content": {{ input | tojson }}}]}'
    options = {"url": f"{server.url}/v1/chat/completions", "headers": {"api-key": "{{ case_id }}"}, "body": body}
    target = await opened("http", options=options)
    answer = await target.ask(request('a "quoted" {{ input }}'))
    assert json.loads(answer.text)["choices"]
    assert server.heard[-1].body["messages"][0]["content"] == 'a "quoted" {{ input }}'  # data is never a template
    assert server.heard[-1].headers["api-key"] == "c"
    await target.close()


async def test_in_a_suite_with_a_key_that_stays_hidden(run_suite, server, store, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret-0001")
    options = {"headers": {"api-key": "${MY_KEY}"}, "body": CHAT, **PATHS}
    target = {"id": "mine", "target": f"{server.url}/v1/chat/completions", "options": options}
    server.say = Say(text="Paris")
    run = await run_suite(targets=[target])
    (trial,) = run.trials()
    assert trial.answer == "Paris" and trial.score == 1.0
    assert server.heard[-1].headers["api-key"] == "sk-very-secret-0001"
    assert b"sk-very-secret" not in Path(store.path).read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs an address"),
        (
            {"url": "http://x", "body": {"q": "{{ question }}"}},
            "`question` is not known in a request; there are: input",
        ),
        ({"url": "http://x", "answer": "a..b["}, "is not a path"),
        ({"url": "http://x", "body": "{{ input"}, "not a valid template"),
    ],
)
def test_mistakes_are_found_before_anything_is_sent(write_suite, options, words):
    path = write_suite(targets=[{"id": "mine", "target": "http", "options": options}])
    with pytest.raises(FairtrialError, match=words.replace("[", r"\[")):
        pipeline.load(path)


class TestLitellm:
    """LiteLLM itself weighs 330 MB, so its place is taken by a module with the one function that is called."""

    @pytest.fixture
    def library(self, monkeypatch):
        calls = []

        def reply(value):
            return SimpleNamespace(model_dump_json=lambda: json.dumps(value))

        async def acompletion(**given):
            calls.append(given)
            if given["model"] == "cohere/broken":
                error = Exception("over the limit")
                error.status_code, error.message = 429, "over the limit"
                raise error
            usage = {"prompt_tokens": 3, "completion_tokens": 1}
            if not given["stream"]:
                choice = {"message": {"content": "ok"}, "finish_reason": "stop"}
                return reply({"model": "served", "choices": [choice], "usage": usage})

            async def chunks():
                yield reply({"choices": [{"delta": {"content": "o"}}]})
                yield reply({"choices": [{"delta": {"content": "k"}, "finish_reason": "stop"}], "usage": usage})

            return chunks()

        monkeypatch.setitem(sys.modules, "litellm", SimpleNamespace(acompletion=acompletion, __spec__=True))
        return calls

    @pytest.mark.parametrize("stream", [True, False])
    async def test_an_answer(self, library, stream):
        target = await opened("litellm", provider="litellm", model="cohere/command-a")
        answer = await target.ask(request("x", system="s", stream=stream))
        assert isinstance(answer, Answer), answer
        assert (answer.text, answer.finish_reason, answer.usage.prompt) == ("ok", "stop", 3)
        assert library[-1]["model"] == "cohere/command-a" and library[-1]["messages"][0]["role"] == "system"
        assert target.lane == "litellm:cohere"

    async def test_an_error_has_its_kind(self, library):
        target = await opened("litellm", provider="litellm", model="cohere/broken")
        failure = await target.ask(request("x"))
        assert (failure.kind, failure.retryable, failure.message) == ("rate_limited", True, "HTTP 429: over the limit")


async def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(NotInstalledError, match=r"pip install 'fairtrial\[litellm\]'"):
        await opened("litellm", provider="litellm", model="cohere/command-a")
