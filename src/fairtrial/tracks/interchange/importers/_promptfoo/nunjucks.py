"""Templates of promptfoo (Nunjucks) as templates of Jinja2, and references to the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairtrial.core.templates import TemplateError, fill, names_in
from fairtrial.core.variables import escape

_TAG = re.compile(r"(\{\{-?|\{%-?)(.*?)(-?\}\}|-?%\})", re.DOTALL)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_ENV = re.compile(
    r"""\{\{-?\s*(?:process\.)?env(?:\.(\w+)|\[['"](\w+)['"]\])\s*
    (?:(?:\|\s*default\(|or\s|\|\|)\s*(?:'([^'}]*)'|"([^"}]*)")\s*\)?\s*)?-?\}\}""",
    re.VERBOSE,
)
_REWRITES = (
    (re.compile(r"\|\s*dump\b(?:\((\d+)\))?"), lambda m: f"| tojson({m[1]})" if m[1] else "| tojson"),
    (re.compile(r"([A-Za-z_][\w.]*)\.length\b"), lambda m: f"({m[1]} | length)"),
    (re.compile(r"(?<![=!<>])===(?!=)"), lambda _: "=="),
    (re.compile(r"!==(?!=)"), lambda _: "!="),
    (re.compile(r"\s*&&\s*"), lambda _: " and "),
    (re.compile(r"\s*\|\|\s*"), lambda _: " or "),
    (re.compile(r"^(\s*)elseif\b"), lambda m: f"{m[1]}elif"),
)
# Around the name of an environment variable until the suite is complete: every other `${` is escaped then.
_OPEN, _CLOSE = "\ue000", "\ue001"
_VARIABLE = re.compile(f"{_OPEN}(.*?){_CLOSE}", re.DOTALL)


def variable(name: str, default: str | None = None) -> str:
    """Return a reference to an environment variable, as `finish` understands it."""
    return f"{_OPEN}{name}{'' if default is None else ':-' + default}{_CLOSE}"


def variables_in(text: str) -> list[str]:
    """Return the names of the environment variables that a text refers to."""
    return [found.partition(":-")[0] for found in _VARIABLE.findall(text)]


def converted(text: str, environment: Mapping[str, Any] | None = None) -> str:
    """Return a template of Nunjucks as one of Jinja2; `environment` has what the configuration itself sets."""
    if "{{" not in text and "{%" not in text:
        return text
    own = environment or {}

    def replace(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        default = match[3] if match[3] is not None else match[4]
        return str(own[name]) if name in own else variable(name, default)

    return _TAG.sub(_rewritten, _ENV.sub(replace, text))


def to_jinja(text: str) -> str:
    """Return a template of Nunjucks as one of Jinja2, in which `env` is a variable like any other."""
    return _TAG.sub(_rewritten, text)


def all_to_jinja(value: Any) -> Any:
    """Return a value with the templates in it as those of Jinja2."""
    if isinstance(value, str):
        return to_jinja(value)
    if isinstance(value, dict):
        return {key: all_to_jinja(item) for key, item in value.items()}
    return [all_to_jinja(item) for item in value] if isinstance(value, list) else value


def _rewritten(match: re.Match[str]) -> str:
    parts = _QUOTED.split(match[2])
    for index in range(0, len(parts), 2):  # texts in quotes are left alone
        for pattern, replacement in _REWRITES:
            parts[index] = pattern.sub(replacement, parts[index])
    return match[1] + "".join(parts) + match[3]


def filled(text: str, values: Mapping[str, Any], environment: Mapping[str, Any] | None = None) -> str:
    """Return a template filled in; names without a value are blank, as in promptfoo.

    Raises TemplateError if it is not a valid template, or uses something that does not exist here.
    """
    template = converted(text, environment)
    missing = dict.fromkeys(names_in(template) - values.keys() - {"range"}, "")
    return fill(template, {**missing, **values})


def filled_or_same(text: str, values: Mapping[str, Any], environment: Mapping[str, Any] | None = None) -> str:
    """Return a template filled in, or the text as it is if it is not a template that can be filled in."""
    try:
        return filled(text, values, environment)
    except TemplateError:
        return text


def literal(text: str) -> str:
    """Return a template that says exactly this text."""
    return f"{{% raw %}}{text}{{% endraw %}}" if any(mark in text for mark in ("{{", "{%", "{#")) else text


def finish(text: str) -> str:
    """Return a text as it is written in a suite: with `${NAME}` for variables, and every other `${` escaped."""
    return _VARIABLE.sub(lambda match: "${" + match[1] + "}", escape(text))
