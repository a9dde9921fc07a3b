"""What plug-ins may build on: the contracts of scorers, targets and importers, and the values that pass between them.

A plug-in is an entry point `fairtrial.scorers`, `fairtrial.targets`, `fairtrial.importers` or `fairtrial.results` (a
reader of results: `recognises` and `read`). A model behind an
HTTP API is an `HttpTarget`; named `NAME_api`, it serves `NAME:model`.

Public are `fairtrial`, `fairtrial.plugins` and `fairtrial.pytest_plugin`. Every other module is private and may change
with any version.
"""

from fairtrial.core.answer import Answer, Failure, Journal, Request, SoFar, Usage
from fairtrial.core.errors import FairtrialError, TargetUnusableError
from fairtrial.core.experiment import Case, McpServer, TargetSpec
from fairtrial.core.file import File
from fairtrial.core.judge import Judge, Judgement, Panel
from fairtrial.core.listening import Listener
from fairtrial.core.providers import Provider
from fairtrial.core.score import Scale, Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.target import Options, Target
from fairtrial.core.trace import ToolCall, Trace
from fairtrial.foreign.results import Columns, Contestant, Log, Question, Sample, Source
from fairtrial.foreign.suites import Imported
from fairtrial.providers.conversation import Conversation, Turn
from fairtrial.providers.params import Api
from fairtrial.providers.transport import HttpTarget

__all__ = [
    "Answer",
    "Api",
    "Case",
    "Columns",
    "Contestant",
    "Conversation",
    "Failure",
    "FairtrialError",
    "File",
    "Guide",
    "HttpTarget",
    "Imported",
    "Journal",
    "Judge",
    "Judgement",
    "Listener",
    "Log",
    "McpServer",
    "Options",
    "Panel",
    "Provider",
    "Question",
    "Request",
    "Sample",
    "Scale",
    "Score",
    "ScoreContext",
    "Scorer",
    "SoFar",
    "Source",
    "Target",
    "TargetSpec",
    "TargetUnusableError",
    "ToolCall",
    "Trace",
    "Turn",
    "Unscored",
    "Usage",
]
