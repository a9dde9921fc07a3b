"""One list of what keys look like: every kind is found in every place, and ordinary texts are left alone."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial import pipeline
from fairtrial.analyse.run import Run
from fairtrial.core.errors import ProblemsError
from fairtrial.core.secrets import keys_in, without_keys
from fairtrial.core.variables import Variables
from fairtrial.tracks.interchange.traces.redact import Redactor
from fairtrial.tracks.interchange.values import scrub

R = "aB3dE5gH7jK9mN2pQ4sT6vX8zC1wY0uI"  # 32 characters, random enough; put together so that no scanner takes it for real
HEX = hashlib.sha256(b"key").hexdigest()
JWT = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"HS256"}', b'{"sub":"ann","n":1}', b"s" * 20))  # fmt: skip
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{R}{R}\n{R}\n-----END RSA PRIVATE KEY-----"
# Keys that are known by their form.
FORMS = {
    "OpenAI": f"sk-{R}",
    "OpenAI project": f"sk-proj-{R}_{R}",
    "OpenAI service account": f"sk-svcacct-{R}",
    "Anthropic": f"sk-ant-api03-{R}-{R}",
    "OpenRouter": f"sk-or-v1-{HEX}",
    "Langfuse": f"sk-lf-{uuid.UUID(int=2**127 + 7)}",
    "Google": f"AIza{R}abc",
    "Google OAuth": f"ya29.{R}",
    "AWS": "AKIA" + "Q3EGRIU2TJF7BXLM",
    "AWS, temporary": "ASIA" + "Q3EGRIU2TJF7BXLM",
    "GitHub": f"ghp_{R}abcd",
    "GitHub, of an app": f"ghs_{R}abcd",
    "GitHub, fine-grained": f"github_pat_{R[:22]}_{R}",
    "GitLab": f"glpat-{R[:20]}",
    "Slack": f"xoxb-123456789012-{R}",
    "Slack app": f"xapp-1-{R}",
    "Hugging Face": f"hf_{R}",
    "Groq": f"gsk_{R}",
    "xAI": f"xai-{R}",
    "NVIDIA": f"nvapi-{R}",
    "Replicate": f"r8_{R}",
    "LangSmith": f"lsv2_pt_{R}_{R[:10]}",
    "Logfire": f"pylf_v1_eu_{R}",
    "Stripe": f"sk_live_{R}",
    "Stripe, restricted": f"rk_test_{R}",
    "SendGrid": f"SG.{R[:22]}.{R}",
    "JSON web token": JWT,
    "private key": PEM,
}
# Keys that are known by what carries them: the text, and the key in it.
CARRIED = {
    "bearer": (f"Authorization: Bearer {R}", R),
    "basic": (f"authorization: basic {R}==", R),
    "AWS secret": (f"aws_secret_access_key = {R[:20]}/{R[:19]}", f"{R[:20]}/{R[:19]}"),
    "Azure": (f"api-key: {HEX[:32]}", HEX[:32]),
    "Azure storage": (f"DefaultEndpointsProtocol=https;AccountKey={R}{R}==;EndpointSuffix=x", f"{R}{R}"),
    "Azure subscription": (f"Ocp-Apim-Subscription-Key: {HEX[:32]}", HEX[:32]),
    "address": (f"postgresql://ann:{R}@db.example.com/prod", R),
    "query": (f"https://example.com/v1?api_key={R}&page=2", R),
    "assignment": (f"OPENAI_API_KEY={R}", R),
    "JSON": (json.dumps({"apiKey": R, "model": "x"}), R),
    "Python": (f'client = Client(api_key="{R}")', R),
    "password": (f"password: {R}", R),
    "token": (f"token={R}", R),
    "cookie": (f"Set-Cookie: session={R}; Path=/", R),
}
EVERY = {**{kind: (f"It says {key} and so on.", key) for kind, key in FORMS.items()}, **CARRIED}
ORDINARY = [
    hashlib.sha256(b"x").hexdigest(),
    hashlib.md5(b"x").hexdigest(),
    "commit 0d4812d7c0ffee0123456789abcdef0123456789",
    str(uuid.UUID(int=2**127 + 99)),
    "1m7pqfcx1-p6fty",  # a run
    f"data:image/png;base64,{base64.b64encode(bytes(range(256)) * 20).decode()}",
    base64.b64encode(bytes(reversed(range(256)))).decode(),
    "sk-learn is scikit-learn; task-specific risk-free work-life balance since 2024-01-01",
    "a pk_customer_orders_table with the primary key customer_id_2024_01",
    "max_tokens: 1024, tokens: 123456789012, total_tokens=99999999",
    "api_key=os.environ, api_key = config.api_key, api_key: ${OPENAI_API_KEY}, apiKey=settings",
    "password: changeme; the password is hunter2; postgres://user:pass@localhost/db",
    "The bearer certificates are basic understanding, a token appreciation of basic authentication-mechanisms",
    "https://example.com/a/b?page=2&sort=name#part-1234567890, me@example.com, 12:30:45.123456",
    "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n-----END PUBLIC KEY-----",
    "AKIA is a prefix, ASIA a continent, AIza too, ghp_ and hf_ and glpat- as well; gluten-free-recipes-2024-edition",
    "model: claude-3-5-sonnet-20241022, gpt-4o-mini-2024-07-18, authorization: required, cookie: chocolate",
    '{"id": "chatcmpl-9x8y7z6w5v4u3t2s1r0q", "system_fingerprint": "fp_44709d6fcb", "call_id": "call_abc123DEF456"}',
    "{'session_key_length': 2048, 'secret santa': 'tomorrow-at-noon', 'signing key': 'in the drawer'}",
]


def _redact(text: str) -> str:
    return Redactor().text(text)


@pytest.mark.parametrize("hide", [scrub, _redact, lambda text: without_keys(text, "[hidden]")[0]])
@pytest.mark.parametrize("kind", EVERY)
def test_every_kind_of_key_is_hidden(kind, hide):
    text, key = EVERY[kind]
    hidden = hide(text)
    assert key not in hidden and key[:16] not in hidden and key[-12:] not in hidden, hidden
    assert "[key hidden]" in hidden or "[API key]" in hidden or "[hidden]" in hidden
    around = text.partition(key)[0].removeprefix("-")
    assert hidden.startswith(around[:10])  # what stands around it stays


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_are_left_alone(text):
    assert list(keys_in(text)) == [] and scrub(text) == text
    assert "[API key]" not in _redact(text)


def test_what_is_replaced_is_counted_by_kind_of_thing():
    redactor = Redactor()
    assert redactor.text(f"a {FORMS['OpenAI']} b {FORMS['GitHub']} c") == "a [API key] b [API key] c"
    assert redactor.counts == {"API key": 2}


@pytest.mark.parametrize("kind", [kind for kind in FORMS if kind != "private key"])
def test_a_key_in_a_suite_is_reported_wherever_it_stands(kind, write_suite):
    """As an argument of a server, without a name that says what it is."""
    suite = write_suite(mcp_servers={"files": {"command": "server", "args": ["--use", FORMS[kind]]}})
    with pytest.raises(ProblemsError) as raised:
        pipeline.load(suite)
    assert "secret key in the suite" in str(raised.value) and FORMS[kind] not in str(raised.value)


@pytest.mark.parametrize("kind", [kind for kind in CARRIED if kind not in ("JSON", "Python")])
def test_a_key_in_a_setting_of_a_server_is_reported(kind, write_suite):
    suite = write_suite(mcp_servers={"files": {"command": "server", "args": [CARRIED[kind][0]]}})
    with pytest.raises(ProblemsError) as raised:
        pipeline.load(suite)
    assert "secret key in the suite" in str(raised.value) and CARRIED[kind][1] not in str(raised.value)


@pytest.mark.parametrize("text", [text for text in ORDINARY if "${" not in text and "\n" not in text])
def test_ordinary_settings_are_no_keys(text, write_suite):
    suite = write_suite(mcp_servers={"files": {"command": "server", "args": ["--use", text]}}, conditions={"a": {}})
    try:
        pipeline.load(suite)
    except ProblemsError as error:
        assert "secret key" not in str(error)


@pytest.mark.parametrize("kind", FORMS)
def test_a_key_in_the_environment_is_hidden_under_any_name(kind):
    variables = Variables({"MY_LAB": FORMS[kind], "PATH": "/usr/bin"})
    assert FORMS[kind] not in variables.hide(f"the server said {FORMS[kind]} twice")


async def test_an_imported_run_has_no_key_in_it(store, tmp_path):
    from fairtrial.tracks.interchange.api import aimport_results

    rows = [
        {"id": str(n), "input": text, "answer": text, "score": 1, "model": "m"}
        for n, (text, _) in enumerate(EVERY.values())
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    await aimport_results(file, store=store.address)
    (record,) = store.runs()
    shown = "".join(f"{trial.input} {trial.answer}" for trial in Run(store, record).trials())
    assert shown.count("[key hidden]") >= 2 * len(rows)
    assert not [kind for kind, (_, key) in EVERY.items() if key in shown]


@given(st.text())
@settings(max_examples=200)
def test_any_text_can_be_looked_through(text):
    assert without_keys(text, "")[1] == len(list(keys_in(text)))


@pytest.mark.parametrize(
    "piece", ["sk-", "eyJ-", "SG.", "Bearer ", "://:", "api_key=", "=", "-----BEGIN PRIVATE KEY-----", "xai-", "a:b@"]
)
def test_no_text_takes_long(piece):
    """The time grows with the length, not with its square: 20 times the length within 200 times the time."""

    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        started = time.process_time()
        without_keys(text, "x")
        return time.process_time() - started

    assert seconds(200_000) < 200 * max(seconds(10_000), 0.002)
