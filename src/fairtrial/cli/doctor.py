"""`fairtrial doctor`."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from fairtrial.cli.asking import load_dotenv
from fairtrial.cli.documents import print_json
from fairtrial.cli.main import own_commands
from fairtrial.cli.start import run_coroutine
from fairtrial.core import registry
from fairtrial.reports.formats import OWN

if TYPE_CHECKING:
    from fairtrial.core.experiment import TargetSpec
    from fairtrial.core.variables import Variables

_EXTRAS = {
    "local": ("xllamacpp", "the embedded model"),
    "frame": ("pandas", "run.frame()"),
    "agents": ("claude_agent_sdk", "Claude Code, tool-agent and MCP servers"),
    "arena": ("playwright", "scoring web pages that models write"),
    "optim": ("pyomo", "solving new optimisation problems"),
    "postgres": ("psycopg", "a store in PostgreSQL"),
    "javascript": ("quickjs", "scorers in JavaScript"),
    "parquet": ("pyarrow", "Parquet files"),
    "xlsx": ("python_calamine", "Excel files"),
    "bedrock": ("botocore", "models on Amazon Bedrock"),
    "vertex": ("google.auth", "signing in to Vertex AI as gcloud does"),
    "litellm": ("litellm", "models of other providers"),
    "hub": ("datasets", "datasets of the Hugging Face Hub"),
}
_LOW_DISK_SPACE = 2**30
_NO_KEY, _NOT_SIGNED_IN, _NO_ADDRESS, _SILENT = "no key", "not signed in", "no address", "no response from"
_USUAL = ("openai", "anthropic", "google", "openrouter", "ollama")  # shown by themselves even if they are not set up
_OLD_SHEET = 90  # days
_MOST_SUITES = 50
_AGENT_MEMORY = 300 * 2**20  # a Claude Code process with a Python MCP server: see benchmarks/AGENTS.md


class Finding(NamedTuple):
    """The result of one check; `good` is None if it is neither good nor bad."""

    what: str
    found: str
    good: bool | None = True
    advice: str = ""


def check_everything(ping: bool, store: str | None, as_json: bool) -> int:
    """Print every finding about this installation."""
    findings = [
        *_dotenv(),
        *_versions(),
        *_extras(),
        *_plugins(),
        *run_coroutine(_browser()),
        *_agent_capacity(),
        *_weights(),
        *_models(),
        *_ending(),
        *_store(store),
        *run_coroutine(_providers()),
        *(run_coroutine(_pings()) if ping else ()),
    ]
    if as_json:
        print_json({"findings": [finding._asdict() for finding in findings]})
    else:
        _print(_in_short(findings))
    return 1 if any(finding.good is False for finding in findings) else 0


def _in_short(findings: list[Finding]) -> list[Finding]:
    """Return the findings with one for all the providers that are not set up, of which few users need more than two."""
    unused = [finding for finding in findings if _is_unused(finding)]
    silent = [finding.what for finding in unused if finding.found.startswith(_SILENT)]
    unset = [finding.what for finding in unused if finding.what not in silent]
    short = [finding for finding in findings if finding not in unused]
    if unset:
        advice = "to use one, see what it needs: `fairtrial models`"
        short.append(Finding("other providers", f"not set up: {', '.join(sorted(unset))}", None, advice))
    if silent:
        short.append(Finding("local servers", f"not running: {', '.join(sorted(silent))}", None))
    return short


def _is_unused(finding: Finding) -> bool:
    not_there = finding.found in (_NO_KEY, _NOT_SIGNED_IN, _NO_ADDRESS) or finding.found.startswith(_SILENT)
    return not_there and finding.good is None and finding.what not in _USUAL


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    from fairtrial.cli.console import Console

    marks = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
    table = Table(box=None, padding=(0, 1), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = marks[finding.good]
        text = finding.found if not finding.advice else f"{finding.found} — {finding.advice}"
        table.add_row(Text(mark, style=style), finding.what, Text(text))
    Console().print(table)


def _dotenv() -> Iterator[Finding]:
    from fairtrial.core.errors import FairtrialError

    try:
        load_dotenv()
    except FairtrialError as error:
        yield Finding(".env", str(error), False)


def _versions() -> Iterator[Finding]:
    from importlib.metadata import version

    yield Finding("fairtrial", version("fairtrial"))
    yield Finding("Python", sys.version.split()[0])


def _plugins() -> Iterator[Finding]:
    taken = {"commands": tuple(own_commands()), "reports": tuple(form.module for form in OWN)}
    for line, usable in registry.survey(taken):
        yield Finding("plug-in", line, usable)


def _agent_capacity() -> Iterator[Finding]:
    """Estimate how many agents can run at once: each is a process, and starting one uses a core for a second or two."""
    cores = os.cpu_count() or 1
    free = _free_memory()
    if free is None:
        yield Finding("agents at once", f"about {2 * cores}: {cores} cores, free memory unknown", None)
        return
    fit = max(1, min(2 * cores, int(free // _AGENT_MEMORY)))
    yield Finding("agents at once", f"about {fit}: {cores} cores, {free / 2**30:.1f} GiB free", None)


def _free_memory() -> int | None:
    """Return the available memory in bytes, or None if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _extras() -> Iterator[Finding]:
    for extra, (module, what) in _EXTRAS.items():
        if _installed(module):
            yield Finding(f"extra {extra}", f"installed: {what}")
        else:
            yield Finding(f"extra {extra}", "not installed", None, f"for {what}: pip install 'fairtrial[{extra}]'")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


async def _browser() -> list[Finding]:
    """Find the browser that renders pages, and check that it starts."""
    from fairtrial.webpage.browser import NoBrowserError, find_browser
    from fairtrial.webpage.render import Renderer

    try:
        program = find_browser()
    except NoBrowserError as error:
        problem, _, advice = str(error).partition(": ")
        return [Finding("browser", problem, None, f"for the code arena: {advice}")]
    if not find_spec("playwright"):
        return [Finding("browser", program, None, "to use it: pip install 'fairtrial[arena]'")]
    try:
        async with Renderer(1) as renderer:
            version = await renderer.version()
    except NoBrowserError as error:
        return [Finding("browser", str(error), False)]
    return [Finding("browser", f"{program}, Chromium {version}"), _page_clock(virtual=renderer.virtual), *_sandbox()]


def _page_clock(*, virtual: bool) -> Finding:
    """Report whether pages are measured in virtual or real time, and what that means for scores."""
    if virtual:
        return Finding("page clock", "virtual: a page gets the same score on a busy and on an idle machine")
    advice = "for virtual time: apt install chromium-headless-shell" if sys.platform == "linux" else ""
    return Finding("page clock", "real: the score of an animated page may change on a busy machine", None, advice)


def _sandbox() -> Iterator[Finding]:
    """Report if Chromium's own sandbox, which separates pages from this machine, is off."""
    from fairtrial.webpage.browser import sandboxed

    if not sandboxed():
        reason = (
            "set by FAIRTRIAL_BROWSER_SANDBOX"
            if os.environ.get("FAIRTRIAL_BROWSER_SANDBOX")
            else "not available to root"
        )
        advice = "pages are still sealed; run as another user for the additional protection"
        yield Finding("browser sandbox", f"off: {reason}", None, advice)


def _weights() -> Iterator[Finding]:
    from fairtrial.providers.weights import WEIGHTS, weights_path

    for name in WEIGHTS:
        if weights_path(name).is_file():
            yield Finding(f"local:{name}", "weights downloaded")
        else:
            yield Finding(f"local:{name}", "weights not downloaded", None, f"run `fairtrial fetch {name}`")


def _models() -> Iterator[Finding]:
    """Report how old what is known about models is."""
    from fairtrial.cli.models_page import age_lines, newest_day
    from fairtrial.core.errors import FairtrialError
    from fairtrial.providers.retirement import today

    try:
        (sheet, prices, *_), old = age_lines(), (today() - newest_day()).days > _OLD_SHEET
    except FairtrialError as error:
        yield Finding("models", str(error), False)
        return
    advice = "for what has changed since: fairtrial models --refresh" if old else ""
    yield Finding("models", sheet.partition(": ")[2].rstrip("."), None if old else True, advice)
    yield Finding("prices", prices.partition(": ")[2].rstrip("."), None)


def _ending() -> Iterator[Finding]:
    """Report the models in the suites of this folder that end soon, or should have ended; nothing of them is loaded."""
    from fairtrial.providers.retirement import retiring
    from fairtrial.web.files import suite_files

    for file in suite_files(Path.cwd())[:_MOST_SUITES]:
        for known in retiring(_named_in(file.path)):
            yield Finding(file.path, known.line, None)


def _named_in(path: str) -> Iterator[TargetSpec]:
    """Yield the models that a suite names, as targets, judges or simulated user."""
    import yaml

    from fairtrial.core.experiment import TargetSpec
    from fairtrial.core.providers import AROUND_A_MODEL, plain_name, split_name
    from fairtrial.text.yaml_text import read_yaml

    try:
        suite = read_yaml(Path(path).read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError):
        return  # `validate` says what is wrong with it
    lists = [
        suite.get("targets"),
        suite.get("judges"),
        [suite.get("judge"), suite.get("second_judge"), suite.get("user")],
    ]
    for entry in (entry for entries in lists if isinstance(entries, list) for entry in entries):
        name = entry.get("target") if isinstance(entry, dict) else entry
        provider, model = split_name(str(name or ""))
        if provider in AROUND_A_MODEL:
            provider, model = split_name(model)
        if model:
            yield TargetSpec(id=str(name), kind="", provider=plain_name(provider), model=model)


def _store(url: str | None) -> Iterator[Finding]:
    from fairtrial.core.errors import FairtrialError
    from fairtrial.store import Store
    from fairtrial.store.address import as_url
    from fairtrial.text.printable import counted

    try:
        store = Store(url, create=False)
        yield Finding("store", f"{store.path}, {counted(len(store.runs()), 'run')}")
    except FairtrialError as error:
        missing = "there is no store" in str(error)
        yield Finding("store", "none yet" if missing else str(error), None if missing else False)
    on_disk = as_url(url).startswith("sqlite")
    folder = Path(as_url(url).rpartition("///")[2]).absolute().parent if on_disk else Path.cwd()
    folder = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(folder).free
    yield Finding(
        "disk",
        f"{free / 2**30:.1f} GiB free",
        free > _LOW_DISK_SPACE,
        "" if free > _LOW_DISK_SPACE else "free some disk space",
    )


async def _providers() -> list[Finding]:
    from fairtrial.config import variables_of
    from fairtrial.core.providers import api_providers

    checks: list[Any] = []
    for name, known in api_providers().items():
        variables = variables_of()
        provider = known.resolved(variables.environment)
        url = variables.fill(provider.base_url)
        if name == "openai-responses" or (provider.signs_in and provider.ready(variables.environment)):
            continue  # the first is OpenAI again; the others find their address and sign in by themselves: see `--ping`
        if provider.signs_in:
            advice = f"set {' or '.join((*provider.signs_in, *provider.needed))} to use it"
            checks.append(asyncio.sleep(0, Finding(name, _NOT_SIGNED_IN, None, advice)))
            continue
        if not provider.needed and not provider.ready(variables.environment):
            checks.append(asyncio.sleep(0, Finding(name, _NO_ADDRESS, None, f"set {provider.addresses[0]} to use it")))
            continue
        variables.fill(provider.api_key)
        checks.append(_provider(name, url, variables, local=provider.local))
    return list(await asyncio.gather(*checks))


async def _provider(name: str, url: str, variables: Variables, *, local: bool) -> Finding:
    from fairtrial.core.errors import FairtrialError
    from fairtrial.providers.transport import check_reachable

    shown = variables.hide(url).removesuffix("?api-version=")
    if variables.missing:
        return Finding(name, _NO_KEY, None, f"set {', '.join(sorted(variables.missing))} to use it")
    try:
        await check_reachable(name, url, seconds=3.0)
    except FairtrialError:
        # A server of one's own needs no key, so we cannot know whether the user wants it.
        return Finding(name, f"{_SILENT} {shown}", None if local else False, "")
    return Finding(name, f"{shown} responds" if local else f"key is set, {shown} responds")


_SAME_MODELS = {"openai-responses": "openai", "vertex": "google"}  # as another provider


async def _pings() -> list[Finding]:
    """Send a short message to every configured provider: at most 16 tokens, plus what a model must reason."""
    from fairtrial.providers import models

    listed = models.listed_providers().items()
    ready = [name for name, provider in listed if provider.ready(os.environ) and not provider.local]
    return list(await asyncio.gather(*map(_ping, ready)))


async def _ping(name: str) -> Finding:
    from fairtrial.config import judge_named, variables_of
    from fairtrial.core.answer import Failure, Request
    from fairtrial.core.errors import FairtrialError
    from fairtrial.core.options import read
    from fairtrial.providers.sheet import cheapest_of

    chosen = os.environ.get(f"{name.upper().replace('-', '_')}_PING_MODEL")
    # Of those whose models come and go, the cheapest in the price list.
    model = chosen or cheapest_of(_SAME_MODELS.get(name, name)) or _cheapest(name)
    if not model:
        return Finding(f"{name} ping", "no model known", None, f"set {name.upper()}_PING_MODEL to one of yours")
    variables = variables_of()
    try:
        spec = replace(judge_named(f"{name}:{model}", variables, Path()).target, id=f"{name}:{model}")
        cls = registry.load("targets", spec.kind)
        target = cls(spec, read(cls.options_type, spec.options, []), Path())
        await target.open(1)
        try:
            # Reasoning models cannot stop after one token, and some refuse fewer than 16.
            params = {"max_tokens": 16, "reasoning": "none"}
            result = await target.ask(Request(trial_id="ping", case_id="ping", input="Hi", params=params, stream=False))
        finally:
            await target.close()
    except FairtrialError as error:
        return Finding(f"{name} ping", variables.hide(str(error)), False)
    if isinstance(result, Failure):
        return Finding(f"{name} ping", f"{model}: {variables.hide(result.message)}", False)
    return Finding(f"{name} ping", f"{model} answered in {result.latency_ms:.0f} ms")


def _cheapest(provider: str) -> str:
    from fairtrial.providers import models

    priced = [model for model in models.of_provider(provider) if model.output_usd]
    return min(priced, key=lambda model: model.output_usd or 0.0).name.partition(":")[2] if priced else ""
