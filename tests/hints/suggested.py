"""Commands that fairtrial suggests: found in what it says, and typed as they stand there.

A command is found where the product writes one: in backticks, after `next:`, on an indented line of its own with what it
does beside it, or after a fact on a line of facts. Any other mention of `fairtrial COMMAND` is an error of the test, so that
no new way of suggesting goes unnoticed.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fairtrial.cli.main import commands
from tests import forks

WAYS = (
    re.compile(r"`(fairtrial [^`]+)`"),
    re.compile(r"^next: (fairtrial .+)$", re.MULTILINE),
    re.compile(r"^   (fairtrial .+?)(?: {3,}\S.*)?$", re.MULTILINE),
    re.compile(r"(fairtrial show \S+(?: --store \S+)?) opens one"),
    re.compile(r"· (fairtrial list --limit \d+(?: --store \S+)?)"),
    re.compile(r": (fairtrial show [^·\n]*--by .+)$", re.MULTILINE),
    re.compile(r"^(fairtrial resume .+?)  collects the results", re.MULTILINE),
)
# What a person fills in, in any command; a placeholder that is not here fails the test.
PLACEHOLDERS = {
    "MORE": "5",
    "FILE": "out.json",
    "SUITE": "suite.yaml",
    "RUN": "latest",
    "NAME": "named",
    "TARGET": "mock:echo",
    "JUDGE": "mock:echo",
    "N": "0",
    "ID": "out",
    "README": "README",
    "TOOLS": "TOOLS",
    "URL": "other.db",
}
SERVERS = ("serve", "vote")  # they go on until Ctrl-C
SPAWNING = (("optim", "generate"), ("optim", "run"))
_MENTION = re.compile(rf"\bfairtrial (?:{'|'.join(commands())})(?![\w:])")
_PLACEHOLDER = re.compile(r"(?<![\w/.'-])[A-Z][A-Z]*(?![\w/'-])")


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    said: str


def commands_in(text: str) -> list[str]:
    """Return the commands that a text suggests, in its order."""
    places = {match.start(1): match[1] for way in WAYS for match in way.finditer(text)}
    for mention in _MENTION.finditer(text):
        inside = any(start <= mention.start() < start + len(command) for start, command in places.items())
        assert inside, f"how is this command suggested? {text[max(0, mention.start() - 60) : mention.end() + 60]!r}"
    return list(dict.fromkeys(command.strip() for _, command in sorted(places.items())))


def filled_in(command: str) -> list[str]:
    """Return the words of a command as a person types it."""
    words = shlex.split(command, comments=True)[1:]
    return [_PLACEHOLDER.sub(lambda match: PLACEHOLDERS[match[0]], word) for word in words]


def type_in(folder: Path, *words: str, environment: Mapping[str, str] = os.environ) -> Ended:
    """Type a command in a folder; a server is ended by Ctrl-C once it is there."""
    surroundings = {**environment, "FAIRTRIAL_PORT": "0", "FAIRTRIAL_OPEN": "0"}
    if words[:2] in SPAWNING:  # processes of its own cannot be spawned from a fork
        command = [sys.executable, "-m", "fairtrial", *words]
        done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
        return Ended(done.returncode, done.stdout + done.stderr)
    process = forks.start(*words, folder=folder, environment=surroundings)
    before = b""
    if words[0] in SERVERS and "--help" not in words:
        while b"Ctrl-C to stop" not in before and (line := process.stderr.readline()):
            before += line
        process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    return Ended(process.wait(), (out + before + err).decode())


def walk(folder: Path, said: str, *, deep: int = 2, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Type every command that was suggested, each in a copy of this folder, and those that they suggest in turn.

    Yields the commands that were typed; fails where one cannot be followed: a usage or configuration error, or a crash.
    """
    left = [(folder, command, 1) for command in commands_in(said)]
    typed: set[str] = set()
    while left:
        place, command, depth = left.pop(0)
        if command in typed:
            continue
        typed.add(command)
        words = filled_in(command)
        if words[0] == "serve" and depth > 1:
            continue  # a second is gone before it is there, and it was followed where it was suggested first
        copy = folder.parent / f"{folder.name}-{len(typed)}"
        shutil.copytree(place, copy)
        mark_answers(copy)
        ended = type_in(copy, *words, environment=environment)
        wrong = ended.code == 1 and re.search(r"^error: ", ended.said, re.MULTILINE)  # `store check` only finds damage
        assert not wrong and ended.code in (0, 1, 2, 100, 101, 130), f"suggested: {command}\n{ended.said}"
        assert "Traceback" not in ended.said, f"{command}\n{ended.said}"
        yield command
        if depth < deep and "--help" not in words:
            left += [(copy, following, depth + 1) for following in commands_in(ended.said)]


def mark_answers(folder: Path) -> None:
    """Do what a person does between two commands: mark the answers that were drawn."""
    for file in folder.glob("*marks.csv"):
        with file.open(newline="") as drawn:
            rows = list(csv.DictReader(drawn))
        with file.open("w", newline="") as marked:
            writer = csv.DictWriter(marked, rows[0])
            writer.writeheader()
            writer.writerows({**row, "label": "80"} for row in rows)


def prepare(folder: Path, line: str) -> Ended:
    """Type a line that leads to a state: a command of fairtrial, or after `$` one of the shell."""
    if line.startswith("$"):
        subprocess.run(["bash", "-c", line[1:]], cwd=folder, check=True, capture_output=True)
        return Ended(0, "")
    return type_in(folder, *shlex.split(line))
