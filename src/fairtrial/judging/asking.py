"""Ask a judge, and ask once more if the verdict cannot be read; after that, there is no verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fairtrial.core.answer import FILTERED, REFUSED, Answer, Failure, Outcome, Request
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.judge import Judge, Judgement
from fairtrial.core.money import total
from fairtrial.judging.verdict import JudgePrompt, NoVerdict, Verdict, read_judgement
from fairtrial.providers.params import tokens_needed

_MAX_TOKENS = 2048  # of a verdict; a reasoning model needs more
_FINAL_KINDS = frozenset({"context", "refused", "crashed"})
_RETRY_SEPARATOR = "\n\n--- could not be used; asked once more ---\n\n"


def judge_request(judge: Judge, prompt: JudgePrompt, *, case_id: str, number: int = 0) -> Request:
    """Return the request for a judge."""
    return Request(
        trial_id=f"{case_id}/{judge.name}/{number}",
        case_id=case_id,
        input=prompt.text,
        system=prompt.system,
        params=_params(judge, prompt, number),
        repeat=number,
        stream=False,
        schema=prompt.schema,
        files=prompt.images,
        prompt_hash=prompt.hash,
    )


async def ask_judge(judge: Judge, prompt: JudgePrompt, *, case_id: str, number: int = 0) -> Judgement:
    """Return one judgement; a failure never becomes a score."""
    request = judge_request(judge, prompt, case_id=case_id, number=number)
    first = await judge.ask(request)
    base = Judgement(judge=judge.name, judge_key=judge.key, number=number, prompt_hash=prompt.hash)
    verdict = _verdict(prompt, first)
    if isinstance(verdict, NoVerdict):
        # Send only the reason, which is our own text: the detail may quote the reply, and the reply the answer.
        retry_text = (
            f"{prompt.text}\n\nYour last reply could not be used: {verdict.reason}. Reply with the JSON object only."
        )
        once_more = {"input": retry_text, "attempt": 1, "prompt_hash": f"{prompt.hash}/again"}
        second = await judge.ask(msgspec.structs.replace(request, **once_more))
        return _judgement(base, _verdict(prompt, second), [first, second])
    return _judgement(base, verdict, [first])


def longest_reply(target: TargetSpec | None, params: Mapping[str, Any]) -> int:
    """Return how many tokens a judge's reply may have, including reasoning."""
    return int(params.get("max_tokens") or (tokens_needed(target, params, _MAX_TOKENS) if target else _MAX_TOKENS))


def _params(judge: Judge, prompt: JudgePrompt, number: int) -> dict[str, Any]:
    """Return the scorer's parameters, overridden by the suite's; a null value removes a parameter."""
    params = {"max_tokens": longest_reply(judge.target, judge.params), **prompt.params, **judge.params}
    if number and params.get("seed") is not None:
        params["seed"] += number  # a judge that is asked again must be able to give another verdict
    return {name: value for name, value in params.items() if value is not None}


def _over_budget(outcome: Outcome) -> bool:
    return isinstance(outcome.result, Failure) and outcome.result.kind == "budget"


def _verdict(prompt: JudgePrompt, outcome: Outcome) -> Verdict | Failure | NoVerdict:
    result = outcome.result
    if not isinstance(result, Answer):
        return result
    if result.finish_reason in (REFUSED, FILTERED):  # asking again would not help
        action = "refused" if result.finish_reason == REFUSED else "was stopped by the provider's filter"
        return Failure(
            kind="refused", message=f"the judge {action}: {' '.join(result.text.split()) or 'no reason given'}"
        )
    return read_judgement(prompt, result.text, cut_off=result.finish_reason == "length")


def _judgement(base: Judgement, verdict: Verdict | Failure | NoVerdict, outcomes: list[Outcome]) -> Judgement:
    result = outcomes[-1].result
    answer = result if isinstance(result, Answer) else None
    usages = [outcome.result.usage for outcome in outcomes if outcome.result.usage is not None]
    common = msgspec.structs.replace(
        base,
        asked=sum(not _over_budget(outcome) for outcome in outcomes),
        reply=_RETRY_SEPARATOR.join(o.result.text for o in outcomes if isinstance(o.result, Answer)),
        params=outcomes[-1].sent,
        model=answer.model if answer else None,
        latency_ms=answer.latency_ms if answer else None,
        cost=total(outcome.cost for outcome in outcomes),
        batched=tuple(place for outcome in outcomes for place in outcome.batched),
        prompt_tokens=sum(usage.prompt for usage in usages) if usages else None,
        completion_tokens=sum(usage.completion for usage in usages) if usages else None,
    )
    if isinstance(verdict, Verdict):
        return msgspec.structs.replace(
            common,
            value=verdict.value,
            metrics=verdict.metrics,
            reasoning=verdict.reasoning,
            claims=verdict.claims,
        )
    if isinstance(verdict, Failure):
        # A judge that could not be reached can be asked later; one that refuses will refuse again.
        return msgspec.structs.replace(
            common,
            failure_kind=verdict.kind,
            failure_message=verdict.message,
            retryable=verdict.kind not in _FINAL_KINDS,
        )
    message = f"the judge's verdict could not be used after two attempts: {verdict}"
    return msgspec.structs.replace(common, failure_kind="verdict", failure_message=message)
