"""How a run is carried out: concurrency, retries, prices, judges, the simulated user, when to stop."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from fairtrial.core.experiment import Arm, ScorerSpec, TargetSpec
from fairtrial.core.gate import GateSpec
from fairtrial.core.types_in_threads import look_into


class RetrySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many times failed calls are retried, and the waits in between."""

    attempts: int = 8
    wait: float = 0.5
    max_wait: float = 60.0
    empty: int = 2
    empty_wait: float = 0.4
    timeouts: Annotated[
        int | None,
        msgspec.Meta(description="Retries after a timeout; by default 1 for a model and 0 for an agent."),
    ] = None


class PriceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price set in the suite, in USD per million tokens."""

    input: float
    output: float
    cache_read: float | None = None  # default: as other tokens of the prompt
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for usd in (self.input, self.output, self.cache_read, self.cache_write):
            if usd is not None and not 0 <= usd < math.inf:
                raise ValueError(f"a price is a finite number from 0 on, not {usd:g}")


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A judge model and its settings; the scorer chooses the parameters that are not set."""

    name: str
    target: TargetSpec
    params: dict[str, Any] = {}
    instructions: str = ""
    vision: bool | None = None  # whether it accepts images; None: decided by its name
    share: float | None = None  # of a second judge: the part of the cases that it judges, too; None: one of the panel


class UserSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A model that plays the user of every conversation; persona and goal are templates."""

    target: TargetSpec
    params: dict[str, Any] = {}
    persona: str = ""
    goal: str = ""
    max_turns: int = 8
    end: tuple[ScorerSpec, ...] = ()  # scorers that must all be satisfied for the conversation to end before that


class PanelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the verdicts of several judges, or several verdicts of one judge, are combined into one score."""

    combine: Literal["mean", "median", "majority"] = "mean"
    own_family: Literal["flag", "leave_out"] = "flag"
    judgements: Annotated[int, msgspec.Meta(ge=1)] = 1


FEWEST_CASES = 20  # complete ones, before a run may stop early: a handful of lucky ones must not decide it


class StopSpec(msgspec.Struct, frozen=True, kw_only=True):
    """When a run may stop early: once every pair of arms is decided, or shown to be equivalent or not.

    With a margin (0–1), arms that are equivalent within it count as decided too. With `looks`, that is asked after
    equal parts of the cases only, as planned; without, after every case, by bets.
    """

    when: Literal["decided", "equivalent"]
    margin: float | None = None
    looks: int = 0  # how many are planned; 0: it is watched all the time
    race: bool = False  # at each look, an arm that is worse than another one leaves
    gap: float | None = None  # the difference that it is planned for (0–1): no chance to see it is a reason to stop
    over: bool = False  # the user resumed the stopped run: it now continues to its end

    @property
    def shape(self) -> Literal["late", "even"]:
        """Return when planned looks spend their error: mostly at the end, or evenly, so that arms can leave early."""
        return "even" if self.race else "late"


class LookAgain(msgspec.Struct, frozen=True, kw_only=True):
    """That a run extends one that was looked at before: the same arms on the same cases and more."""

    look: int  # which one this is, from 2 on
    run: str
    number: int
    cases: int  # of that run


MODEL_TIMEOUT, AGENT_TIMEOUT = 120.0, 600.0  # seconds, if the suite does not set a timeout


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out; only `benchmark_mode` changes what is sent to the targets."""

    concurrency: int = 5
    timeout: float | None = None  # None: the default for a model or an agent
    budget_usd: float | None = None
    stream: bool = True
    cache: bool = False
    replay: bool = False  # only stored answers: nothing is asked
    benchmark_mode: bool = False
    retry: RetrySpec = RetrySpec()
    prices: dict[str, PriceSpec] = {}
    judges: tuple[JudgeSpec, ...] = ()
    embedders: dict[str, TargetSpec] = {}
    panel: PanelSpec = PanelSpec()
    user: UserSpec | None = None
    stop: StopSpec | None = None
    again: LookAgain | None = None
    on_refusal: Literal["wrong", "unscored", "right"] = "wrong"
    solved: float = 1.0  # the score from which on a trial counts as solved
    primary_metric: str | None = None  # the metric that comparisons use; None: the score
    largest: float | None = None  # the largest difference by the primary metric that a case can show; of scores, 0–1
    gate: GateSpec | None = None  # what the run must satisfy before a merge


def target_specs(arms: Iterable[Arm], settings: Settings) -> list[TargetSpec]:
    """Return every target that may be called: of the arms, the judges and the simulated user, and the embedders."""
    called = [judge.target for judge in settings.judges] + list(settings.embedders.values())
    called += [settings.user.target] if settings.user else []
    return [arm.target for arm in arms] + called


look_into(Settings)
