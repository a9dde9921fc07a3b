"""What import-linter cannot see: circles through imports inside functions, and why such imports are there."""

import sys
from functools import cache

import pytest

from tests.architecture import Import, circles, imports, modules, phrases

MOST = 150  # imports of our own inside functions
LONGEST = 400  # lines of a file
WHOLE_FILES = {  # in which every import inside a function has the same reason
    "fairtrial.cli.doctor": "a check must not fail because the library of another one is missing",
    "fairtrial.cli.serve": "Starlette is an extra: without it, one sentence says how to install it",
    "fairtrial.pytest_plugin": "test sessions without fairtrial tests are not slowed down",
    "fairtrial.tracks.optimisation.worker": "it answers that it is there before it imports solvers",
    "fairtrial.forges": "a part of a family is imported when it is asked for",
}
ALONE = {  # files that are copied or run by themselves, so that they cannot be taken apart
    "fairtrial.agents.processes.supervisor",
}
NUMBERS = ("fairtrial.analyse.", "fairtrial.stats.")  # what they find is put into words in `present/words`
NAMES = {  # of several words, in `analyse` and `stats`: by these names, code and documents refer to something
    *("cannot tell", "depends on failures", "always right", "always wrong"),  # verdicts
    *("all arms", "category {}", "guard {}", "k_of_n {}", "run {}", "no tool", "{} (rubric: {})", "clusters of cases"),
    # methods of intervals and tests
    *(
        "anytime-valid bets",
        "t, widened",
        "n = 1",
        "one case",
        "one cluster",
        "no scores",
        "no common cases",
        "nothing varies",
    ),
    *("labels and marks", "labels and verdicts", "corrected by labels", "corrected by {} labels"),
    *("corrected by a second judge on {} cases", "{} other arms as control variate"),
    *("bootstrap over cases", "bootstrap over clusters", "Wilcoxon signed rank", "sign-flip permutation{}", " (exact)"),
    *("McNemar (exact)", "earlier run as control variate", "wordings as a random effect", "Elo, K = {}"),
    *("Bradley–Terry with covariates", "Elo, K = {}, mean of {} orders", "Cohen's κ, weights {}", "cluster jackknife"),
    *("Krippendorff's α, {}", "Welch's analysis of variance", "{}, over clusters", "{}, for these wordings"),
}
READ = {"budget of ", " --judge JUDGE"}  # what another program wrote, or reads
PATTERNS = ("^#", "(?:", "\\{")  # how regular expressions begin
SAID_IN_STATS = {  # why there is no estimate: `stats` may not import what would word it, and documents have the text
    "fairtrial.stats.correction": 4,
    "fairtrial.stats.runs": 3,
    "fairtrial.analyse.labels": 1,
}


@cache
def every_import() -> tuple[Import, ...]:
    found = modules()
    return tuple(one for module, path in found.items() for one in imports(module, path.read_text("utf-8"), set(found)))


@pytest.fixture(autouse=True)
def deep():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


def test_there_are_no_circles_counting_imports_inside_functions_and_for_types():
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for one in every_import():
        graph[one.module].add(one.imported)
    assert circles(graph) == []


def test_imports_inside_functions_are_few_and_each_has_a_reason():
    inside = [one for one in every_import() if one.inside and not one.typed]
    assert len({(one.module, one.line) for one in inside}) < MOST
    assert [f"{one.module}:{one.line}" for one in inside if not one.reason and one.module not in WHOLE_FILES] == []
    assert WHOLE_FILES.keys() <= {one.module for one in inside}


def test_nothing_outside_imports_a_track():
    """Not even inside a function. The table of public names names theirs, and imports them when they are used."""
    tracks = "fairtrial.tracks"
    found = [
        f"{one.module}:{one.line}"
        for one in every_import()
        if one.imported.startswith(tracks) and not one.module.startswith(tracks)
    ]
    assert found == []


def test_files_show_the_architecture():
    long = {module: text.count("\n") for module, path in modules().items() if (text := path.read_text("utf-8"))}
    assert {module: size for module, size in long.items() if size > LONGEST and module not in ALONE} == {}


def test_a_circle_is_found():
    """The check can fail: two modules that import each other inside functions."""
    known = {"fairtrial.a", "fairtrial.b", "fairtrial.c"}
    texts = {
        "fairtrial.a": "def f():\n    from fairtrial.b import g\n",
        "fairtrial.b": "from fairtrial import c\n",
        "fairtrial.c": "class C:\n    async def f(self):\n        import fairtrial.a  # why\n",
    }
    graph = {name: {one.imported for one in imports(name, text, known)} for name, text in texts.items()}
    assert circles(graph) == [["fairtrial.a", "fairtrial.b", "fairtrial.c"]]
    assert [one.reason for one in imports("fairtrial.c", texts["fairtrial.c"], known)] == ["why"]


def test_numbers_make_no_sentences():
    """What `analyse` and `stats` find are facts; `present/words` words them."""
    said = {
        module: [f"{line}: {text}" for line, text in phrases(path.read_text("utf-8"))
                 if text not in NAMES | READ and not text.startswith(PATTERNS)]
        for module, path in modules().items() if module.startswith(NUMBERS)
    }  # fmt: skip
    assert {module: len(texts) for module, texts in said.items() if texts} == SAID_IN_STATS, said


def test_a_sentence_is_found():
    """The check can fail; docstrings, names and exceptions are no sentences."""
    text = '''
def f(n, x):
    """Return a text."""
    if n:
        raise ValueError(f"there are {n} of them")
    append(f"{n} cases are few")
    y = ValueError("this is an error")
    return ["one" if n else "two", x, "it is so", name]
'''
    assert list(phrases(text)) == [(6, "{} cases are few"), (8, "it is so")]
