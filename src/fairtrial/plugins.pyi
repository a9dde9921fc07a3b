# Written by `python -m docs.generate`; do not edit.
"""What plug-ins may build on: the contract of every door, and the values that pass through it.

A plug-in is a package with entry points `fairtrial.DOOR`, where DOOR is one of `fairtrial.core.registry.DOORS`; see
docs/plugins.md. Names are imported when they are used: a plug-in with a scorer does not import the web page.

Public are `fairtrial`, `fairtrial.plugins` and `fairtrial.pytest_plugin`. Every other module is private and may change
with any version.
"""

from fairtrial.analyse.run import Run
from fairtrial.analyse.stored_run import TrialRecord
from fairtrial.cli.documents import print_json
from fairtrial.cli.options import json_option, option, store_option
from fairtrial.core.answer import Answer, Failure, Journal, Request, SoFar, Usage
from fairtrial.core.errors import FairtrialError, TargetUnusableError
from fairtrial.core.experiment import Case, McpServer, TargetSpec
from fairtrial.core.file import File
from fairtrial.core.judge import Judge, Judgement, Panel
from fairtrial.core.listening import Listener
from fairtrial.core.providers import Provider
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.scorer_contract import check_scorer
from fairtrial.core.target import Options, Target
from fairtrial.core.trace import ToolCall, Trace
from fairtrial.foreign.chronicle import Chronicle
from fairtrial.foreign.logs import LogFormat, LoggedSession
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Reader, Sample, Source
from fairtrial.foreign.suites import Imported, Importer
from fairtrial.foreign.traces import Aside, Call, Said, TraceFormat
from fairtrial.providers.conversation import Conversation, Turn
from fairtrial.providers.params import Api
from fairtrial.providers.transport import HttpTarget
from fairtrial.reports.format import Format
from fairtrial.web.app import web_app
from fairtrial.web.section import Link, Section, Site

__all__ = [
    "Answer",
    "Api",
    "Aside",
    "Call",
    "Case",
    "Chronicle",
    "Columns",
    "Contestant",
    "Conversation",
    "Failure",
    "FairtrialError",
    "File",
    "Format",
    "Guide",
    "HttpTarget",
    "Imported",
    "Importer",
    "Journal",
    "Judge",
    "Judgement",
    "Link",
    "Listener",
    "Log",
    "LogFormat",
    "LoggedSession",
    "McpServer",
    "Options",
    "Panel",
    "Provider",
    "Question",
    "Reader",
    "Request",
    "Run",
    "Said",
    "Sample",
    "Scale",
    "Score",
    "ScoreContext",
    "Scorer",
    "Section",
    "Site",
    "SoFar",
    "Source",
    "Target",
    "TargetSpec",
    "TargetUnusableError",
    "ToolCall",
    "Trace",
    "TraceFormat",
    "TrialRecord",
    "Turn",
    "Unscored",
    "Usage",
    "check_scorer",
    "json_option",
    "option",
    "print_json",
    "store_option",
    "web_app",
]
