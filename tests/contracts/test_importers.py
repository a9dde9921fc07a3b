"""One contract for every importer: a file of its tool becomes a suite that loads; any other file is one sentence."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.config import parse_suite
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.suites import NO_JUDGE, Imported, suite_text
from tests.tracks.interchange.importers.optimisation_benchmarks import write

EXAMPLES = {
    "benchmaker": json.dumps({
        "id": "s", "name": "S", "testCases": [
            {"id": "a", "prompt": "q", "expectedOutput": "x", "scoringMethod": "exact-match", "weight": 1}
        ],
    }),
    "k_eval": yaml.safe_dump({
        "name": "K", "dataset": {"path": "d.jsonl", "question_key": "q", "answer_key": "a"},
        "agent": {"type": "claude_code_sdk", "model": "m"}, "judge": {"model": "gpt-5"}, "conditions": {"plain": {}},
    }),
    "harbor": {
        "task.toml": 'version = "1.0"', "instruction.md": "q", "tests/test.sh": "echo 1 > /logs/verifier/reward.txt",
    },
    "mcp_eval": yaml.safe_dump({"name": "M", "cases": [{"name": "a", "inputs": "q", "expected_output": "x"}]}),
    "mcpchecker": yaml.safe_dump({
        "kind": "Task", "metadata": {"name": "a"}, "steps": {"prompt": {"inline": "q"}, "verify": {"contains": "x"}},
    }),
    "skill": {
        "SKILL.md": "---\nname: theirs\ndescription: d\n---\nx",
        "evals/evals.json": json.dumps({"evals": [{"id": 1, "prompt": "q", "expectations": ["x"]}]}),
    },
    "promptfoo": yaml.safe_dump({
        "providers": ["echo"], "prompts": ["{{q}}"], "tests": [{"vars": {"q": "x"}, "assert": [{"type": "equals", "value": "x"}]}],
    }),
    "complexor": "ComplexOR",
    "industryor": json.dumps({"en_question": "The least x?", "en_answer": "1", "difficulty": "Easy", "id": 3}),
    "mamo": json.dumps({"id": 1, "Question": "The least x?", "Answer": "1", "Type": "easy_lp"}),
    "nlp4lp": json.dumps({"description": "The least x?", "parameters": "{}", "solution": '{"objective": 1}'}),
    "optibench": json.dumps([{"question": "The least x?", "results": {"x": "1"}, "type": "linear-table", "index": 0}]),
}  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8)
KEYS = st.sampled_from(
    ["name", "testCases", "prompt", "providers", "prompts", "tests", "vars", "assert", "type", "value", "dataset",
     "agent", "judge", "conditions", "path", "question_key", "answer_key", "id", "expectedOutput", "scoringMethod"]
)  # fmt: skip
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)


def example(name, folder):
    """Write an example, which is a file, or a folder of files; return its place."""
    files = EXAMPLES[name]
    if name == "complexor":
        return write(folder, files)
    place = folder / ("theirs" if isinstance(files, dict) else "theirs.yaml")
    for inner, text in files.items() if isinstance(files, dict) else [("", files)]:
        path = place / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


def test_every_importer_has_an_example():
    assert sorted(EXAMPLES) == list(registry.builtin_names("importers"))


@pytest.mark.parametrize("name", registry.builtin_names("importers"))
class TestEveryImporter:
    def read(self, name, path):
        return registry.load("importers", name)().read(path)

    def test_its_example_becomes_a_suite_that_loads(self, name, tmp_path):
        (tmp_path / "d.jsonl").write_text('{"q": "x", "a": "x"}\n')
        imported = self.read(name, example(name, tmp_path))
        assert isinstance(imported, Imported) and all(isinstance(item, str) for item in imported.findings)
        for file, pieces in imported.files.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text("".join(map(str, pieces)))
        text = suite_text(imported).replace(NO_JUDGE, "mock:echo")
        keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        assert parse_suite(text, folder=tmp_path, environment=keys).case_count == 1

    @pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00", b"[1, 2", b"just words", b"- a\n- b\n", b"name: x\n"])
    def test_another_file_is_one_sentence(self, name, body, tmp_path):
        path = tmp_path / "theirs.yaml"
        path.write_bytes(body)
        with pytest.raises(FairtrialError) as caught:
            self.read(name, path)
        assert str(path) in str(caught.value)

    def test_a_file_that_is_not_there(self, name, tmp_path):
        with pytest.raises(FairtrialError, match="cannot be read"):
            self.read(name, tmp_path / "nothing.yaml")

    @pytest.mark.slow
    def test_whatever_the_file_says(self, name, tmp_path_factory):
        path = tmp_path_factory.mktemp("any") / "theirs.yaml"

        @given(DOCUMENTS)
        def check(document):
            path.write_text(yaml.safe_dump(document))
            try:
                imported = self.read(name, path)
            except FairtrialError:
                return
            yaml.safe_load(suite_text(imported))

        check()


def test_the_limits_that_k_eval_does_not_have_are_those_of_agents(tmp_path):
    from fairtrial.core.settings import AGENT_TIMEOUT

    differences = registry.load("importers", "k_eval")().read(example("k_eval", tmp_path)).differences
    assert any(f"an answer may take {AGENT_TIMEOUT:g} s" in difference for difference in differences)
