"""Logs of inspect-ai, as its own reader wants them; `benchmarks/inspect_logs.py` asks the reader itself."""

import json
import math
import zipfile

import pytest

from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export
from fairtrial.reports.formats import format_named
from tests.conftest import numbered

INSPECT = format_named("inspect")


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


@pytest.fixture
async def run(run_suite):
    answers = {"q0": "42", "q1": "41", "q2": "no JSON"}
    target = {"id": "a", "target": "mock:a", "options": {"answers": answers, "answer": "42"}}
    cases = numbered(4)
    cases[2]["scorer"] = {"type": "match", "extract": {"json": "x"}}
    return await run_suite(targets=[target], cases=cases, repeats=2, conditions={"brief": {"system": "Be brief."}})


async def test_a_log_has_the_members_that_inspect_reads(run, tmp_path):
    parts = members(export(run, tmp_path / "run.eval"))
    assert {"_journal/start.json", "summaries.json", "header.json"} <= parts.keys()
    header = parts["header.json"]
    assert (header["version"], header["status"]) == (2, "success")
    assert header["eval"]["model"] == "mock/a" and header["eval"]["config"]["epochs"] == 2
    assert header["eval"]["dataset"]["sample_ids"] == ["q0", "q1", "q2", "q3"]
    sample = parts["samples/q0_epoch_2.json"]
    assert [message["role"] for message in sample["messages"]] == ["system", "user", "assistant"]
    assert sample["output"]["completion"] == "42" and sample["target"] == "42"
    assert sample["scores"]["match"]["value"] == 1.0
    usage = sample["model_usage"]["mock/a"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert len(parts["summaries.json"]) == 8 and "error" not in sample


async def test_the_mean_and_its_error_are_those_that_inspect_computes(run, tmp_path):
    """A mean over the epochs of each sample, then over samples; what is unscored is not a number and counts nowhere."""
    parts = members(export(run, tmp_path / "run.eval"))
    [score] = parts["header.json"]["results"]["scores"]
    values = {}
    for name, sample in parts.items():
        if name.startswith("samples/") and not math.isnan(value := sample["scores"]["match"]["value"]):
            values.setdefault(sample["id"], []).append(value)
    means = [sum(epochs) / len(epochs) for epochs in values.values()]
    mean = sum(means) / len(means)
    error = math.sqrt(sum((value - mean) ** 2 for value in means) / (len(means) - 1) / len(means))
    arm = run.arms[0].aggregate
    assert score["metrics"]["mean"]["value"] == pytest.approx(mean) == pytest.approx(arm.mean)
    assert score["metrics"]["stderr"]["value"] == pytest.approx(error) == pytest.approx(arm.std_err)
    assert [score["metrics"][name]["value"] for name in ("ci95_low", "ci95_high")] == list(arm.ci95)
    unscored = parts["samples/q2_epoch_1.json"]["scores"]["match"]
    assert math.isnan(unscored["value"]) and unscored["reason"] and unscored["explanation"]


async def test_weights_are_ours_alone_and_clusters_are_passed_on(run_suite, tmp_path):
    cases = [{**case, "weight": 1 + n, "cluster": "ab"[n % 2]} for n, case in enumerate(numbered(4))]
    target = {"target": "mock:a", "options": {"answers": {"q0": "42"}, "answer": "41"}}
    run = await run_suite(targets=[target], cases=cases)
    header = members(export(run, tmp_path / "run.eval"))["header.json"]
    metrics = header["results"]["scores"][0]["metrics"]
    assert metrics["mean"]["value"] == 0.25 and metrics["weighted_mean"]["value"] == 0.1
    assert header["eval"]["scorers"][0]["metrics"][1]["options"] == {"cluster": "cluster"}
    assert metrics["stderr"]["value"] == pytest.approx(math.sqrt((0.5**2 + 0.5**2) * 2) / 4)


async def test_failed_calls_are_errors_without_scores(run_suite, tmp_path):
    down = {"target": "mock:echo", "options": {"faults": {"500": 1.0}}}
    run = await run_suite(targets=[down], cases=numbered(2), retry={"attempts": 1})
    parts = members(export(run, tmp_path / "run.eval"))
    sample = parts["samples/q0_epoch_1.json"]
    assert sample["scores"] == {} and sample["error"]["message"].startswith("server")
    assert parts["header.json"]["results"]["completed_samples"] == 0
    assert parts["summaries.json"][0]["error"]


async def test_tool_calls_are_messages(run_suite, tmp_path):
    (tmp_path / "own.py").write_text(
        "def query(question, system, servers):\n"
        "    return {'text': '42', 'tool_calls': [{'name': 'look', 'arguments': {'q': 1}, 'result': 'so'},\n"
        "                                         {'name': 'break', 'result': 'bad', 'error': True}]}\n"
    )
    run = await run_suite(targets=["python:own:query"], cases=numbered(1))
    log = json.loads(export(run, tmp_path / "run.inspect.json").read_text())
    messages = log["samples"][0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    call = messages[1]["tool_calls"][0]
    assert (call["function"], call["arguments"], messages[2]["content"]) == ("look", {"q": 1}, "so")
    assert messages[2]["tool_call_id"] == call["id"] and messages[4]["error"]["message"] == "bad"


async def test_several_arms_are_a_folder_of_logs(run_suite, tmp_path, write_suite):
    run = await run_suite(targets=[{"target": f"mock:{n}", "options": {"answer": n}} for n in "ab"], cases=numbered(2))
    with pytest.raises(FairtrialError, match=r"one arm.*--format inspect -o logs/"):
        export(run, tmp_path / "run.eval")
    folder = export(run, f"{tmp_path}/logs/", INSPECT)
    headers = [members(path)["header.json"] for path in sorted(folder.iterdir())]
    assert [header["eval"]["model"] for header in headers] == ["mock/a", "mock/b"]
    assert len({header["eval"]["eval_id"] for header in headers}) == 2
    assert len({header["eval"]["run_id"] for header in headers}) == 1
    with pytest.raises(FairtrialError, match="is one file: name the file"):
        export(run, f"{tmp_path}/logs/", format_named("csv"))


async def test_conversations_have_every_turn(run_suite, tmp_path):
    target = {"target": "mock:echo"}
    run = await run_suite(targets=[target], cases=[{"id": "c", "turns": ["I am Ann.", "Who am I?"], "expected": "x"}])
    sample = members(export(run, tmp_path / "run.eval"))["samples/c_epoch_1.json"]
    assert [message["content"] for message in sample["messages"]] == [
        "I am Ann.",
        "I am Ann.",
        "Who am I?",
        "Who am I?",
    ]
