"""Types shared by judges and the scorers that use them: the judge, the panel and the judgement."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from fairtrial.core import registry
from fairtrial.core.answer import Outcome, Request
from fairtrial.core.batch import BatchPlace
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.ids import content_hash
from fairtrial.core.money import Cost
from fairtrial.core.settings import JudgeSpec, PanelSpec

JudgementPlace = tuple[str, str, int]  # judge, prompt, number


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict of one judge on one answer, or why there is none. Stored in full, so that it can be reviewed."""

    judge: str
    judge_key: str = ""  # hash of the model, its address and its settings
    number: int = 0  # index, if a judge is asked several times
    value: float | None = None
    metrics: dict[str, float] = {}
    reasoning: dict[str, str] = {}
    claims: tuple[str, ...] = ()
    reply: str = ""
    model: str | None = None
    params: dict[str, Any] = {}
    prompt_hash: str = ""
    asked: int = 1  # 2 if a malformed verdict was requested again, 0 if the budget did not allow the call
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: Cost = Cost()
    latency_ms: float | None = None
    failure_kind: str | None = None
    failure_message: str | None = None
    retryable: bool = False
    batched: tuple[BatchPlace, ...] = ()  # where its requests were, if they were sent in batches
    stored: int | None = None  # the number of the scoring that already has it; None if it is new

    @property
    def place(self) -> JudgementPlace:
        """What identifies this judgement among those of the same answer."""
        return (self.judge_key, self.prompt_hash, self.number)


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """A judge that is ready to be called; its calls go through the same retries and limits as all calls."""

    name: str
    key: str
    family: str
    ask: Callable[[Request], Awaitable[Outcome]]
    params: dict[str, Any] = {}
    instructions: str = ""
    sees: bool = False  # whether it accepts images
    target: TargetSpec | None = None  # the model behind it, if known


def judge_key(judge: JudgeSpec) -> str:
    """Return the key of a judge: a hash of its model, address and settings."""
    vision = [judge.vision] if judge.vision is not None else []
    return content_hash([judge.target.identity(), judge.params, *vision])[:16]


def judge_of(spec: JudgeSpec, ask: Callable[[Request], Awaitable[Outcome]]) -> Judge:
    """Build a judge from its configuration and the function that calls it."""
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
    """Guess a model's maker from its name; models of one family may favour each other's answers."""
    name = target.model.rsplit("/", 1)[-1].lower()
    for family, prefixes in _FAMILIES.items():
        if name.startswith(prefixes):
            return family
    if target.provider in ("openai", "anthropic"):
        return target.provider
    return f"{target.provider}:{target.model}"


def can_see(judge: JudgeSpec) -> bool:
    """Return whether a judge accepts images: as set in the suite, else by the model's name."""
    if judge.vision is not None:
        return judge.vision
    takes_files: bool = registry.load("targets", judge.target.kind).takes_files
    return takes_files and bool(_VISION_MODEL.search(judge.target.model.rsplit("/", 1)[-1].lower()))


_VISION_MODEL = re.compile(
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
