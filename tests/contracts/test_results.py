"""One contract for every reader of results: its example is recognised and becomes a run; any other file is a sentence."""

import json
import math
import random
from contextlib import closing
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.results import Columns, Log, Sample, Source, reader_of, recognise
from fairtrial.store import Store
from fairtrial.tracks.interchange.import_results import import_all
from tests.tracks.interchange.results.conftest import DATA

EXAMPLES = {
    "inspect": "inspect/tools.eval",
    "lm_eval": "lm-eval/mc/results_2026-11-16T06-09-28.235274.json",
    "promptfoo": "promptfoo/small.json.gz",
    "deepeval": "deepeval/test_run_a.json.gz",
    "pydantic_evals": "pydantic-evals/report_a.json.gz",
    "k_eval": "k-eval/arith_20261116_11111111.detailed.jsonl.gz",
    "eee": "every-eval-ever/mc/arith_mc/e9677b9d-448f-48a5-9633-efe32921e0a1.json",
    "openai_evals": "openai-evals/261116060003ABCDEFGH_mock-a_arith.jsonl.gz",
    "benchmaker": {
        "id": "r1", "testSuiteId": "t", "testSuiteName": "sums", "models": ["m/a", "m/b"], "status": "completed",
        "parameters": {"temperature": 0, "apiKey": "sk-abcdefghijklmnopqrstuvwx"}, "startedAt": 1794809329229,
        "testSuiteSnapshot": {"name": "sums", "systemPrompt": "Add.", "testCases": [
            {"id": "1", "prompt": "1+1?", "expectedOutput": "2", "weight": 1, "metadata": {"tags": ["x"]}}]},
        "results": [
            {"testCaseId": "1", "modelId": "m/a", "response": "2", "status": "completed", "score": {"score": 1}, "cost": 0.1},
            {"testCaseId": "1", "modelId": "m/b", "response": "", "status": "failed", "error": "timeout after 60 s"}],
    },
    "helm": [
        {"instance_id": "id1", "train_trial_index": 0, "stats": [
            {"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": 1.0},
            {"name": {"name": "num_prompt_tokens", "split": "test"}, "count": 1, "mean": 12.0}]},
        {"instance_id": "id2", "train_trial_index": 0, "stats": [
            {"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": 0.0}]},
        {"instance_id": "id2", "train_trial_index": 0, "perturbation": {"name": "typos", "computed_on": "worst"},
         "stats": [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": 0.0}]},
    ],
    "table": [{"case": "a", "model": "x", "score": 1}, {"case": "a", "model": "y", "score": 0}],
}  # fmt: skip
NAMES = {"helm": "per_instance_stats.json"}
OTHERS = [b"", b"\xff\xfe\x00", b"[1, 2", b"just words", b"{}", b"[]", b"[[]]", b'{"a": 1}\n']
AWKWARD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**64,
    0.0,
    -0.0,
    5e-324,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
    "",
    "0",
    "\0",
    "é",
]


def example(name, folder):
    content = EXAMPLES[name]
    if isinstance(content, str):
        return DATA / content
    path = folder / NAMES.get(name, f"{name}.json")
    path.write_text(json.dumps(content))
    return path


def strings(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, str):
        yield value


@cache
def content_of(name):
    content = EXAMPLES[name]
    if not isinstance(content, str):
        return content
    source = Source(DATA / content)
    return source.first if source.suffix == ".jsonl" else source.document if source.suffix == ".json" else {}


@cache
def keys_of(name):
    return sorted(set(list(strings(content_of(name)))[:60])) or ["eval", "samples"]


def scalar(luck):
    if luck.random() < 0.4:
        return luck.choice(AWKWARD)
    words = "".join(chr(luck.choice([luck.randrange(128), luck.randrange(0xD800)])) for _ in range(luck.randrange(8)))
    return luck.choice([luck.randint(-9, 9), luck.uniform(-2, 2), words])


def anything(luck, keys, depth):
    """A value, a list or an object with the keys of the example, one within the other."""
    kind = luck.random()
    if not depth or kind < 0.4:
        return scalar(luck)
    if kind < 0.6:
        return [anything(luck, keys, depth - 1) for _ in range(luck.randint(0, 3))]
    return {luck.choice(keys): anything(luck, keys, depth - 1) for _ in range(luck.randint(0, 6))}


def spoilt(value, luck, keys):
    """The beginning of an example with a few parts replaced."""
    if luck.random() < 0.02:
        return anything(luck, keys, 2)
    if isinstance(value, dict):
        return {key: spoilt(item, luck, keys) for key, item in value.items()}
    return [spoilt(item, luck, keys) for item in value[:3]] if isinstance(value, list) else value


def document(name, luck):
    """Anything that has the keys of the example. Hypothesis would take five times as long to draw it piece by piece."""
    keys = keys_of(name)
    if luck.random() < 0.5:
        return spoilt(content_of(name), luck, keys)
    rows = [
        {luck.choice(keys): anything(luck, keys, 3) for _ in range(luck.randint(0, 8))}
        for _ in range(luck.choice([0, 1, 1, 2, 5]))
    ]
    return rows[0] if rows and luck.random() < 0.6 else rows


@pytest.fixture
def store(tmp_path):
    with closing(Store(str(tmp_path / "s.db"))) as opened:
        yield opened


def test_every_reader_has_an_example():
    assert sorted(EXAMPLES) == sorted(registry.builtin_names("results"))


@pytest.mark.parametrize("name", sorted(EXAMPLES))
class TestEveryReader:
    def test_its_example_is_recognised_and_becomes_a_run(self, name, tmp_path, store):
        path = example(name, tmp_path)
        assert recognise(Source(path)) == name.replace("_", "-")
        (done,) = import_all(path, store=store)
        origin = done.origin
        assert done.happened == "imported" and origin["samples"] > 0 and origin["scored"] > 0 and origin["tool"]
        assert all("/" not in file["name"] and len(file["sha256"]) == 64 for file in origin["files"])
        assert done.run.arms[0].aggregate.mean is not None
        trials = list(done.run.trials())
        assert len(trials) == origin["samples"]
        assert all(0 <= trial.score <= 1 for trial in trials if trial.score is not None)
        assert all(trial.score is None for trial in trials if trial.status == "failed")

    def test_reading_again_gives_the_same(self, name, tmp_path):
        def read():
            (log,) = reader_of(name).read([Source(example(name, tmp_path))], Columns())
            assert isinstance(log, Log)
            once = list(log.samples())
            assert once == list(log.samples()) and all(isinstance(sample, Sample) for sample in once)
            return once

        assert read() == read()

    def test_importing_again_adds_nothing(self, name, tmp_path, store):
        path = example(name, tmp_path)
        (first,), (second,) = import_all(path, store=store), import_all(path, store=store)
        assert second.happened == "already there" and second.run.id == first.run.id
        assert second.origin == first.origin and len(store.runs()) == 1

    @pytest.mark.parametrize("suffix", [".json", ".jsonl"])
    def test_another_file_is_one_sentence(self, name, suffix, tmp_path, store):
        for number, body in enumerate(OTHERS):
            path = tmp_path / f"theirs{number}{suffix}"
            path.write_bytes(body)
            assert recognise(Source(path)) is None, body
            with pytest.raises(FairtrialError) as error:
                import_all(path, store=store, format=name.replace("_", "-"))
            assert "\n" not in str(error.value) and str(path.parent) not in str(error.value), body
            assert not store.runs(), body

    @pytest.mark.slow
    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(seed=st.integers(0, 2**32))
    def test_files_that_only_look_like_it_never_crash(self, name, seed, tmp_path, store):
        luck = random.Random(seed)
        path = tmp_path / f"theirs.{luck.choice(['json', 'jsonl'])}"
        path.write_text(json.dumps(document(name, luck)))
        for chosen in (name.replace("_", "-"), None):
            try:
                import_all(path, store=store, format=chosen)
            except FairtrialError as error:
                assert "\n" not in str(error)
