"""The interface of a target: anything that answers a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.functions import Functions
from fairtrial.core.workspace import WorkspaceSpec


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys allowed under a target's `options:`; each kind of target has its own."""


class Target:
    """Base class of models and agents. To add a kind, add a file to `targets/` or an entry point `fairtrial.targets`.

    `ask` makes exactly one attempt and never raises because of external errors: it returns a Failure.
    Waiting, retrying, limiting and pricing are the engine's job.
    """

    options_type: ClassVar[type[Options]] = Options
    priced: ClassVar[bool] = False  # whether its calls may cost money
    names_its_cost: ClassVar[bool] = False  # whether answers may report their own cost
    many_calls: ClassVar[bool] = False  # whether one trial makes several paid calls
    agent: ClassVar[bool] = False  # whether a trial is a whole session: slow, and too costly to repeat
    runs_own_code: ClassVar[bool] = False  # whether it runs programs from the suite's folder
    uses_tools: ClassVar[bool] = False  # whether it can use MCP servers
    takes_skills: ClassVar[bool] = False  # whether it takes skills as folders (`request.skills`), not as text
    own_system: ClassVar[bool] = False  # whether it has a system prompt of its own, which a condition's replaces
    limits_tools: ClassVar[bool] = False  # whether it can be given some tools of an MCP server without the others
    describes_tools: ClassVar[bool] = False  # whether it can be told of tools in other words than their server's
    uses_workspace: ClassVar[bool] = False  # whether a trial can have a workspace to work in
    takes_chats: ClassVar[bool] = False  # whether requests can have earlier messages (`history`)
    takes_turns: ClassVar[bool] = False  # whether it goes on with a `session` of its own, where it takes no chats
    takes_files: ClassVar[bool] = False  # whether requests can carry images and PDFs; the model may still refuse them
    embeds: ClassVar[bool] = False  # whether it answers requests for embeddings
    most_at_once: ClassVar[int | None] = None  # the highest useful number of concurrent calls

    tells_limits: ClassVar[bool] = False  # whether replies may say what is left of its provider's limits
    quota: Any = None  # what they said last (`providers/quota.py`)
    functions: Functions = {}  # given in Python, without an importable name; set before `open`

    def __init__(self, spec: TargetSpec, options: Any, folder: Path) -> None:
        self.spec = spec
        self.folder = folder

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        """Return the reasons, known before the run, why this target is unusable."""
        return ()

    @classmethod
    def cautions(cls, spec: TargetSpec, options: Any) -> Iterable[str]:
        """Return what users should know before they trust its answers, where it can be used."""
        return ()

    @classmethod
    def batch_problem(cls, spec: TargetSpec) -> str:
        """Return why this target cannot be asked in batches; empty if it can."""
        return "it is not asked through an API with batches"

    @classmethod
    def code(cls, spec: TargetSpec, options: Any, folder: Path) -> str:
        """Return a hash of the user's code that answers, so that its answers are not taken for those of other code."""
        return ""

    @classmethod
    def tells_cost(cls, options: Any) -> bool:
        """Return whether its answers report their cost with these options."""
        return cls.names_its_cost

    @property
    def lane(self) -> str:
        """The name of its rate limit; targets with the same lane share one, as calls with one key share a quota."""
        return self.spec.provider

    def batches(self) -> Any:
        """Return its provider's batch API (`providers/batch.py`), once it is open."""
        raise NotImplementedError

    async def open(self, concurrency: int) -> None:
        """Prepare for calls; raise TargetUnusableError with a one-sentence reason if that is impossible."""

    def sent(self, request: Request) -> dict[str, Any]:
        """Return the parameters sent with a request, under the names used in suites; exactly these are recorded."""
        return request.params

    def variables(self) -> list[str]:
        """Return the names of the variables that it gets to find its model, or because the suite says so."""
        return []

    def versions(self) -> dict[str, str]:
        """Return the versions of programs and packages that affect its answers, once it is open; they are recorded."""
        return {}

    def workspace_of(self, spec: WorkspaceSpec | None) -> WorkspaceSpec | None:
        """Return what the workspace of a trial is made from; None if it does not need one."""
        return spec if self.uses_workspace else None

    @classmethod
    def workspace_problem(cls, spec: TargetSpec, workspace: WorkspaceSpec) -> str:
        """Return why this target cannot work in such a workspace; empty if it can, or if it has none."""
        return ""

    def model_hosts(self) -> Sequence[str]:
        """Return where its model is: what `network: model` lets through, as addresses or names of hosts."""
        return ()

    async def ask(self, request: Request) -> Answer | Failure:
        """Make one attempt to answer a request."""
        raise NotImplementedError

    async def close(self) -> None:
        """Release everything that `open` acquired."""
