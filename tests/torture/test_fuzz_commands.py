"""Command lines that nobody would type: every command with any options, values and files; one sentence, a known code."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from fairtrial import pipeline
from fairtrial.cli.main import _run, cli
from fairtrial.store import Store
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, check_sentence, fuzz
from tests.web.conftest import CAPITALS

CODES = {0, 1, 2, 100, 101, 130}
LEFT_OUT = ("demo", "serve", "vote", "fetch", "models", "doctor", "optim mcp", "optim run", "arena", "politeness")
NETWORK = (
    "--engine",
    "--workers",
    "--verify",
    "--refresh",
    "--certify",
    "--run-code",
    "--mlflow",
    "--wandb",
    "--comment",
    "--env-addresses",
    "--watch",  # waits for changes of a file until it is interrupted
)
FILES = ["capitals.yaml", "s.db", "table.csv", "rows.jsonl", "broken.json", "folder", "problem.yaml", "nothing.yaml"]
NUMBERS = ["0", "1", "2", "-1", "1e999", "nan", "0.5", "99999999999999999999", "1e-320", "05", "1_0", "٣", " 1"]
ODD = [
    "",
    "-",
    "--",
    "=",
    "a b",
    "\0",
    "x" * 5000,
    "\udc8f",
    "\u202eabc",
    "@",
    "a@b",
    "@s.db",
    "latest@nothing.db",
    "..",
    "%",
    "*",
]
ODD += [
    "sqlite:///",
    "sqlite://s.db",
    "postgresql://",
    "postgresql://u:p@127.0.0.1:9/x",
    "hf://a/b",
    "http://",
    "file://x",
    "[",
    "a=b",
]
NAMES = ["latest", "latest~1", "capitals", "good", "poor", "fr", "score", "exact", "1", "2"]
OUTPUTS = [
    "o.html",
    "o.json",
    "o.md",
    "o.csv",
    "o.parquet",
    "o.junit.xml",
    "o.eval",
    "o.eee.json",
    "o.txt",
    "nowhere/o.html",
    "-",
]
TABLE = "case,arm,score\na,x,1\na,y,0\nb,x,0\nb,y,1\n"
PROBLEM = "variables: [{name: x, lower: 0, upper: 3}]\nobjective: x**2 - x\n"


def commands(group: click.Command, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if " ".join(names) in LEFT_OUT:
        return
    if not isinstance(group, click.Group):
        yield names, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None:
            yield from commands(found, (*names, name))


class Typist:
    """Types commands."""

    def __init__(self, runs: list[str]) -> None:
        self.runs = runs
        self.commands = list(commands(cli))

    def line(self, chance: random.Random) -> list[str]:
        names, command = chance.choice(self.commands)
        words: list[str] = []
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                count = chance.choice([0, 1, 2, 3]) if parameter.nargs == -1 else chance.choice([1, 1, 1, 1, 0])
                words += [self.value(parameter, chance) for _ in range(count)]
            elif chance.random() < 0.15 and not {*parameter.opts} & {*NETWORK}:
                words += self.option(parameter, chance)
        if chance.random() < 0.1:
            words.insert(chance.randrange(len(words) + 1), chance.choice([*ODD, "--nothing", "-x", "--help"]))
        return [*names, *words]

    def option(self, option: click.Parameter, chance: random.Random) -> list[str]:
        name = chance.choice([*option.opts, *option.secondary_opts])
        if getattr(option, "is_flag", False):
            return [name]
        return [name, self.value(option, chance)]

    def value(self, parameter: click.Parameter, chance: random.Random) -> str:
        if chance.random() < 0.15:
            return chance.choice(ODD)
        kind = parameter.type
        if isinstance(kind, click.Choice) and chance.random() < 0.9:
            return str(chance.choice(list(kind.choices)))
        if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
            return chance.choice(NUMBERS)
        if "output" in str(parameter.name):
            return chance.choice(OUTPUTS)
        if "suite" in str(parameter.name) and chance.random() < 0.7:
            return "capitals.yaml"
        if "store" in str(parameter.name) and chance.random() < 0.7:
            return chance.choice(["s.db", "other.db"])
        return chance.choice([*self.runs, *self.runs, *NAMES, *FILES, *NUMBERS])


@pytest.fixture
def typist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typist:
    """A folder with a suite, a store with two runs, and files of other kinds."""
    place = tmp_path / "template"
    place.mkdir()
    (place / "capitals.yaml").write_text(CAPITALS)
    (place / "table.csv").write_text(TABLE)
    (place / "rows.jsonl").write_text('{"input": "q", "expected": "a"}\n')
    (place / "broken.json").write_text('{"a": [1, 2')
    (place / "problem.yaml").write_text(PROBLEM)
    (place / "folder").mkdir()
    store = Store(str(place / ".fairtrial" / "fairtrial.db"))
    runs = [asyncio.run(pipeline.arun(pipeline.load(place / "capitals.yaml"), store=store)).id for _ in range(2)]
    store.close()
    shutil.copy(place / ".fairtrial" / "fairtrial.db", place / "s.db")
    monkeypatch.setenv("FAIRTRIAL_DEBUG", "1")
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    return Typist(runs)


def test_commands(typist: Typist, tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch):
    count = 0

    def read(document: Document) -> str:
        nonlocal count
        if count % 20 == 0:
            os.chdir(tmp_path)
            shutil.rmtree(tmp_path / "here", ignore_errors=True)
            shutil.copytree(tmp_path / "template", tmp_path / "here")
            os.chdir(tmp_path / "here")
        count += 1
        words = json.loads(document.body)
        out, err = io.StringIO(), io.StringIO()
        with open(os.devnull) as nothing, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            monkeypatch.setattr(sys, "stdin", nothing)
            code = _run(words)
        assert code in CODES, (code, words)
        said = err.getvalue()
        assert "Traceback" not in said + out.getvalue() and "internal error" not in said
        if code == 1:
            lines = [line for line in said.splitlines() if line.startswith("error: ")]
            for line in lines:
                check_sentence(line)
        return f"{words[:2]} {code}"

    def change(_: Document, chance: random.Random, __: Sequence[Document]) -> bytes:
        return json.dumps(typist.line(chance)).encode()

    before = Path.cwd()
    try:
        fuzz(campaign, [Document("line", b'["list"]'), Document("line", b'["show"]')], read, change, short=2)
    finally:
        os.chdir(before)
