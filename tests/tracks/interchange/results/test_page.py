"""The example of docs/results.md, as it stands there."""

import re
import shlex
import shutil
from pathlib import Path

from fairtrial.core import registry
from tests.e2e.conftest import cli  # noqa: F401 - a fixture
from tests.tracks.interchange.results.conftest import DATA

PAGE = (Path(__file__).parents[4] / "docs/results.md").read_text("utf-8")


def words(text):
    return " ".join(text.split())


def test_the_two_commands_give_the_verdict_on_the_page(cli, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA / "inspect", tmp_path / "logs")
    first, second = re.findall(r"^fairtrial (.*)$", PAGE, re.MULTILINE)[:2]
    code, out, _ = cli(*shlex.split(first))
    assert code == 0
    ids = re.search(r"next: fairtrial compare (\S+) (\S+)", out)
    for run, tag in zip(ids.groups(), shlex.split(second)[1:], strict=True):
        assert cli("tag", run, tag)[0] == 0
    code, out, _ = cli(*shlex.split(second))
    verdict = re.search(r"```\n( openai-api/.*?)```", PAGE, re.DOTALL)[1]
    assert code == 0 and words(verdict) in words(out)


def test_the_python_on_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA / "inspect", tmp_path / "logs")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.strip() == "cannot tell"


def test_every_format_is_on_the_page():
    assert all(f"| `{name.replace('_', '-')}` |" in PAGE for name in registry.builtin_names("results"))
