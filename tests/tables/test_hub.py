"""Datasets of the Hub: the library really loads them, from folders that are laid out like repositories."""

import json
import sys
from types import SimpleNamespace

import pytest

from fairtrial.config import load_suite, parse_suite
from fairtrial.core.errors import FairtrialError
from fairtrial.tables import hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = tmp_path / "quiz"
    folder.mkdir()
    rows = [{"question": f"Q{n}?", "answer": str(n), "choices": ["x", "y"], "about": {"n": n}} for n in range(5)]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    return folder


DATASET = {"path": "hf://./quiz", "split": "test", "input": "question", "expected": "answer"}


@pytest.mark.slow
def test_rows_of_the_hub(repository, write_suite, monkeypatch):
    suite = load_suite(write_suite(dataset=DATASET))
    cases = list(suite.cases())
    assert [(case.id, case.input, case.expected) for case in cases[:2]] == [
        ("row-1", "Q0?", "0"),
        ("row-2", "Q1?", "1"),
    ]
    assert cases[3].columns == {"choices": ["x", "y"], "about": {"n": 3}}
    origin = suite.dataset_origin
    assert origin["split"] == "test" and len(origin["revision"]) == 64
    # Once copied, the library is not needed again; a changed repository is another revision.
    monkeypatch.setattr(hub, "_download", None)
    assert load_suite(write_suite(dataset=DATASET)).plan_id == suite.plan_id
    monkeypatch.undo()
    with (repository / "test.jsonl").open("a") as file:
        file.write('{"question": "Q5?", "answer": "5", "choices": [], "about": {"n": 5}}\n')
    changed = load_suite(write_suite(dataset=DATASET))
    assert changed.case_count == 6 and changed.dataset_origin["revision"] != origin["revision"]


@pytest.mark.slow
def test_only_the_first_rows_are_copied(repository, write_suite):
    suite = load_suite(write_suite(dataset={**DATASET, "offset": 1, "limit": 2}))
    assert [case.input for case in suite.cases()] == ["Q1?", "Q2?"]
    (copy,) = hub.CACHE.glob("*.jsonl")
    assert copy.read_text().count("\n") == 3


@pytest.mark.slow
def test_splits_are_named(repository, write_suite):
    with pytest.raises(FairtrialError, match="set `split` to one of train, test"):
        load_suite(write_suite(dataset={**DATASET, "split": None}))
    with pytest.raises(FairtrialError, match=r"cannot load hf://\./quiz: "):
        load_suite(write_suite(dataset={**DATASET, "split": "dev"}))
    assert not list(hub.CACHE.glob("*"))


@pytest.mark.slow
def test_a_branch_is_resolved_to_its_commit(repository, write_suite, monkeypatch):
    """The Hub itself is played; what follows is the library's work."""
    import datasets
    import huggingface_hub

    asked = []

    def info(self, name, revision=None):
        asked.append((name, revision))
        return SimpleNamespace(sha=COMMIT)

    load = datasets.load_dataset

    def from_folder(path, config, *, revision, **options):
        asked.append((path, config, revision, options["streaming"]))
        return load(str(repository), **options)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(datasets, "load_dataset", from_folder)
    dataset = {**DATASET, "path": "hf://ann/quiz", "revision": "main", "config": "small"}
    suite = load_suite(write_suite(dataset=dataset))
    assert asked == [("ann/quiz", "main"), ("ann/quiz", "small", COMMIT, True)]
    assert suite.dataset_origin == {"dataset": "ann/quiz", "config": "small", "split": "test", "revision": COMMIT}
    # A commit that was used before needs no network.
    del asked[:]
    load_suite(write_suite(dataset={**dataset, "revision": COMMIT}))
    assert asked == []


@pytest.mark.parametrize(
    ("path", "words"), [("hf://a/b/c", "write hf://owner/name"), ("hf://./none", "there is no folder")]
)
def test_names_that_are_none(tmp_path, path, words):
    with pytest.raises(FairtrialError, match=words):
        parse_suite(f"name: x\ntargets: [mock:echo]\ndataset: {path}", folder=tmp_path, environment={})


def test_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(FairtrialError, match=r"pip install 'fairtrial\[hub\]'"):
        parse_suite("name: x\ntargets: [mock:echo]\ndataset: hf://a/b", folder=tmp_path, environment={})


@pytest.mark.slow
def test_without_a_network(tmp_path, monkeypatch):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    pytest.importorskip("datasets")

    def refuse(self, name, revision=None):
        raise ConnectionError("no route to host\nmore")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", refuse)
    with pytest.raises(FairtrialError, match="cannot look up hf://a/b: no route to host more; check the name"):
        parse_suite("name: x\ntargets: [mock:echo]\ndataset: hf://a/b", folder=tmp_path, environment={})
