"""The rows of variables that tests have, and which of them is the question of a case."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

from fairtrial.tracks.interchange.importers._promptfoo.assertion import text_of
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Notes
from fairtrial.tracks.interchange.importers._promptfoo.prompts import Prompt
from fairtrial.tracks.interchange.importers._promptfoo.tests import Test

_QUESTIONS = (
    "input",
    "question",
    "q",
    "query",
    "prompt",
    "message",
    "user_input",
    "text",
    "problem_text",
    "topic",
    "task",
    "body",
)
INSTRUCTIONS = "instructions"  # the variable with what a simulated user is told
_HELLO = "Hello."  # what a simulated user says first
_PLAIN = r"\{{\{{(-?)\s*{}\s*(-?)\}}\}}"
_TAG = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)


class VariableRow(NamedTuple):
    """One set of variables of one test."""

    number: int
    variant: int
    values: dict[str, Any]
    test: Test
    given: dict[str, Any]  # the variables as the test has them, for its assertions
    turns: tuple[str, ...] = ()
    attach: tuple[Any, ...] = ()

    @property
    def where(self) -> str:
        """Where it is, for messages."""
        return f"test {self.number}"


PromptsAndRows = tuple[dict[str, Prompt], list[VariableRow]]


def note_blank(name: str, rows: list[VariableRow], notes: Notes) -> bool:
    """Note the tests in which a name has no value; return whether there are any."""
    lacking = dict.fromkeys(row.where for row in rows if name not in row.values)
    if lacking:
        places = ", ".join(list(lacking)[:3])
        notes.differs(f"`{name}` has no value in {places}: it is blank, as in promptfoo; give it one under `vars`")
    return bool(lacking)


def without_problem(prompts: dict[str, Prompt], rows: list[VariableRow]) -> PromptsAndRows:
    """Rename the variable `problem`, which is another name of the `input` in templates here."""
    if not any("problem" in row.values for row in rows):
        return prompts, rows
    change = partial(_TAG.sub, lambda match: re.sub(r"(?<![.\w'\"])problem\b", "problem_text", match[0]))
    renamed = {label: prompt.changed(change) for label, prompt in prompts.items()}
    named = {"problem": "problem_text"}
    return renamed, [row._replace(values={named.get(k, k): v for k, v in row.values.items()}) for row in rows]


def as_conversations(prompts: dict[str, Prompt], rows: list[VariableRow]) -> PromptsAndRows:
    """Return prompts as what an agent gets before it talks to a simulated user, who begins."""
    said = ("user", "{{ input }}")
    made = {
        label: prompt
        if prompt.function
        else prompt._replace(chat=(*(prompt.chat or (("system", prompt.text),)), said), text="")
        for label, prompt in prompts.items()
    }
    return made, [row._replace(values={**row.values, "input": _HELLO}) for row in rows]


def with_affixes(prompts: dict[str, Prompt], rows: list[VariableRow], defaults: dict[str, Any]) -> PromptsAndRows:
    """Write texts before and after the prompt of single tests as variables."""
    for key in ("prefix", "suffix"):
        if not any((row.test.get("options") or {}).get(key) for row in rows):
            continue
        defaults[key] = ""
        mark = f"{{{{ {key} }}}}"
        prompts = {label: _affixed(prompt, mark, first=key == "prefix") for label, prompt in prompts.items()}
        rows = [
            row._replace(values={**row.values, key: text})
            if (text := (row.test.get("options") or {}).get(key))
            else row
            for row in rows
        ]
    return prompts, rows


def _affixed(prompt: Prompt, mark: str, *, first: bool) -> Prompt:
    """Return a prompt with a mark before or after it; of a chat, the last message."""
    if not prompt.chat:
        return prompt._replace(text=mark + prompt.text if first else prompt.text + mark)
    *before, (role, last) = prompt.chat
    return prompt._replace(chat=(*before, (role, mark + last if first else last + mark)))


def with_input(
    prompts: dict[str, Prompt], rows: list[VariableRow], *, keep: bool, notes: Notes, talking: bool = False
) -> tuple[dict[str, Prompt], list[VariableRow], list[str]]:
    """Choose what the `input` of the cases is: the variable that is the question, else the prompt itself."""
    used = {name for prompt in prompts.values() for name in prompt.names}
    if talking or any(row.turns for row in rows):
        return prompts, rows, [_HELLO if talking else row.turns[-1] for row in rows]
    if len(prompts) == 1 and not used:
        (only,) = prompts.values()
        if not only.chat and not only.function:
            return {}, rows, [only.text for _ in rows]
    name = _question(used, prompts, rows)
    if name is None:
        return prompts, rows, [str(row.test.get("description") or row.where) for row in rows]
    inputs = [text_of(row.values.get(name, "")) for row in rows]
    note_blank(name, rows, notes)
    if name == "input":
        return prompts, rows, inputs
    plain = re.compile(_PLAIN.format(re.escape(name)))
    texts = [text for prompt in prompts.values() for text in prompt.texts]
    if (
        keep
        or "input" in used
        or any(re.search(rf"\b{re.escape(name)}\b", " ".join(_TAG.findall(plain.sub("", text)))) for text in texts)
    ):
        return prompts, rows, inputs  # it is used in other ways too, so it stays a variable as well
    renamed = {
        label: prompt.changed(lambda text: plain.sub(r"{{\1 input \2}}", text)) for label, prompt in prompts.items()
    }
    rows = [row._replace(values={key: value for key, value in row.values.items() if key != name}) for row in rows]
    return renamed, rows, inputs


def _question(used: set[str], prompts: dict[str, Prompt], rows: list[VariableRow]) -> str | None:
    """Return the variable that is most likely the question: by its name, else the last one that differs."""
    there = [name for name in used if any(name in row.values for row in rows)]
    if not there:
        return None
    differing = [name for name in there if len({repr(row.values.get(name)) for row in rows}) > 1]
    likely = differing or there
    for name in _QUESTIONS:
        if name in likely:
            return name
    text = " ".join(text for prompt in prompts.values() for text in prompt.texts)
    return max(
        likely, key=lambda name: max((m.start() for m in re.finditer(rf"\b{re.escape(name)}\b", text)), default=-1)
    )


def written_prompts(prompts: dict[str, Prompt], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the prompts as they are in the suite; none if the only one is the case itself."""
    if len(prompts) == 1:
        (only,) = prompts.values()
        if not only.chat and not only.function and re.fullmatch(r"\{\{-?\s*input\s*-?\}\}", only.text.strip()):
            return {}
    written: dict[str, Any] = {}
    for number, (label, prompt) in enumerate(prompts.items(), 1):
        if prompt.function:
            written[label] = {"python": prompt.function}
        elif not prompt.names:  # it says the same to every case: prompts must have something to fill in
            name = f"prompt_{number}"
            *before, (role, last) = prompt.chat or (("user", prompt.text),)
            defaults[name] = last
            mark = f"{{{{ {name} }}}}"
            chat = [*({"role": r, "content": c} for r, c in before), {"role": role, "content": mark}]
            written[label] = chat if before else mark
        elif prompt.chat:
            written[label] = [{"role": role, "content": content} for role, content in prompt.chat]
        else:
            written[label] = prompt.text
    return written


# fmt: skip
