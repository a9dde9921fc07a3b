"""`fairtrial models` and `fairtrial doctor --ping`: what is known of providers, and whether they answer."""

import json

import pytest

from fairtrial.cli.main import _run
from fairtrial.core.providers import api_providers
from tests.servers.vendors import Say, vendors


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in {name for provider in api_providers().values() for name in provider.variables}:
        monkeypatch.delenv(name, raising=False)


def test_providers_and_models(capsys, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "k-0001")
    assert _run(["models", "--json"]) == 0
    found = {row["provider"]: row for row in json.loads(capsys.readouterr().out)["providers"]}
    assert found["google"]["ready"] and not found["mistral"]["ready"] and not found["bedrock"]["ready"]
    assert "GOOGLE_API_KEY" in found["google"]["variables"] and found["anthropic"]["models"] > 5
    assert _run(["models", "anthropic", "--json"]) == 0
    models = {row["model"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    sonnet = models["anthropic:claude-sonnet-4-5"]
    assert (sonnet["input_usd"], sonnet["output_usd"], sonnet["cache_read_usd"]) == (3.0, 15.0, 0.3)
    assert sonnet["context"] == 200_000 and "reasoning 1,024–56,000 tokens" in sonnet["takes"]
    assert _run(["models", "gemini"]) == 0
    assert "gemini-2.5-pro" in capsys.readouterr().out
    assert _run(["models", "gogle"]) == 1
    assert "did you mean `google`?" in capsys.readouterr().err


async def test_one_token_of_each_that_is_ready(monkeypatch):
    from fairtrial.cli.doctor import _pings

    async with vendors() as server:
        monkeypatch.setenv("GEMINI_API_KEY", "k-0001")
        monkeypatch.setenv("GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("MISTRAL_API_KEY", "k-0002")
        monkeypatch.setenv("MISTRAL_BASE_URL", f"{server.url}/mistral/v1")
        findings = {finding.what: finding for finding in await _pings()}
        assert set(findings) == {"google ping", "mistral ping"}
        assert all(finding.good and "answered in" in finding.found for finding in findings.values())
        assert all(heard.body.get("max_tokens", 16) <= 16 for heard in server.heard)
        server.say = Say(error=(401, {"error": {"message": "wrong key k-0001"}}))
        found = {finding.what: finding for finding in await _pings()}["google ping"]
        assert found.good is False and "HTTP 401" in found.found


async def test_doctor_names_in_one_line_who_is_not_set_up(capsys, monkeypatch):
    from fairtrial.cli.doctor import Finding, _in_short, _providers

    monkeypatch.setenv("LITELLM_API_BASE", "http://127.0.0.1:9")
    findings = await _providers()
    assert {finding.what for finding in findings} >= {"deepinfra", "cohere", "vllm", "openclaw", "litellm-proxy"}
    unreachable = {finding.what for finding in findings if finding.good is False}
    assert unreachable == {"litellm-proxy"}  # somebody said that it is there
    short = {finding.what: finding for finding in _in_short([Finding("store", "none yet", None), *findings])}
    assert short.keys() >= {"store", "openai", "anthropic", "google", "openrouter", "litellm-proxy"}
    assert (
        "deepinfra, deepseek" in short["other providers"].found
        and "`fairtrial models`" in short["other providers"].advice
    )
    assert "vllm" in short["local servers"].found and len(short) < 12


def test_every_provider_is_listed_with_what_it_needs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert _run(["models"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert api_providers().keys() <= lines.keys() and all(len(line) <= 80 for line in lines.values())
    assert (
        "DEEPINFRA_API_KEY" in lines["deepinfra"] and "local" in lines["vllm"] and "OLLAMA_BASE_URL" in lines["ollama"]
    )
    assert "ready" not in lines["litellm-proxy"] and "LITELLM_PROXY_API_BASE" in lines["litellm-proxy"]
    assert _run(["models", "moonshotai"]) == 0
    assert "kimi" in capsys.readouterr().out
    assert _run(["models", "deepinfra"]) == 0
    assert "ask for them by name, such as deepinfra:MODEL" in capsys.readouterr().out


def test_the_page_offers_the_models_of_every_provider_with_prices():
    from fairtrial.providers import models

    names = {model.name.partition(":")[0] for model in models.search("", most=10_000)}
    assert {"cohere", "novita", "moonshot", "zai", "minimax", "databricks", "cloudflare", "meta", "ovhcloud"} <= names
    assert models.with_provider("command-r-plus") == "cohere:command-r-plus"
