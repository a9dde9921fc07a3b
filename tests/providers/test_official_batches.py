"""The vendors' own clients work with our batch servers, and our requests about batches are theirs."""

import asyncio
import os

import msgspec
import pytest

from fairtrial.core import registry
from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from tests.providers.test_official import HEADERS, flat
from tests.servers.batches import batch_vendors
from tests.servers.vendors import Say

PARAMS = {"max_tokens": 100, "stop": ["X"]}
QUESTIONS = {"run-1-0": "one", "run-1-1": "two"}
# What differs and is meant to: the version and the key's header, as in direct calls; our key goes with an upload, too,
# whose address is checked to be that of the same server.
MEANT = {
    "anthropic": {"headers.anthropic-version", "headers.authorization", "headers.x-api-key"},
    "google": {"headers.content-type", "/upload/x1 headers.x-goog-api-key"},
    "openai": set(),
}


def openai(url, lines):
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
    expiry = {"anchor": "created_at", "seconds": 2592000}
    file = client.files.create(file=("run-1.jsonl", b"\n".join(lines) + b"\n"), purpose="batch", expires_after=expiry)
    given = {"endpoint": "/v1/chat/completions", "completion_window": "24h", "metadata": {"fairtrial": "run-1"}}
    batch = client.batches.create(input_file_id=file.id, **given)
    yield batch.id
    assert [one.id for one in client.batches.list(limit=100)] == [batch.id]
    yield
    batch = client.batches.retrieve(batch.id)
    while batch.status != "completed":
        batch = client.batches.retrieve(batch.id)
    yield
    batch = client.batches.retrieve(batch.id)
    read = msgspec.json.decode(client.files.content(batch.output_file_id).text.splitlines()[-1])
    assert read["response"]["body"]["choices"][0]["message"]["content"] == "re: one"
    yield
    assert client.batches.cancel(batch.id).status == "cancelling"
    yield


def anthropic(url, lines):
    from anthropic import Anthropic

    client = Anthropic(base_url=url, api_key="k", max_retries=0)
    batch = client.messages.batches.create(requests=[msgspec.json.decode(line) for line in lines])
    yield batch.id
    assert [one.id for one in client.messages.batches.list(limit=100)] == [batch.id]
    yield
    while client.messages.batches.retrieve(batch.id).processing_status != "ended":
        pass
    yield
    results = list(client.messages.batches.results(batch.id))
    assert {one.custom_id: one.result.message.content[0].text for one in results} == {
        name: f"re: {text}" for name, text in QUESTIONS.items()
    }
    yield
    assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
    yield


def google(url, lines):
    import io

    from google import genai

    client = genai.Client(api_key="k", http_options={"base_url": url})
    upload = {"display_name": "run-1", "mime_type": "jsonl"}
    file = client.files.upload(file=io.BytesIO(b"\n".join(lines) + b"\n"), config=upload)
    batch = client.batches.create(model="gemini-2.5-flash", src=file.name, config={"display_name": "run-1"})
    yield batch.name
    assert [one.name for one in client.batches.list(config={"page_size": 100})] == [batch.name]
    yield
    while client.batches.get(name=batch.name).state.name != "JOB_STATE_SUCCEEDED":
        pass
    yield
    batch = client.batches.get(name=batch.name)
    read = msgspec.json.decode(client.files.download(file=batch.dest.file_name).splitlines()[0])
    assert read["response"]["candidates"][0]["content"]["parts"][0]["text"] == "re: one"
    yield
    client.batches.cancel(name=batch.name)
    yield


OFFICIAL = {
    "openai": (openai, "openai_api", "gpt-5.1", "/v1"),
    "anthropic": (anthropic, "anthropic_api", "claude-sonnet-4-5", ""),
    "google": (google, "google_api", "gemini-2.5-flash", ""),
}


async def ours(api, lines):
    batch = await api.submit("run-1", lines)
    assert isinstance(batch, str), batch
    yield batch
    found = await api.find("run-1", "run-1-0", 2, 1_800_000_000.0)
    assert found == batch or (isinstance(found, Failure) and found.kind == "pending")
    yield
    while not (await api.look(batch)).ended:
        pass
    yield
    results = {name: result async for name, result in api.results(batch)}
    assert all(isinstance(result, Answer) for result in results.values())
    assert {name: result.text for name, result in results.items()} == {n: f"re: {t}" for n, t in QUESTIONS.items()}
    yield
    assert await api.cancel(batch) is None
    yield


def compared(heard):
    headers = {key: value for key, value in heard.headers.items() if key in (*HEADERS, "x-goog-upload-protocol")}
    body = heard.body
    if isinstance(body, bytes):  # a form, whose boundary is random, or a file
        boundary = headers.get("content-type", "").partition("boundary=")[2].encode()
        body = sorted(body.replace(boundary, b"=").split(b"--=")) if boundary else body
    headers["content-type"] = headers.get("content-type", "").partition(";")[0]
    if not body:  # a request without one needs no type
        headers.pop("content-type")
    return flat({"path": heard.path.partition("?beta")[0], "headers": headers, "body": body or {}})


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_")):
            monkeypatch.delenv(name)


@pytest.mark.slow
@pytest.mark.parametrize("vendor", OFFICIAL)
async def test_every_step_of_a_batch_is_the_official_clients(vendor, tmp_path):
    theirs_of, kind, model, path = OFFICIAL[vendor]
    heard = []
    for mine in (False, True):
        async with batch_vendors() as server:
            cls = registry.load("targets", kind)
            spec = TargetSpec(id="t", kind=kind, provider=vendor, model=model, base_url=server.url + path, api_key="k")
            target = cls(spec, cls.options_type(), tmp_path)
            await target.open(1)
            try:
                server.reply = lambda text, body: Say(text=f"re: {text}")
                api = target.batches()
                asked = [
                    api.line(name, Request(trial_id="t", case_id="c", input=text, params=PARAMS, stream=False))
                    for name, text in QUESTIONS.items()
                ]
                if mine:
                    steps = [step async for step in ours(api, asked)]
                else:
                    steps = await asyncio.to_thread(lambda: list(theirs_of(server.url, asked)))  # noqa: B023
                assert len(steps) == 5
                seen = {}
                for one in server.heard:  # looking takes as long as it takes
                    seen.setdefault(one.path.replace(server.url, ""), one)
                heard.append(list(seen.values()))
            finally:
                await target.close()
    theirs, mine = heard
    assert [one.path for one in theirs] == [one.path for one in mine]
    different = []
    for one, other in zip(theirs, mine, strict=True):
        left, right = compared(one), compared(other)
        different += [
            f"{one.path}: {key}: {vendor}'s client sends {left.get(key)!r}, fairtrial {right.get(key)!r}"
            for key in sorted({*left, *right})
            if left.get(key) != right.get(key) and not {key, f"{one.path} {key}"} & MEANT[vendor]
        ]
    assert not different, "\n".join(different)
