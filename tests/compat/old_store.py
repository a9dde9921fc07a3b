"""A store that the version before wrote: how it was made, and what is done with it."""

from __future__ import annotations

import csv
import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.compat.driving import RECORDED, fairtrial, outcome, place, suites

FILE = RECORDED / "store.db.gz"
# What was run to make it; targets in these suites need no file, so that work on their runs can go on anywhere.
MADE = (
    "run panel-mean.yaml --quiet",
    "tag latest judged",
    "pairwise judged --quiet",
    "label judged --sample 3 --seed 1 -o marks.csv",
    "label judged --import marks.csv",
    "rescore judged --scorer contains --quiet",
    "rescore judged --scoring 0 --quiet",
    "run failures.yaml --quiet",
    "tag latest failed",
    "run stop-when-decided.yaml --stop-when decided --quiet",
    "tag latest stopped",
    "run priced.yaml --budget-usd 0.05 --quiet",
    "tag latest broke",
    "run categories.yaml --runs 2 --quiet",
    "tag latest series",
    "run attached.yaml --quiet",
    "tag latest attached",
)
PRICED = """name: priced
concurrency: 1
params: {max_tokens: 10}
targets: [{id: dear, target: mock:dear, options: {answer: Paris}}]
prices: {dear: {input: 1000, output: 1000}}
cases: [{id: a, input: One?, expected: Paris}, {id: b, input: Two?, expected: Paris}, {id: c, input: Three?, expected: Rome}]
"""
ATTACHED = """name: attached
targets: [mock:echo]
scorer: contains
prompts: {plain: "{{ input }}", kind: "Please: {{ input }}"}
cases:
  - {id: picture, input: What is it?, attach: data/square.png, expected: please}
  - {id: talk, turns: [I am Ann., Who am I?], expected: Ann, cluster: talks, tags: [talk], metadata: {page: 7}}
"""
# What is done with it, in this order: first it is only read, then work on its runs goes on.
DONE = (
    *("store check", "list --json", "show judged --json", "show judged --trials --json", "compare judged --json"),
    *("rank judged --json", "rank judged --by verdicts --json", "variance judged --json", "label judged --json"),
    *(
        "show failed --json",
        "show failed --failed --json",
        "compare failed --json",
        "gate failed --min-score 10 --json",
    ),
    *(
        "show stopped --json",
        "compare stopped --json",
        "show broke --json",
        "show series --json",
        "compare series --json",
    ),
    *("cases series --json", "power series --json", "show attached --trials --json", "show attached --context --json"),
    *(
        f"export judged -o - --format {form}"
        for form in ("json", "jsonl", "csv", "md", "junit.xml", "html", "eee.jsonl")
    ),
    *("retry failed --json", "resume broke --budget-usd 1 --json", "export broke -o - --format jsonl"),
    *("rescore judged --scorer match --json", "rescore judged --scoring 0 --json", "pairwise judged --json"),
    *("resume stopped --json", "tag judged again --json", "show again --json", "delete attached --yes", "list --json"),
    "store check",
)


def make(folder: Path) -> None:
    """Write the store anew, with the version that is installed."""
    with place(folder):
        for name, text in {**suites(), "priced": PRICED, "attached": ATTACHED}.items():
            (folder / f"{name}.yaml").write_text(text, "utf-8")
        for line in MADE:
            code, _, err = fairtrial(line)
            assert code in (0, 2), f"{line}: {err}"
            if "--sample" in line:
                _fill_in(folder / "marks.csv")
        made = folder / ".fairtrial" / "fairtrial.db"
        with closing(sqlite3.connect(made)) as connection:
            connection.execute("pragma journal_mode = delete")
            connection.execute("vacuum")
        FILE.write_bytes(gzip.compress(made.read_bytes(), mtime=0))


def _fill_in(file: Path) -> None:
    """Label the drawn answers, as a person would."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": 30 + 10 * number} for number, row in enumerate(rows))


def documents_of_store(folder: Path) -> list[dict[str, Any]]:
    """Do everything with a copy of the store; return what each command printed."""
    with place(folder):
        (folder / ".fairtrial").mkdir()
        (folder / ".fairtrial" / "fairtrial.db").write_bytes(gzip.decompress(FILE.read_bytes()))
        return [outcome(line) for line in DONE]
