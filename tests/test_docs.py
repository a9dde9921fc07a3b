"""The documentation is true: reference pages are current, links lead somewhere, commands exist, examples run."""

import re
import sys
from pathlib import Path

import pytest

from docs.generate import pages
from fairtrial import pipeline
from fairtrial.cli.main import COMMANDS
from fairtrial.config import parse_suite
from fairtrial.core import registry
from fairtrial.suites import suite_path
from fairtrial.tables.hub import Copy

REPO = Path(__file__).parent.parent
PAGES = [p for p in REPO.rglob("*.md") if not any(part.startswith(".") for part in p.relative_to(REPO).parts)]
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LAB_KEY"), "sk-docs-12345678")


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_reference_pages_are_current(path):
    assert path.read_text("utf-8") == pages()[path], "run `python -m docs.generate`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_commands_in_the_documentation_exist(page):
    snippets = re.findall(r"```sh\n(.*?)```|(`[^`\n]+`)", page.read_text("utf-8"), re.DOTALL)
    code = "\n".join(block + inline for block, inline in snippets)
    used = re.findall(r"(?:^|`)fairtrial ([a-z][a-z-]+)", code, re.MULTILINE)
    assert set(used) <= set(COMMANDS), set(used) - set(COMMANDS)


def test_every_part_is_documented():
    scorers = (REPO / "docs/reference/scorers.md").read_text("utf-8")
    for name in registry.builtin_names("scorers"):
        assert f"## {name}\n" in scorers
    targets = (REPO / "docs/targets.md").read_text("utf-8")
    for name in (
        "openai:",
        "anthropic:",
        "openrouter:",
        "ollama:",
        "local:",
        "mock:",
        "python:",
        "command",
        "tool-agent",
        "claude-code",
    ):
        assert f"`{name}" in targets


def suites_in(page: Path) -> list[str]:
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return [block for block in blocks if block.startswith("name:")]


@pytest.mark.parametrize(
    "page",
    [REPO / "README.md", REPO / "docs/tutorial-models.md", REPO / "docs/judges.md", REPO / "docs/tutorial-agents.md"],
    ids=lambda page: page.name,
)
def test_suites_in_the_documentation_are_right(page, tmp_path):
    (tmp_path / "questions.csv").write_text("question,answer,topic\nWhat is the capital of Italy?,Rome,geo\n")
    suites = suites_in(page)
    assert suites
    for text in suites:
        assert parse_suite(text, folder=tmp_path, environment=KEYS).case_count


def test_datasets_in_the_documentation_are_right(tmp_path, monkeypatch):
    """The Hub is played by a local copy."""
    (tmp_path / "questions.csv").write_text(
        "question;answer;topic;year;level\nWhat is the capital of Italy?;Rome;geography;2021;hard\n"
    )
    (tmp_path / "copy.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    monkeypatch.setattr("fairtrial.config.dataset.fetch", lambda *_: Copy(tmp_path / "copy.jsonl", {}))
    suites = suites_in(REPO / "docs/datasets.md")
    assert len(suites) == 3
    for text in suites:
        assert parse_suite(text, folder=tmp_path, environment=KEYS).case_count == 1


def test_the_python_example_of_the_readme_runs(tmp_path, capsys):
    (tmp_path / "suite.yaml").write_text(suite_path("template").read_text("utf-8"))
    (code,) = re.findall(r"```python\n(.*?)```", (REPO / "README.md").read_text("utf-8"), re.DOTALL)
    exec(code, {})
    assert "careful 1.0" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["models", "own-parts", "agents"])
async def test_examples_run(folder, store, monkeypatch):
    monkeypatch.setenv("PYTHON", sys.executable)  # whose packages are there, whatever PATH says
    run = await pipeline.arun(pipeline.load(REPO / "examples" / folder / "suite.yaml"), store=store)
    assert run.status == "completed"


SCORERS = REPO / "examples" / "scorers"


def test_every_scorer_has_an_example():
    assert {path.stem for path in SCORERS.glob("*.yaml")} == set(registry.builtin_names("scorers"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.browser, pytest.mark.slow] if name in ("browser", "code_judge") else [])
        for name in registry.builtin_names("scorers")
    ],
)
async def test_the_examples_of_scorers_have_the_scores_they_say(name, store, request):
    if name in ("browser", "code_judge"):
        request.getfixturevalue("chromium")
    text = (SCORERS / f"{name}.yaml").read_text("utf-8")
    run = await pipeline.arun(pipeline.load(SCORERS / f"{name}.yaml"), store=store)
    assert run.status == "completed"
    scores = {trial.case_id: round(100 * trial.score, 1) for trial in run.trials()}
    said = {id: float(score) for id, score in re.findall(r"\bid: (\w+).*# ([\d.]+)$", text, re.MULTILINE)}
    assert {id: scores[id] for id in said} == said
    assert said or name in ("optimisation", "code_judge")
    assert f"type: {name}" in text or f"scorer: {name}" in text or name == "optimisation"


@pytest.mark.model
@pytest.mark.slow
async def test_the_embedded_example_runs(store):
    from fairtrial.providers.weights import fetch

    fetch("smollm2")
    run = await pipeline.arun(pipeline.load(REPO / "examples/embedded/suite.yaml"), store=store)
    (trial,) = run.trials()
    assert run.status == "completed" and "Paris" in trial.answer


def test_every_example_is_listed():
    listed = (REPO / "examples/README.md").read_text("utf-8")
    for folder in (REPO / "examples").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"({folder.name}/)" in listed


def test_the_recipe_for_a_scorer_works(tmp_path):
    (code,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", (REPO / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL)
        if "class Shout" in block
    ]
    names: dict = {}
    exec(code, names)
    import asyncio

    from fairtrial.core.experiment import Case
    from fairtrial.core.score import ScoreContext

    context = ScoreContext(response="LOUD", case=Case(id="c", input="q"))
    assert asyncio.run(names["Shout"]().score(context)).value == 1.0


@pytest.mark.simulation
def test_pinned_versions_name_no_host_and_cover_every_dependency():
    text = (REPO / "constraints.txt").read_text()
    assert "://" not in text
    pinned = {line.split("==")[0].split("[")[0].lower() for line in text.splitlines() if "==" in line}
    import tomllib

    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [dep for extra in project["optional-dependencies"].values() for dep in extra]
    names = {re.split(r"[\[><=~ ]", dep)[0].lower() for dep in wanted}
    assert names <= pinned, names - pinned


def test_makefile_has_the_promised_targets():
    text = (REPO / "Makefile").read_text()
    for target in ("setup", "demo", "test", "check", "bench"):
        assert re.search(rf"^{target}:", text, re.MULTILINE)
