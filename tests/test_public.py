"""What is public: these names stay, and everything else may change with any version."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import fairtrial
from fairtrial import plugins

VERBS = {
    *(
        "aggregate",
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
    *("Answer", "Case", "Failure", "FairtrialError", "Run", "RunOptions", "RunSeries", "Score", "Suite", "TrialRecord"),
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


def test_type_checkers_are_told_where_the_names_of_plug_ins_are():
    tree = ast.parse(Path(plugins.__file__).read_text("utf-8"))
    (told,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = {node.module: tuple(alias.name for alias in node.names) for node in told.body}
    assert imports == plugins._HOMES


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


def test_what_only_analysis_needs_does_not_delay_the_first_call(tmp_path):
    (tmp_path / "s.yaml").write_text(
        "name: s\ntargets: [mock:echo]\nscorer: boolean\ncases: [{input: hi, expected: hi}]\n"
    )
    code = """if True:
        import os, sys
        from fairtrial import pipeline
        from fairtrial.cli.main import main

        async def work_on(*_):
            print("numpy" in sys.modules, flush=True)
            os._exit(0)

        pipeline.work_on = work_on
        sys.argv = ["fairtrial", "run", "s.yaml"]
        main()"""
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stderr.strip() == "False"  # what is printed in a run is no result


def test_every_document_says_its_version():
    from fairtrial.reports import SCHEMA_VERSION

    assert isinstance(SCHEMA_VERSION, int | str)
    assert importlib.import_module("fairtrial.reports").SCHEMA_VERSION == SCHEMA_VERSION
