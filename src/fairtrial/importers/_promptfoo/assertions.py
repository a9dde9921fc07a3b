"""Assertions as scorers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fairtrial.core import registry
from fairtrial.core.templates import TemplateError
from fairtrial.importers import FileRef
from fairtrial.importers._promptfoo.code import CodeFile
from fairtrial.importers._promptfoo.files import PREFIX, Folder, MissingFileError, resolve
from fairtrial.importers._promptfoo.notes import Notes
from fairtrial.importers._promptfoo.nunjucks import filled, literal
from fairtrial.importers._promptfoo.transforms import Transforms, is_body, is_structured

Scorer = dict[str, Any]
_TEXTS = (".txt", ".md", ".json", ".yaml", ".yml", ".csv", ".html", ".xml")
_KEYS = {
    "type",
    "value",
    "weight",
    "provider",
    "threshold",
    "metric",
    "transform",
    "assert",
    "config",
    "rubricPrompt",
    "contextTransform",
}
_NODE = re.compile(r"\brequire\s*\(|\bawait\b|\bfetch\s*\(|\bprocess\.\w|^\s*import\s", re.MULTILINE)
_ADVICE = {
    "perplexity": "log probabilities are not recorded; leave it out",
    "perplexity-score": "log probabilities are not recorded; leave it out",
    "moderation": "no moderation service is called; describe the policy in an `llm_judge`",
    "guardrails": "reports of guardrails are not read; check for a refusal with `refusal`, or in a `python` scorer",
    "webhook": "scorers call no addresses by themselves; call it from a `python` scorer",
    "classifier": "no classifier is called; describe the classes in an `llm_judge`, or call it from a `python` scorer",
    "select-best": "answers are compared between arms: use `fairtrial pairwise`, or `compare` on a scorer",
    "max-score": "answers are compared between arms: use `fairtrial compare` or `rank` on the other scorers",
    "is-sql": "no SQL parser is there; check the statement in a `python` scorer",
    "contains-sql": "no SQL parser is there; check the statement in a `python` scorer",
    "similar": "no scorer compares embeddings yet; use `f1` or `rouge`, or an `llm_judge` with the text as `expected`",
    "search-rubric": "judges have no web search; use `llm_judge` with the facts as `expected`",
    "human": "label answers with `fairtrial label`",
    "ruby": "Ruby is not run; write the check as a `python` scorer",
    "pi": "that service is not called; use an `llm_judge` with the question as instructions",
}
_REFERENCED = ("match", "levenshtein", "rouge", "bleu", "f1", "similar")  # what compares with `expected`
_NO_SCORER = "no scorer does this; write it as a `python` scorer"
_RUBRIC = "What the answer must be or do: {}"
_RELEVANCE = "Judge only whether the answer addresses the question, without evasion or material that was not asked for."
_CONTEXTS = {
    "context-faithfulness": "Judge only whether every statement in the answer is supported by this context:\n{}",
    "context-recall": "Judge only how much of the reference answer is supported by this context, whatever the answer "
    "says:\n{}",
    "context-relevance": "Judge only how relevant this context is to the question, whatever the answer says:\n{}",
}
_HTML_TAGS = (
    "html|head|body|div|span|p|a|ul|ol|li|table|tr|td|th|h[1-6]|br|img|form|input|button|section|article|header|footer|"
    "strong|em|b|i|script|style|pre|code"
)


class Check(NamedTuple):
    """An assertion in one test: its parts after templates were filled in."""

    kind: str
    value: Any
    threshold: float | None
    entry: dict[str, Any]
    where: str


class Result(NamedTuple):
    """A scorer, and the text that it compares answers with, if it does."""

    scorer: Scorer
    reference: str | None = None


class Assertions:
    """Turns the assertions of tests into scorers; `judges` has the graders they name."""

    def __init__(
        self, folder: Folder, notes: Notes, code: CodeFile, transforms: Transforms, environment: dict[str, Any]
    ) -> None:
        self._folder, self._notes, self._code, self._transforms = folder, notes, code, transforms
        self._environment = environment
        self.graders: list[Any] = []
        self._kinds = _kinds(self)

    def scoring(self, entries: Any, values: dict[str, Any], where: str, threshold: Any = None) -> dict[str, Any]:
        """Return the `scorer` and `expected` of a case."""
        found = [(result, weight) for result, weight in self._results(entries, values, where) if result]
        if not found:
            return {}
        results, expected = _with_expected([result for result, _ in found])
        scorer = _combined([(r, w) for r, (_, w) in zip(results, found, strict=True)], threshold)
        return {**({"expected": expected} if expected is not None else {}), "scorer": scorer}

    def _results(self, entries: Any, values: dict[str, Any], where: str) -> list[tuple[Result | None, float]]:
        results: list[tuple[Result | None, float]] = []
        for entry in entries if isinstance(entries, list) else [entries]:
            if isinstance(entry, str) and entry.startswith(PREFIX):
                try:
                    results += self._results(self._folder.data(entry), values, where)
                except MissingFileError as error:
                    self._notes.lost(f"assertions {entry}", f"{error}; add the file and import again", where)
                continue
            if not isinstance(entry, dict) or not ("type" in entry or "assert" in entry):
                self._notes.lost(f"assertion {entry!r}"[:80], "an assertion is a mapping with `type`", where)
                continue
            weight = entry.get("weight", 1)
            results.append((self.result(entry, values, where), weight if isinstance(weight, int | float) else 1))
        return results

    def result(self, entry: dict[str, Any], values: dict[str, Any], where: str) -> Result | None:
        """Return the scorer of an assertion; None if there is none, which is noted."""
        kind = str(entry.get("type", "assert-set"))
        if kind == "assert-set":
            return self._set(entry, values, where)
        self._note_keys(entry, kind, where)
        if entry.get("provider"):
            self.graders.append(entry["provider"])
        base = kind.removeprefix("not-")
        try:
            result = self._made(base, entry, values, where)
        except MissingFileError as error:
            self._notes.lost(f"assertion `{kind}`", f"{error}; add the file and import again", where)
            return None
        except TemplateError as error:
            self._notes.lost(f"assertion `{kind}`", f"{error}; write its value without that", where)
            return None
        if result is None:
            if base not in self._kinds or base in _ADVICE:
                self._notes.lost(f"assertion `{kind}`", _ADVICE.get(base, _NO_SCORER), where)
            return None
        result = self._extracted(result, entry, where)
        return _negated(result) if kind != base else result

    def _made(self, kind: str, entry: dict[str, Any], values: dict[str, Any], where: str) -> Result | None:
        if kind not in self._kinds:
            return None
        value = self._value(entry.get("value"), kind, values)
        return self._kinds[kind](Check(kind, value, _number(entry.get("threshold")), entry, where))

    def _extracted(self, result: Result, entry: dict[str, Any], where: str) -> Result:
        extract = self._transforms.extraction(entry["transform"], where) if entry.get("transform") else None
        return result._replace(scorer={**result.scorer, "extract": extract}) if extract else result

    def _note_keys(self, entry: dict[str, Any], kind: str, where: str) -> None:
        if entry.get("metric"):
            self._notes.differs(
                "`metric` names of assertions are left out: the parts of a score are shown by their scorers' names"
            )
        for key in sorted(set(entry) - _KEYS):
            self._notes.lost(f"`{key}` of assertion `{kind}`", "set it by hand, if the scorer has it", where)
        if entry.get("rubricPrompt"):
            self._notes.lost(
                "`rubricPrompt`",
                "the judge's task is part of the scorer; put what is special about it under `judge: {instructions: …}`",
                where,
            )
        if entry.get("contextTransform"):
            self._notes.lost("`contextTransform`", "put the context into a variable of the test", where)

    def _value(self, value: Any, kind: str, values: dict[str, Any]) -> Any:
        """Return the value of an assertion with files read and templates filled in."""
        if kind in ("javascript", "python"):
            return value
        if isinstance(value, list):
            return [self._value(item, kind, values) for item in value]
        if isinstance(value, dict):
            return {key: self._value(item, kind, values) for key, item in value.items()}
        if isinstance(value, str) and value.startswith(PREFIX):
            return self._value(self._in_file(value), kind, values)
        return filled(value, values, self._environment) if isinstance(value, str) else value

    def _in_file(self, name: str) -> Any:
        suffix = f".{name.rpartition('.')[2]}"
        if suffix in (".json", ".yaml", ".yml"):
            return self._folder.data(name)
        if suffix not in _TEXTS:
            raise MissingFileError(f"{name} is a program, whose result is not known here; write the value itself")
        return self._folder.text(name).strip()

    def _set(self, entry: dict[str, Any], values: dict[str, Any], where: str) -> Result | None:
        found = [(r, w) for r, w in self._results(entry.get("assert") or [], values, where) if r]
        if not found:
            return None
        scorer = _combined([(_on_its_own(r), w) for r, w in found], entry.get("threshold"))
        return Result(scorer)

    # -- one method per group of assertions --------------------------------------------------------

    def equals(self, check: Check) -> Result:
        value = check.value
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else _text(value)
        if not text.strip():
            return Result({"type": "regex", "pattern": r"\A\s*\Z"})
        return Result(
            {"type": "match"} if isinstance(value, dict | list) else {"type": "match", "verbatim": True}, text
        )

    def contains(self, check: Check) -> Result | None:
        words = _words(check.value, several=check.kind.endswith(("-any", "-all")))
        if not all(word.strip() for word in words) or not words:
            self._notes.lost(
                f"assertion `{check.kind}` without a text", "every answer contains it; leave it out", check.where
            )
            return None
        how = "all" if check.kind.endswith("-all") else "any"
        option = {"words": False} if check.kind.startswith("i") else {"verbatim": True}
        return Result({"type": "contains", how: words, **option})

    def starts_with(self, check: Check) -> Result:
        return Result({"type": "starts_with", "text": _text(check.value), "verbatim": True})

    def ends_with(self, check: Check) -> Result:
        return Result({"type": "regex", "pattern": _guarded(rf"{re.escape(_text(check.value))}\Z")})

    def regex(self, check: Check) -> Result:
        return Result({"type": "regex", "pattern": _guarded(_text(check.value))})

    def is_json(self, check: Check) -> Result:
        strict = {"strict": True} if check.kind == "is-json" else {}
        value = check.value
        if isinstance(value, str) and value.strip():
            value = _parsed(value)
        schema = resolve(value, self._folder) if isinstance(value, dict) else {}
        return Result({"type": "json_schema", "schema": schema, **strict})

    def is_xml(self, check: Check) -> Result:
        value = check.value
        wanted = (
            value.get("requiredElements") if isinstance(value, dict) else _words(value, several=True) if value else []
        )
        arguments = {"elements": [str(name) for name in wanted or []], "inside": check.kind == "contains-xml"}
        return Result({"type": "python", "function": self._code.xml_check(), "arguments": arguments})

    def is_html(self, check: Check) -> Result:
        self._notes.differs("`is-html` and `contains-html` look for tags of HTML with a pattern")
        tags = rf"<(?:{_HTML_TAGS})\b[^>]*>"
        whole = rf"(?is)\A\s*(?:<!doctype html[^>]*>\s*)?{tags}.*>\s*\Z"
        return Result({"type": "regex", "pattern": whole if check.kind == "is-html" else f"(?i){tags}"})

    def javascript(self, check: Check) -> Result | None:
        value = check.value
        if not isinstance(value, str):
            return None
        scorer: Scorer = {"type": "javascript"}
        source = value
        if value.startswith(PREFIX):
            name, _, function = value.removeprefix(PREFIX).partition(":")
            source = self._folder.text(name)
            if function or name.endswith(".ts"):
                self._notes.lost(
                    f"assertion {value}", "export one function as `module.exports` from a .js file", check.where
                )
                return None
            scorer["file"] = FileRef(self._folder.path / name)
        else:
            scorer["code"] = _with_structure(value) if is_structured(value) else value
        if _NODE.search(source):
            self._notes.lost("a `javascript` assertion that needs Node's modules, promises or network",
                             "write it without them, or as a `python` scorer", check.where)  # fmt: skip
            return None
        if check.entry.get("config"):
            self._notes.lost("`config` of a `javascript` assertion", "write its values into the code", check.where)
        return Result(_limited(scorer, check.threshold))

    def python(self, check: Check) -> Result | None:
        value, config = check.value, check.entry.get("config")
        if not isinstance(value, str):
            return None
        if value.startswith(PREFIX):
            name, _, function = value.removeprefix(PREFIX).partition(".py")
            path = self._folder.find(f"{name}.py")[0]
            made: str | None = self._code.file_check(path, function.lstrip(":") or "get_assert", config)
        else:
            made = self._code.inline_check(value, config)
        if made is None:
            self._notes.lost(
                "a `python` assertion that is not valid Python", "correct it and import again", check.where
            )
            return None
        return Result(_limited({"type": "python", "function": made}, check.threshold))

    def similar(self, check: Check) -> Result | None:
        if "similar" not in registry.names("scorers"):
            return None
        provider = check.entry.get("provider")
        name = provider.get("id") if isinstance(provider, dict) else provider
        model = re.sub(r":embeddings?:", ":", str(name)) if name else "openai:text-embedding-3-large"
        texts = _words(check.value, several=False)
        scorer = {"type": "similar", "embedder": model, "threshold": _or(check.threshold, 0.75)}
        return (
            Result({"type": "best_of", "scorer": scorer, "references": texts})
            if len(texts) > 1
            else Result(scorer, texts[0])
        )

    def levenshtein(self, check: Check) -> Result:
        return Result({"type": "levenshtein", "max_distance": int(_or(check.threshold, 5))}, _text(check.value))

    def overlap(self, check: Check) -> Result:
        defaults = {"rouge-n": ("rouge", 0.75), "bleu": ("bleu", 0.5), "gleu": ("bleu", 0.5), "meteor": ("rouge", 0.5)}
        name, threshold = defaults[check.kind]
        scorer: Scorer = {"type": name}
        if check.kind == "rouge-n":
            scorer["variant"] = "1"
        if check.kind != "bleu":
            how = {"rouge-n": "ROUGE-1", "gleu": "BLEU", "meteor": "ROUGE-L"}[check.kind]
            self._notes.differs(f"`{check.kind}` is computed as {how} here; scores near the threshold may differ")
        else:
            self._notes.differs("`bleu` is computed as sacreBLEU does; scores near the threshold may differ")
        scorer["threshold"] = _or(check.threshold, threshold)
        texts = _words(check.value, several=False)
        return (
            Result({"type": "best_of", "scorer": scorer, "references": texts})
            if len(texts) > 1
            else Result(scorer, texts[0])
        )

    def rubric(self, check: Check) -> Result:
        value = check.value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._notes.differs(
            "`llm-rubric` and the like give a mark from 0 to 10 instead of pass or fail; with a `threshold`, right "
            "or wrong"
        )
        return _judged(_RUBRIC.format(text), check.threshold)

    def closed_question(self, check: Check) -> Result:
        return _judged(
            f"10 if the answer meets this criterion, else 0: {_text(check.value)}", _or(check.threshold, 0.5)
        )

    def factuality(self, check: Check) -> Result:
        text = (
            "Compare the facts only, not style. 10 if the answer agrees with the reference answer, is a subset or a "
            "superset of it, or differs in what does not matter; 0 if they disagree."
        )
        scorer = _judged(text, _or(check.threshold, 0.5)).scorer
        return Result({key: item for key, item in scorer.items() if key != "reference"}, _text(check.value))

    def g_eval(self, check: Check) -> Result:
        criteria = [
            {"name": f"criterion {i}", "description": text}
            for i, text in enumerate(_words(check.value, several=False), 1)
        ]
        return Result(
            {"type": "llm_judge", "reference": False, "criteria": criteria, "threshold": _or(check.threshold, 0.7)}
        )

    def relevance(self, check: Check) -> Result:
        return _judged(_RELEVANCE, _or(check.threshold, 0.75 if check.kind == "answer-relevance" else 0.5))

    def about_context(self, check: Check) -> Result:
        template = _CONTEXTS[check.kind]
        scorer: Scorer = {
            "type": "llm_judge",
            "instructions": template.format("{{ context }}"),
            "threshold": _or(check.threshold, 0.75),
        }
        if check.kind == "context-recall":
            return Result(scorer, _text(check.value))
        return Result({**scorer, "reference": False})

    def latency(self, check: Check) -> Result:
        return Result({"type": "latency", "max": _or(check.threshold, 0)})

    def cost(self, check: Check) -> Result:
        return Result({"type": "cost", "max": _or(check.threshold, 0)})

    def refusal(self, check: Check) -> Result:
        return Result({"type": "refusal"})

    def word_count(self, check: Check) -> Result | None:
        value = check.value
        if isinstance(value, str):
            value = int(value) if value.strip().isdecimal() else _parsed(value)
        if isinstance(value, dict):
            limits = {key: int(value[key]) for key in ("min", "max") if key in value}
        elif isinstance(value, int | float):
            limits = {"min": int(value), "max": int(value)}
        else:
            return None
        return Result({"type": "length", "unit": "words", **limits})

    def finish_reason(self, check: Check) -> Result:
        return Result({"type": "javascript", "code": f"context.finish_reason === {json.dumps(_text(check.value))}"})

    def tools_used(self, check: Check) -> Result | None:
        value = check.value
        if isinstance(value, dict):
            name = value.get("name") or value.get("pattern")
            limits = {key: int(value[key]) for key in ("min", "max") if isinstance(value.get(key), int)}
            names = [str(name)] if name else []
        else:
            names, limits = _words(value, several=False), {}
        if not names:
            return None
        if limits.get("max") == 0:
            return Result({"type": "tool_calls", "forbidden": names})
        return Result({"type": "tool_calls", "names": names, **limits})

    def tool_sequence(self, check: Check) -> Result | None:
        value = check.value if isinstance(check.value, dict) else {"steps": check.value}
        steps = [
            str(step.get("name") or step.get("pattern")) if isinstance(step, dict) else str(step)
            for step in value.get("steps") or []
        ]
        if not steps:
            return None
        order = "exact" if value.get("mode") == "exact" else "in_order"
        return Result({"type": "tool_calls", "names": steps, "order": order})

    def tool_arguments(self, check: Check) -> Result | None:
        value = check.value if isinstance(check.value, dict) else {}
        name, arguments = value.get("name") or value.get("pattern"), value.get("args", value.get("arguments"))
        if not name or not isinstance(arguments, dict):
            return None
        if value.get("mode") == "exact":
            self._notes.differs("`trajectory:tool-args-match` with `mode: exact`: further arguments are allowed here")
        return Result({"type": "tool_calls", "arguments": {str(name): arguments}})

    def step_count(self, check: Check) -> Result | None:
        value = check.value if isinstance(check.value, dict) else {}
        limits = {key: int(value[key]) for key in ("min", "max") if isinstance(value.get(key), int)}
        if not limits or value.get("type", "tool") != "tool":
            return None
        names = {"names": [str(value["pattern"])]} if value.get("pattern") and limits.get("min", 0) > 0 else {}
        return Result({"type": "tool_calls", **names, **limits})

    def tool_f1(self, check: Check) -> Result:
        wanted = json.dumps(_words(check.value, several=True))
        code = (f"const wanted = new Set({wanted}), made = new Set(tool_calls.map((call) => call.tool));\n"
                "const both = [...made].filter((name) => wanted.has(name)).length;\n"
                "return both ? (2 * both) / (wanted.size + made.size) : 0;")  # fmt: skip
        return Result({"type": "javascript", "code": code, "threshold": _or(check.threshold, 1.0)})


def _kinds(a: Assertions) -> dict[str, Callable[[Check], Result | None]]:
    """Return the method for each type of assertion."""
    return {
        "equals": a.equals,
        **dict.fromkeys(
            ("contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all"), a.contains
        ),
        "starts-with": a.starts_with,
        "ends-with": a.ends_with,
        "regex": a.regex,
        **dict.fromkeys(("is-json", "contains-json"), a.is_json),
        **dict.fromkeys(("is-xml", "contains-xml"), a.is_xml),
        **dict.fromkeys(("is-html", "contains-html"), a.is_html),
        "javascript": a.javascript,
        "python": a.python,
        "similar": a.similar,
        "levenshtein": a.levenshtein,
        **dict.fromkeys(("rouge-n", "bleu", "gleu", "meteor"), a.overlap),
        **dict.fromkeys(("llm-rubric", "agent-rubric", "trajectory:goal-success"), a.rubric),
        "model-graded-closedqa": a.closed_question,
        **dict.fromkeys(("factuality", "model-graded-factuality"), a.factuality),
        "g-eval": a.g_eval,
        **dict.fromkeys(("answer-relevance", "conversation-relevance"), a.relevance),
        **dict.fromkeys(_CONTEXTS, a.about_context),
        "latency": a.latency,
        "cost": a.cost,
        "is-refusal": a.refusal,
        "word-count": a.word_count,
        "finish-reason": a.finish_reason,
        "trajectory:tool-used": a.tools_used,
        "trajectory:tool-sequence": a.tool_sequence,
        "trajectory:tool-args-match": a.tool_arguments,
        "trajectory:step-count": a.step_count,
        "tool-call-f1": a.tool_f1,
    }


def _with_structure(code: str) -> str:
    """Return code that sees an answer in JSON, or tool calls without a text, as promptfoo has them."""
    body = code if is_body(code) else f"return (\n{code.strip().rstrip(';')}\n);"
    return (
        f"const check = (output) => {{\n{body}\n}};\n"
        "const calls = tool_calls.map((call) => ({name: call.tool, arguments: JSON.stringify(call.arguments),\n"
        "  type: 'function', function: {name: call.tool, arguments: JSON.stringify(call.arguments)}}));\n"
        "let value = output.trim() || !calls.length ? output : calls;\n"
        "try { value = JSON.parse(value); } catch (error) { /* it is no JSON */ }\n"
        "return check(value);"
    )


def _negated(result: Result) -> Result:
    if result.scorer["type"] == "contains" and "any" in result.scorer:
        return Result({("none" if key == "any" else key): item for key, item in result.scorer.items()})
    return Result({"type": "not", "scorer": result.scorer}, result.reference)


def _judged(instructions: str, threshold: float | None) -> Result:
    scorer = {"type": "llm_judge", "reference": False, "instructions": literal(instructions)}
    return Result(_limited(scorer, threshold))


def _limited(scorer: Scorer, threshold: float | None) -> Scorer:
    return scorer if threshold is None else {**scorer, "threshold": threshold}


def _with_expected(results: list[Result]) -> tuple[list[Scorer], str | None]:
    """Return the scorers, and the one text that they compare with; if there are several, each has its own."""
    references = {result.reference for result in results if result.reference is not None}
    if len(references) == 1 and not any("json_schema" in repr(result.scorer) for result in results):
        return [result.scorer for result in results], references.pop()
    return [_on_its_own(result) for result in results], None


def _on_its_own(result: Result) -> Scorer:
    """Return a scorer with its reference in it, so that it needs no `expected`."""
    if result.reference is None:
        return result.scorer
    if result.scorer["type"] == "not":
        return {"type": "not", "scorer": _on_its_own(Result(result.scorer["scorer"], result.reference))}
    return {"type": "best_of", "scorer": result.scorer, "references": [result.reference]}


def _combined(parts: list[tuple[Any, float]], threshold: Any) -> Scorer:
    """Return one scorer: all must be satisfied, or, with weights or a threshold, the weighted mean counts."""
    limit = _number(threshold)
    scorers = [part for part, _ in parts]
    weights = [weight for _, weight in parts]
    if limit is None and len(set(weights)) == 1:
        return scorers[0] if len(scorers) == 1 else {"type": "all_of", "scorers": scorers}
    if not any(weight > 0 for weight in weights):
        weights = [1.0] * len(weights)
    listed = [{"scorer": part, "weight": weight} for part, weight in zip(scorers, weights, strict=True)]
    return _limited({"type": "weighted", "scorers": listed}, limit)


def _words(value: Any, *, several: bool) -> list[str]:
    """Return the texts of a value; in short forms, commas stand between `several`."""
    if several and isinstance(value, str):
        return [word.strip().strip('"') for word in value.split(",") if word.strip()]
    return [_text(item) for item in (value if isinstance(value, list) else [value])]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _parsed(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _guarded(pattern: str) -> str:
    """Wrap a pattern if needed, so that it cannot be mistaken for the `/pattern/flags` form."""
    return f"(?:{pattern})" if pattern.startswith("/") else pattern
