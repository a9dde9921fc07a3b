"""A defect is said to be one, and leaves a file that can be sent: private, with everything about it and no key."""

from __future__ import annotations

import stat
import sys

import pytest
from starlette.testclient import TestClient

from fairtrial.cli.main import _run
from fairtrial.core import registry
from fairtrial.core.defects import blamed, defect_of
from fairtrial.web.app import web_app
from tests.test_broken_plugins import install

KEY = "sk-ant-api03-Zq8Yw3Rt6Um1Nb5Vc9Xs2Df7Gh4Jk0Lp"
PLAIN = "9f8e7d6c5b4a39281706"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Where files about defects are written."""
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "defects"


def fail(*_, **__):
    raise ZeroDivisionError(f"with {KEY} and {PLAIN}")


def test_a_defect_leaves_a_private_file_without_keys(written, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"MY_API_KEY={PLAIN}\n")
    (tmp_path / ".env").chmod(0o600)
    monkeypatch.setattr("fairtrial.cli.list.list_runs", fail)
    assert _run(["list", "--store", f"postgresql://me:{'pw'}@db/x", "--json"]) == 1
    said = capsys.readouterr().err
    [file] = written.iterdir()
    assert said.startswith("error: internal error: ZeroDivisionError: with ") and str(file) in said
    text = file.read_text("utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(written.stat().st_mode) == 0o700
    for part in ("Traceback", "ZeroDivisionError", "test_defects.py", "fairtrial: 0", "platform: ", "'list' '--store'"):
        assert part in text, part
    for secret in (KEY, PLAIN, "me:pw"):
        assert secret not in text + said


def test_the_same_defect_has_one_file(written, monkeypatch, capsys):
    monkeypatch.setattr("fairtrial.cli.list.list_runs", fail)
    assert _run(["list"]) == 1 and _run(["list"]) == 1
    assert len(list(written.iterdir())) == 1


def test_without_a_place_for_the_file_the_sentence_stands(monkeypatch, capsys, tmp_path):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("fairtrial.cli.list.list_runs", fail)
    assert _run(["list"]) == 1
    assert "internal error: ZeroDivisionError" in capsys.readouterr().err


def test_an_end_of_file_is_not_an_interruption(written, monkeypatch, capsys):
    def cut(*_, **__):
        raise EOFError("Compressed file ended before the end-of-stream marker was reached")

    monkeypatch.setattr("fairtrial.cli.list.list_runs", cut)
    assert _run(["list"]) == 1
    assert "interrupted" not in capsys.readouterr().err


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A plug-in with a command that fails, found as if it were installed."""
    (tmp_path / "broken_command.py").write_text(
        "import click\n@click.command()\ndef fails():\n    raise KeyError('mine')\n"
    )
    install(tmp_path, "fairtrial-fails", "[fairtrial.commands]\nfails = broken_command:fails\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (registry._plugged, registry.plugged_in, registry._load_plugged):
        cached.cache_clear()
    yield
    for cached in (registry._plugged, registry.plugged_in, registry._load_plugged):
        cached.cache_clear()
    sys.modules.pop("broken_command", None)


def test_a_plug_in_that_fails_is_named(plugin, written, capsys):
    assert _run(["fails"]) == 1
    said = capsys.readouterr().err
    assert "internal error in the plug-in `fairtrial-fails`: KeyError: 'mine'" in said
    assert "pip uninstall fairtrial-fails" in said
    [file] = written.iterdir()
    assert "in: the plug-in fairtrial-fails" in file.read_text("utf-8")


def test_what_fails_in_fairtrial_is_not_blamed_on_a_plug_in(plugin, written):
    try:
        registry.load("commands", object())  # type: ignore[arg-type]
    except Exception as error:
        assert blamed(error) == ""
        assert "`fairtrial-fails`" not in defect_of(error, [], str).sentence()


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ZeroDivisionError(KEY), 500, "see the terminal where the server runs"),
        (OSError(28, "No space left on device"), 400, "cannot be written: No space left on device"),
        (ValueError("embedded null byte"), 400, "NUL character"),
    ],
)
def test_a_page_says_a_sentence(written, tmp_path, monkeypatch, capsys, error, status, words):
    def raised(*_, **__):
        raise error

    with web_app(str(tmp_path / "s.db"), tmp_path) as app, TestClient(app, raise_server_exceptions=False) as client:
        monkeypatch.setattr("fairtrial.store.browsing.runs_page", raised)
        reply = client.get("/runs")
    assert reply.status_code == status and words in reply.text and KEY not in reply.text + capsys.readouterr().err
    assert written.exists() == (status == 500)
