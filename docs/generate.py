"""Writes the reference pages from the code: `python -m docs.generate`. A test fails while they are out of date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fairtrial.cli.main import COMMANDS, cli
from fairtrial.config import document
from fairtrial.core import registry
from fairtrial.core.experiment import PanelSpec, PriceSpec, RetrySpec
from fairtrial.core.extraction import Extraction
from fairtrial.core.scorer import Scorer
from fairtrial.webpage import checks

FOLDER = Path(__file__).parent / "reference"
EXAMPLES = Path(__file__).parent.parent / "examples" / "scorers"
NOTE = "<!-- Written by `python -m docs.generate`; do not edit. -->\n"
STRUCTS: list[tuple[str, Any]] = [
    ("The suite", document.SuiteDocument),
    ("targets", document.TargetEntry),
    ("mcp_servers", document.McpEntry),
    ("conditions", document.ConditionEntry),
    ("cases", document.CaseEntry),
    ("checks", checks.Check),
    ("steps", checks.Step),
    ("expect", checks.Expectation),
    ("type", checks.Typing),
    ("choose", checks.Choosing),
    ("drag", checks.Dragging),
    ("extract", Extraction),
    ("dataset", document.DatasetEntry),
    ("params", document.ParamsEntry),
    ("providers", document.ProviderEntry),
    ("judge, judges", document.JudgeEntry),
    ("panel", PanelSpec),
    ("prices", PriceSpec),
    ("retry", RetrySpec),
]
SUITE_INTRO = """\
# The suite file

Paths are relative to the suite file. `${VAR}` and `${VAR:-default}` are filled in from the environment, or from a
`.env` file beside the suite or in the working folder (`$${` is a literal `${`); their values are never stored, and a
key that stands in the suite itself is an error. Unknown keys are errors. `params`, `scorer`, `repeats` can stand on the
suite, a target, a condition or a case: the nearest one wins. `extract` can stand on the suite, a scorer or a case.
`fairtrial validate --schema` prints the JSON schema for your editor.
"""


SCORERS_INTRO = """\
# Scorers

Every scorer also takes `extract` ([what of an answer it scores](suite.md#extract)) and `threshold` (a number from 0 to
1: scores from there on are right, all others wrong). Where `expected` is a list, the best one counts. The examples are
suites with scripted answers, in [examples/scorers](../../examples/scorers/); beside a case stands the score of its
answer.
"""


def pages() -> dict[Path, str]:
    return {
        FOLDER / "commands.md": commands_page(),
        FOLDER / "scorers.md": scorers_page(),
        FOLDER / "suite.md": suite_page(),
    }


def commands_page() -> str:
    context = click.Context(cli, info_name="fairtrial")
    lines = [NOTE, "# Commands\n", "Every long option is also an environment variable, `FAIRTRIAL_<OPTION>`.\n"]
    for name, summary in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100, terminal_width=100)
        lines += [f"## {name}\n", f"{summary}\n", "```", command.get_help(inner), "```\n"]
    return "\n".join(lines)


def scorers_page() -> str:
    lines = [NOTE, SCORERS_INTRO, "| scorer | scale | reproducibility | runs needed | best for |"]
    lines.append("| --- | --- | --- | --- | --- |")
    parts = {name: registry.load("scorers", name) for name in registry.builtin_names("scorers")}
    for name, cls in parts.items():
        guide = cls.guide
        lines.append(
            f"| [`{name}`](#{name}) | {guide.scale} | {guide.reproducibility} | {guide.runs} | {guide.best_for} |"
        )
    for name, cls in parts.items():
        example = (EXAMPLES / f"{name}.yaml").read_text("utf-8")
        lines += [f"\n## {name}\n", _paragraphs(cls.__doc__), *_options(cls), f"\n```yaml\n{example}```"]
    return "\n".join(lines) + "\n"


def suite_page() -> str:
    lines = [NOTE, SUITE_INTRO]
    for title, cls in STRUCTS:
        lines += [f"## {title}\n", _paragraphs(cls.__doc__), *_options(cls), ""]
    return "\n".join(lines)


def _paragraphs(doc: str | None) -> str:
    import inspect

    return inspect.cleandoc(doc or "")


def _options(cls: Any) -> list[str]:
    schema = msgspec.json.schema(cls)
    properties = schema["$defs"][cls.__name__]["properties"]
    common = {field.name for field in msgspec.structs.fields(Scorer)} if issubclass(cls, Scorer) else set()
    fields = [field for field in msgspec.structs.fields(cls) if field.name not in common]
    if not fields:
        return []
    lines = ["", "| key | type | default | |", "| --- | --- | --- | --- |"]
    for field in fields:
        described = properties[field.encode_name]
        default = "required" if field.required else _default(field)
        lines.append(f"| `{field.encode_name}` | {_type(described)} | {default} | {described.get('description', '')} |")
    return lines


def _default(field: Any) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None or value is msgspec.UNSET or isinstance(value, msgspec.Struct):
        return ""
    return f"`{msgspec.json.encode(value).decode()}`"


def _type(described: dict[str, Any]) -> str:
    if "anyOf" in described:
        kinds = [_type(item) for item in described["anyOf"] if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in described:
        return (
            described["$ref"]
            .rsplit("/", 1)[-1]
            .removesuffix("Entry")
            .removesuffix("Spec")
            .removesuffix("Settings")
            .lower()
        )
    if "enum" in described:
        return " \\| ".join(f"`{value}`" for value in described["enum"])
    if "additionalProperties" in described and isinstance(described["additionalProperties"], dict):
        return f"mapping of {_type(described['additionalProperties'])}"
    if described.get("type") == "array":
        return f"list of {_type(described.get('items', {}))}"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true/false",
        "object": "mapping",
    }
    return words.get(str(described.get("type")), "anything")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
