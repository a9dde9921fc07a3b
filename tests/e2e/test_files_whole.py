"""Files that commands write: a file is there as a whole or not at all, whenever its process is killed.

Under its own name no file is ever opened to be written: it is written beside and takes its place in one step. So a process
that is killed leaves what was there before, or all of what is new.
"""

import json
import shutil
from pathlib import Path

import pytest

from fairtrial.cli.main import _run
from tests import forks

DATA = Path(__file__).parents[1] / "data"
# Says which files below this folder were opened to be written, and with which mode they were made.
WATCHING = """
import atexit, json, os, sys
folder, opened = os.getcwd() + os.sep, []

def hear(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and isinstance(args[2], int):
        path = os.path.abspath(os.fsdecode(args[0]))
        if args[2] & (os.O_WRONLY | os.O_RDWR) and path.startswith(folder):
            opened.append(path[len(folder):])

sys.addaudithook(hear)
from fairtrial.cli.main import main
try:
    main()
finally:
    with open("/dev/fd/1", "w") as out:
        out.write("\\n" + json.dumps(opened))
"""


def opened_by(*args):
    done = forks.run(*args, program=WATCHING)
    assert done.returncode in (0, 100, 101), done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def stored(write_suite):
    """A store with a run of two arms; its suite is `suite.yaml`."""
    arms = [{"id": name, "target": "mock:x", "options": {"answer": name}} for name in ("Paris", "Rome")]
    assert _run(["run", str(write_suite(targets=arms)), "--quiet"]) == 0


def check(written, *args):
    """No file under its own name is opened to be written, neither when it is new nor when it is replaced."""
    names = sorted(written)
    for again in (False, True):
        opened = opened_by(*args, *(["--force"] if again and args[0] in ("import", "init") else []))
        assert [name for name in names if not Path(name).is_file()] == []
        assert [name for name in opened if name in names] == []
        left = [path.name for path in Path().rglob(".*") if path.name.endswith(".part")]
        assert left == []


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ({"run.json", "run.csv", "run.html"}, "export latest -o run.json -o run.csv -o run.html"),
        ({"page.html"}, "report latest -o page.html"),
        ({"site/index.html", "site/fairtrial-site.json"}, "report latest --site site"),
        (
            {"gate.md", "gate.json", "base.db.gz"},
            "gate latest --min-score 0 --these-cases -o gate.md -o gate.json --keep base.db.gz",
        ),
        ({"new/suite.yaml", "new/suite.schema.json"}, "init new"),
    ],
)
def test_a_file_takes_its_place_as_a_whole(stored, written, command):
    check(written, *command.split())


def test_a_sample_to_label_is_there_as_a_whole(stored):
    assert "marks.csv" not in opened_by("label", "latest", "--sample", "1", "-o", "marks.csv")
    assert Path("marks.csv").is_file()


def test_an_imported_suite_is_there_as_a_whole():
    shutil.copytree(DATA / "promptfoo", "originals")
    check({"imported.yaml"}, "import", "promptfoo", "originals/contains.yaml", "-o", "imported.yaml")


def test_recorded_calls_become_a_suite_as_a_whole():
    message = {"role": "user", "content": "Say Paris"}
    call = {"id": "1", "type": "GENERATION", "model": "m", "input": [message], "output": "Paris", "traceId": "t"}
    Path("calls.jsonl").write_text(json.dumps({**call, "startTime": "2026-01-01T00:00:00Z"}) + "\n")
    check({"cases.yaml"}, "import", "traces", "calls.jsonl", "--format", "langfuse", "-o", "cases.yaml")


def test_a_site_that_was_left_halfway_is_written_again(stored, monkeypatch):
    """The list of its files comes first: without it, the pages would be taken for somebody else's."""
    before = Path.replace

    def move(path, place):
        before(path, place)
        if Path(place).name == "index.html":
            raise KeyboardInterrupt
        return place

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", move)
        assert _run(["report", "latest", "--site", "site"]) == 130
    assert Path("site/index.html").exists()
    assert _run(["report", "latest", "--site", "site"]) == 0
