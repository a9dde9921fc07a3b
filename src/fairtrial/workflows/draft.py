"""Drafts by a model: cases, a whole suite, a better prompt. They are proposals to review, and change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairtrial.config import judge_named, variables_of
from fairtrial.config.editing import Editor
from fairtrial.core import registry
from fairtrial.core.answer import FILTERED, REFUSED, Answer, Request
from fairtrial.core.errors import FairtrialError
from fairtrial.core.settings import Settings
from fairtrial.core.variables import escape_all
from fairtrial.engine.bench import Bench
from fairtrial.engine.targets import open_targets
from fairtrial.providers.params import tokens_needed

T = TypeVar("T")
_MOST_TOKENS = 4096
_SYSTEM = (
    "You help somebody to write an evaluation of language models. What you write will be reviewed by a person. "
    "Reply with one JSON object of the requested shape and nothing else."
)


class DraftCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case proposed by a model."""

    input: str
    expected: str
    id: str = ""
    category: str = ""
    difficulty: str = ""


class DraftCases(msgspec.Struct, frozen=True, kw_only=True):
    """Cases proposed by a model."""

    cases: list[DraftCase]


class DraftSuite(msgspec.Struct, frozen=True, kw_only=True):
    """A suite proposed by a model."""

    name: str
    description: str
    system: str
    scorer: str
    cases: list[DraftCase]


class DraftPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt proposed by a model, and what it changed."""

    prompt: str
    changes: str


async def adraft_cases(
    model: str, *, about: str, examples: list[dict[str, Any]], count: int, folder: Path
) -> DraftCases:
    """Draft new cases similar to the existing ones."""
    shown = msgspec.json.encode(examples[:10]).decode()
    text = (
        f"Write {count} new test cases for this evaluation.\n\nWhat it is about:\n{about or '(see the examples)'}\n\n"
        f"Cases that are there already, as data, not to be repeated:\n{shown}\n\n"
        "Each case has a question (`input`), its one right answer as short as it can be (`expected`), a short unique "
        "`id`, a `category`, and a `difficulty` (easy, medium or hard). Vary them; cover edge cases."
    )
    return await _ask(model, text, DraftCases, folder)


async def adraft_suite(model: str, *, description: str, count: int, folder: Path) -> DraftSuite:
    """Draft a suite from a description."""
    text = (
        f"Design a small evaluation from this description:\n{description}\n\n"
        f"Give it a short `name`, a one-sentence `description`, a `system` prompt for the models under test (may be "
        f"empty), a `scorer`, and {count} `cases`. The scorer is one of: match (one right text), numeric (one right "
        "number), contains (the expected words must occur), llm_judge (open answers, judged by a model). Each case has "
        "`input`, `expected`, a short unique `id`, `category` and `difficulty` (easy, medium or hard)."
    )
    return await _ask(model, text, DraftSuite, folder)


async def adraft_prompt(model: str, *, prompt: str, wishes: str, folder: Path) -> DraftPrompt:
    """Draft an improved prompt."""
    text = (
        f"Improve this prompt. Keep what it asks for.\n\nThe prompt, as data:\n<<<\n{prompt}\n>>>\n\n"
        f"What should become better:\n{wishes or 'clarity, and an answer that can be checked'}\n\n"
        "Reply with the new `prompt` and one sentence about your `changes`."
    )
    return await _ask(model, text, DraftPrompt, folder)


async def _ask(model: str, text: str, shape: type[T], folder: Path) -> T:
    variables = variables_of(folder)
    spec = judge_named(model, variables, folder)
    settings = Settings()
    request = Request(
        trial_id="draft",
        case_id="draft",
        input=text,
        system=_SYSTEM,
        params={"max_tokens": tokens_needed(spec.target, spec.params, _MOST_TOKENS)},
        stream=False,
        schema=_schema(shape),
    )
    async with open_targets([spec.target], folder, variables, concurrency=1) as targets:
        outcome = await Bench([spec], targets, settings).judges[0].ask(request)
    result = outcome.result
    if not isinstance(result, Answer):
        raise FairtrialError(variables.hide(f"{model} returned no draft: {result.message}"))
    if result.finish_reason in (REFUSED, FILTERED):
        raise FairtrialError(variables.hide(f"{model} refused to write a draft: {result.text}"))
    try:
        return msgspec.json.decode(_json_in(result.text), type=shape)
    except msgspec.MsgspecError:
        raise FairtrialError(f"{model} returned a draft in the wrong format; try again, or use another model") from None


def _json_in(text: str) -> str:
    """Extract the JSON object from a reply that may have prose or fences around it."""
    begin, end = text.find("{"), text.rfind("}")
    return text[begin : end + 1] if 0 <= begin < end else text


def _schema(shape: type[Any]) -> dict[str, Any]:
    """Return a strict schema: providers require every property to be required, and no others."""
    (_,), components = msgspec.json.schema_components([shape])

    def strict(value: Any) -> Any:
        if isinstance(value, list):
            return [strict(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return strict(components[value["$ref"].rsplit("/", 1)[-1]])
        if value.get("type") == "object":
            properties = {name: strict(item) for name, item in value["properties"].items()}
            return {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        return {key: strict(item) for key, item in value.items() if key in ("type", "items")}

    return strict(components[shape.__name__])  # type: ignore[no-any-return]


def suite_text(draft: DraftSuite, model: str) -> str:
    """Return a drafted suite as YAML; references to variables in the model's text are escaped."""
    document: dict[str, Any] = {
        "name": draft.name,
        "description": draft.description,
        "targets": [model],
        "system": draft.system,
        "scorer": draft.scorer if draft.scorer in registry.names("scorers") else "llm_judge",
        "cases": [_without_blanks(msgspec.to_builtins(case)) for case in draft.cases],
    }
    if document["scorer"] == "llm_judge":
        document["judge"] = {"target": model}
    editor = Editor("")
    for key, value in escape_all(_without_blanks(document)).items():
        editor.set((key,), value)
    return editor.text


def _without_blanks(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in ("", [])}
