"""What is tried: cases, targets, conditions, and the arms they make."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

DEFAULT_PARAMS: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 1,
    "max_tokens": 2048,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
BENCHMARK_LOCK = {"temperature": 0, "frequency_penalty": 0, "presence_penalty": 0}

ScorerSpec = dict[str, Any]  # {"type": name, **options}


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One question, and what a right answer is measured by."""

    id: str
    input: str
    expected: str | None = None
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    category: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    scorer: ScorerSpec | None = None
    params: dict[str, Any] | None = None
    repeats: int | None = None
    metadata: dict[str, Any] | None = None
    position: int = 0


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A model or agent as configured: which adapter (`kind`), which model, where, with which options."""

    id: str
    kind: str
    provider: str
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    headers: dict[str, str] = {}
    options: dict[str, Any] = {}
    concurrency: int | None = None
    folder: str = ""  # where its code lies, for targets that are the user's own code

    def identity(self) -> dict[str, Any]:
        """What makes an answer this target's: everything but the credentials."""
        return {
            "kind": self.kind,
            "model": self.model,
            "base_url": self.base_url,
            "options": self.options,
            "folder": self.folder,
        }


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """What a target is told and given beside the case."""

    name: str = "default"
    system: str = ""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A target under a condition: what is compared."""

    name: str
    target: TargetSpec
    condition: Condition
    params: dict[str, Any]
    defaulted: tuple[str, ...] = ()  # parameters that nobody wrote down
    scorer: ScorerSpec
    repeats: int = 1
    position: int = 0

    def repeats_of(self, case: Case) -> int:
        """How often this arm answers this case; the nearest setting wins."""
        return self.repeats if case.repeats is None else case.repeats

    def scorer_of(self, case: Case) -> ScorerSpec:
        """What scores this arm's answers to this case; the nearest setting wins."""
        return self.scorer if case.scorer is None else case.scorer

    def params_of(self, case: Case, *, benchmark_mode: bool = False) -> dict[str, Any]:
        """The effective parameters of this arm on this case."""
        if not case.params:
            return self.params
        lock = BENCHMARK_LOCK if benchmark_mode else {}
        merged = {**self.params, **case.params, **lock}
        return {name: value for name, value in merged.items() if value is not None}


class RetrySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often and how patiently a call is made again."""

    attempts: int = 8
    wait: float = 0.5
    max_wait: float = 60.0
    empty: int = 2
    empty_wait: float = 0.4
    timeouts: int = 1


class PriceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A price from the suite, in USD per million tokens."""

    input: float
    output: float


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A model that judges, and how it is asked; parameters that are not given are the scorer's choice."""

    name: str
    target: TargetSpec
    params: dict[str, Any] = {}
    instructions: str = ""


class PanelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the verdicts of several judges, or of one judge asked several times, become one score."""

    combine: Literal["mean", "median", "majority"] = "mean"
    own_family: Literal["flag", "leave_out"] = "flag"
    judgements: Annotated[int, msgspec.Meta(ge=1)] = 1


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out; nothing here changes what is asked but `benchmark_mode`."""

    concurrency: int = 5
    timeout: float = 120.0
    budget_usd: float | None = None
    stream: bool = True
    cache: bool = False
    benchmark_mode: bool = False
    retry: RetrySpec = RetrySpec()
    prices: dict[str, PriceSpec] = {}
    judges: tuple[JudgeSpec, ...] = ()
    panel: PanelSpec = PanelSpec()
