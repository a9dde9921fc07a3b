"""Whether a function is still the one whose answers are stored."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.core.fingerprint import code_hash

ROOT = Path(__file__).parents[2]
IDENTITIES = ROOT / "tests/data/identities.py"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

# What a function may do with `q`, in many forms that differ in little.
ATOMS = st.sampled_from(
    ["q", "1", "True", "1.0", "-0.0", "0.0", "'a'", "b'a'", "None", "...", "''", "K", "str", "(q,)", "[q]", "2j", "'1'"]
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]}, {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} if q else {0[1]})".format),
        st.tuples(inner, inner).map("[x for x in {0[0]} if x != {0[1]}]".format),
        st.tuples(inner, inner).map("(lambda p={0[0]}: {0[1]})".format),
        inner.map("(lambda: {0})".format),
        inner.map("(q in {{{0!r}, 'a', 'b', 'c'}})".format),
        inner.map("f'{{q}}' + str({0})".format),
        inner.map("{{'k': {0}}}".format),
    ),
    max_leaves=4,
)
# Ways to write a function that does it; `made` is the function.
KINDS = [
    "made = lambda q: {0}",
    "made = lambda q, r=(lambda q: {0}): r",
    "made = (lambda q: lambda: {0})(0)",
    "def made(q):\n    return {0}",
    "def made(q, *, r=[1]):\n    for r in ({0},):\n        yield r",
    "async def made(q):\n    return {0}",
    "def made(q):\n    def inner(q):\n        return {0}\n    return inner(q)",
    "def closing(q, r):\n    def made(q):\n        return r\n    return made\nmade = closing(0, (lambda q: {0}))",
    "@wrapping\ndef made(q):\n    return {0}",
    "@functools.lru_cache\ndef made(q):\n    return {0}",
    "made = functools.partial(lambda q, r: {0}, r=1)",
    "def helper(q):\n    return {0}\ndef made(q):\n    return helper(q)",
    "class Made:\n    def ask(self, q):\n        return {0}\nmade = Made().ask",
    "class Made:\n    def __call__(self, q):\n        return {0}\nmade = Made()",
    "class Base:\n    def __call__(self, q):\n        return {0}\nclass Made(Base):\n    pass\nmade = Made()",
    "class Made:\n    @staticmethod\n    def ask(q):\n        return {0}\nmade = Made.ask",
    "@dataclasses.dataclass\nclass Made:\n    m: str\n    def __call__(self, q):\n        return {0}\nmade = Made('m')",
]
HEAD = """import dataclasses, functools
K = 1
def wrapping(function):
    @functools.wraps(function)
    def wrapper(*args): return function(*args)
    return wrapper
"""


def _load(folder: Path, text: str, name: str = "written"):
    """A new module, as if in another process: nothing of an earlier one of this name is left."""
    path = folder / f"{name}.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)  # where dataclasses look
        exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def _tree(expression: str) -> str:
    return ast.dump(ast.parse(expression))


@given(expressions=st.lists(EXPRESSIONS, min_size=2, max_size=4))
def test_lambdas_on_one_line_are_told_apart(tmp_path_factory, expressions):
    folder = tmp_path_factory.mktemp("line")
    line = ", ".join(f"(lambda q: {expression})" for expression in expressions)
    hashes = [code_hash(one) for one in _load(folder, f"{HEAD}made = [{line}]\n").made]
    for first, a in zip(expressions, hashes, strict=True):
        for second, b in zip(expressions, hashes, strict=True):
            same = _tree(first) == _tree(second)
            assert (a == b) >= same and ((a == b) == same or _folded(first) == _folded(second))


def _folded(expression: str) -> str:
    """What is left when constants are computed: of lambdas on one line that do the same, either may be meant."""
    code = compile(f"lambda q: {expression}", "x", "eval").co_consts[0]
    return repr((code.co_code, [repr(one) for one in code.co_consts if not hasattr(one, "co_code")]))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)  # of each kind
@given(first=EXPRESSIONS, second=EXPRESSIONS)
def test_a_function_is_another_if_and_only_if_its_code_is(tmp_path_factory, kind, first, second):
    folder = tmp_path_factory.mktemp("kind")
    one = code_hash(_load(folder, HEAD + kind.format(first) + "\n").made)
    moved = "# A comment.\n\n\n" + HEAD + "\n# another\n" + kind.format(f"(  {first}  )") + "  # and one more\n"
    assert code_hash(_load(folder, moved, "elsewhere").made) == one
    other = code_hash(_load(folder, HEAD + kind.format(second) + "\n", "third").made)
    assert (one == other) == (_tree(first) == _tree(second))


def test_kinds_of_functions_are_told_apart(tmp_path):
    hashes = [
        code_hash(_load(tmp_path, HEAD + kind.format("q") + "\n", f"m{n}").made)
        for n, kind in enumerate(KINDS)
        if "Made.ask" not in kind
    ]
    assert len(set(hashes)) == len(hashes)


def _identities(python: str, **environment: str) -> dict[str, str]:
    run = subprocess.run(
        [python, str(IDENTITIES)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        check=True,
    )
    return json.loads(run.stdout)


def test_identities_are_the_same_in_every_process():
    """Sets have another order in each, and objects other addresses."""
    first, second = (_identities(sys.executable, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert len(set(first.values())) == len(first)  # each is a function of its own


@pytest.mark.parametrize("optimised", ["-O", "-OO", "-Xno_debug_ranges"])
def test_how_python_was_started_does_not_matter(optimised):
    run = subprocess.run(
        [sys.executable, optimised, str(IDENTITIES)],
        capture_output=True,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    assert json.loads(run.stdout) == _identities(sys.executable)


def _pythons(version: str) -> list[str]:
    """Those on the PATH, and those of pyenv, whose shims work for some of them only."""
    places = [os.environ.get("PATH", ""), *map(str, Path.home().glob(f".pyenv/versions/{version}*/bin"))]
    return [found for place in places if (found := shutil.which(f"python{version}", path=place)) and _works(found)]


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("version", PYTHONS)
def test_another_python_sees_the_same_functions(version):
    pythons = _pythons(version)
    if not pythons:
        pytest.skip(f"no Python {version} on this machine")
    assert _identities(pythons[0]) == _identities(sys.executable)


# -- what counts -----------------------------------------------------------------------------------

PROMPT = "Answer."
WORDS = ("yes", "no")
NUMBER = re.compile(r"\d+")


def test_constants_and_helpers_of_the_module_count(monkeypatch):
    def asked(input):
        return PROMPT, WORDS, NUMBER.search(input), _remembered(input)

    before = code_hash(asked)
    for name, value in (
        ("PROMPT", "Answer!"),
        ("WORDS", ("yes", "no", "maybe")),
        ("NUMBER", re.compile(r"\w+")),
        ("_remembered", _forgotten),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, value)
            assert code_hash(asked) != before, name
    assert code_hash(asked) == before


@functools.lru_cache
def _remembered(text):
    return text


@functools.lru_cache
def _forgotten(text):
    return ""


def test_defaults_of_every_helper_count(tmp_path):
    """What was looked at and is gone leaves its address to something else, which was then taken for it."""

    def chain(last):
        helpers = "".join(f"def f{n}(q, a=({n}, [1]), *, b=({n},)):\n    return f{n + 1}(q)\n" for n in range(6))
        return _load(tmp_path, f"{helpers}def f6(q, a=([{last!r}],)):\n    return a\n").f0

    assert len({code_hash(chain(last)) for last in range(5)}) == 5


def test_nesting_counts_and_data_may_contain_itself():
    def with_default(value):
        def inner(q, value=value):
            return value

        return inner

    shapes = [[1, [2]], [[1], 2], [1, 2], (1, 2), {1, 2}, {"1": 2}, [[1, 2]], "[1, 2]"]
    assert len({code_hash(with_default(shape)) for shape in shapes}) == len(shapes)
    endless: list = [1]
    endless.append(endless)
    assert code_hash(with_default(endless)) != code_hash(with_default([1]))


class Keyed:
    __slots__ = ("api_key", "model")

    def __init__(self, model, api_key):
        self.model, self.api_key = model, api_key

    def __call__(self, input):
        return self.model


class Holding:
    def __init__(self, function):
        self.function = function

    def __call__(self, input):
        return self.function(input)


def test_what_an_object_holds_counts_and_its_keys_do_not():
    assert code_hash(Keyed("m", "sk-1")) == code_hash(Keyed("m", "sk-2")) != code_hash(Keyed("n", "sk-1"))
    assert code_hash(Holding(str.upper)) == code_hash(Holding(str.upper))
    assert code_hash(Holding(lambda q: "a")) != code_hash(Holding(lambda q: "b"))


def test_a_file_that_was_edited_since_is_not_what_runs(tmp_path):
    """In a long session: the function in memory is the old one, and the file has the one that runs next time."""
    old, new = "def made(q):\n    return 'old'\n", "def made(q):\n    return 'new'\n"
    loaded = _load(tmp_path, old).made
    before = code_hash(loaded)
    (tmp_path / "written.py").write_text(new)
    os.utime(tmp_path / "written.py", (1, 1))  # a clock that is too coarse to notice
    assert code_hash(loaded) not in (before, code_hash(_load(tmp_path, new, "fresh").made))


def test_without_source_the_compiled_code_counts():
    one, same, other = (eval(f"lambda q: {text}") for text in ("q + 'a'", "q + 'a'", "q + 'b'"))
    assert code_hash(one) == code_hash(same) != code_hash(other)
