"""Writes reference pages and stubs from the code, the picture of the page into README and start page, names of models.

`python -m docs.generate`; a test fails while they are out of date.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import click
import msgspec

import fairtrial
from docs import names
from docs.stubs import PATHS, stubs
from fairtrial.cli.main import cli
from fairtrial.cli.main import commands as all_commands
from fairtrial.config import case_document, document, mcp_document
from fairtrial.core import registry
from fairtrial.core.extraction import Extraction
from fairtrial.core.gate import GateSpec
from fairtrial.core.providers import Provider, api_providers, known_providers
from fairtrial.core.scorer import Scorer
from fairtrial.core.settings import PanelSpec, PriceSpec, RetrySpec
from fairtrial.tracks.interchange.commands.options import log as import_log
from fairtrial.tracks.interchange.commands.options import traces as import_traces
from fairtrial.webpage import checks

DOCS = Path(__file__).parent
FOLDER = DOCS / "reference"
EXAMPLES = DOCS.parent / "examples" / "scorers"
PICTURES = DOCS / "pictures"
NOTE = "<!-- Written by `python -m docs.generate`; do not edit. -->\n"
STRUCTS: list[tuple[str, Any]] = [
    ("The suite", document.SuiteDocument),
    ("targets", document.TargetEntry),
    ("mcp_servers", mcp_document.McpEntry),
    ("conditions", document.ConditionEntry),
    ("workspace", case_document.WorkspaceEntry),
    ("git", case_document.GitEntry),
    ("cases", case_document.CaseEntry),
    ("turns", case_document.TurnEntry),
    ("checks", checks.Check),
    ("steps", checks.Step),
    ("expect", checks.Expectation),
    ("type", checks.Typing),
    ("choose", checks.Choosing),
    ("drag", checks.Dragging),
    ("extract", Extraction),
    ("dataset", document.DatasetEntry),
    ("params", case_document.ParamsEntry),
    ("providers", document.ProviderEntry),
    ("judge, judges", document.JudgeEntry),
    ("panel", PanelSpec),
    ("user", document.UserEntry),
    ("gate", GateSpec),
    ("prices", PriceSpec),
    ("retry", RetrySpec),
]
SUITE_INTRO = """\
# The suite file

Paths are relative to the suite file. `${VAR}` and `${VAR:-default}` are filled in from the environment, or from a
`.env` file next to the suite or in the working folder (`$${` is a literal `${`); their values are never stored, and a
key written into the suite itself is an error. Unknown keys are errors. `params`, `scorer`, `repeats` can be set on the
suite, a target, a condition or a case: the most specific one wins. `extract` can be set on the suite, a scorer or a case.
`fairtrial validate --schema` prints the JSON schema for your editor.
"""


PYTHON_INTRO = """\
# Python

`import fairtrial as ft`; [how to use it](../python.md). Every verb has an async twin, with an `a` before its name:
`await ft.arun(suite)`. A run may be given as an object, its id, a prefix of it, a tag, or `latest`. Scores are 0–1.
"""
_RUN_METHODS = ("summary", "trials", "trial", "by", "frame", "judgements", "files")
_WIDE = 100
PROVIDERS_INTRO = """\
# Providers

[How to use them](../targets.md). A suite names a model `provider:model`, as in `deepinfra:meta-llama/Llama-3.3-70B-Instruct`; the further
names of a provider are those that other tools have for it. Variables in bold must be set; of the others, `…_BASE_URL` is for another address, and
more specific names come first. For every provider of the kind `openai_api`, `NAME_BASE_URL` and `NAME_API_KEY` work, too. `kind` is for servers of
your own with the same API: `providers: {lab: {kind: google_api, base_url: …}}`.
"""
LOCAL_INTRO = """\
## Servers of your own

They need no key, and cost nothing unless the suite's [`prices`](../targets.md#prices) say otherwise.
"""
LITELLM_INTRO = """\
## Through LiteLLM

`pip install 'fairtrial[litellm]'`; variables are those that LiteLLM reads.
"""
SCORERS_INTRO = """\
# Scorers

Every scorer also takes `extract` ([which part of an answer it scores](suite.md#extract)) and `threshold` (a number from
0 to 1: scores of at least this are right, all others wrong). If `expected` is a list, the best match counts. The
examples are suites with scripted answers, in [examples/scorers](../../examples/scorers/); the comment on a case is the
score of its answer.
"""
PAGE_ALT = "The page of a run: who leads and how sure that is, every arm with its interval, and every case"
PICTURE_OF_PAGE = f"""\
<p align="center">
  <picture>
    <source media="(prefers-color-scheme: dark)" srcset="docs/pictures/run-dark.png">
    <img src="docs/pictures/run-light.png" width="880" alt="{PAGE_ALT}">
  </picture>
</p>
"""
PICTURE_OF_VERDICTS = """\
<p align="center">
  <img src="docs/pictures/verdicts.svg" width="560" alt="Four intervals: better, worse, equivalent, cannot tell">
</p>
"""
PICTURES_ON_SITE = f"![{PAGE_ALT}](pictures/run-light.png#only-light)\n![{PAGE_ALT}](pictures/run-dark.png#only-dark)\n"


@cache
def pages() -> dict[Path, Callable[[], str]]:
    """Return what writes each page."""
    commands = commands_page()  # now: the help of a command that was used differs
    taken = all((PICTURES / name).exists() for name in ("run-light.png", "run-dark.png"))
    return {
        DOCS.parent / "README.md": partial(
            _with_page, DOCS.parent / "README.md", PICTURE_OF_PAGE if taken else PICTURE_OF_VERDICTS
        ),
        DOCS / "index.md": partial(_with_page, DOCS / "index.md", PICTURES_ON_SITE if taken else ""),
        FOLDER / "commands.md": lambda: commands,
        FOLDER / "python.md": python_page,
        FOLDER / "scorers.md": scorers_page,
        FOLDER / "providers.md": providers_page,
        FOLDER / "suite.md": suite_page,
        **{path: partial(_stub, path) for path in PATHS},
    }


def _stub(path: Path) -> str:
    return stubs()[path]


def _with_page(path: Path, picture: str) -> str:
    """Return a page with the pictures that `make screenshots` takes of a run, once they are there."""
    before, start, rest = path.read_text("utf-8").partition("<!-- page -->\n")
    _, end, after = rest.partition("<!-- /page -->\n")
    return f"{before}{start}{picture}{end}{after}"


def commands_page() -> str:
    context = click.Context(cli, info_name="fairtrial")
    lines = [NOTE, "# Commands\n", "Every long option is also an environment variable, `FAIRTRIAL_<OPTION>`.\n"]
    known = all_commands()
    commands = [(name, summary, cli.get_command(context, name)) for name, summary in known.items()]
    after = list(known).index("import") + 1
    commands.insert(
        after, ("import traces", "Turn recorded calls into cases: see [traces](../traces.md).", import_traces)
    )
    commands.insert(after, ("import log", "Import logs of agents' sessions: see [logs](../logs.md).", import_log))
    for name, summary, command in commands:
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100, terminal_width=100)
        lines += [f"## {name}\n", f"{summary}\n", "```", command.get_help(inner), "```\n"]
    return "\n".join(lines)


def python_page() -> str:
    """Return every public name of the library: what you make, verbs, results."""
    made = ["Suite", "Case", "RunOptions"]
    verbs = [name for name in fairtrial.__all__ if f"a{name}" in fairtrial.__all__]
    others = [name for name in fairtrial.__all__ if name[0].isupper() and name not in made]
    lines = [NOTE, PYTHON_INTRO, "## What you make\n"]
    lines += [_python_entry(name, getattr(fairtrial, name)) for name in made]
    lines += ["## Verbs\n", *(_python_entry(name, getattr(fairtrial, name)) for name in ["load_suite", *verbs])]
    lines += ["## Run\n", *(_python_entry(f"run.{name}", getattr(fairtrial.Run, name)) for name in _RUN_METHODS)]
    lines.append("## Other names\n")
    for name in sorted(others):
        lines.append(f"- `{name}`: {_first_line(getattr(fairtrial, name))}")
    lines.append(
        "- `errors`, `plugins`: modules: exceptions, and [what plug-ins may build on](../../CONTRIBUTING.md).\n"
    )
    return "\n".join(lines)


def _python_entry(name: str, value: Any) -> str:
    documented = value.__init__ if value is fairtrial.Suite else value
    signature = inspect.signature(value)
    parameters = [_parameter(one) for one in signature.parameters.values() if one.name != "self"]
    text = f"{name}({', '.join(_with_star(signature, parameters))})" if not isinstance(value, property) else name
    wrapped = (
        text if len(text) <= _WIDE else f"{name}(\n    " + ",\n    ".join(_with_star(signature, parameters)) + ",\n)"
    )
    return f"### {name}\n\n```python\n{wrapped}\n```\n\n{_arguments(inspect.getdoc(documented) or '')}\n"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    hint = "" if one.annotation is one.empty else f": {_hint(one.annotation)}"
    return f"{stars}{one.name}{hint}" + ("" if one.default is one.empty else f" = {one.default!r}")


def _hint(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):  # which every Python writes in its own way
        return " | ".join("None" if one is types.NoneType else _hint(one) for one in get_args(annotation))
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    return getattr(annotation, "__name__", str(annotation))


def _with_star(signature: inspect.Signature, parameters: list[str]) -> list[str]:
    """Return parameters with `*` before those that must be named."""
    kinds = [one.kind for one in signature.parameters.values() if one.name != "self"]
    first = next((place for place, kind in enumerate(kinds) if kind is inspect.Parameter.KEYWORD_ONLY), None)
    return parameters if first is None else [*parameters[:first], "*", *parameters[first:]]


def _arguments(doc: str) -> str:
    """Return a docstring as Markdown: arguments as a list."""
    text, _, arguments = doc.partition("\nArgs:\n")
    items = re.split(r"\n(?=    \w+: )", "\n" + arguments.rstrip()) if arguments else []
    listed = [" ".join(item.split()) for item in items if item.strip()]
    return text.strip() + "".join(
        f"\n- `{item.partition(': ')[0]}`: {item.partition(': ')[2]}" for item in ["", *listed] if item
    ).replace("\n-", "\n\n-", 1)


def _first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


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


def providers_page() -> str:
    """Every provider of models with its address and variables; those in bold must be set."""
    known = sorted(api_providers().items())
    through = sorted((name, row) for name, row in known_providers().items() if row.kind == "litellm" and row.litellm)
    header = "| name | kind | address | variables |\n| --- | --- | --- | --- |\n"
    hosted = "".join(_provider_row(*item) for item in known if not item[1].local)
    local = "".join(_provider_row(*item) for item in known if item[1].local)
    others = "".join(f"| {_provider_names(name, row)} | `litellm:{row.litellm}/…` |\n" for name, row in through)
    return (
        f"{NOTE}{PROVIDERS_INTRO}\n{header}{hosted}\n{LOCAL_INTRO}\n{header}{local}\n"
        f"{LITELLM_INTRO}\n| name | is |\n| --- | --- |\n{others}"
    )


def _provider_row(name: str, provider: Provider) -> str:
    needed = provider.needed
    other = [variable for variable in provider.variables if variable not in needed]
    variables = " ".join([*(f"**`{variable}`**" for variable in needed), *(f"`{variable}`" for variable in other)])
    address = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda m: m[2] or f"${{{m[1]}}}", provider.base_url.partition("?")[0])
    shown = f"`{address}`" if provider.address else "of the region"
    return f"| {_provider_names(name, provider)} | {provider.kind} | {shown} | {variables} |\n"


def _provider_names(name: str, provider: Provider) -> str:
    return " ".join(f"`{each}:`" for each in (name, *provider.also))


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
    lines = ["", "| key | type | default | meaning |", "| --- | --- | --- | --- |"]
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
        name = described["$ref"].rsplit("/", 1)[-1]
        name = name.removesuffix("Entry").removesuffix("Spec").removesuffix("Settings")
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
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
    if names.rewrite():  # the code that was imported has the old ones in its help and docstrings
        subprocess.run([sys.executable, "-m", "docs.generate"], cwd=DOCS.parent, check=True)
        return
    FOLDER.mkdir(exist_ok=True)
    for path, written in pages().items():
        path.write_text(written(), "utf-8")


if __name__ == "__main__":
    main()
