"""What plug-ins may build on: the contract of every door, and the values that pass through it.

A plug-in is a package with entry points `fairtrial.DOOR`, where DOOR is one of `fairtrial.core.registry.DOORS`; see
docs/plugins.md. Names are imported when they are used: a plug-in with a scorer does not import the web page.

Public are `fairtrial`, `fairtrial.plugins` and `fairtrial.pytest_plugin`. Every other module is private and may change
with any version.
"""

from importlib import import_module
from typing import Any

# `python -m docs.generate` writes these names into `plugins.pyi`, for type checkers and editors.
_HOMES = {
    "fairtrial.analyse.run": ("Run",),
    "fairtrial.analyse.stored_run": ("TrialRecord",),
    "fairtrial.cli.documents": ("print_json",),
    "fairtrial.cli.options": ("json_option", "option", "store_option"),
    "fairtrial.core.answer": ("Answer", "Failure", "Journal", "Request", "SoFar", "Usage"),
    "fairtrial.core.errors": ("FairtrialError", "TargetUnusableError"),
    "fairtrial.core.experiment": ("Case", "McpServer", "TargetSpec"),
    "fairtrial.core.file": ("File",),
    "fairtrial.core.judge": ("Judge", "Judgement", "Panel"),
    "fairtrial.core.listening": ("Listener",),
    "fairtrial.core.providers": ("Provider",),
    "fairtrial.core.score": ("Scale", "Score", "ScoreContext", "Unscored"),
    "fairtrial.core.scorer": ("Guide", "Scorer"),
    "fairtrial.core.scorer_contract": ("check_scorer",),
    "fairtrial.core.target": ("Options", "Target"),
    "fairtrial.core.trace": ("ToolCall", "Trace"),
    "fairtrial.foreign.chronicle": ("Chronicle",),
    "fairtrial.foreign.logs": ("LogFormat", "LoggedSession"),
    "fairtrial.foreign.results": ("Columns", "Contestant", "Log", "Question", "Reader", "Sample", "Source"),
    "fairtrial.foreign.suites": ("Imported", "Importer"),
    "fairtrial.foreign.traces": ("Aside", "Call", "Said", "TraceFormat"),
    "fairtrial.providers.conversation": ("Conversation", "Turn"),
    "fairtrial.providers.params": ("Api",),
    "fairtrial.providers.transport": ("HttpTarget",),
    "fairtrial.reports.format": ("Format",),
    "fairtrial.web.app": ("web_app",),
    "fairtrial.web.section": ("Link", "Section", "Site"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 (it is a list)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fairtrial.plugins' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
