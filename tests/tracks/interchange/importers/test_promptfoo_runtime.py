"""What an import writes beside the suite does what promptfoo does: functions behind tools, services, spans, hooks."""

import ast
import io
import json
import ssl
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

import fairtrial as ft
from fairtrial.config import load_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.user_functions import load_function
from fairtrial.foreign.suites import write_suite
from fairtrial.tracks.interchange.importers._promptfoo import runtime_http, runtime_models
from fairtrial.tracks.interchange.importers.promptfoo import Promptfoo
from tests.ports import free_port

CORPUS = Path(__file__).parents[3] / "data" / "promptfoo"
ASKED = [{"role": "user", "content": "Add 2 and 3"}]
CALL = {"name": "add", "arguments": '{"a": 2, "b": 3}'}


class Endpoint:
    """Stands for boto3 and an endpoint of SageMaker."""

    def __init__(self, reply):
        self.reply, self.calls = reply, []

    def Session(self, **where):
        self.where = where
        return self

    def client(self, name):
        assert name == "sagemaker-runtime"
        return self

    def invoke_endpoint(self, **call):
        self.calls.append(call)
        return {"Body": io.BytesIO(json.dumps(self.reply).encode())}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("openai", {"prompt": "<Add 2 and 3>", "max_tokens": 9, "temperature": 0, "top_p": 0.5, "stop": ["END"]}),
        ("llama", {"inputs": "<Add 2 and 3>", "parameters": {"max_new_tokens": 9, "temperature": 0, "top_p": 0.5, "stop": ["END"]}}),
        ("jumpstart", {"inputs": "<Add 2 and 3>", "parameters": {"max_new_tokens": 9, "temperature": 0, "top_p": 0.5, "do_sample": False}}),
        ("huggingface", {"inputs": "<Add 2 and 3>", "parameters": {"max_new_tokens": 9, "temperature": 0, "top_p": 0.5, "do_sample": False, "return_full_text": False}}),
        ("custom", {"prompt": "<Add 2 and 3>"}),
    ],
)  # fmt: skip
def test_an_endpoint_of_sagemaker_is_asked_in_its_own_words(kind, body, monkeypatch):
    endpoint = Endpoint({"answer": {"text": "5"}})
    monkeypatch.setitem(sys.modules, "boto3", endpoint)
    options = {
        "region": "eu-west-1", "maxTokens": 9, "temperature": 0, "topP": 0.5, "stopSequences": ["END"],
        "acceptType": "text/json", "transform": "return `<${prompt}>`;", "path": "$.answer.text",
    }  # fmt: skip
    assert runtime_models.call_sagemaker("mine", kind, options, ASKED) == {"text": "5"}
    assert endpoint.where == {"region_name": "eu-west-1", "profile_name": None}
    (call,) = endpoint.calls
    assert (call["EndpointName"], call["ContentType"], call["Accept"]) == ("mine", "application/json", "text/json")
    assert json.loads(call["Body"]) == body


@pytest.mark.parametrize(
    ("reply", "path", "text"),
    [
        ({"generated_text": "a"}, "", "a"),
        ([{"generated_text": "b"}], "", "b"),
        ({"choices": [{"message": {"content": "c"}}]}, "", "c"),
        ({"generation": "d"}, "", "d"),
        ({"other": 1}, "", '{"other": 1}'),
        ({"deep": ["e"]}, "json.deep[0]", "e"),
        ({"deep": []}, "json.nothing.there", '{"deep": []}'),
    ],
)
def test_the_answer_of_an_endpoint_is_found(reply, path, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", Endpoint(reply))
    assert runtime_models.call_sagemaker("mine", "jumpstart", {"path": path}, ASKED) == {"text": text}


def test_chats_reach_an_endpoint_as_messages(monkeypatch):
    endpoint = Endpoint({"generation": "x"})
    monkeypatch.setitem(sys.modules, "boto3", endpoint)
    chat = [{"role": "system", "content": "Be brief."}, *ASKED]
    runtime_models.call_sagemaker("mine", "openai", {}, chat)
    runtime_models.call_sagemaker("mine", "llama", {}, chat)
    first, second = (json.loads(call["Body"]) for call in endpoint.calls)
    assert first["messages"] == second["inputs"] == chat


@contextmanager
def serving(*replies):
    """Serve replies in turn, the last one for good; yield the address and what was sent."""
    sent, left = [], list(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            sent.append((self.path, json.loads(body) if body else None, dict(self.headers)))
            reply = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(500 if reply is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        do_GET = do_POST

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


def written(config, folder):
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    result = Promptfoo().read(folder / "c.yaml")
    write_suite(result, folder / "suite.yaml", source="c.yaml", tool="promptfoo")
    return result


def imported(name, folder):
    result = Promptfoo().read(CORPUS / f"{name}.yaml")
    write_suite(result, folder / "suite.yaml", source=name, tool="promptfoo")
    return result


@pytest.fixture
def keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    return monkeypatch


def responses(*items):
    return {"output": list(items), "usage": {"input_tokens": 3, "output_tokens": 4}}


SAID = {"type": "message", "content": [{"type": "output_text", "text": "It is 5."}]}
ASKS = {"type": "function_call", "call_id": "c1", **CALL}


def test_what_functions_return_is_the_answer(tmp_path, keys):
    imported("functions", tmp_path)
    with serving(responses(ASKS)) as (address, sent):
        keys.setenv("OPENAI_BASE_URL", address)
        report = load_function("promptfoo_code.py:provider_1", tmp_path)("", "", {}, ASKED, {})
    assert report["text"] == "5" and report["tool_calls"] == [{"tool": "add", "arguments": CALL["arguments"]}]
    assert sent[0][0] == "/responses" and sent[0][1]["tools"][0]["name"] == "add"


def test_a_model_is_told_what_functions_return(tmp_path, keys):
    imported("functions", tmp_path)
    with serving(responses(ASKS), responses(SAID)) as (address, sent):
        keys.setenv("OPENAI_BASE_URL", address)
        report = load_function("promptfoo_code.py:provider_2", tmp_path)("", "", {}, ASKED, {})
    assert report["text"] == "It is 5." and len(sent) == 2
    assert sent[1][1]["input"][-1] == {"type": "function_call_output", "call_id": "c1", "output": "5"}


def test_functions_behind_the_chat_api(tmp_path, keys):
    imported("functions", tmp_path)
    message = {"content": None, "tool_calls": [{"id": "c1", "function": CALL}]}
    with serving({"choices": [{"message": message}], "usage": {}}) as (address, sent):
        keys.setenv("OPENAI_BASE_URL", address)
        report = load_function("promptfoo_code.py:provider_3", tmp_path)("", "", {}, ASKED, {})
    assert report["text"] == "5" and sent[0][0] == "/chat/completions"


def test_an_assistant_works_on_a_thread(keys, monkeypatch):
    monkeypatch.setattr(runtime_models.time, "sleep", lambda _: None)
    run = {"id": "r", "thread_id": "t"}
    needed = {"submit_tool_outputs": {"tool_calls": [{"id": "c1", "function": CALL}]}}
    reply = {"role": "assistant", "content": [{"type": "text", "text": {"value": "It is 5."}}]}
    replies = (
        {**run, "status": "queued"},
        {**run, "status": "requires_action", "required_action": needed},
        {**run, "status": "completed", "usage": {}},
        {"data": [reply]},
    )
    with serving(*replies) as (address, sent):
        report = runtime_models.call_assistant(
            "asst_1", {"instructions": "Be brief."}, ASKED, base_url=address, callbacks={"add": "async () => '5'"}
        )
    assert report["text"] == "It is 5."
    assert [path for path, _, _ in sent] == [
        "/threads/runs", "/threads/t/runs/r", "/threads/t/runs/r/submit_tool_outputs", "/threads/t/messages"
    ]  # fmt: skip
    assert sent[2][1] == {"tool_outputs": [{"tool_call_id": "c1", "output": "5"}]}


def test_pictures_are_sent_to_models_behind_functions():
    from fairtrial.tracks.interchange.importers._promptfoo.runtime import with_files

    class File:
        name, media, body = "dot.png", "image/png", b"x"

    (message,) = with_files(ASKED, [File])
    assert message["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
    parts = runtime_models._responses_content(message)
    assert parts[1] == {"type": "input_image", "image_url": "data:image/png;base64,eA=="}


def test_an_agent_that_speaks_a2a_is_asked_until_its_task_has_ended(monkeypatch):
    monkeypatch.setattr(runtime_http.time, "sleep", lambda _: None)
    done = {"id": "t", "status": {"state": "completed"}, "artifacts": [{"parts": [{"kind": "text", "text": "hi"}]}]}
    replies = ({"result": {"id": "t", "status": {"state": "working"}}}, {"result": done})
    with serving(*replies) as (address, sent):
        auth = {"type": "bearer", "token": "{{ token }}"}
        answer = runtime_http.call_a2a(ASKED, {"token": "s"}, url=address, auth=auth)
    assert answer == "hi" and sent[0][2]["Authorization"] == "Bearer s"
    assert [body["method"] for _, body, _ in sent] == ["message/send", "tasks/get"]


def test_a_tool_of_a_gateway_is_called(monkeypatch):
    with serving({"result": {"sessions": []}}) as (address, sent):
        monkeypatch.setenv("OPENCLAW_GATEWAY_URL", address)
        answer = runtime_http.call_openclaw_tool(
            "sessions_list", {"action": "json"}, [{"role": "user", "content": "{}"}]
        )
    assert answer == '{"sessions": []}' and sent[0][1] == {"tool": "sessions_list", "args": {}, "action": "json"}


def test_how_a_connection_is_secured():
    context = runtime_http.secured({"rejectUnauthorized": False, "minVersion": "TLSv1.3"})
    assert context.verify_mode == ssl.CERT_NONE and context.minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"type": "basic", "username": "a", "password": "b"}, {"Authorization": "Basic YTpi"}),
        ({"type": "api_key", "keyName": "X-Lab", "value": "s"}, {"X-Lab": "s"}),
        ({"type": "bearer", "token": "s"}, {"Authorization": "Bearer s"}),
    ],
)
def test_how_a_request_is_authorised(auth, header):
    assert runtime_http.authorised(auth) == header


def test_a_token_is_asked_for_first():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            assert b"client_id=me" in self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"access_token": "t"}')

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        auth = {"type": "oauth", "clientId": "me", "tokenUrl": f"http://127.0.0.1:{server.server_port}/"}
        assert runtime_http.authorised(auth) == {"Authorization": "Bearer t"}
        server.shutdown()


@pytest.mark.slow
def test_spans_that_a_provider_sends_are_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    imported("more-checks", tmp_path)
    port = str(free_port())  # that of the configuration may be taken on this machine
    monkeypatch.setenv("SPANS_PORT", port)
    for file in tmp_path.rglob("*.py"):
        file.write_text(file.read_text().replace("43181", port))
    document = yaml.safe_load((tmp_path / "suite.yaml").read_text())
    (case,) = document["cases"]
    parts = case["scorer"]["scorers"]
    case["scorer"] = {"type": "all_of", "scorers": [p for p in parts if p["type"] == "tool_calls" or "trace" in str(p) or "span" in str(p) or "steps" in str(p)]}  # fmt: skip
    assert len(case["scorer"]["scorers"]) == 5
    del document["judge"]
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(document))
    (trial,) = ft.run(load_suite(tmp_path / "suite.yaml")).trials()
    assert trial.score == 1, trial.notes


def test_an_answer_without_spans_is_not_scored():
    from fairtrial.tracks.interchange.importers._promptfoo.runtime_traces import (
        count_spans,
        spans_are_quick,
        spans_are_sound,
    )

    with pytest.raises(RuntimeError, match="no spans were recorded"):
        count_spans({}, min=1)
    spans = {"spans": [{"name": n, "ms": ms, "failed": f} for n, ms, f in (("a", 10, False), ("b", 90, True))]}
    assert count_spans(spans, "a*", max=1)["pass"] and not count_spans(spans, min=3)["pass"]
    assert spans_are_quick(spans, 50, percentile=50)["pass"] and not spans_are_quick(spans, 50)["pass"]
    assert not spans_are_sound(spans)["pass"] and spans_are_sound(spans, max_percentage=50)["pass"]


@pytest.mark.slow
def test_a_configuration_in_javascript_is_run_only_if_asked(tmp_path):
    file = tmp_path / "promptfooconfig.js"
    file.write_text("""
        module.exports = {
          prompts: [({vars}) => `Say ${vars.q}`],
          providers: [async (prompt) => ({output: prompt + '!'})],
          tests: [{vars: {q: 'hi'}, assert: [{type: 'javascript', value: (output) => output === 'Say hi!'}]}],
        };
    """)
    with pytest.raises(FairtrialError, match="import it with --run-code"):
        Promptfoo().read(file)
    importer = Promptfoo()
    importer.run_code = True
    result = importer.read(file)
    assert not result.findings
    write_suite(result, tmp_path / "suite.yaml", source="c", tool="promptfoo")
    (trial,) = ft.run(load_suite(tmp_path / "suite.yaml")).trials()
    assert trial.score == 1, trial.notes


def test_a_configuration_that_cannot_be_run_is_one_sentence(tmp_path):
    (tmp_path / "c.js").write_text("throw new Error('no luck');")
    importer = Promptfoo()
    importer.run_code = True
    with pytest.raises(FairtrialError, match=r"c\.js cannot be run: .*no luck"):
        importer.read(tmp_path / "c.js")


def test_a_simulated_user_has_what_the_tests_say(tmp_path):
    result = imported("simulated-user", tmp_path)
    suite = load_suite(tmp_path / "suite.yaml", environment={}, placeholders=True)
    assert suite.settings.user.max_turns == 6 and suite.settings.user.persona == "{{ instructions }}"
    first, second = suite.cases()
    assert second.vars["instructions"] == "You want water at a bar."
    assert suite.arms[0].condition.render(first, 0).as_dicts() == [
        {"role": "system", "content": "You take orders at a café."},
        {"role": "user", "content": "Hello."},
    ]
    assert any("begins with a greeting" in text for text in result.differences)


def test_a_package_of_node_is_a_provider(tmp_path):
    folder = tmp_path / "node_modules" / "lab"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "lab", "main": "index.js"}')
    (folder / "index.js").write_text("exports.Lab = class { async callApi(p) { return {output: p + '?'}; } };")
    written({"prompts": ["{{q}}"], "providers": ["package:lab:Lab"], "tests": [{"vars": {"q": "x"}}]}, tmp_path)
    ask = load_function("promptfoo_code.py:provider_1", tmp_path)
    assert ask("", "", {}, [{"role": "user", "content": "hi"}], {})["text"] == "hi?"


def test_servers_of_one_vendor_with_other_headers_have_names_of_their_own(tmp_path):
    claws = [{"id": "openclaw", "label": m, "config": {"backend_model": m}} for m in ("one", "two")]
    result = written({"prompts": ["{{q}}"], "providers": claws, "tests": [{"vars": {"q": "x"}}]}, tmp_path)
    headers = [server["headers"]["x-openclaw-model"] for server in result.suite["providers"].values()]
    assert headers == ["one", "two"]


def test_only_what_is_needed_is_written_beside_the_suite(tmp_path):
    imported("provider-python", tmp_path)
    code = (tmp_path / "promptfoo_code.py").read_text()
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert nodes and not any("fairtrial" in ast.unparse(node) for node in nodes)  # paths may hold the word
    assert "def call_browser" not in code and "def traced" not in code


@pytest.mark.slow
def test_an_embedder_of_the_users_own_is_called(tmp_path):
    (tmp_path / "lab.js").write_text(
        "module.exports = class { async callEmbeddingApi(text) { return {embedding: [text.length, 1]}; } };"
    )
    check = {"type": "similar", "value": "abcd", "provider": "./lab.js", "threshold": 0.9}
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [{"vars": {"q": "abcd"}, "assert": [check]}]}
    assert not written(config, tmp_path).findings
    (trial,) = ft.run(load_suite(tmp_path / "suite.yaml")).trials()
    assert trial.score == 1, trial.notes
