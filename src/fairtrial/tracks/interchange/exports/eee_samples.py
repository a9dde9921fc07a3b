"""The rows of Every Eval Ever: one for each trial and result, in a file next to the record that they belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairtrial.analyse.stored_run import Told
from fairtrial.tracks.interchange.exports.inspect_sample import Document, tool_calls


def rows(told: Told, record: Document, results: Mapping[str, Document]) -> Iterator[Document]:
    """Yield a row for the score and for each metric that the record has; the format has no room for unscored trials.

    Args:
        results: The record's results for this trial's arm, by metric; the score is "".
    """
    trial = told.trial
    if trial.score is None:
        return
    values = {"": 100 * trial.score, **trial.metrics}
    common = _common(told)
    for metric, value in values.items():
        if metric in results:
            yield {
                "schema_version": record["schema_version"],
                "evaluation_id": record["evaluation_id"],
                "model_id": record["model_info"]["id"],
                "evaluation_name": results[metric]["evaluation_name"],
                "evaluation_result_id": results[metric]["evaluation_result_id"],
                **common,
                "evaluation": {
                    "score": value,
                    "is_correct": trial.score == 1,
                    "num_turns": len(common["messages"] or ()) or None,
                    "tool_calls_count": trial.tool_calls,
                },
            }


def _common(told: Told) -> Document:
    trial, case = told.trial, told.case
    expected = trial.expected
    reference = list(expected) if isinstance(expected, tuple) else [expected] if expected else []
    messages = _messages(told)
    alone = len(messages) == 2 and not any("tool_calls" in message for message in messages)
    kind = "single_turn" if alone else "agentic" if (trial.trace or {}).get("tool_calls") else "multi_turn"
    answer = trial.answer or ""
    digest = hashlib.sha256((case.input + "".join(reference)).encode()).hexdigest()
    reasoning = [trial.reasoning] if trial.reasoning else None
    last = len(messages) - 1
    return {
        "sample_id": trial.case_id,
        "sample_hash": digest,
        "interaction_type": kind,
        "input": {
            "raw": case.input,
            "formatted": trial.input if trial.input != case.input else None,
            "reference": reference,
            "choices": list(case.choices) or None,
        },
        "output": {"raw": [answer], "reasoning_trace": reasoning} if alone else None,
        "messages": None if alone else messages,
        "answer_attribution": [
            {
                "turn_idx": 0 if alone else last,
                "source": "output.raw" if alone else f"messages[{last}].content",
                "extracted_value": answer,
                "extraction_method": trial.scorer or "custom",
                "is_terminal": True,
            }
        ],
        "token_usage": _usage(told),
        "performance": {"latency_ms": trial.latency_ms, "time_to_first_token_ms": trial.first_token_ms},
        "error": None,
        "metadata": {"trial_id": trial.trial_id, "repeat": str(trial.repeat), "condition": trial.condition},
    }


def _messages(told: Told) -> list[Document]:
    chat = told.chat.as_dicts() if told.chat is not None else [{"role": "user", "content": told.case.input}]
    spoken: list[Document] = [message for message in chat if message["role"] != "system"]
    for name, call in tool_calls(told):
        made = {"id": name, "name": call["tool"], "arguments": _arguments(call.get("arguments"))}
        spoken.append({"role": "assistant", "content": None, "tool_calls": [made]})
        spoken.append({"role": "tool", "content": _text(call.get("result")), "tool_call_id": [name]})
    spoken.append({"role": "assistant", "content": told.trial.answer, "reasoning_trace": told.trial.reasoning})
    return [{"turn_idx": number, **message} for number, message in enumerate(spoken)]


def _arguments(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    return {str(k): _text(v) for k, v in value.items()} if isinstance(value, dict) else {"arguments": _text(value)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()


def _usage(told: Told) -> Document | None:
    trial = told.trial
    if trial.prompt_tokens is None or trial.completion_tokens is None:
        return None
    return {
        "input_tokens": trial.prompt_tokens,
        "output_tokens": trial.completion_tokens,
        "total_tokens": trial.prompt_tokens + trial.completion_tokens,
        "input_tokens_cache_read": trial.cache_read_tokens,
        "input_tokens_cache_write": trial.cache_write_tokens,
        "reasoning_tokens": trial.reasoning_tokens,
    }
