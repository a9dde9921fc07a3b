"""Functions in modules beside suites: each suite finds its own, whatever another suite in this process has loaded."""

import json
from types import SimpleNamespace

import pytest

from fairtrial.core.user_functions import _is_own, load_function


@pytest.mark.parametrize("package", [False, True])
def test_modules_of_the_same_name_in_two_folders(tmp_path, package):
    name = f"helper_{package}"
    functions = []
    for folder in ("a", "b"):
        place = tmp_path / folder / (name if package else "")
        place.mkdir(parents=True)
        file = place / ("__init__.py" if package else f"{name}.py")
        file.write_text(f"def {folder}():\n    return '{folder}'\n")
        functions.append(load_function(f"{name}:{folder}", tmp_path / folder))
    assert [function() for function in functions] == ["a", "b"]


def test_what_is_installed_comes_first(tmp_path):
    (tmp_path / "json.py").write_text("def dumps(value):\n    return 'mine'\n")
    assert load_function("json:dumps", tmp_path)([1]) == "[1]"


def test_what_is_installed_below_the_folder_is_not_its_own(tmp_path):
    (tmp_path / "mine_here.py").write_text("LIMIT = 1\n")
    installed = tmp_path / ".venv" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "mine_installed.py").write_text("LIMIT = 1\n")
    own, other = (
        _is_own(SimpleNamespace(__file__=str(file)), tmp_path.resolve())
        for file in (tmp_path / "mine_here.py", installed / "mine_installed.py")
    )
    assert own and not other
    assert not _is_own(json, tmp_path.resolve()) and not _is_own(None, tmp_path)
