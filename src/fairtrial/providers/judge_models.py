"""Judges as models: who made them, and whether they can see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fairtrial.core import registry
from fairtrial.core.answer import Outcome, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.judge import Judge, judge_key
from fairtrial.core.settings import JudgeSpec
from fairtrial.providers.sheet import maker_of, sheet_of


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
        share=spec.share,
    )


def family_of(target: TargetSpec) -> str:
    """Return a model's maker, as its name says; models of one family may favour each other's answers."""
    if maker := maker_of(target.model):
        return maker
    return target.provider if target.provider in ("openai", "anthropic") else f"{target.provider}:{target.model}"


def can_see(judge: JudgeSpec) -> bool:
    """Return whether a judge accepts images: as set in the suite, else as the model sheet says."""
    if judge.vision is not None:
        return judge.vision
    takes_files: bool = registry.load("targets", judge.target.kind).takes_files
    return takes_files and "image" in sheet_of(judge.target.provider, judge.target.model).files
