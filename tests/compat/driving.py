"""The suites, and the command line in this process: what it prints for a suite, as documents that can be compared."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import yaml

from fairtrial.cli.main import main
from tests.compat.matching import mask, normal, types_of

HERE = Path(__file__).parent
REPO = Path(__file__).parents[2]
SUITES = HERE / "suites"
RECORDED = HERE / "recorded"
USUAL = ("validate SUITE --json", "run SUITE --json", "show --json", "compare --json", "rank --json")
_NAME = re.compile(r"^name: (\S+)$", re.MULTILINE)
_KEPT = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")


def suites() -> dict[str, str]:
    """Return the text of every suite by its name."""
    texts = [text for file in sorted(SUITES.glob("*.yaml")) for text in file.read_text("utf-8").split("\n---\n")]
    return {_NAME.search(text)[1]: f"{text.rstrip()}\n" for text in texts}  # type: ignore[index]


def commands() -> dict[str, dict[str, Any]]:
    """Return, by suite, what differs from the usual commands."""
    return yaml.safe_load((HERE / "commands.yaml").read_text("utf-8"))


def commands_of(name: str) -> list[str]:
    """Return the command lines that are run on a suite."""
    own = commands().get(name, {})
    if "instead" in own:
        return own["instead"]
    usual = USUAL[:2] if name.startswith(("scorer-", "dataset-")) else USUAL  # those have one arm, or the same two
    return [*usual, "export -o - --format jsonl", *own.get("then", [])]


@contextmanager
def place(folder: Path) -> Iterator[Path]:
    """A folder with what the suites name, and an environment in which nothing is set."""
    shutil.copytree(SUITES / "data", folder / "data")
    shutil.copy(REPO / "examples" / "tools" / "shop_server.py", folder / "data" / "shop.py")
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own = {f"XDG_{name}_HOME": str(folder / f".{name}") for name in ("CACHE", "CONFIG", "STATE")}
    own |= {"COLUMNS": "80", "PYTHON": sys.executable}
    with mock.patch.dict(os.environ, environment | own, clear=True), chdir(folder):
        yield folder


def fairtrial(line: str) -> tuple[int, str, str]:
    """Run a command: (exit code, stdout, stderr)."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    code: Any = 0
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(gc, "freeze"):
        try:
            main(shlex.split(line))
        except SystemExit as exit_request:
            code = exit_request.code
    out.flush(), err.flush()
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


def documents_of(name: str, folder: Path) -> list[dict[str, Any]]:
    """Run the commands of a suite, or those that belong to none, in a new folder; return what each printed."""
    with place(folder):
        for suite, text in suites().items():
            (folder / f"{suite}.yaml").write_text(text, "utf-8")
        return [outcome(line, name) for line in commands_of(name)]


def outcome(line: str, suite: str = "") -> dict[str, Any]:
    """Run a command; return its exit code and what it printed, as far as that must stay."""
    command = line.removeprefix("shape: ").replace("SUITE", f"{suite}.yaml").replace("HERE", str(Path.cwd()))
    code, out, err = fairtrial(command)
    assert "internal error" not in err, err
    printed = normal(read(out))
    return {"command": line, "exit": code, "printed": types_of(printed) if line.startswith("shape: ") else printed}


def read(text: str) -> Any:
    """Return JSON or lines of it, the columns of a table, the elements of XML; of any other text, that there is one."""
    for reader in (json.loads, lambda text: [json.loads(line) for line in text.splitlines()]):
        with suppress(ValueError):
            return reader(text)
    if text.startswith("<?xml"):
        elements = ElementTree.fromstring(text).iter()
        return {"elements": {element.tag: dict.fromkeys(element.attrib, True) for element in elements}}
    if text.startswith('"run_id"'):
        return {"columns": dict.fromkeys(next(csv.reader([text.splitlines()[0]])), True)}
    return mask(text)
