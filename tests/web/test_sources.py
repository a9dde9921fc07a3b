"""The key of code that computes: it changes with whatever has a part in the numbers, and with nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fairtrial
from fairtrial.web import sources
from fairtrial.web.sources import code_key, key_of_sources, read_sources

NUMBERS = "fairtrial.web.numbers"
PACKAGE = Path(fairtrial.__file__).parent


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy") / "fairtrial"
    shutil.copytree(PACKAGE, copy, ignore=lambda folder, names: [n for n in names if Path(n).suffix not in ("", ".py")])
    return copy


@pytest.fixture
def changed(original):
    """The key after a line was added to a module of a copy of the package."""
    touched: dict[Path, bytes] = {}

    def change(module, line="\n_NEW = 1\n"):
        file = original / module
        touched[file] = file.read_bytes()
        file.write_bytes(touched[file] + line.encode())
        return key_of_sources(original, NUMBERS)

    yield change
    for file, before in touched.items():
        file.write_bytes(before)


@pytest.mark.parametrize(
    "module",
    [
        "web/numbers.py",
        "stats/mean.py",
        "stats/__init__.py",
        "analyse/leaderboard.py",
        "present/words/leaderboards.py",  # words are kept with the numbers
        "store/totals.py",
        "store/outcomes.py",
        "core/money.py",
    ],
)
def test_a_change_of_what_computes_changes_the_key(changed, original, module):
    assert changed(module) != code_key(NUMBERS) == key_of_sources(PACKAGE, NUMBERS)


def test_the_numbers_of_a_track_have_a_key_of_their_own(changed, original):
    own = "fairtrial.tracks.optimisation.analysis"
    changed("tracks/optimisation/answer.py")
    assert key_of_sources(original, own) != code_key(own) == key_of_sources(PACKAGE, own)


@pytest.mark.parametrize(
    "module", ["targets/claude_code.py", "cli/run_page.py", "scorers/exact.py", "web/site.py", "engine/retry.py"]
)
def test_a_change_of_anything_else_does_not(changed, module):
    assert changed(module) == code_key(NUMBERS)


def test_a_module_that_is_imported_from_now_on_counts(changed, original):
    with_import = changed("stats/mean.py", "\ndef late() -> None:\n    from fairtrial.engine import retry  # noqa\n")
    assert changed("engine/retry.py") != with_import


def test_the_same_sources_elsewhere_have_the_same_key(original):
    assert key_of_sources(original, NUMBERS) == code_key(NUMBERS)


def test_every_module_that_is_loaded_is_among_the_sources():
    """What Python itself imports is the measure."""
    script = f"import sys, {NUMBERS}; print(*(name for name in sys.modules if name.split('.')[0] == 'fairtrial'))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    found, libraries = read_sources(PACKAGE, NUMBERS)
    assert len(loaded) > 50 and set(loaded) <= set(found)
    assert {"numpy", "msgspec", "sqlalchemy"} <= libraries


def test_nothing_that_computes_is_imported_by_a_name_that_is_not_in_the_text():
    """Such imports cannot be followed: these are for parts of suites and for notebooks, which compute no number."""
    found, _ = read_sources(PACKAGE, NUMBERS)
    by_name = {name for name, text in found.items() if b"import_module(" in text or b"__import__(" in text}
    assert by_name <= {
        "fairtrial",
        "fairtrial.core.registry",
        "fairtrial.core.showing",
        "fairtrial.core.user_functions",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a, b.c as d  # e\n", ["a", "b.c"]),
        ("x = 1\n\tfrom a import b\n", ["a", "a.b"]),
        ("from a import (\n    b,  # why\n    c as d,\n)\n", ["a", "a.b", "a.c"]),
        ("if TYPE_CHECKING:\n    from a import b\n\n    import c\n\nimport d\n", ["d"]),
        ("text = 'nothing to import here'\n", []),
    ],
)
def test_imports_in_a_text(text, names):
    assert list(sources._imported(text.encode())) == names


def test_without_sources_the_version_of_the_package_is_the_key(tmp_path, monkeypatch):
    """In a zip file, or where there is nothing but bytecode."""
    keys = []
    for release in ("1.0", "1.0", "1.1"):
        monkeypatch.setattr(sources, "version", lambda name, release=release: release)
        keys.append(key_of_sources(tmp_path / "fairtrial", NUMBERS))
    assert keys[0] == keys[1] != keys[2]


def test_another_release_of_a_library_that_computes_is_another_key(monkeypatch):
    real = sources.version
    monkeypatch.setattr(sources, "version", lambda name: "99" if name == "numpy" else real(name))
    assert key_of_sources(PACKAGE, NUMBERS) != code_key(NUMBERS)
