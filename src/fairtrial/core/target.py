"""The contract of a target: anything that answers a request."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.experiment import TargetSpec


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can stand under a target's `options:`; each kind of target has its own."""


class Target:
    """One model or agent. A new kind is one file in `targets/` or an entry point `fairtrial.targets`.

    `ask` makes exactly one attempt and never raises for what the outside world did: it returns a Failure.
    Waiting, retrying, limiting and pricing are the engine's.
    """

    options_type: ClassVar[type[Options]] = Options
    priced: ClassVar[bool] = False  # whether its calls may cost money
    names_its_cost: ClassVar[bool] = False  # whether an answer may say itself what it cost
    many_calls: ClassVar[bool] = False  # whether one trial makes many calls that cost money
    agent: ClassVar[bool] = False  # whether a trial is a whole session: it takes long, and is not bought twice
    runs_own_code: ClassVar[bool] = False  # whether it runs programs that lie beside the suite
    uses_tools: ClassVar[bool] = False  # whether it can be given MCP servers
    takes_images: ClassVar[bool] = False  # whether pictures can go with a question; the model may still be blind
    most_at_once: ClassVar[int | None] = None  # more calls than this at once make no sense

    def __init__(self, spec: TargetSpec, options: Any, folder: Path) -> None:
        self.spec = spec
        self.folder = folder

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        """What makes this target unusable, known before anything is asked."""
        return ()

    @classmethod
    def tells_cost(cls, options: Any) -> bool:
        """Whether its answers can say what they cost, with these options."""
        return cls.names_its_cost

    @property
    def lane(self) -> str:
        """Targets of one lane share one limit, as calls with one key share one quota."""
        return self.spec.provider

    async def open(self, concurrency: int) -> None:
        """Get ready; raise TargetUnusableError, with a sentence, where that is impossible."""

    def sent(self, request: Request) -> dict[str, Any]:
        """The parameters that go out with a request, by the names that suites use: the record says these, no others."""
        return request.params

    def versions(self) -> dict[str, str]:
        """Programs and packages that have a part in its answers, once it is open: the record says these too."""
        return {}

    async def ask(self, request: Request) -> Answer | Failure:
        """Ask once."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of everything that `open` took."""
