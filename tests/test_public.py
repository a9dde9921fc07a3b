"""What is public: these names stay, and everything else may change with any version."""

import ast
import asyncio
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import fairtrial
from fairtrial import plugins

VERBS = {
    *(
        "aggregate",
        "audit",
        "calibrate",
        "cases",
        "compare",
        "compare_models",
        "export",
        "gate",
        "import_results",
        "import_traces",
        "label",
        "multi_run",
        "open_run",
    ),
    *(
        "pairwise",
        "power",
        "rank",
        "report",
        "rescore",
        "resume",
        "retry",
        "run",
        "score",
        "styles",
        "tools",
        "variance",
    ),
}
LIBRARY = {
    *(
        "Answer",
        "Audit",
        "Case",
        "Failure",
        "FairtrialError",
        "Run",
        "RunOptions",
        "RunSeries",
        "Score",
        "Suite",
        "TrialRecord",
    ),
    *(
        "Calibration",
        "CaseAnalysis",
        "Comparison",
        "Comparisons",
        "Gate",
        "KindMeans",
        "Labels",
        "OptimisationReport",
        "PairsSummary",
        "Power",
    ),
    *("Ranking", "ToolReport", "Unscored", "Variance", "errors", "load_suite", "plugins"),
    *VERBS,
    *(f"a{verb}" for verb in VERBS),  # everything has an async twin
}
PLUGINS = {
    *("Answer", "Api", "Case", "Conversation", "Failure", "FairtrialError", "File", "Guide", "HttpTarget"),
    *("Imported", "Journal", "Judge", "Judgement", "Listener", "McpServer", "Options", "Panel", "Provider", "Request"),
    *("Scale", "Score", "ScoreContext", "Scorer", "SoFar", "Target", "TargetSpec", "TargetUnusableError", "ToolCall"),
    *("Trace", "Turn", "Unscored", "Usage"),
    *("Columns", "Contestant", "Log", "Question", "Reader", "Sample", "Source"),
    *("Aside", "Call", "Importer", "Said", "TraceFormat"),
    *("Format", "Link", "Run", "Section", "Site", "TrialRecord"),
    *("check_scorer", "json_option", "option", "print_json", "store_option", "web_app"),
}


def test_the_library_exports_these_names():
    assert set(fairtrial.__all__) == LIBRARY
    assert all(getattr(fairtrial, name) is not None for name in LIBRARY)
    assert set(fairtrial.__all__) <= set(dir(fairtrial))


def test_plug_ins_are_given_these_names():
    assert set(plugins.__all__) == PLUGINS
    assert all(hasattr(plugins, name) for name in PLUGINS)


def test_type_checkers_are_told_of_every_name():
    """The stubs are current (`tests/test_docs.py`), and name what there is."""
    for module in (fairtrial, plugins):
        stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text("utf-8"))
        (names,) = [ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)]
        imported = {
            alias.asname or alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        written = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert names == module.__all__ and set(names) <= imported | written


def test_a_verb_and_its_twin_have_the_same_signature():
    for verb in VERBS:
        one, twin = getattr(fairtrial, verb), getattr(fairtrial, f"a{verb}")
        assert inspect.signature(one) == inspect.signature(twin)
        assert inspect.iscoroutinefunction(twin) and not inspect.iscoroutinefunction(one)
        for value in (one, twin):
            assert pickle.loads(pickle.dumps(value)) is value
            assert value.__name__ in (verb, f"a{verb}") and inspect.getdoc(value)


def test_a_wrong_call_is_named_as_it_was_written():
    with pytest.raises(TypeError, match=r"^run\(\) got an unexpected keyword argument 'repeat'"):
        fairtrial.run("suite.yaml", repeat=3)
    with pytest.raises(TypeError, match=r"^arank\(\) got an unexpected keyword argument 'arms'"):
        asyncio.run(fairtrial.arank(arms=["a"]))


def test_a_plug_in_imports_only_what_it_uses():
    code = "import sys; from fairtrial.plugins import Guide, Score, Scorer; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("aiohttp", "click", "numpy", "rich", "sqlalchemy", "starlette", "fairtrial.cli", "fairtrial.web")
    assert not set(heavy) & set(loaded)


def test_the_same_name_means_the_same_thing():
    for name in LIBRARY & PLUGINS - {"Case"}:  # users write one; scorers see it with all its defaults
        assert getattr(fairtrial, name) is getattr(plugins, name)


def test_importing_the_library_costs_nothing():
    code = "import sys, fairtrial; print(sum(name.startswith('fairtrial.') for name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "0"


def loaded_when(step, place, module, keys, tmp_path):
    """Whether a module is loaded when a run comes to a step, which is a function of a place."""
    (tmp_path / "s.yaml").write_text(f"name: s\nscorer: boolean\n{keys}\n")
    code = f"""if True:
        import os, sys
        from fairtrial.cli.main import main
        import {place} as place

        async def stop(*_):
            print({module!r} in sys.modules, flush=True)
            os._exit(0)

        place.{step} = stop
        sys.argv = ["fairtrial", "run", "s.yaml"]
        main()"""
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    return said.stderr.strip()  # what is printed in a run is no result


def test_what_only_analysis_needs_does_not_delay_the_first_call(tmp_path):
    keys = "targets: [mock:echo]\ncases: [{input: hi, expected: hi}]"
    assert loaded_when("work_on", "fairtrial.pipeline", "numpy", keys, tmp_path) == "False"


def test_what_decides_when_to_stop_is_imported_before_a_thread_imports_the_same(tmp_path):
    """Two threads that import a package from both ends see half of it."""
    keys = "targets: [{id: a, target: mock:echo}, {id: b, target: mock:echo}]\nlooks: 5\ncases:\n"
    keys += "\n".join(f"- {{input: hi {n}, expected: hi}}" for n in range(20))
    deciding = "fairtrial.engine.planned_looks"
    assert loaded_when("_import_analysis", "fairtrial.engine.meanwhile", deciding, keys, tmp_path) == "True"


def test_every_document_says_its_version():
    from fairtrial.reports import SCHEMA_VERSION

    assert isinstance(SCHEMA_VERSION, int | str)
    assert importlib.import_module("fairtrial.reports").SCHEMA_VERSION == SCHEMA_VERSION
