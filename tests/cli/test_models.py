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
