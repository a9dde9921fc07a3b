"""Builds the documentation site: `python -m docs.site` (`make docs`). Any warning, such as a dead link, is an error.

Pages are written for GitHub and stay where they are. They are copied into one folder, together with those that live
elsewhere in the repository (changes, examples, measurements), and links between them are adapted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

DOCS = Path(__file__).parent
REPO = DOCS.parent
FOLDER = REPO / "build" / "docs"
LANGUAGES = {".py": "python", ".yaml": "yaml", ".csv": "csv", ".json": "json", ".jsonl": "json", ".md": "markdown"}
PICTURES = (".png", ".svg")
UNSEARCHED = (
    "docs/design",
    "benchmarks",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
)  # who searches wants to know how things work now
_ABROAD = ("http://", "https://", "mailto:", "#")
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)

# The navigation: pages by their place in the repository. A page without a name of its own opens its section.
NAVIGATION: dict[str, Any] = {
    "Start": ["docs/index.md", "docs/install.md", "docs/side-by-side.md"],
    "Tutorials": {
        "Which model answers best?": "docs/tutorial-models.md",
        "Does my MCP server help?": "docs/tutorial-agents.md",
        "Does politeness help?": "docs/tutorial-optimisation.md",
        "Which model writes the best page?": "docs/tutorial-code-arena.md",
        "A gate in ten minutes": "docs/gate.md",
        "Is my improvement real?": "docs/results.md",
    },
    "Guides": {
        "Python": "docs/python.md",
        "Prompts and variables": "docs/prompts.md",
        "Datasets": "docs/datasets.md",
        "Targets": "docs/targets.md",
        "Models": "docs/models.md",
        "Agents by name": "docs/agents.md",
        "Agents at work": "docs/workspaces.md",
        "Auditing tasks": "docs/audit.md",
        "Does my server help?": "docs/does-it-help.md",
        "Servers recorded and mocked": "docs/doubles.md",
        "Optimisation problems": "docs/problems.md",
        "The politeness studies": "docs/politeness.md",
        "The whole trajectory": "docs/trajectories.md",
        "Judges": "docs/judges.md",
        "Runs": "docs/runs.md",
        "More than one process": "docs/cluster.md",
        "Comparing": "docs/comparing.md",
        "Importing suites": "docs/importing.md",
        "Exporting": "docs/exporting.md",
        "Sharing": "docs/sharing.md",
        "Traces": "docs/traces.md",
        "Sessions of agents": "docs/logs.md",
        "The web page": "docs/web.md",
        "PostgreSQL": "docs/postgresql.md",
        "Security": "docs/security.md",
        "What it promises": "docs/promises.md",
        "Write a plug-in": "docs/plugins.md",
        "Test a plug-in": "docs/testing-plugins.md",
        "Against other tools": "docs/rivals.md",
        "The three originals": "docs/originals.md",
    },
    "Cookbook": {
        "": "docs/cookbook/README.md",
        "Which is better?": [
            "docs/cookbook/two-models.md",
            "docs/cookbook/prompt-change.md",
            "docs/cookbook/mcp-on-and-off.md",
            "docs/cookbook/which-description.md",
            "docs/cookbook/how-many-cases.md",
            "docs/cookbook/stop-early.md",
            "docs/cookbook/import-inspect-logs.md",
        ],
        "What is asked": [
            "docs/cookbook/function-as-model.md",
            "docs/cookbook/rag-context-column.md",
            "docs/cookbook/chat-with-turns.md",
            "docs/cookbook/simulated-user.md",
            "docs/cookbook/pictures.md",
        ],
        "Scoring": [
            "docs/cookbook/several-answers.md",
            "docs/cookbook/json-schema.md",
            "docs/cookbook/judge-with-a-rubric.md",
            "docs/cookbook/calibrate-a-judge.md",
            "docs/cookbook/rescore.md",
            "docs/cookbook/wrong-golden-answers.md",
        ],
        "Running": ["docs/cookbook/budget.md", "docs/cookbook/retry-failures.md"],
        "Sharing": [
            "docs/cookbook/pytest-gate.md",
            "docs/cookbook/export-a-spreadsheet.md",
            "docs/cookbook/share-a-report.md",
        ],
    },
    "Examples": ["examples/README.md", "examples/*/"],
    "Reference": ["docs/reference/*.md"],
    "Project": {
        "Changes": "CHANGELOG.md",
        "Contributing": "CONTRIBUTING.md",
        "Reporting a weakness": "SECURITY.md",
        "Architecture": "ARCHITECTURE.md",
        "Design notes": ["docs/design/*.md"],
        "Measurements": ["benchmarks/*.md"],
    },
}


def build(folder: Path = FOLDER) -> Path:
    """Build the site; return the folder with its pages.

    Raises:
        subprocess.CalledProcessError: The generator warned of something; its output is in `stdout` and `stderr`.
        FileNotFoundError: A page links to a file that does not exist.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = places()
    for source, page in pages.items():
        target = folder / "pages" / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_page(source, pages), "utf-8")
    for extra in ("pictures", "theme"):
        shutil.copytree(DOCS / extra, folder / "pages" / extra)
    (folder / "zensical.toml").write_text(_settings(pages), "utf-8")
    subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    return folder / "site"


def places() -> dict[Path, str]:
    """Return every page of the site: its source (a file, or a folder of examples) and its place."""
    return {source: _place(source) for source in _sources(NAVIGATION)}


def _sources(part: Any) -> Iterator[Path]:
    if isinstance(part, str):
        yield from _matching(part)
    else:
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _sources(inner)


def _matching(pattern: str) -> list[Path]:
    found = [path for path in REPO.glob(pattern) if path.name not in ("README.md", "__pycache__")]
    return sorted(found) if "*" in pattern else [REPO / pattern]


def _place(source: Path) -> str:
    inside = source.relative_to(REPO)
    path = inside.relative_to("docs") if inside.parts[0] == "docs" else inside
    if path.name == "README.md":
        return str(path.with_name("index.md"))
    return f"{path}.md" if source.is_dir() else str(path).lower()


def _page(source: Path, pages: dict[Path, str]) -> str:
    own = source / "README.md"  # of an example that explains itself
    text = (
        own.read_text("utf-8") if own.is_file() else _example(source) if source.is_dir() else source.read_text("utf-8")
    )
    settings = "---\nsearch:\n  exclude: true\n---\n" if str(source.relative_to(REPO)).startswith(UNSEARCHED) else ""
    return settings + _outside_code(text, lambda prose: _with_blank_lines(_adapted(prose, source, pages)))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text in which everything but blocks of code was changed."""
    done, parts = 0, []
    for fence in _FENCE.finditer(text):
        parts += [change(text[done : fence.start()]), fence.group()]
        done = fence.end()
    return "".join([*parts, change(text[done:])])


def _adapted(prose: str, source: Path, pages: dict[Path, str]) -> str:
    """Return text with its links leading to pages of the site; without the link where there is no such page."""
    folder = source if (source / "README.md").is_file() else source.parent

    def adapt(link: re.Match[str]) -> str:
        to, anchor = link["to"], link["anchor"] or ""
        if not to or to.startswith(_ABROAD):
            return link.group()
        path = (folder / to).resolve()
        if not path.exists():
            raise FileNotFoundError(f"{source.relative_to(REPO)} links to {to}, which does not exist")
        place = str(path.relative_to(DOCS)) if path.suffix in PICTURES else _page_with(path, pages)
        if place is None:
            return link["text"]
        relative = os.path.relpath(place, PurePosixPath(pages[source]).parent)
        return f"{link['picture']}[{link['text']}]({relative}{anchor})"

    return _LINK.sub(adapt, prose)


def _page_with(path: Path, pages: dict[Path, str]) -> str | None:
    """Return the page on which a file is: its own, or the one of the example or section to which it belongs."""
    for one in (path, path.parent, path / "README.md"):
        if one in pages:
            return pages[one]
    return next((place for source, place in pages.items() if path.is_dir() and source.parent == path), None)


def _with_blank_lines(prose: str) -> str:
    """Return text with a blank line before every list, which Python's Markdown needs and GitHub's does not."""
    lines: list[str] = []
    for line in prose.split("\n"):
        before = lines[-1] if lines else ""
        if _ITEM.match(line) and before.strip() and not _ITEM.match(before) and not before.startswith(" "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _example(folder: Path) -> str:
    """Return a page with the files of an example."""
    listed = re.search(rf"^\| \[{folder.name}\].*$", (folder.parent / "README.md").read_text("utf-8"), re.MULTILINE)
    assert listed is not None, f"examples/README.md does not list {folder.name}"
    _, _, what, how, _ = (cell.strip() for cell in re.split(r"(?<!\\)\|", listed.group()))
    parts = [f"# {folder.name}\n", f"{what[0].upper()}{what[1:]}: {how}\n"]
    for file in sorted(folder.iterdir()):
        if file.suffix in LANGUAGES:
            text = file.read_text("utf-8").rstrip()
            parts.append(f'````{LANGUAGES[file.suffix]} title="{folder.name}/{file.name}"\n{text}\n````\n')
    return "\n".join(parts)


def _settings(pages: dict[Path, str]) -> str:
    """Return the generator's settings: ours, with folders and navigation."""
    navigation = ", ".join(_entry(name, part, pages) for name, part in NAVIGATION.items())
    ours = (DOCS / "zensical.toml").read_text("utf-8")
    return ours.replace("[project]\n", f'[project]\ndocs_dir = "pages"\nsite_dir = "site"\nnav = [{navigation}]\n', 1)


def _entry(name: str, part: Any, pages: dict[Path, str]) -> str:
    """Return one entry of the navigation as TOML, in which a text is written as it is in JSON."""
    if isinstance(part, str):
        place = json.dumps(pages[REPO / part])
        return f"{{{json.dumps(name)} = {place}}}" if name else place
    if isinstance(part, dict):
        inner = [_entry(title, one, pages) for title, one in part.items()]
    else:
        inner = [_listed(source, pages) for source in _sources(part)]
    return f"{{{json.dumps(name)} = [{', '.join(inner)}]}}"


def _listed(source: Path, pages: dict[Path, str]) -> str:
    """Return a page in the navigation under its own title."""
    if source.name == "README.md":
        return json.dumps(pages[source])
    return f"{{{json.dumps(_title(source))} = {json.dumps(pages[source])}}}"


def _title(source: Path) -> str:
    if source.is_dir():
        return source.name
    heading = re.search(r"^# (.+)$", source.read_text("utf-8"), re.MULTILINE)
    assert heading is not None, f"{source.relative_to(REPO)} has no title"
    return heading[1].replace("`", "")


def main() -> None:
    try:
        site = build()
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{error.stdout}{error.stderr}") from None
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    sys.stdout.write(f"{site.relative_to(REPO)}/index.html\n")


if __name__ == "__main__":
    main()
