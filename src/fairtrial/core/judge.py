"""What judges and the scorers that ask them share: who is asked, and what came back."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from fairtrial.core import registry
from fairtrial.core.answer import Outcome, Request
from fairtrial.core.experiment import JudgeSpec, PanelSpec, TargetSpec
from fairtrial.core.ids import content_hash
from fairtrial.core.money import Cost

JudgementPlace = tuple[str, str, int]  # judge, prompt, number


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict of one judge on one answer, or why there is none. Kept whole, so that it can be contested."""

    judge: str
    judge_key: str = ""  # which model, where and how it is asked
    number: int = 0  # which one, where a judge is asked several times
    value: float | None = None
    metrics: dict[str, float] = {}
    reasoning: dict[str, str] = {}
    claims: tuple[str, ...] = ()
    reply: str = ""
    model: str | None = None
    params: dict[str, Any] = {}
    prompt_hash: str = ""
    asked: int = 1  # 2 where a malformed verdict was asked for once more, 0 where the budget could not bear it
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: Cost = Cost()
    latency_ms: float | None = None
    failure_kind: str | None = None
    failure_message: str | None = None
    retryable: bool = False
    stored: int | None = None  # the number of the scoring that has it already; None where it was asked for just now

    @property
    def place(self) -> JudgementPlace:
        """Which of the judgements of an answer this is."""
        return (self.judge_key, self.prompt_hash, self.number)


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """A judge that can be asked: its calls climb the same ladder as all calls."""

    name: str
    key: str
    family: str
    ask: Callable[[Request], Awaitable[Outcome]]
    params: dict[str, Any] = {}
    instructions: str = ""
    sees: bool = False  # whether pictures mean anything to it
    target: TargetSpec | None = None  # the model behind it, where one is known


def judge_key(judge: JudgeSpec) -> str:
    """Which judge this is: the model, where and how it is asked."""
    told = [judge.vision] if judge.vision is not None else []
    return content_hash([judge.target.identity(), judge.params, *told])[:16]


def judge_of(spec: JudgeSpec, ask: Callable[[Request], Awaitable[Outcome]]) -> Judge:
    """A judge as configured, with the way to ask it."""
    return Judge(
        name=spec.name,
        key=judge_key(spec),
        family=family_of(spec.target),
        ask=ask,
        params=spec.params,
        instructions=spec.instructions,
        sees=can_see(spec),
        target=spec.target,
    )


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The judges of a run."""

    judges: tuple[Judge, ...]
    how: PanelSpec = PanelSpec()


def family_of(target: TargetSpec) -> str:
    """Who made a model, as far as its name tells: models of one family may favour each other's answers."""
    name = target.model.rsplit("/", 1)[-1].lower()
    for family, starts in _FAMILIES.items():
        if name.startswith(starts):
            return family
    if target.provider in ("openai", "anthropic"):
        return target.provider
    return f"{target.provider}:{target.model}"


def can_see(judge: JudgeSpec) -> bool:
    """Whether a judge sees pictures: what the suite says, else what is known of models of that name."""
    if judge.vision is not None:
        return judge.vision
    takes: bool = registry.load("targets", judge.target.kind).takes_images
    return takes and bool(_SEEING.search(judge.target.model.rsplit("/", 1)[-1].lower()))


_SEEING = re.compile(
    r"^(?:gpt-4o|gpt-4\.1|gpt-4-turbo|gpt-4\.5|gpt-[5-9]|o1(?!-mini|-preview)|o3(?!-mini)|o4|chatgpt-4o)"
    r"|^claude-(?!2|instant)|^gemini|^gemma-?3|^pixtral|^llama-?4|^grok-(?:4|2-vision)|^mistral-(?:small-3|medium-3)"
    r"|vision|llava|minicpm-v|[-_.]?vl\b|omni"
)
_FAMILIES = {
    "openai": ("gpt", "o1", "o3", "o4", "chatgpt"),
    "anthropic": ("claude",),
    "google": ("gemini", "gemma"),
    "meta": ("llama", "meta-llama"),
    "qwen": ("qwen", "qwq"),
    "mistral": ("mistral", "mixtral", "ministral", "magistral", "codestral"),
    "deepseek": ("deepseek",),
    "smollm": ("smollm",),
    "grok": ("grok",),
    "phi": ("phi",),
}
