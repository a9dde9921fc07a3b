"""Asking a judge: once, and once more when the verdict cannot be read; then there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, Answer, Failure, Outcome, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.judge import Judge, Judgement
from fairtrial.core.money import total
from fairtrial.judging.verdict import JudgePrompt, NoVerdict, Verdict, read_verdict
from fairtrial.providers.params import room

_MOST_TOKENS = 2048  # of a verdict; a model that thinks first needs more
_FINAL = frozenset({"refused", "crashed"})
_AGAIN = "\n\n--- could not be used; asked once more ---\n\n"


def judge_request(judge: Judge, prompt: JudgePrompt, *, case_id: str, number: int = 0) -> Request:
    """What a judge is asked."""
    return Request(
        trial_id=f"{case_id}/{judge.name}/{number}",
        case_id=case_id,
        input=prompt.text,
        system=prompt.system,
        params=_params(judge, prompt, number),
        repeat=number,
        stream=False,
        schema=prompt.schema,
        images=prompt.images,
    )


async def ask_judge(judge: Judge, prompt: JudgePrompt, *, case_id: str, number: int = 0) -> Judgement:
    """One judgement. No malfunction ever becomes a value."""
    request = judge_request(judge, prompt, case_id=case_id, number=number)
    first = await judge.ask(request)
    base = Judgement(judge=judge.name, judge_key=judge.key, number=number, prompt_hash=prompt.hash)
    verdict = _verdict(prompt, first)
    if isinstance(verdict, NoVerdict):
        # Only the reason, which is ours: the detail may quote the reply, and the reply the answer.
        again = (
            f"{prompt.text}\n\nYour last reply could not be used: {verdict.reason}. Reply with the JSON object only."
        )
        second = await judge.ask(msgspec.structs.replace(request, input=again, attempt=1))
        return _judgement(base, _verdict(prompt, second), [first, second])
    return _judgement(base, verdict, [first])


def longest_reply(target: TargetSpec | None, params: Mapping[str, Any]) -> int:
    """How many tokens a judge's reply may have, thoughts included."""
    return int(params.get("max_tokens") or (room(target, params, _MOST_TOKENS) if target else _MOST_TOKENS))


def _params(judge: Judge, prompt: JudgePrompt, number: int) -> dict[str, Any]:
    """The scorer's choice, unless the suite says otherwise; an empty value takes it back."""
    params = {"max_tokens": longest_reply(judge.target, judge.params), **prompt.params, **judge.params}
    if number and params.get("seed") is not None:
        params["seed"] += number  # asked again, a judge must be free to say something else
    return {name: value for name, value in params.items() if value is not None}


def _unaffordable(outcome: Outcome) -> bool:
    """Whether the budget could not bear the call, so that it was never made."""
    return isinstance(outcome.result, Failure) and outcome.result.kind == "budget"


def _verdict(prompt: JudgePrompt, outcome: Outcome) -> Verdict | Failure | NoVerdict:
    result = outcome.result
    if not isinstance(result, Answer):
        return result
    if result.finish_reason in (REFUSED, FILTERED):  # it would be so again
        what = "refused" if result.finish_reason == REFUSED else "was stopped by the provider's filter"
        return Failure(
            kind="refused", message=f"the judge {what}: {' '.join(result.text.split()) or 'no reason given'}"
        )
    return read_verdict(prompt, result.text, cut_off=result.finish_reason == "length")


def _judgement(base: Judgement, verdict: Verdict | Failure | NoVerdict, outcomes: list[Outcome]) -> Judgement:
    result = outcomes[-1].result
    answer = result if isinstance(result, Answer) else None
    usages = [outcome.result.usage for outcome in outcomes if outcome.result.usage is not None]
    asked = msgspec.structs.replace(
        base,
        asked=sum(not _unaffordable(outcome) for outcome in outcomes),
        reply=_AGAIN.join(o.result.text for o in outcomes if isinstance(o.result, Answer)),
        params=outcomes[-1].sent,
        model=answer.model if answer else None,
        latency_ms=answer.latency_ms if answer else None,
        cost=total(outcome.cost for outcome in outcomes),
        prompt_tokens=sum(usage.prompt for usage in usages) if usages else None,
        completion_tokens=sum(usage.completion for usage in usages) if usages else None,
    )
    if isinstance(verdict, Verdict):
        return msgspec.structs.replace(
            asked,
            value=verdict.value,
            metrics=verdict.metrics,
            reasoning=verdict.reasoning,
            claims=verdict.claims,
        )
    if isinstance(verdict, Failure):
        # A judge that could not be reached may be reached later; the answer waits for it. One that refuses will again.
        return msgspec.structs.replace(
            asked,
            failure_kind=verdict.kind,
            failure_message=verdict.message,
            retryable=verdict.kind not in _FINAL,
        )
    message = f"the judge's verdict could not be used, twice: {verdict}"
    return msgspec.structs.replace(asked, failure_kind="verdict", failure_message=message)
