"""Datasets from the command line: from a file on disk to what is shown, recorded and exported."""

import json

import pytest

from tests.tables.workbook import write_workbook


def test_a_semicolon_file_from_validate_to_export(cli, tmp_path, write_suite):
    (tmp_path / "fragen.csv").write_bytes(
        "\ufeffFrage;Antwort;Thema\r\nWie heißt das, bitte?;Wie heißt das, bitte?;a\r\nUnd?;Nein;b\r\n".encode()
    )
    dataset = {"path": "fragen.csv", "input": "Frage", "expected": "Antwort", "where": {"Thema": "a"}}
    path = write_suite(dataset=dataset)
    assert "is valid: 1 case × 1 arm, 1 trial\n" in cli("validate", path)[1]
    code, out, _ = cli("run", path, "--json", "-o", "r.jsonl", "-o", "r.json")
    assert code == 0 and json.loads(out)["arms"][0]["mean"] == 100
    (row,) = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text("utf-8").splitlines()]
    assert row["case_id"] == "row-1" and row["columns"] == {"Thema": "a"}
    record = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert record["context"]["dataset"] == {"files": ["fragen.csv"], "where": {"Thema": "a"}}


def test_a_workbook(cli, tmp_path, write_suite):
    pytest.importorskip("python_calamine")
    write_workbook(tmp_path / "d.xlsx", S=[["input", "expected"], ["a", "a"], ["b", "b"]])
    code, out, _ = cli("run", write_suite(dataset="d.xlsx"), "--json")
    assert code == 0 and json.loads(out)["arms"][0]["scored"] == 2


def test_labels_may_come_from_such_files_too(cli, tmp_path, write_suite):
    assert cli("run", write_suite(), "--quiet")[0] == 0
    assert cli("export", "latest", "-o", "r.jsonl")[0] == 0
    trial = json.loads((tmp_path / "r.jsonl").read_text())["trial_id"]
    (tmp_path / "marks.csv").write_bytes(f"trial;label;note\n{trial};100;schön\n".encode("utf-8-sig"))
    assert cli("label", "--import", "marks.csv", "--by", "ann")[0] == 0


@pytest.mark.parametrize(
    ("budget", "words"), [(100, "within the budget of $100"), (0.000001, "may end the run early"), (None, "at most\n")]
)
def test_a_dry_run_has_a_total(cli, write_suite, monkeypatch, budget, words):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key-0001")
    keys = {} if budget is None else {"budget_usd": budget}
    path = write_suite(targets=["openai:gpt-4o-mini"], **keys)
    code, out, _ = cli("run", path, "--dry-run")
    assert code == 0 and "1 case, 1 trial; nothing was run" in out
    total = " ".join(out[out.index("total: $") :].split())
    assert words.strip() in total
    document = json.loads(cli("run", path, "--dry-run", "--json")[1])
    assert document["total_usd"] == document["most_usd"] > 0 and document["budget_usd"] == budget
