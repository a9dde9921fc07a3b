"""The calls of a trajectory as scorers weigh them: each with what became of it, and its place in the list of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fairtrial.core.calls import MadeCall, is_named, read_calls
from fairtrial.core.events import CallEvent, Event, ResultEvent
from fairtrial.core.experiment import ExpectedCall
from fairtrial.text.conditions import fits_condition


class CallOutcome(NamedTuple):
    """One call: what was called, the places of it and its result among the events, and how it ended."""

    call: MadeCall
    at: int
    returned: int | None  # None: it never came back
    failed: bool = False
    rejected: bool = False  # not carried out, because it was not allowed

    @property
    def succeeded(self) -> bool:
        """Whether it was carried out and returned no error."""
        return self.returned is not None and not self.failed and not self.rejected


def steps_in(events: Sequence[Event], *, subagents: bool = True) -> list[CallOutcome]:
    """Return the calls in a list of events, in the order in which they began; those of subagents too, if wanted."""
    results = {event.call: (place, event) for place, event in enumerate(events) if isinstance(event, ResultEvent)}
    steps = []
    for place, event in enumerate(events):
        if not isinstance(event, CallEvent) or (not subagents and (event.within or event.agent)):
            continue
        returned, result = results.get(event.id, (None, None))
        (call,) = read_calls([{"tool": event.tool, "server": event.server, "arguments": event.arguments}])
        if result is None:
            steps.append(CallOutcome(call, place, None))
        else:
            steps.append(CallOutcome(call, place, returned, result.error and not result.rejected, result.rejected))
    return steps


def is_call(step: CallOutcome, wanted: ExpectedCall) -> bool:
    """Return whether a call is of this tool, with arguments as the conditions say; may raise IncomparableError."""
    arguments = wanted.arguments
    return is_named(step.call, wanted.name) and (not arguments or fits_condition(step.call.arguments, arguments))


def shown_call(wanted: ExpectedCall) -> str:
    """Return a wanted call as it is written in a suite."""
    arguments = f" with {msgspec.json.encode(wanted.arguments).decode()}" if wanted.arguments else ""
    return f"{wanted.name}{arguments}"
