"""Folders of Every Eval Ever: records and rows that belong together. The words are ours, the demands are its schema's."""

import hashlib
import json
import re

import jsonschema_rs
import pytest

from fairtrial.reports.export import export
from fairtrial.reports.formats import format_named
from tests.conftest import numbered

TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
PATH = r"^data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_samples\.jsonl$"
ROW = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "interaction_type", "input",
        "answer_attribution", "evaluation",
    ],
    "properties": {
        **{name: {"type": "string"} for name in ("schema_version", "evaluation_id", "model_id", "evaluation_name")},
        **{name: {"type": "string"} for name in ("evaluation_result_id", "sample_id", "sample_hash")},
        "interaction_type": {"enum": ["single_turn", "multi_turn", "agentic"]},
        "input": {"type": "object", "required": ["raw", "reference"]},
        "output": {"type": ["object", "null"]},
        "messages": {"type": ["array", "null"]},
        "answer_attribution": {"type": "array", "minItems": 1},
        "evaluation": {
            "type": "object",
            "required": ["score", "is_correct"],
            "properties": {"score": {"type": "number"}, "is_correct": {"type": "boolean"}},
        },
        **{name: {"type": ["object", "null"]} for name in ("token_usage", "performance")},
        "error": {"type": ["string", "null"]},
        "metadata": TEXTS,
    },
}  # fmt: skip


async def test_a_folder_has_records_and_their_rows(run_suite, tmp_path):
    targets = [
        {"id": name, "target": f"mock:{name}", "options": {"answers": {"q0": "42"}, "answer": "41"}} for name in "ab"
    ]
    run = await run_suite(targets=targets, cases=numbered(4), repeats=2)
    folder = export(run, f"{tmp_path}/eee/", format_named("eee"))
    records = sorted(folder.rglob("*.json"))
    assert len(records) == 2
    for path in records:
        record = json.loads(path.read_text())
        details = record["detailed_evaluation_results"]
        assert re.match(PATH, details["file_path"]) and record["schema_version"] == "0.3.0"
        body = (folder / details["file_path"]).read_bytes()
        assert hashlib.sha256(body).hexdigest() == details["checksum"]
        rows = [json.loads(line) for line in body.splitlines()]
        assert len(rows) == details["total_rows"] == 8
        check = jsonschema_rs.validator_for(ROW)
        assert [str(error) for row in rows for error in check.iter_errors(row)] == []
        [result] = record["evaluation_results"]
        assert {row["evaluation_result_id"] for row in rows} == {result["evaluation_result_id"]}
        mean = sum(row["evaluation"]["score"] for row in rows) / len(rows)
        assert mean == pytest.approx(result["score_details"]["score"]) == 25


async def test_what_has_no_score_is_counted_and_not_scored(run_suite, tmp_path):
    flaky = {"target": "mock:echo", "options": {"faults": {"500": 1.0}}}
    run = await run_suite(targets=[flaky], cases=numbered(2), retry={"attempts": 1})
    folder = export(run, f"{tmp_path}/eee/", format_named("eee"))
    [record] = [json.loads(path.read_text()) for path in folder.rglob("*.json")]
    details = record["detailed_evaluation_results"]
    assert details["total_rows"] == 0 and details["additional_details"] == {"trials_without_a_score": "2"}
