"""Runs the recipes of the cookbook, and writes what they print into their pages: `python -m docs.recipes`.

A recipe is a page of files and commands. A block with a title is a file; the lines of a `sh` block are commands; a
block without a language after it is what the last of them printed, without progress and messages (stderr). A command
that ends otherwise than with 0 says so: `# exit 101`. Comments name what else the page needs, and how much of an output
it shows:

    <!-- file: tests/data/results/inspect/a.eval as logs/a.eval -->
    <!-- output: the first 5 lines -->
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
REPO = DOCS.parent
PROGRAMS = Path(sys.executable).parent
PAGES = sorted(path for path in (DOCS / "cookbook").glob("*.md") if path.name != "README.md")
GUIDES = [DOCS / "does-it-help.md", DOCS / "doubles.md"]  # pages elsewhere that are followed in the same way
PARTS = re.compile(
    r'^```\w+ title="(?P<name>[^"]+)"\n(?P<text>.*?)^```$'
    r"|^```sh\n(?P<commands>.*?)^```$"
    r"|^<!-- file: (?P<source>\S+) as (?P<target>\S+) -->$"
    r"|^(?:<!-- output: the first (?P<lines>\d+) lines -->\n)?(?P<start>```\n)(?P<output>.*?)^```$"
    r"|^```\w+\n.*?^```$",  # anything else is only shown; without this, its end would be taken for the start of an output
    re.MULTILINE | re.DOTALL,
)
_RUN = re.compile(r"\b1[0-9a-z]{8}-[0-9a-z]{5}\b")
_CHANGING = re.compile(
    r"(?: · )?\b(?:\d+ min )?\d+(?:\.\d+)? ?(?:ms|s)\b(?: \(\d+:\d\d:\d\d\))?|\b\d\d-\d\d-\d\d \d\d:\d\d\b|\b[0-9a-f]{8}\b"
    r"|\b\d{1,2} [A-Z][a-z]{2}(?: \d{4})?\b(?: \d\d:\d\d)?|\b\d\d:\d\d\b"
)  # durations, of which short ones are not printed; dates, times, ids of trials
_NAMES = [f"1mccrzkw{letter}-r3c1p" for letter in "abcdefgh"]  # of runs, which have another one every time
_OURS = ("FAIRTRIAL_", "OPENAI_", "ANTHROPIC_", "OPENROUTER_", "OLLAMA_", "PYTEST_")


class RecipeError(Exception):
    """A command of a recipe did not end as its page says."""


def follow(page: Path, folder: Path, programs: Path = PROGRAMS) -> str:
    """Follow a recipe in an empty folder; return its page with what its commands print today.

    Args:
        page: The recipe.
        folder: Where its files are written and its commands run.
        programs: Where `fairtrial` and `python` are.

    Raises:
        RecipeError: A command did not end as the page says.
    """
    text = page.read_text("utf-8")
    done, parts, printed = 0, [], ""
    for part in PARTS.finditer(text):
        if part["name"]:
            _write(folder / part["name"], part["text"].encode())
        elif part["source"]:
            _write(folder / part["target"], (REPO / part["source"]).read_bytes())
        elif part["commands"]:
            printed = [_run(command, folder, programs) for command in _commands(part["commands"])][-1]
        elif part["start"]:
            output = _shown(printed, int(part["lines"] or 0))
            parts += [text[done : part.start("output")], part["output"] if same(part["output"], output) else output]
            done = part.end("output")
    return _with_fixed_names("".join([*parts, text[done:]]))


def same(before: str, now: str) -> bool:
    """Tell whether two outputs differ only in times, names of runs and blanks."""
    return _lasting(before) == _lasting(now)


def _lasting(output: str) -> list[str]:
    return _RUN.sub("RUN", _CHANGING.sub("", output)).split()


def _write(file: Path, body: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)


def _commands(block: str) -> list[str]:
    return [line for line in block.replace("\\\n", "").splitlines() if line and not line.startswith("#")]


def _run(command: str, folder: Path, programs: Path) -> str:
    wanted = re.search(r"# exit (\d+)", command)
    done = subprocess.run(
        ["bash", "-c", command],  # noqa: S607
        cwd=folder,
        env=_environment(folder, programs),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != int(wanted[1] if wanted else 0):
        raise RecipeError(f"`{command}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout.replace(f"{folder}/", "")


def _environment(folder: Path, programs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    path = os.pathsep.join([str(programs), str(PROGRAMS), kept["PATH"]])
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "PYTEST_ADDOPTS": "-p no:asyncio"}  # which warns about its settings
    return {**kept, **plain, "PATH": path, "XDG_STATE_HOME": str(folder / ".state")}


def _shown(printed: str, first: int) -> str:
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    cut = [*lines[:first], "…"] if 0 < first < len(lines) else lines
    return "".join(f"{line}\n" for line in cut)


def _with_fixed_names(text: str) -> str:
    found = [name for name in dict.fromkeys(_RUN.findall(text)) if name not in _NAMES]
    free = iter([name for name in _NAMES if name not in text])
    for name in found:
        text = text.replace(name, next(free))
    return text


def main() -> None:
    """Write every page anew, or those whose names are given."""
    for page in (*PAGES, *GUIDES):
        if len(sys.argv) == 1 or page.stem in sys.argv[1:]:
            folder = Path(tempfile.mkdtemp(prefix="recipe-"))
            try:
                page.write_text(follow(page, folder), "utf-8")
            except RecipeError as error:
                raise SystemExit(f"{page.name}: {error}") from None
            finally:
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
