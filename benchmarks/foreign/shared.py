"""What all tools share: the questions, environments of their own, and the servers that answer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

ROWS = [{"input": f"What is {40 + n} + {2 - n % 3}?", "target": str(42 + n - n % 3)} for n in range(12)]
ANSWERS = ("The answer is 42.", "42", "45", "The sum is 48.", "It is 51, I think.")  # given in turn
LETTERS = ("A", "B", "B", "Even", "Odd")  # for HELM's scenarios, which ask what is even
MARKS = tuple(
    f'{{"factual_adherence": {facts}, "factual_adherence_reasoning": "facts", "completeness": {whole}, '
    f'"completeness_reasoning": "parts", "helpfulness_and_clarity": {help}, '
    f'"helpfulness_and_clarity_reasoning": "words", "unverified_claims": []}}'
    for facts, whole, help in ((5, 4, 3), (2, 2, 4), (3, 5, 5), (1, 3, 2), (4, 1, 1))
)


class Place(NamedTuple):
    """Where a tool works: the folder for its files, the folder of all environments, and the servers' addresses."""

    out: Path
    tools: Path
    models: str
    judges: str


def call(command: list[str], folder: Path, *, allowed: tuple[int, ...] = (0,), **variables: str) -> None:
    """Run a command in a folder; another exit code than the allowed ones is an error."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=False, timeout=600)
    if done.returncode not in allowed:
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
