"""`promptfoo`: prompts × providers × tests, with the common assertions mapped to our scorers."""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import escape
from fairtrial.importers import Imported, expecting, read_text, read_yaml

_KNOWN_KEYS = {"description", "prompts", "providers", "targets", "tests", "defaultTest", "$schema"}
_TEST_KEYS = {"vars", "assert", "description", "options", "threshold", "metadata", "provider"}
_PARAMS = {"temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop"}
_VARIABLE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_LEFT = re.compile(r"\{\{|\{%")


class Promptfoo:
    """Reads promptfooconfig.yaml."""

    def read(self, file: Path) -> Imported:
        """A suite of ours from a configuration of theirs."""
        with expecting(file, "a promptfoo configuration"):
            return self._read(file)

    def _read(self, file: Path) -> Imported:
        config = read_yaml(file)
        if not isinstance(config, dict) or not ("prompts" in config and ("tests" in config or "defaultTest" in config)):
            raise FairtrialError(f"{file} is no promptfoo configuration: it needs `prompts` and `tests`")
        return _Reader(config, file.parent).read(file.stem)


class _Reader:
    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config, self.folder = config, folder
        self.findings: list[str] = [f"key `{key}`" for key in sorted(set(config) - _KNOWN_KEYS)]

    def read(self, name: str) -> Imported:
        found = [prompt for entry in _listed(self.config["prompts"]) for prompt in self.prompts(entry)]
        prompts = [(label or f"prompt-{number}", text) for number, (label, text) in enumerate(found, 1)]
        suite: dict[str, Any] = {"name": self.config.get("description") or name, "targets": self.targets()}
        suite["scorer"] = "boolean"
        cases = []
        for number, test in enumerate(self.tests(), 1):
            for label, prompt in prompts:
                cases += self.cases(test, number, label if len(prompts) > 1 else "", prompt)
        suite["cases"] = cases
        if "llm_judge" in repr(cases):
            suite["judge"] = "mock:echo"
            self.findings.append("the judge's model: replace `mock:echo` under judge")
        return Imported(suite, self.findings)

    def prompts(self, entry: Any) -> list[tuple[str, str]]:
        """(label, template) of one entry; a file may hold several, set apart by `---`."""
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
            self.findings.append("no provider could be carried over; replace `mock:echo` under targets")
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
        target = _target_name(str(name))
        if target is None:
            self.findings.append(f"provider `{name}`: no counterpart")
            return None
        self.findings += [f"config `{key}` of provider {name}" for key in sorted(set(config) - _PARAMS)]
        params = {key: value for key, value in config.items() if key in _PARAMS}
        if not params and not label:
            return target
        return {"id": label or target, "target": target, **({"params": params} if params else {})}

    def tests(self) -> list[dict[str, Any]]:
        default = self.config.get("defaultTest") or {}
        if isinstance(default, str):
            self.findings.append(f"defaultTest {default}")
            default = {}
        tests = self.config.get("tests") or [{}]
        found = []
        for test in _listed(tests):
            if isinstance(test, str):
                found += self.table(test)
            elif isinstance(test, dict):
                found.append(test)
            else:
                self.findings.append(f"test {test!r}")
        return [_merged(default, test) for test in found]

    def table(self, name: str) -> list[dict[str, Any]]:
        """Tests from a CSV file, whose `__expected` columns hold assertions in short form."""
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

    def cases(self, test: dict[str, Any], number: int, label: str, prompt: str) -> list[dict[str, Any]]:
        """One case for each combination of a test's variables."""
        for key in sorted(set(test) - _TEST_KEYS):
            self.findings.append(f"key `{key}` of test {number}")
        for key in ("options", "threshold", "provider"):
            if test.get(key):
                self.findings.append(f"`{key}` of test {number}")
        variables = test.get("vars") or {}
        if not isinstance(variables, dict):
            self.findings.append(f"`vars` of test {number}: {variables!r}")
            variables = {}
        lists = {key: _listed(value) for key, value in variables.items()}
        cases = []
        for index, values in enumerate(itertools.product(*lists.values())):
            filled = dict(zip(lists, values, strict=True))
            case: dict[str, Any] = {"id": "-".join(filter(None, (f"test-{number}", label, str(index or ""))))}
            case["input"] = escape(self.fill(prompt, filled, number))
            if test.get("metadata"):
                case["metadata"] = test["metadata"]
            case |= self.scoring(test.get("assert") or [], filled, number)
            cases.append(case)
        return cases

    def fill(self, template: str, variables: dict[str, Any], number: int) -> str:
        text = _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), template)
        if _LEFT.search(text):
            self.findings.append(f"the template of test {number} uses more than plain variables: {text[:60]!r}")
        return text

    def scoring(self, checks: list[Any], variables: dict[str, Any], number: int) -> dict[str, Any]:
        """The `expected` and `scorer` of a case from its assertions."""
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
        for key in sorted(set(check) - {"type", "value", "weight"}):
            self._note(f"`{key}` of assertion `{check['type']}` of test {number}")
        kind = str(check["type"])
        negate = kind.startswith("not-")
        value = check.get("value")
        if isinstance(value, str):
            value = self.fill(value, variables, number)
        mapped = _mapped(kind.removeprefix("not-"), value, negate=negate)
        if mapped is None:
            self.findings.append(f"assertion `{kind}` of test {number}")
        return mapped


def _mapped(kind: str, value: Any, *, negate: bool) -> dict[str, Any] | None:
    """Our scorer for one of their assertions. Patterns carry the text, so that several fit on one case."""
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
    """An assertion in the short form of their CSV files: `contains:x`, or a plain text for equals."""
    kind, colon, value = text.partition(":")
    if colon and re.fullmatch(r"[a-z-]+", kind):
        return {"type": kind, "value": value.strip()}
    return {"type": "equals", "value": text}


def _target_name(name: str) -> str | None:
    provider, _, model = name.partition(":")
    if provider in ("openai", "anthropic") and model.startswith(("chat:", "messages:")):
        model = model.partition(":")[2]
    if provider == "ollama" and model.startswith(("chat:", "completion:")):
        model = model.partition(":")[2]
    if provider in ("openai", "anthropic", "openrouter", "ollama") and model:
        return f"{provider}:{model}"
    return "mock:echo" if name == "echo" else None


def _guarded(pattern: str) -> str:
    """A pattern that cannot be mistaken for our `/pattern/flags`."""
    return f"(?:{pattern})" if pattern.startswith("/") else pattern


def _merged(default: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
    merged = {**default, **test}
    variables = test.get("vars") or {}
    merged["vars"] = {**(default.get("vars") or {}), **variables} if isinstance(variables, dict) else variables
    merged["assert"] = [*(default.get("assert") or []), *(test.get("assert") or [])]
    return merged


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
