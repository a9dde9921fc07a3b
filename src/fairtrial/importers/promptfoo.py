"""Import from `promptfoo`: prompts × providers × tests, with common assertions mapped to scorers."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.importers import NO_JUDGE, Imported, expecting, read_text, read_yaml

_KNOWN_KEYS = {"description", "prompts", "providers", "targets", "tests", "defaultTest", "$schema"}
_TEST_KEYS = {"vars", "assert", "description", "options", "threshold", "metadata", "provider"}
_PARAMS = {"temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop"}
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_UNFILLED = re.compile(r"\{\{|\{%")
_CORE = re.compile(r"\{\{.*\}\}", re.DOTALL)  # from the first variable to the last
# The part of a provider's name that selects an API, for the APIs supported here.
_APIS = {"openai": ("chat",), "anthropic": ("messages",), "ollama": ("chat", "completion"), "openrouter": ()}
_NO_MODELS = ("claude-agent-sdk", "codex-sdk", "chat", "messages", "responses")


class _Row(NamedTuple):
    """One set of variables of one test."""

    number: int
    variant: int
    variables: dict[str, str]
    test: dict[str, Any]


class Promptfoo:
    """Imports promptfooconfig.yaml files."""

    def read(self, file: Path) -> Imported:
        """Convert a promptfoo configuration into a suite."""
        with expecting(file, "a promptfoo configuration"):
            return self._read(file)

    def _read(self, file: Path) -> Imported:
        config = read_yaml(file)
        if not isinstance(config, dict) or not ("prompts" in config and ("tests" in config or "defaultTest" in config)):
            raise FairtrialError(f"{file} is not a promptfoo configuration: it needs `prompts` and `tests`")
        return _Reader(config, file.parent).read(file.stem)


class _Reader:
    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config, self.folder = config, folder
        self.findings: list[str] = [f"key `{key}`" for key in sorted(set(config) - _KNOWN_KEYS)]
        self.differences: list[str] = []
        self.judges: list[str] = []

    def read(self, name: str) -> Imported:
        suite: dict[str, Any] = {"name": self.config.get("description") or name, "targets": self.targets()}
        rows = [row for number, test in enumerate(self.tests(), 1) for row in self.rows(test, number)]
        prompts = self.named_prompts(_constants(rows))
        shared = _shared(list(prompts.values()))
        if shared is None:
            self._note(
                "the prompts as conditions: they use their variables in different ways, so each prompt has its own "
                "cases; the cases of one test share a `cluster`"
            )
            cases = [case for row in rows for label in prompts for case in self.case(row, prompts[label], label)]
        else:
            core, wordings = shared
            if len(prompts) > 1:
                suite["conditions"] = {n: {"prompt": escape(w)} for n, w in zip(prompts, wordings, strict=True)}
            cases = [case for row in rows for case in self.case(row, core)]
        suite["cases"] = cases
        if "llm_judge" in repr(cases):
            suite["judge"] = self.judges[0] if self.judges else NO_JUDGE
            if not self.judges:
                self.findings.append(f"the judge's model: replace `{NO_JUDGE}` under judge")
        return Imported(suite, self.findings, self.differences)

    def named_prompts(self, constants: dict[str, str]) -> dict[str, str]:
        """Return the prompts by name, with variables filled in that are the same in all tests."""
        prompts = [prompt for entry in _listed(self.config["prompts"]) for prompt in self.prompts(entry)]
        named: dict[str, str] = {}
        for number, (label, text) in enumerate(prompts, 1):
            name = label or f"prompt-{number}"
            if text.lstrip().startswith("[") and '"role"' in text:
                self.differences.append(f"{name} is a chat; it is sent as a single text")
            several = len(prompts) > 1  # a single prompt is filled in case by case
            named[name if name not in named else f"{name}-{number}"] = _fill(text, constants if several else {})
        return named

    def prompts(self, entry: Any) -> list[tuple[str, str]]:
        """Return (label, template) pairs of one entry; a file may hold several, separated by `---`."""
        if isinstance(entry, dict):
            text, label = entry.get("raw") or entry.get("id") or "", entry.get("label")
        else:
            text, label = str(entry), None
        path = self.folder / text.removeprefix("file://")
        if text.startswith("file://") or (len(text) < 200 and "\n" not in text and path.is_file()):
            if not path.is_file() or path.suffix not in (".txt", ".md", ""):
                self.findings.append(f"prompt {text}: only .txt and .md files can be read")
                return []
            parts = re.split(r"^---\s*$", read_text(path), flags=re.MULTILINE)
            return [(label or f"{path.name}-{i}", part.strip()) for i, part in enumerate(parts, 1) if part.strip()]
        return [(label or "", text)]

    def targets(self) -> list[Any]:
        entries = _listed(self.config.get("providers") or self.config.get("targets") or [])
        targets = [target for target in map(self.target, entries) if target]
        if not targets:
            self.findings.append("the providers: none is supported; replace `mock:echo` under targets")
        return targets or ["mock:echo"]

    def target(self, entry: Any) -> Any:
        config: dict[str, Any] = {}
        label = None
        if isinstance(entry, dict):
            if "id" not in entry:  # the form {openai:gpt-4o: {config: …}}
                name, inner = next(iter(entry.items()), ("", {}))
                entry = {"id": name, **(inner or {})}
            name = entry["id"]
            config, label = entry.get("config") or {}, entry.get("label")
            self.findings += [
                f"key `{key}` of provider {name}" for key in sorted(set(entry) - {"id", "config", "label"})
            ]
        else:
            name = str(entry)
        target = self.model(str(name))
        if target is None:
            self.findings.append(f"provider `{name}`: not supported")
            return None
        self.findings += [f"config `{key}` of provider {name}" for key in sorted(set(config) - _PARAMS)]
        params = {key: value for key, value in config.items() if key in _PARAMS}
        if not params and not label:
            return target
        return {"id": label or target, "target": target, **({"params": params} if params else {})}

    def model(self, name: str) -> str | None:
        """Convert a promptfoo provider into a target name; None if its API is not supported."""
        provider, _, rest = name.partition(":")
        kind, colon, model = rest.partition(":")
        if provider not in _APIS or not rest:
            return "mock:echo" if name == "echo" else None
        if kind in _APIS[provider]:
            return f"{provider}:{model}" if model else None
        if provider == "openai" and kind == "responses" and model:
            self.differences.append(f"{name} is called through the chat API, not the responses API")
            return f"openai:{model}"
        if provider in ("openai", "anthropic") and ((colon and kind != "ft") or rest in _NO_MODELS):
            return None  # embeddings, images, assistants, agents
        return None if kind in ("embedding", "embeddings") else f"{provider}:{rest}"

    def tests(self) -> list[dict[str, Any]]:
        default = self.config.get("defaultTest") or {}
        if isinstance(default, str):
            self.findings.append(f"defaultTest {default}")
            default = {}
        tests = self.config.get("tests") or [{}]
        entries = []
        for test in _listed(tests):
            if isinstance(test, str):
                entries += self.table(test)
            elif isinstance(test, dict):
                entries.append(test)
            else:
                self.findings.append(f"test {test!r}")
        return [_merged(default, test) for test in entries]

    def table(self, name: str) -> list[dict[str, Any]]:
        """Read tests from a CSV file, whose `__expected` columns hold assertions in short form."""
        path = self.folder / name.removeprefix("file://")
        if path.suffix != ".csv" or not path.is_file():
            self.findings.append(f"tests {name}: only .csv files can be read")
            return []
        tests = []
        for row in csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True):
            for key in sorted(key for key in row if key and key.startswith("__") and not key.startswith("__expected")):
                self._note(f"column `{key}` of {name}")
            checks = [_short(value) for key, value in row.items() if key and key.startswith("__expected") and value]
            variables = {key: value for key, value in row.items() if key and not key.startswith("__")}
            tests.append({"vars": variables, "assert": checks})
        return tests

    def _note(self, finding: str) -> None:
        if finding not in self.findings:
            self.findings.append(finding)

    def rows(self, test: dict[str, Any], number: int) -> Iterator[_Row]:
        """Yield one row per combination of a test's variables; an unreadable test is left out and reported."""
        for key in sorted(set(test) - _TEST_KEYS):
            self.findings.append(f"key `{key}` of test {number}")
        for key in ("threshold", "provider"):
            if test.get(key):
                self.findings.append(f"`{key}` of test {number}")
        options = test.get("options") or {}
        self.grader(options.get("provider") if isinstance(options, dict) else None)
        for key in sorted(set(options) - {"provider"}):
            self._note(f"`{key}` of the options of test {number}")
        variables = test.get("vars") or {}
        if not isinstance(variables, dict):
            self.findings.append(f"test {number}, left out: its `vars` are {variables!r}")
            return
        lists = {key: [self.value(item) for item in _listed(value)] for key, value in variables.items()}
        unreadable = sorted(key for key, items in lists.items() if None in items)
        if unreadable:
            self.findings.append(f"test {number}, left out: the file of `{unreadable[0]}` cannot be read")
            return
        for variant, values in enumerate(itertools.product(*lists.values())):
            yield _Row(number, variant, dict(zip(lists, map(str, values), strict=True)), test)

    def value(self, value: Any) -> str | None:
        """Return a variable's value, read from its file if it has one; None if the file cannot be read."""
        if not isinstance(value, str):
            return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
        if not value.startswith("file://"):
            return value
        path = self.folder / value.removeprefix("file://")
        return read_text(path) if path.suffix in (".txt", ".md", ".json", ".csv") and path.is_file() else None

    def grader(self, provider: Any) -> None:
        """Add the grading model to the judges, if the configuration has one."""
        name = provider.get("id") if isinstance(provider, dict) else provider
        if not name:
            return
        model = self.model(str(name))
        if model is None:
            self._note(f"the judge `{name}`: not supported")
        elif model not in self.judges:
            self.judges.append(model)

    def case(self, row: _Row, template: str, label: str = "") -> Iterator[dict[str, Any]]:
        """Yield the case of a template and a row; nothing if a part of it cannot be filled in."""
        text = _fill(template, row.variables)
        if unfilled := _UNFILLED.search(text):
            excerpt = text[unfilled.start() : unfilled.start() + 60].split("}}")[0]
            self._note(
                f"test {row.number}, left out: its template uses more than plain variables with values: {excerpt!r}"
            )
            return
        case: dict[str, Any] = {"id": "-".join(filter(None, (f"test-{row.number}", label, str(row.variant or ""))))}
        case["input"] = escape(text)
        if label:
            case["cluster"] = f"test-{row.number}"
        if row.test.get("metadata"):
            case["metadata"] = row.test["metadata"]
        scoring = self.scoring(row.test.get("assert") or [], row.variables, row.number)
        if not scoring:
            self._note(f"the scoring of test {row.number}: add an `expected` text or a scorer")
        yield case | scoring

    def scoring(self, checks: list[Any], variables: dict[str, Any], number: int) -> dict[str, Any]:
        """Return the `expected` and `scorer` keys of a case, from its assertions."""
        parts = []
        for check in checks:
            mapped = self.check(check, variables, number)
            if mapped is not None:
                weight = check.get("weight", 1) if isinstance(check, dict) else 1
                parts.append((mapped, weight))
        if not parts:
            return {}
        if len(parts) == 1:
            return {"scorer": parts[0][0]}
        if all(weight == 1 for _, weight in parts):
            return {"scorer": {"type": "all_of", "scorers": [part for part, _ in parts]}}
        return {"scorer": {"type": "weighted", "scorers": [{"scorer": p, "weight": w} for p, w in parts]}}

    def check(self, check: Any, variables: dict[str, Any], number: int) -> dict[str, Any] | None:
        if not isinstance(check, dict) or "type" not in check:
            self.findings.append(f"assertion of test {number}: {check!r}")
            return None
        self.grader(check.get("provider"))
        for key in sorted(set(check) - {"type", "value", "weight", "provider"}):
            self._note(f"`{key}` of assertion `{check['type']}` of test {number}")
        kind = str(check["type"])
        negate = kind.startswith("not-")
        value = check.get("value")
        if isinstance(value, str):
            value = _fill(value, variables)
            if _UNFILLED.search(value):
                self._note(f"assertion `{kind}` of test {number}: {value[:60]!r}")
                return None
        mapped = _mapped(kind.removeprefix("not-"), value, negate=negate)
        if mapped is None:
            self.findings.append(f"assertion `{kind}` of test {number}")
        return mapped


def _mapped(kind: str, value: Any, *, negate: bool) -> dict[str, Any] | None:
    """Map an assertion to a scorer. The text goes into a pattern, so that one case can have several."""
    extra = {"negate": True} if negate else {}
    pattern = _pattern(kind, value)
    if pattern is not None:
        return {"type": "regex", "pattern": escape(_guarded(pattern)), **extra}
    if negate:
        return None
    if kind == "is-json":
        return {"type": "json_schema", "schema": value if isinstance(value, dict) else {}, "strict": True}
    if kind == "llm-rubric" and isinstance(value, str):
        return {"type": "llm_judge", "instructions": escape(f"What the answer must be or do: {value}")}
    if kind == "contains-json":
        return {"type": "json_schema", "schema": value if isinstance(value, dict) else {}}
    return None


def _pattern(kind: str, value: Any) -> str | None:
    words = [str(word) for word in _listed(value)]
    if kind.endswith(("-any", "-all")) and isinstance(value, str):
        words = [word.strip() for word in value.split(",")]
    quoted = [re.escape(word) for word in words]
    flags = "(?i)" if kind.startswith("i") and kind != "is-json" else ""
    body = {
        "equals": rf"\A{''.join(quoted)}\Z",
        "contains": "".join(quoted),
        "icontains": "".join(quoted),
        "starts-with": rf"\A{''.join(quoted)}",
        "ends-with": rf"{''.join(quoted)}\Z",
        "contains-any": "|".join(quoted),
        "icontains-any": "|".join(quoted),
        "contains-all": "".join(f"(?=.*{word})" for word in quoted),
        "icontains-all": "".join(f"(?=.*{word})" for word in quoted),
        "regex": str(value),
    }.get(kind)
    if body is None:
        return None
    dotall = "(?s)" if kind.endswith("-all") else ""
    return f"{flags}{dotall}{body}"


def _short(text: str) -> dict[str, Any]:
    """Parse the short form of an assertion in CSV files: `contains:x`, or plain text for equals."""
    kind, colon, value = text.partition(":")
    if colon and re.fullmatch(r"[a-z-]+", kind):
        return {"type": kind, "value": value.strip()}
    return {"type": "equals", "value": text}


def _fill(template: str, variables: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), template)


def _constants(rows: list[_Row]) -> dict[str, str]:
    """Return the variables that have the same value in every test."""
    if not rows:
        return {}
    first = rows[0].variables
    return {name: text for name, text in first.items() if all(row.variables.get(name) == text for row in rows)}


def _shared(prompts: list[str]) -> tuple[str, list[str]] | None:
    """Return the template part that all prompts share, and each prompt's text around it; None if they share none."""
    if len(prompts) < 2:
        return (prompts[0] if prompts else ""), ["{{input}}"] * len(prompts)
    if any("{%" in prompt for prompt in prompts):
        return None
    names = {name for prompt in prompts for name in _VARIABLE.findall(prompt)}
    if len(names) == 1 and all(map(_VARIABLE.search, prompts)):
        return f"{{{{{names.pop()}}}}}", [_VARIABLE.sub("{{input}}", prompt) for prompt in prompts]
    cores = {match[0] if (match := _CORE.search(prompt)) else "" for prompt in prompts}
    core = cores.pop()
    return (core, [prompt.replace(core, "{{input}}", 1) for prompt in prompts]) if core and not cores else None


def _guarded(pattern: str) -> str:
    """Wrap a pattern if needed, so that it cannot be mistaken for the `/pattern/flags` form."""
    return f"(?:{pattern})" if pattern.startswith("/") else pattern


def _merged(default: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
    merged = {**default, **test}
    variables = test.get("vars") or {}
    merged["vars"] = {**(default.get("vars") or {}), **variables} if isinstance(variables, dict) else variables
    merged["assert"] = [*(default.get("assert") or []), *(test.get("assert") or [])]
    return merged


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
