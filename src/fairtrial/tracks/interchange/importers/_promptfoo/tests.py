"""The tests of a configuration: inline, in files, in tables, and from scenarios, each merged with the default test."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.suites import read_text
from fairtrial.tables.hub import HubSource, fetch
from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX, load
from fairtrial.tracks.interchange.importers._promptfoo.runtime import load as load_function
from fairtrial.tracks.interchange.importers._promptfoo.runtime import node

Test = dict[str, Any]
_HUB = "huggingface://datasets/"
_PROGRAM = re.compile(r"(.+\.(?:py|[mc]?[jt]s))(?::([\w.]+))?")
_ASSERTION = re.compile(r"(not-)?([a-z][a-z-]*)(?:\(\s*(-?[\d.]+)\s*\))?\s*(?::\s*(.*))?", re.DOTALL)
_SHORT = {"fn": "javascript", "eval": "javascript", "grade": "llm-rubric", "javascript": "javascript"}
_KINDS = {
    "equals", "contains", "icontains", "contains-any", "contains-all", "icontains-any", "icontains-all", "starts-with",
    "ends-with", "regex", "is-json", "contains-json", "is-html", "contains-html", "is-sql", "contains-sql", "is-xml",
    "contains-xml", "javascript", "python", "similar", "levenshtein", "rouge-n", "bleu", "gleu", "meteor", "llm-rubric",
    "model-graded-closedqa", "factuality", "model-graded-factuality", "answer-relevance", "context-recall",
    "context-relevance", "context-faithfulness", "latency", "cost", "perplexity", "perplexity-score", "moderation",
    "webhook", "is-refusal", "word-count", "finish-reason", "guardrails", "g-eval", "classifier", "select-best",
    "max-score", "is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call", "pi",
    "search-rubric", "tool-call-f1", "conversation-relevance", *_SHORT,
}  # fmt: skip
_ALONE = {
    "is-json", "contains-json", "is-html", "contains-html", "is-xml", "contains-xml", "is-sql", "contains-sql",
    "is-refusal", "guardrails",
}  # fmt: skip


def read(at: Conversion, config: dict[str, Any]) -> list[Test]:
    """Return every test, merged with what the configuration says for all."""
    default = _default(at, config.get("defaultTest"))
    tests = [merged(default, test) for test in _tests(at, config.get("tests"))]
    for scenario in _loaded(at, config.get("scenarios")):
        if isinstance(scenario, dict):
            tests += _scenario(at, scenario, default)
    if not tests and not config.get("tests") and not config.get("scenarios"):
        tests = [merged(default, {})]
    return tests


def _default(at: Conversion, value: Any) -> Test:
    if isinstance(value, str):
        with at.notes.missing(f"defaultTest {value}"):
            value = at.folder.data(value)
    return value if isinstance(value, dict) else {}


def _scenario(at: Conversion, scenario: Test, default: Test) -> Iterator[Test]:
    shared = list(_tests(at, scenario.get("config"))) or [{}]
    for data in shared:
        for test in list(_tests(at, scenario.get("tests"))) or [{}]:
            yield merged(merged(default, data), test)


def _loaded(at: Conversion, value: Any) -> list[Any]:
    found: list[Any] = []
    for item in value if isinstance(value, list) else [value] if value else []:
        if isinstance(item, str):
            with at.notes.missing(f"scenarios {item}"):
                found += _listed(at.folder.data(item))
        else:
            found.append(item)
    return found


def _tests(at: Conversion, value: Any) -> Iterator[Test]:
    if value is None:
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str):
            yield from _file(at, item)
        elif isinstance(item, dict) and isinstance(item.get("path"), str) and "vars" not in item:
            yield from _file(at, item["path"], item.get("config"))
        elif isinstance(item, dict):
            yield item
        else:
            at.notes.lost(f"test {item!r}"[:80], "a test is a mapping with `vars` and `assert`")


def _file(at: Conversion, name: str, config: Any = None) -> Iterator[Test]:
    if name.startswith(_HUB):
        yield from _on_hub(at, name)
    elif re.match(r"https?:", name):
        at.notes.lost(f"tests {name}", "download the rows as a file and import again")
    elif program := _PROGRAM.fullmatch(name.removeprefix(PREFIX)):
        yield from _made(at, program[1], program[2] or "", config)
    else:
        paths: list[Path] = []
        with at.notes.missing(f"tests {name}"):
            paths = at.folder.find(name)
        for path in paths:
            yield from _in_file(at, path)


def _on_hub(at: Conversion, address: str) -> Iterator[Test]:
    """Yield the rows of a dataset of the Hugging Face Hub, whose columns are variables."""
    name, _, query = address.removeprefix(_HUB).partition("?")
    options = dict(parse_qsl(query))
    limit = options.get("limit", "")
    source = HubSource(
        name=f"hf://{name}",
        config=options.get("subset") or options.get("config"),
        split=options.get("split", "test"),
        head=int(limit) if limit.isdecimal() else None,
    )
    try:
        copy = fetch(source, at.folder.path)
    except FairtrialError as error:
        at.notes.lost(f"tests {address}", f"{error}; or write `dataset: {{path: hf://{name}}}` by hand")
        return
    for row in load(copy.file):
        yield {"vars": row}


def _made(at: Conversion, name: str, function: str, config: Any) -> Iterator[Test]:
    """Return the tests that a program makes, if it may be run."""
    if not at.run_code:
        advice = "a program: import with --run-code to run it, or write the tests that it makes into a file"
        at.notes.lost(f"tests {name}", advice)
        return
    given = [config] if config is not None else []
    try:
        path = str(at.folder.find(name)[0].resolve())
        tests = (
            load_function(path, function or "generate_tests")(*given)
            if path.endswith(".py")
            else node(path, function, given)
        )
    except (Exception, SystemExit) as error:  # code of the user's may raise anything
        at.notes.lost(f"tests {name}", f"running it failed: {type(error).__name__}: {error}")
        return
    yield from _tests(at, tests)


def _in_file(at: Conversion, path: Path) -> Iterator[Test]:
    if path.suffix == ".csv":
        yield from _table(at, path)
    elif path.suffix in (".json", ".jsonl", ".yaml", ".yml"):
        loaded: Any = []
        with at.notes.missing(f"tests {path.name}", advice=""):
            loaded = load(path)
        for item in loaded if isinstance(loaded, list) else [loaded]:
            if isinstance(item, dict):
                # A mapping without any key of a test is a row of variables.
                yield item if {"vars", "assert", "options", "description"} & set(item) else {"vars": item}
            elif isinstance(item, str):
                yield from _file(at, item)
    else:
        at.notes.lost(f"tests {path.name}", "save the rows as .csv, .json, .jsonl or .yaml and import again")


def _table(at: Conversion, path: Path) -> Iterator[Test]:
    """Read tests from a table with promptfoo's columns: `__expected`, `__prefix`, `__description` and so on."""
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    for row in rows:
        test: Test = {"vars": {}, "assert": [], "options": {}, "metadata": {}}
        for key, value in row.items():
            if key is not None and isinstance(value, str):
                _cell(at, test, key.strip(), value, path.name)
        _configure(test)
        yield {key: value for key, value in test.items() if value or key == "vars"}


def _cell(at: Conversion, test: Test, key: str, value: str, file: str) -> None:
    if not key.startswith("__"):
        test["vars"][key] = value
    elif not value.strip():
        return
    elif re.fullmatch(r"__expected\d*", key):
        test["assert"].append(short_form(value.strip()))
    elif key in ("__prefix", "__suffix"):
        test["options"][key[2:]] = value
    elif key in ("__description", "__threshold", "__metric"):
        test[key[2:]] = value
    elif key.startswith("__metadata:"):
        name = key.removeprefix("__metadata:")
        listed = [part.strip() for part in re.split(r"(?<!\\),", value)]
        test["metadata"][name.removesuffix("[]")] = listed if name.endswith("[]") else value
    elif match := re.fullmatch(r"__config:(?:__expected(\d*):)?(\w+)", key):
        test.setdefault("config", {})[int(match[1] or 1), match[2]] = value
    else:
        at.notes.lost(f"column `{key}` of {file}", "set it by hand, if fairtrial has it")


def _configure(test: Test) -> None:
    """Apply the columns that are about the assertions of the row."""
    for (number, key), value in test.pop("config", {}).items():
        if number <= len(test["assert"]):
            test["assert"][number - 1][key] = float(value) if key in ("threshold", "weight") else value
    if metric := test.pop("metric", None):
        for check in test["assert"]:
            check.setdefault("metric", metric)


def short_form(text: str) -> Test:
    """Parse the short form of an assertion in tables: `contains: x`, `similar(0.8): x`, or plain text for equals."""
    if text.startswith(PREFIX):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    match = _ASSERTION.fullmatch(text)
    kind = match[2] if match else ""
    if not match or kind not in _KINDS:
        return {"type": "equals", "value": text}
    check: Test = {"type": (match[1] or "") + _SHORT.get(kind, kind)}
    if match[3]:
        check["threshold"] = float(match[3])
    if match[4] is not None and match[4].strip():
        check["value"] = match[4].strip()
    elif match[4] is None and not match[3] and kind not in _ALONE:
        return {"type": "equals", "value": text}  # a word that happens to be the name of an assertion
    return check


def merged(default: Test, test: Test) -> Test:
    """Return a test with what the default test says: its own values win, and assertions add up."""
    result = {**default, **test}
    for key in ("vars", "metadata", "options"):
        own, base = test.get(key) or {}, default.get(key) or {}
        if isinstance(own, dict) and isinstance(base, dict):
            result[key] = {**base, **own}
    skip = isinstance(test.get("options"), dict) and test["options"].get("disableDefaultAsserts")
    result["assert"] = [*([] if skip else _listed(default.get("assert"))), *_listed(test.get("assert"))]
    return result


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
