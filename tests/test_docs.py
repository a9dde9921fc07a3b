"""The documentation is true: reference pages are current, links lead somewhere, commands exist, examples run."""

import json
import os
import re
from functools import reduce
from pathlib import Path

import pytest

from docs.generate import pages
from docs.names import named_models
from fairtrial import pipeline
from fairtrial.analyse.leaderboard import run_leaderboard
from fairtrial.cli.main import commands
from fairtrial.config import parse_suite
from fairtrial.core import registry
from fairtrial.core.providers import known_providers
from fairtrial.present.words.leaderboards import headline
from fairtrial.suites import suite_path
from fairtrial.tables.hub import Copy
from tests import forks

REPO = Path(__file__).parent.parent
PAGES = [
    page
    for page in REPO.rglob("*.md")
    if not any(part.startswith(".") or part == "build" for part in page.relative_to(REPO).parts)
]
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LAB_KEY"), "sk-docs-12345678")


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_reference_pages_are_current(path):
    assert path.read_text("utf-8") == pages()[path](), "run `python -m docs.generate`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize(
    "page", [page for page in PAGES if REPO / "src" not in page.parents], ids=lambda page: str(page.relative_to(REPO))
)
def test_every_block_of_code_ends(page):
    assert len(re.findall(r"^ *(?:```|~~~)", page.read_text("utf-8"), re.MULTILINE)) % 2 == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if REPO / "src" not in page.parents], ids=lambda page: str(page.relative_to(REPO))
)
def test_no_table_is_cut_by_an_empty_line(page):
    text = re.sub(r"^ *(```|~~~).*?^ *\1", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    assert not [table for table in tables if not re.match(r"\|.*\n\|[\s:|-]+\|\s", table)]


def test_the_pictures_of_the_readme_are_there_and_described():
    readme = (REPO / "README.md").read_text("utf-8")
    pictures = re.findall(r'<img src="([^"]+)" width="\d+" alt="[^"]+">', readme)
    assert len(pictures) == 2 == readme.count("<img")
    for picture in pictures + re.findall(r'srcset="([^"]+)"', readme):
        assert (REPO / picture).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_commands_in_the_documentation_exist(page):
    snippets = re.findall(r"```sh\n(.*?)```|(`[^`\n]+`)", page.read_text("utf-8"), re.DOTALL)
    code = "\n".join(block + inline for block, inline in snippets)
    used = re.findall(r"(?:^|`)fairtrial ([a-z][a-z-]+)", code, re.MULTILINE)
    known = {*commands(), "readability"}  # of the example of a plug-in
    assert set(used) <= known, set(used) - known


def test_the_table_of_what_targets_take_is_about_all_of_them_and_true():
    text = (
        (REPO / "docs" / "prompts.md")
        .read_text("utf-8")
        .partition("## Which targets take what")[2]
        .partition("\n## ")[0]
    )
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ") and "`" in line]
    shown = set()
    for names, chats, files, _ in rows:
        for name in re.findall(r"`([\w-]+):?`", names):
            kind = known_providers()[name].kind
            cls = registry.load("targets", kind)
            shown.add(kind)
            assert chats.startswith(("yes", "turns")) == (cls.takes_chats or cls.takes_turns), name
            assert files.startswith("yes") == cls.takes_files, name
    assert shown == {provider.kind for provider in known_providers().values()} & {*registry.builtin_names("targets")}


def test_every_part_is_documented():
    scorers = (REPO / "docs/reference/scorers.md").read_text("utf-8")
    for name in registry.builtin_names("scorers"):
        assert f"## {name}\n" in scorers
    targets = (REPO / "docs/targets.md").read_text("utf-8")
    for name in (
        "openai:",
        "anthropic:",
        "google:",
        "vertex:",
        "azure:",
        "bedrock:",
        "mistral:",
        "openai-responses:",
        "litellm:",
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        REPO / "README.md",
        REPO / "docs/tutorial-models.md",
        REPO / "docs/judges.md",
        REPO / "docs/tutorial-agents.md",
        REPO / "docs/agents.md",
        REPO / "docs/trajectories.md",
        REPO / "docs/cluster.md",
    ],
    ids=lambda page: page.name,
)
def test_suites_in_the_documentation_are_right(page, tmp_path, monkeypatch):
    for name in ("codex", "gemini", "opencode"):  # programs that need not be installed here
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "questions.csv").write_text("question,answer,topic\nWhat is the capital of Italy?,Rome,geo\n")
    suites = suites_in(page)
    assert suites
    for text in suites:
        assert parse_suite(text, folder=tmp_path, environment=KEYS).case_count


def test_datasets_in_the_documentation_are_right(tmp_path, monkeypatch):
    """The Hub is played by a local copy."""
    (tmp_path / "questions.csv").write_text(
        "question;answer;topic;year;level;picture;talk\nWhat is the capital of Italy?;Rome;geography;2021;hard;;\n"
    )
    (tmp_path / "copy.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    monkeypatch.setattr("fairtrial.config.dataset.fetch", lambda *_: Copy(tmp_path / "copy.jsonl", {}))
    suites = suites_in(REPO / "docs/datasets.md")
    assert len(suites) == 4
    for text in suites:
        assert parse_suite(text, folder=tmp_path, environment=KEYS).case_count == 1


ARMS = {
    "translate": ["mock:echo/plain", "mock:echo/shots", "mock:other/plain", "mock:other/shots"],
    "pairs": [f"mock:echo/{condition}/{prompt}" for condition in ("kind", "strict") for prompt in ("plain", "please")],
    "braces": ["mock:echo/json"],
    "rag": ["mock:echo/rag", "mock:echo/bare"],
    "from-files": ["mock:echo/long", "mock:echo/shots", "mock:echo/made"],
    "grounded": ["mock:echo/rag"],
}
SMALL, OTHER, JUDGE = (named_models()[name].target for name in ("openai-small", "claude-small", "claude-large"))
STAND_INS = {
    SMALL: "mock:echo",
    OTHER: "{target: mock:other, options: {answer: no idea}}",
    f"target: {JUDGE}": "target: mock:judge, options: {verdict: {otherwise: 9}}",
}


@pytest.mark.slow
async def test_the_suites_on_the_page_about_prompts_run(tmp_path, store):
    """With mocks in the place of models."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts.py").write_text("def build(vars):\n    return vars['input']\n")
    (tmp_path / "prompts/long.md").write_text("# Task\n{{ input }}\n")
    (tmp_path / "prompts/shots.yaml").write_text("- {role: user, content: '{{ input }}'}\n")
    (tmp_path / "passages.csv").write_text("question,context,answer\nWho?,Ann wrote it.,Ann\n")
    (tmp_path / "chart.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "notes.md").write_text("Monday: Ann")
    suites = suites_in(REPO / "docs/prompts.md")
    assert len(suites) >= 9
    for text in suites:
        offline = reduce(lambda written, names: written.replace(*names), STAND_INS.items(), text)
        suite = parse_suite(offline, folder=tmp_path)
        run = await pipeline.arun(suite, store=store)
        assert run.status == "completed" and [arm.arm for arm in run.arms] == ARMS.get(suite.name, ["mock:echo"])


def test_the_python_example_of_the_readme_runs(tmp_path, capsys):
    (tmp_path / "suite.yaml").write_text(suite_path("template").read_text("utf-8"))
    (code,) = re.findall(r"```python\n(.*?)```", (REPO / "README.md").read_text("utf-8"), re.DOTALL)
    exec(code, {})
    assert "careful 1.0" in capsys.readouterr().out


async def test_the_table_in_the_tutorial_is_what_its_suite_shows(store):
    run = await pipeline.arun(pipeline.load(suite_path("template")), store=store)
    page = (REPO / "docs/tutorial-models.md").read_text("utf-8")
    for arm in run.arms:
        mean, (low, high) = arm.aggregate.mean, arm.aggregate.ci95
        assert re.search(rf"{arm.arm} +[·━● ]+{100 * mean:.1f} +{100 * low:.1f} to {100 * high:.1f}", page)
    assert headline(run_leaderboard(run)) in " ".join(page.split())


# What the tables of the examples say: the mean of every arm.
EXAMPLES = {
    "few-shot": {"kind/plain": 0, "kind/shots": 100, "brief/plain": 100, "brief/shots": 100},
    "json": {"tidy": 100, "chatty": 75},
    "judge": {"teacher": 90, "parrot": 22.5},
    "memory": {"attentive": 100, "forgetful": 66.7},
    "multiple-choice": {"thinker/letters": 100, "hedger/letters": 33.3},
    "pictures": {"looks": 100, "guesses": 50},
    "rag": {"with-passage": 91.7, "without": 0},
    "styles": {f"{name}/{style}": mean for name, mean in (("solver", 100), ("guesser", 0)) for style in ("polite", "strict", "pirate")},
}  # fmt: skip


async def run_example(folder, store):
    run = await pipeline.arun(pipeline.load(REPO / "examples" / folder / "suite.yaml"), store=store)
    assert run.status == "completed", run.summary().failures
    return run


@pytest.mark.parametrize("folder", EXAMPLES)
async def test_examples_show_what_they_say(folder, store):
    run = await run_example(folder, store)
    means = {arm.arm: round(100 * arm.aggregate.mean, 1) for arm in run.arms}
    assert len(means) == len(EXAMPLES[folder])
    for name, mean in EXAMPLES[folder].items():
        assert [value for arm, value in means.items() if arm.endswith(name)] == [mean], means


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["models", "own-parts"])  # and `agents` by its tutorial
async def test_examples_run(folder, store):
    await run_example(folder, store)


@pytest.mark.slow
def test_the_example_with_doubles_runs(tmp_path):
    done = forks.run("run", REPO / "examples/doubles/suite.yaml", "--quiet", "--store", tmp_path / "own.db")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
async def test_the_agent_of_the_example_solves_five_of_eight_tasks(store, monkeypatch):
    monkeypatch.setenv("PYTHON", str(forks.programs() / "python"))
    run = await run_example("workspace", store)
    scores = {trial.case_id: 100 * trial.score for trial in run.trials()}
    solved = {"fix-bug", "edit-config", "rename-function", "query-database", "find-errors"}
    assert {name for name, score in scores.items() if score == 100} == solved
    assert {name: score for name, score in scores.items() if name not in solved} == {
        "write-script": 50, "sum-table": 0, "resolve-conflict": 0
    }  # fmt: skip
    kept = {trial.case_id for trial in run.trials() if run.kept_workspace(trial)}
    assert kept == scores.keys() - solved


@pytest.mark.slow
@pytest.mark.usefixtures("chromium")
async def test_the_example_with_pages_runs(store):
    careful, hasty = (await run_example("pages", store)).arms
    assert careful.aggregate.mean > hasty.aggregate.mean


async def test_the_imported_example_runs(store, tmp_path):
    from fairtrial.tracks.interchange.importers.promptfoo import Promptfoo

    imported = Promptfoo().read(REPO / "examples/promptfoo/promptfooconfig.yaml")
    assert not imported.findings
    run = await pipeline.arun(parse_suite(json.dumps(imported.suite), folder=tmp_path), store=store)
    assert run.status == "completed" and [arm.trials for arm in run.arms] == [2, 2]


def test_the_page_side_by_side_shows_the_files():
    page = (REPO / "docs/side-by-side.md").read_text("utf-8")
    folder = REPO / "examples/side-by-side"
    lines, sizes = {}, {}
    for name in ("suite.yaml", "promptfooconfig.yaml", "plain.json", "rag.py", "careful.json"):
        text = (folder / name).read_text("utf-8")
        lines[name] = sum(1 for line in text.splitlines() if line.strip())
        sizes[name] = len(text)
        assert text in page or name == "careful.json"
    for tool, names in {
        "fairtrial": ["suite.yaml"],
        "promptfoo": ["promptfooconfig.yaml", "plain.json", "careful.json"],
        "inspect-ai": ["rag.py"],
    }.items():
        size, count = sum(sizes[name] for name in names), sum(lines[name] for name in names)
        assert f"| {tool} | {size} | {count} | {len(names)} |" in page


async def test_the_suite_side_by_side_has_the_scores_on_its_page(store):
    folder = REPO / "examples/side-by-side"
    stand_ins = {
        SMALL: "{id: alpha, target: 'python:stored.py:alpha'}",
        OTHER: "{id: beta, target: 'python:stored.py:beta'}",
        f"judge: {JUDGE}": "judge: {target: mock:judge, options: {verdict: {marks: "
        "{a month: 5, nobody: 0, unknown: 0}, otherwise: 10}}}",
    }
    text = reduce(
        lambda written, names: written.replace(*names), stand_ins.items(), (folder / "suite.yaml").read_text()
    )
    run = await pipeline.arun(parse_suite(text, folder=folder), store=store)
    page = (REPO / "docs/side-by-side.md").read_text("utf-8")
    for arm in run.arms:
        assert f"| {arm.arm} | {100 * arm.aggregate.mean:.2f} | " in page


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
    wanted = project["dependencies"] + [
        dep for extra in project["optional-dependencies"].values() for dep in extra if not dep.startswith("fairtrial[")
    ]
    names = {re.split(r"[\[><=~ ]", dep)[0].lower() for dep in wanted}
    assert names <= pinned, names - pinned


def test_makefile_has_the_promised_targets():
    text = (REPO / "Makefile").read_text()
    for target in ("setup", "demo", "test", "check", "bench"):
        assert re.search(rf"^{target}:", text, re.MULTILINE)
