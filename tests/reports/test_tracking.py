"""Runs sent to tracking services, with the real libraries and without a server."""

import json
from pathlib import Path

import pytest

import fairtrial as ft
from fairtrial.cli.main import main
from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import send
from fairtrial.reports.formats import format_named
from fairtrial.tracks.interchange.exports.tracked import shown_address
from tests.e2e.conftest import cli  # noqa: F401 - a fixture
from tests.test_pages_of_tools import commands

LIBRARIES = ("mlflow", "wandb")
SECRET = "sk-very-secret-4711-0815"


@pytest.fixture
async def run(run_suite, monkeypatch):
    monkeypatch.setenv("OWN_API_KEY", SECRET)
    cases = [
        {"id": "q0", "input": "42", "expected": "42"},
        {"id": "q1", "input": "Say ${OWN_API_KEY}", "expected": "x"},
    ]
    targets = [{"id": name, "target": "mock:echo"} for name in "ab"]
    return await run_suite(targets=targets, cases=cases, conditions={"c": {"system": "Mind ${OWN_API_KEY}."}})


def call(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


def every_byte(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
async def test_mlflow_gets_a_run_per_arm_under_one_parent(run, tmp_path, store, capsys, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path / "m")
    address = "sqlite:///tracking.db"
    assert call("export", run.id, "--format", "mlflow", "-o", address, "--store", store.address) == 0
    assert f"experiment {run.record.suite_name}" in capsys.readouterr().err
    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.get_experiment_by_name(run.record.suite_name)
    runs = {one.info.run_name: one for one in client.search_runs([experiment.experiment_id])}
    parent = runs.pop(f"{run.record.suite_name} {run.id}")
    assert sorted(runs) == ["a/c", "b/c"] and parent.data.params["run_id"] == run.id
    for arm in run.arms:
        child = runs[arm.arm]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id and child.info.status == "FINISHED"
        assert child.data.metrics["score"] == pytest.approx(100 * arm.aggregate.mean)
        low, high = (child.data.metrics[f"score.ci95_{name}"] for name in ("low", "high"))
        assert (low, high) == pytest.approx([100 * bound for bound in arm.aggregate.ci95])
        assert child.data.params["condition"] == "c" and child.data.params["params.temperature"] == "0.7"
        table = json.loads(Path(client.download_artifacts(child.info.run_id, "trials.json")).read_text())
        assert len(table["data"]) == 2 and "score" in table["columns"]
    files = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert files == {"report.html", "trials.jsonl"}
    body = every_byte(tmp_path / "m")
    assert b"${OWN_API_KEY}" in body and SECRET.encode() not in body


@pytest.mark.slow
async def test_weights_and_biases_offline(run, tmp_path, store, capsys, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "w"))
    (tmp_path / "w").mkdir()
    assert call("export", run.id, "--format", "wandb", "--store", store.address) == 0
    folders = sorted((tmp_path / "w" / "wandb").glob("offline-run-*"))
    assert len(folders) == 3  # two arms, and the report
    body = every_byte(tmp_path / "w")
    assert b"score.ci95_low" in body and SECRET.encode() not in body
    assert store.address.encode() not in body  # nor the command line
    assert b"hypothesis" not in body  # nor what is installed


def test_passwords_in_addresses_are_not_shown():
    assert shown_address("https://me:pass@host:5000/x?token=1") == "https://host:5000/x"
    assert shown_address("databricks") == "databricks" and shown_address("./mlruns") == "./mlruns"


@pytest.mark.slow
async def test_a_service_that_is_not_there_is_one_sentence(run, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(FairtrialError, match=r"MLflow at http://127\.0\.0\.1:9 does not take the run") as caught:
        send(run, format_named("mlflow"), "http://me:pass@127.0.0.1:9")
    assert "pass" not in str(caught.value).replace("password", "")


def test_no_file_and_no_service(capsys):
    assert call("export", "latest") == 1
    assert "-o" in capsys.readouterr().err


@pytest.mark.slow
def test_the_commands_about_exports(cli, tmp_path, monkeypatch):  # noqa: F811
    """As they stand on their page; here, because the libraries take longer to import than the commands to run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    ft.run({"name": "sums", "targets": ["mock:echo"], "cases": [{"input": "2", "expected": "2"}]})
    lines = commands("exporting.md")
    assert len(lines) == 7
    for line in lines:
        library = next((name for name in LIBRARIES if name in line), None)
        if library:
            pytest.importorskip(library)
        code, _, err = cli(*line)
        assert code == 0, (line, err)
    assert Path("run.eval").stat().st_size and list(Path("logs").glob("*.eval"))
    assert list(Path("collection/data").rglob("*.json")) and Path("mlflow.db").exists()
    assert list(Path("trajectories").glob("*.json")) and Path("spans.otlp.json").stat().st_size
    assert isinstance(ft.import_results("run.eval"), ft.Run)
