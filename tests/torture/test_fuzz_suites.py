"""Suites and datasets that were changed at random: each is accepted, or refused in sentences."""

from __future__ import annotations

import gzip
import io
import json
from functools import partial
from pathlib import Path

import pytest

from fairtrial.config import parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.trust import running_code
from fairtrial.tables import rows_of
from tests.tables.workbook import write_workbook
from tests.torture.campaign import Campaign
from tests.torture.fuzz import Document, check_sentence, cut_everywhere, fuzz

ROOT = Path(__file__).parents[2]
WHOLE = b"""name: everything
targets:
  - mock:echo
  - {id: other, target: "mock:good", params: {temperature: 0.5, max_tokens: 10}, options: {answers: {q: a}}}
  - {id: call, target: "http:http://127.0.0.1:9/x", options: {body: {q: "{{ input }}"}}}
conditions: {plain: {}, polite: {system: "Be kind to {{ name }}.", params: {seed: 1}}}
prompts: {one: "{{ input }}?", two: [{role: system, content: s}, {role: user, content: "{{ input }}"}]}
judge: {target: "mock:judge", options: {verdict: {marks: {a: 5}, otherwise: 1}}}
scorer: {type: all_of, scorers: [{type: contains, ignore_case: true}, {type: regex, pattern: "a+"}, numeric, {type: llm_judge, criteria: good}]}
extract: {tag: answer}
repeats: 2
concurrency: 3
timeout: 10
budget_usd: 1.5
retry: {attempts: 2}
prices: {"mock:echo": {input: 1, output: 2}}
case_defaults: {tags: [t], metadata: {a: 1}, vars: {name: you}}
gate: {baseline: latest, margin: 2, min_score: 50}
cases:
  - {id: a, input: q, expected: [a, b], weight: 2, category: c, difficulty: easy, cluster: k, tags: [x, y]}
  - {input: q2, expected: 5, scorer: {type: json_schema, schema: {type: object}}, vars: {name: me}}
  - {turns: [{input: q, expected: a}, {input: r}], expected: a}
  - {input: pick, choices: [a, b, c], expected: b, scorer: choice}
  - {input: page, scorer: browser, checks: [{name: c, steps: [{click: "#a"}, {expect: {selector: "#b", visible: true}}]}]}
"""
STYLES = (
    b"name: s\ntargets: [mock:echo]\nsuite: {kind: optimisation, family: box_qp, n: 2, count: 1, styles: [plain]}\n"
)
TABLES = {
    "csv": b'input,expected,tags,weight\n"q, 1",a,"x;y",1\nr,b,,2\n',
    "tsv": b"input\texpected\nq\ta\n",
    "jsonl": b'{"input": "q", "expected": ["a", "b"], "metadata": {"checks": []}}\n{"input": "r", "expected": 3}\n',
    "json": b'{"data": [{"input": "q", "expected": "a", "tags": ["x"]}, {"input": "r", "expected": null}]}',
}
HEAD = "name: d\ntargets: [mock:echo]\nscorer: match\ndataset: "


def suites() -> list[Document]:
    examples = [path.read_bytes() for path in sorted((ROOT / "examples").glob("*/suite.yaml"))]
    return [Document("suite", body) for body in (WHOLE, STYLES, *examples)]


@pytest.fixture(scope="module", autouse=True)
def looking():
    """Whoever only looks at a suite runs nothing of it."""
    with running_code(False):
        yield


def read_suite(folder: Path, document: Document) -> str:
    try:
        text = document.body.decode("utf-8")
    except UnicodeDecodeError:
        text = document.body.decode("latin-1")
    suite = parse_suite(text, file="s.yaml", folder=folder, environment={})
    return f"{len(suite.arms)} {len(list(suite.cases())) > 0}"


def test_suites(tmp_path: Path, campaign: Campaign):
    fuzz(campaign, suites(), partial(read_suite, tmp_path), short=2)


def test_suites_that_are_cut(tmp_path: Path, campaign: Campaign):
    cut_everywhere(campaign, suites(), partial(read_suite, tmp_path))


def workbook(path: Path) -> bytes:
    return write_workbook(path, cases=[["input", "expected"], ["q", "a"], [1.5, None]]).read_bytes()


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"input": ["q", "r"], "expected": ["a", None], "tags": [["x"], []]}), file)
    return file.getvalue()


def read_dataset(folder: Path, document: Document) -> str:
    path = folder / f"d.{document.kind}"
    path.write_bytes(document.body)
    for row in rows_of(path):
        if row.problem:
            check_sentence(str(FairtrialError(row.problem)))
    entry = json.dumps({"path": path.name, **({"records": "data"} if document.kind == "json" else {})})
    suite = parse_suite(HEAD + entry, file="s.yaml", folder=folder, environment={})
    return str(min(3, len(list(suite.cases()))))


def datasets(folder: Path, campaign: Campaign) -> list[Document]:
    seeds = [Document(kind, body) for kind, body in TABLES.items()]
    seeds += [Document("csv.gz", gzip.compress(TABLES["csv"])), Document("xlsx", workbook(folder / "w.xlsx"))]
    if campaign.long:  # making one takes longer than all others
        seeds.append(Document("parquet", parquet()))
    return seeds


def test_datasets(tmp_path: Path, campaign: Campaign):
    fuzz(campaign, datasets(tmp_path, campaign), partial(read_dataset, tmp_path), short=3)


def test_datasets_that_are_cut(tmp_path: Path, campaign: Campaign):
    cut_everywhere(campaign, datasets(tmp_path, campaign), partial(read_dataset, tmp_path))
