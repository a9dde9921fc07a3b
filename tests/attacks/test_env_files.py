"""A `.env` file beside a stranger's suite cannot send keys anywhere, and counts only for commands that ask targets."""

from __future__ import annotations

import os

import pytest

from fairtrial.cli.main import _run
from fairtrial.config import variables_of
from fairtrial.core.errors import FairtrialError

SUITE = "name: s\ntargets: [openai:gpt-5-mini]\nscorer: contains\ncases: [{input: a, expected: a}]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A stranger's folder, whose `.env` sends keys to an address of theirs."""
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-theirs-12345678\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
    (tmp_path / ".env").chmod(0o600)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FAIRTRIAL_ENV_ADDRESSES"):
        monkeypatch.setenv(name, "")  # so that what a command sets is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [["run"], ["run", "--dry-run"], ["calibrate", "openai:x", "--suite"], ["gate"]])
def test_an_address_must_be_confirmed(folder, command, capfd):
    assert _run([*command, "suite.yaml"]) == 1
    said = " ".join(capfd.readouterr().err.split())
    assert "sets OPENAI_BASE_URL to http://127.0.0.1:9/v1, and your keys would be sent there" in said
    assert "add --env-addresses once" in said


def test_it_is_confirmed_once(folder, capfd):
    assert _run(["run", "suite.yaml", "--dry-run", "--env-addresses"]) == 0
    os.environ.pop("OPENAI_BASE_URL", None)
    assert _run(["run", "suite.yaml", "--dry-run"]) == 0
    assert "keys may be sent to that address" in capfd.readouterr().err
    os.environ.pop("OPENAI_BASE_URL", None)
    (folder / ".env").write_text("OPENAI_BASE_URL=http://127.0.0.1:10/v1\n")  # which is another one
    assert _run(["run", "suite.yaml", "--dry-run"]) == 1


def test_one_in_the_environment_is_the_users_own(folder, monkeypatch, capfd):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8/v1")
    assert _run(["run", "suite.yaml", "--dry-run"]) == 0


def test_looking_sets_nothing(folder, capfd):
    assert _run(["validate", "suite.yaml"]) == 0  # the key is there, and that is all that is looked at
    assert "OPENAI_API_KEY" not in os.environ
    assert "OPENAI_BASE_URL" not in os.environ


def test_from_python_it_must_be_confirmed_too(folder):
    with pytest.raises(FairtrialError, match="add --env-addresses once"):
        variables_of(folder)


@pytest.mark.parametrize(
    "name", ["AZURE_API_HOST", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "DATABRICKS_HOST", "OPENCLAW_GATEWAY_URL"]
)
def test_so_must_every_address_of_a_provider_whatever_its_variable_is_called(folder, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    (folder / ".env").write_text(f"{name}=127.0.0.1:9\n")
    with pytest.raises(FairtrialError, match=f"sets {name} to 127.0.0.1:9, and your keys would be sent there"):
        variables_of(folder)
