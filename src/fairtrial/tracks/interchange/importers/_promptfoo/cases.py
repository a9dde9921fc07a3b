"""Prompts and tests as the `prompts`, `vars` and `cases` of a suite."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairtrial.foreign.suites import FileRef
from fairtrial.text.printable import name_problem
from fairtrial.tracks.interchange.importers._promptfoo import transforms
from fairtrial.tracks.interchange.importers._promptfoo.assertions import SCORING, Assertions
from fairtrial.tracks.interchange.importers._promptfoo.checks_by_judges import JUDGED
from fairtrial.tracks.interchange.importers._promptfoo.chosen_arms import KEYS as ARMS
from fairtrial.tracks.interchange.importers._promptfoo.chosen_arms import ChosenArms
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion, dict_of
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, MissingFileError, image_in
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import filled, filled_or_same
from fairtrial.tracks.interchange.importers._promptfoo.prompts import Prompt, chat_of
from fairtrial.tracks.interchange.importers._promptfoo.rows import (
    INSTRUCTIONS,
    PromptsAndRows,
    VariableRow,
    as_conversations,
    note_blank,
    with_affixes,
    with_input,
    without_problem,
    written_prompts,
)
from fairtrial.tracks.interchange.importers._promptfoo.runtime import javascript
from fairtrial.tracks.interchange.importers._promptfoo.tests import Test

_TEST_KEYS = {"vars", "assert", "description", "options", "threshold", "metadata", *SCORING, *ARMS}
_OPTIONS = {"provider", "transform", "prefix", "suffix", "repeat", "disableVarExpansion", "postprocess", "runSerially",
            "disableConversationMemory", "disableDefaultAsserts", "rubricPrompt",
            "timeout", "providers", "transformVars", "factuality"}  # fmt: skip
_ADVICE = {"storeOutputAs": "cases do not build on each other's answers: write such cases as `turns`"}
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
_WHOLE = re.compile(r"\{\{-?\s*(\w+)\s*(?:\|\s*(?:tojson|safe)\s*)*-?\}\}")
_MAX_ID = 80


class Cases:
    """Builds what a suite has of prompts and tests; `graders` has the models that mark answers."""

    def __init__(
        self,
        at: Conversion,
        assertions: Assertions,
        arms: ChosenArms,
        *,
        keep_all: bool = False,  # whether targets want all variables
        simulated: bool = False,  # whether a model plays the user, who is told the instructions
    ) -> None:
        self._simulated, self._needed = simulated, {INSTRUCTIONS} if simulated else set()
        self._at, self._folder, self._notes, self._environment = at, at.folder, at.notes, at.environment
        self._assertions, self._arms, self._keep_all = assertions, arms, keep_all
        self.files: dict[str, bytes] = {}  # images that stand in variables, by name
        self.programs: dict[str, Path] = {}  # that make the value of a variable, by how tests refer to them

    def build(self, prompts: dict[str, Prompt], tests: list[Test]) -> dict[str, Any]:
        """Return the keys `prompts`, `vars`, `extract` and `cases` of the suite."""
        rows = [row for number, test in enumerate(tests, 1) for row in self._rows(test, number)]
        if self._simulated:
            prompts, rows = as_conversations(prompts, rows)
        if self.programs:
            prompts = {label: self._computed(prompt) for label, prompt in prompts.items()}
        prompts, rows = without_problem(prompts, rows)
        prompts, rows = self._chats_in_variables(prompts, rows)
        rows = self._attached(prompts, rows)
        prompts, rows = self._conversations(prompts, rows)
        defaults: dict[str, Any] = {}
        prompts, rows = with_affixes(prompts, rows, defaults)
        functions = any(prompt.function for prompt in prompts.values())
        keep = functions or self._keep_all or any(_uses_variables(row.test) for row in rows)
        prompts, rows, inputs = with_input(prompts, rows, keep=keep, notes=self._notes, talking=self._simulated)
        self._blanks(prompts, rows, defaults)
        written = written_prompts(prompts, defaults)
        cases = [self._case(row, text, prompts, keep) for row, text in zip(rows, inputs, strict=True)]
        _name_cases(cases)
        body: dict[str, Any] = {**({"prompts": written} if written else {}), "cases": cases}
        if defaults:
            body["vars"] = defaults
        extracts = [case.get("extract") for case in cases]
        if extracts and extracts[0] and all(extract == extracts[0] for extract in extracts):
            body["extract"] = extracts[0]
            for case in cases:
                del case["extract"]
        return body

    def _computed(self, prompt: Prompt) -> Prompt:
        """Return a prompt that a function makes, for the values of some variables are not known before."""
        if prompt.function:
            return prompt
        chat = [{"role": role, "content": content} for role, content in prompt.chat]
        return prompt._replace(
            function=self._at.code.computed_prompt(chat or prompt.text, self.programs), chat=(), text=""
        )

    # -- variables ---------------------------------------------------------------------------------

    def _rows(self, test: Test, number: int) -> Iterator[VariableRow]:
        """Yield one row per combination of a test's variables; an unreadable test is left out and reported."""
        where = f"test {number}"
        self._note_keys(test, where)
        variables: Any = test.get("vars") or {}
        listed = isinstance(variables, list) and bool(variables) and all(isinstance(v, str) for v in variables)
        if isinstance(variables, str) or listed:
            variables = self._variables_in_files(variables if listed else [str(variables)])
        if not isinstance(variables, dict):
            self._notes.lost(f"{where}, left out", "its `vars` must be a mapping, or files with one")
            return
        options = dict_of(test.get("options"))
        lists: dict[str, list[Any]] = {}
        attach: dict[str, Any] = {}
        for name, value in variables.items():
            # As in promptfoo, only a list that begins with a text stands for several values.
            listed = isinstance(value, list) and bool(value) and isinstance(value[0], str)
            expand = listed and not options.get("disableVarExpansion")
            try:
                lists[str(name)] = [self._value(item, attach, str(name)) for item in (value if expand else [value])]
                if isinstance(value, str) and "*" in value and value.startswith(PREFIX):
                    lists[str(name)] = [path.read_text("utf-8") for path in self._folder.find(value)]
            except (MissingFileError, UnicodeDecodeError) as error:
                self._notes.lost(f"{where}, left out", f"`{name}`: {error}")
                return
        for variant, items in enumerate(itertools.product(*lists.values())):
            row = self._transformed(dict(zip(lists, items, strict=True)), options, where)
            values = self._nested(row)
            yield VariableRow(number, variant, values, test, values, attach=tuple(attach.items()))

    def _transformed(self, values: dict[str, Any], options: dict[str, Any], where: str) -> dict[str, Any]:
        """Return variables as a `transformVars` in JavaScript leaves them; it is run in QuickJS, without any access."""
        code = options.get("transformVars")
        if not code:
            return values
        if isinstance(code, str) and not code.startswith(PREFIX) and "context" not in code:
            body = code if "return" in code else f"return ({code});"
            with suppress(Exception):  # code of the user's, or QuickJS is not installed
                made = javascript(f"(vars, context) => {{ {body} }}", values)
                if isinstance(made, dict):
                    return made
        self._notes.lost("`transformVars`", "write the variables as the function leaves them", where)
        return values

    def _variables_in_files(self, names: list[str]) -> dict[str, Any] | None:
        try:
            loaded = [self._folder.data(name) for name in names]
        except MissingFileError:
            return None
        whole = all(isinstance(one, dict) for one in loaded)
        return {key: value for one in loaded for key, value in one.items()} if whole else None

    def _value(self, value: Any, attach: dict[str, Any], name: str) -> Any:
        """Return a variable's value, from its file if it is in one; raise MissingFileError if it cannot be read."""
        if not isinstance(value, str) or not value.startswith(PREFIX):
            return value
        path = self._folder.find(value)[0]
        if path.suffix in _IMAGES:
            attach[name] = FileRef(path)
            return ""
        if path.suffix in (".py", ".js", ".mjs", ".cjs", ".ts"):
            self.programs[value] = path
            return value
        if path.suffix in (".json", ".yaml", ".yml"):
            return json.dumps(self._folder.data(value), ensure_ascii=False, separators=(",", ":"))
        try:
            text = self._folder.text(value)
        except MissingFileError:
            text = "\0"
        if "\0" in text:
            raise MissingFileError(f"{path.name} is not a text file")
        return text.rstrip("\n") if path.suffix == ".txt" else text

    def _nested(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return variables with other variables in them filled in, as promptfoo does."""
        for _ in range(2):
            values = {
                name: filled_or_same(value, {k: v for k, v in values.items() if k != name}, self._environment)
                if isinstance(value, str) and "{{" in value else value
                for name, value in values.items()
            }  # fmt: skip
        return values

    def _note_keys(self, test: Test, where: str) -> None:
        options = test.get("options") or {}
        for key in sorted((set(test) - _TEST_KEYS) | (set(options) - _OPTIONS), key=str):
            advice = _ADVICE.get(str(key), "set it by hand, if fairtrial has it")
            self._notes.lost(f"`{key}` of a test", advice, where)

    # -- chats, images, conversations --------------------------------------------------------------

    def _chats_in_variables(self, prompts: dict[str, Prompt], rows: list[VariableRow]) -> PromptsAndRows:
        """Take apart variables that hold whole chats, if a prompt is nothing but one of them."""
        made: dict[str, Prompt] = {}
        for label, prompt in prompts.items():
            whole = _WHOLE.fullmatch(prompt.text.strip()) if not prompt.chat else None
            chats = [chat_of(row.values.get(whole[1])) for row in rows] if whole else []
            if not whole or not chats or not all(chats):
                made[label] = prompt
                continue
            name = whole[1]
            shapes = {tuple(str(message.get("role")) for message in chat or []) for chat in chats}
            usable = len(shapes) == 1 and all(isinstance(m.get("content"), str) for chat in chats for m in chat or [])
            roles = next(iter(shapes))
            first = next((i for i, role in enumerate(roles) if role != "system"), len(roles))
            known = set(roles) <= {"system", "user", "assistant"} and "system" not in roles[first:]
            if not usable or not known or roles[-1] != "user":
                advice = f"the chats in `{name}` differ in their roles; write one prompt for each kind, or `turns`"
                self._notes.lost(f"prompt {label}", advice)
                continue
            names = [f"{name}_{i}" for i in range(1, len(roles) + 1)]
            rows = [
                row._replace(values={**{k: v for k, v in row.values.items() if k != name},
                                     **{n: m["content"] for n, m in zip(names, chat or [], strict=True)}})
                for row, chat in zip(rows, chats, strict=True)
            ]  # fmt: skip
            made[label] = Prompt(chat=tuple((role, f"{{{{ {n} }}}}") for role, n in zip(roles, names, strict=True)))
        return made, rows

    def _attached(self, prompts: dict[str, Prompt], rows: list[VariableRow]) -> list[VariableRow]:
        wanted = {name for prompt in prompts.values() for name in prompt.attached}
        made = []
        for row in rows:
            files = dict(row.attach)
            for name in sorted(wanted - set(files)):
                value = row.values.get(name)
                if isinstance(value, str) and value.startswith(("http://", "https://")):
                    files[name] = value
                elif isinstance(value, str) and (image := image_in(value)):
                    files[name], self.files[image[0]] = image
                elif value:
                    advice = "save it as a file and list it under `attach`"
                    self._notes.lost(f"the image in `{name}`", advice, row.where)
            values = {name: value for name, value in row.values.items() if name not in files and name not in wanted}
            made.append(row._replace(values=values, attach=tuple(files.values())))
        return made

    def _conversations(self, prompts: dict[str, Prompt], rows: list[VariableRow]) -> PromptsAndRows:
        """Turn tests that go on from each other's answers into cases with several turns."""
        talking = [prompt for prompt in prompts.values() if prompt.conversation]
        if not talking:
            return prompts, rows
        template = talking[0].texts[-1]
        said: dict[str, list[str]] = {}
        made = []
        for row in rows:
            talk = str((row.test.get("metadata") or {}).get("conversationId", ""))
            said.setdefault(talk, []).append(filled(template, row.values, self._environment))
            made.append(row._replace(turns=tuple(said[talk])))
        self._notes.differs("tests with `_conversation` are cases with `turns`: each case asks its earlier turns again")
        for label, prompt in prompts.items():
            if prompt.conversation:
                prompts[label] = prompt.changed(lambda text: "{{ input }}" if text == template else text)
        return prompts, made

    def _blanks(self, prompts: dict[str, Prompt], rows: list[VariableRow], defaults: dict[str, Any]) -> None:
        """Give names that some tests lack a blank value, which is what promptfoo sends."""
        used = {name for prompt in prompts.values() for name in prompt.names} - {"input", "range"}
        for name in sorted(used - set(defaults)):
            if note_blank(name, rows, self._notes):
                defaults[name] = ""

    # -- cases -------------------------------------------------------------------------------------

    def _case(self, row: VariableRow, text: str, prompts: dict[str, Prompt], keep: bool) -> dict[str, Any]:
        test = row.test
        description = str(test.get("description") or "")
        suffix = f"-{row.variant}" if row.variant else ""
        named = description and len(description) <= _MAX_ID and name_problem(description) is None
        case: dict[str, Any] = {"id": f"{description if named else f'test-{row.number}'}{suffix}"}
        case |= {"turns": list(row.turns)} if len(row.turns) > 1 else {"input": text}
        if row.turns:
            case["cluster"] = str((test.get("metadata") or {}).get("conversationId") or "conversation")
        if row.attach:
            case["attach"] = list(row.attach)
        case |= self._arms.of(test, row.where)
        function = next((test[key] for key in SCORING if test.get(key)), None)
        scoring = self._assertions.scoring(_asserted(test), row.given, row.where, test.get("threshold"), function)
        needed = {name for prompt in prompts.values() for name in prompt.names} | self._needed
        needed |= {"context"} if "{{ context }}" in repr(scoring) else set()
        values = {**row.given, **row.values} if keep else row.values
        values = {name: value for name, value in values.items() if name != "input" and (keep or name in needed)}
        if "{{ context }}" in repr(scoring) and "context" not in values:
            values["context"] = row.given.get("context", "")
        if values:
            case["vars"] = values
        metadata = dict(dict_of(test.get("metadata")))
        if description and not named:
            metadata["description"] = description
        if metadata:
            case["metadata"] = metadata
        options = test.get("options") or {}
        if options.get("repeat"):
            case["repeats"] = int(options["repeat"])
        transform = options.get("transform") or options.get("postprocess")
        extract = transforms.extraction(self._at, transform, row.where) if transform else None
        if extract:
            case["extract"] = extract
        return case | (scoring or self._unchecked(row))

    def _unchecked(self, row: VariableRow) -> dict[str, Any]:
        """Return the keys of a case without a check: it is asked and shown, and counts for nothing."""
        if row.test.get("assert"):
            self._notes.lost("all assertions of a test", "it has `weight: 0` until you give it a scorer", row.where)
        else:
            self._notes.differs(
                "tests without an assertion are asked and shown, but have `weight: 0`: no answer is right or wrong"
            )
        return {"weight": 0, "scorer": {"type": "length", "min": 0}}


def _asserted(test: Test) -> list[Any]:
    """Return the assertions of a test, each with the `rubricPrompt` that the test has for all of them."""
    entries = test.get("assert") or []
    options = test.get("options") or {}
    shared = {"rubricPrompt": options["rubricPrompt"]} if options.get("rubricPrompt") else {}
    provider = options.get("provider") or options.get("providers")
    embedder = provider.get("embedding") if isinstance(provider, dict) else None
    by_kind: dict[str, dict[str, Any]] = {"similar": {"provider": embedder}} if embedder else {}
    if provider and _is_classifier(provider):
        by_kind["classifier"] = {"provider": provider}
    elif grader := _grader(provider):
        by_kind |= {kind: {"provider": grader} for kind in JUDGED}
    if options.get("factuality"):
        weights = {"factuality": options["factuality"]}
        for kind in ("factuality", "model-graded-factuality"):
            by_kind[kind] = {**by_kind.get(kind, {}), **weights}
    return [
        {**shared, **by_kind.get(str(entry.get("type")).removeprefix("not-"), {}), **entry}
        if isinstance(entry, dict)
        else entry
        for entry in (entries if isinstance(entries, list) else [entries])
    ]


def _grader(provider: Any) -> Any:
    """Return the model that grades, of the models that a test names for several purposes."""
    if isinstance(provider, dict) and "id" not in provider and ("text" in provider or "embedding" in provider):
        return provider.get("text")
    return provider


def _is_classifier(provider: Any) -> bool:
    """Return whether a model marks texts, and is not a judge."""
    name = str(provider.get("id") if isinstance(provider, dict) else provider)
    return bool(re.search(r":(?:text|token)-classification:", name))


def _name_cases(cases: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        if case["id"] in seen:
            case["id"] = f"{case['id']}-{number}"
        seen.add(case["id"])


def _uses_variables(test: Test) -> bool:
    """Return whether an assertion of a test is code, which may look at any variable."""
    return re.search("'type': '(?:not-)?(?:javascript|python)'", repr(test.get("assert"))) is not None
