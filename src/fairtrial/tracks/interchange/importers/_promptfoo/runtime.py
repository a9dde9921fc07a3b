"""Checks, providers, prompts and transforms of a promptfoo configuration, in the form in which fairtrial calls them."""

from __future__ import annotations

import base64
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
_MARK = "\u241e"  # before the result, among whatever else a program prints
_VARIABLE = re.compile("\ue000(\\w+)(?::-([^\ue001]*))?\ue001")  # as an import writes them
_NODE = """
const {pathToFileURL} = require('node:url');
const {createRequire} = require('node:module');
const show = (value) => console.log('\\u241e' + JSON.stringify(value === undefined ? null : value));
const Code = Object.getPrototypeOf(async function () {}).constructor;
async function main({file, name, code, kind, args}) {
  if (code !== null) {
    const names = ['output', 'context', 'require', 'process'];
    return show(await new Code(...names, code)(...args, createRequire(process.cwd() + '/'), process));
  }
  const [, inner] = file.split('package:');
  const whole = inner ? createRequire(process.cwd() + '/').resolve(inner) : file;
  let found = await import(pathToFileURL(whole).href);
  if (name) found = found[name] ?? found.default?.[name];
  else while (found && typeof found !== 'function' && found.default) found = found.default;
  if (kind === 'config') {  // functions in it become their texts
    const whole = /^(async\\s+)?(function|\\(|[\\w$]+\\s*=>|class\\b)/;
    const text = (made) => '\\ue003' + (whole.test(made) ? made : 'function ' + made);
    const value = typeof found === 'function' ? await found() : found;
    return show(JSON.parse(JSON.stringify(value, (_, item) => typeof item === 'function' ? text(String(item)) : item)));
  }
  if (kind === 'function') return show(typeof found === 'function' ? await found(...args) : found);
  const [prompt, options, context] = args;
  if (kind === 'agent') {
    const {run} = await import(createRequire(file).resolve('@openai/agents'));
    const done = await run(found, prompt, {maxTurns: options.config.maxTurns, context: context.vars});
    const calls = done.newItems.filter((item) => item.type === 'tool_call_item').map((item) => item.rawItem);
    return show({output: done.finalOutput, metadata: {toolCalls: calls}});
  }
  const made = found?.prototype;
  if (typeof found === 'function' && (made?.callApi || made?.callEmbeddingApi)) found = new found(options);
  if (kind === 'embedding') return show(await (found.callEmbeddingApi ?? found).call(found, prompt));
  const ask = typeof found === 'function' ? found : found.callApi.bind(found);
  show(await ask(prompt, context, {}));
}
let text = '';
process.stdin.on('data', (part) => { text += part; }).on('end', () => {
  main(JSON.parse(text)).then(() => process.exit(0), (error) => {
    console.error(error?.message ?? error);
    process.exit(1);
  });
});
"""


@lru_cache
def load(file: str, name: str) -> Callable[..., Any]:
    """Return a function of another file; `Class.method` is one of a new object."""
    path = (FOLDER / file).resolve()
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"promptfoo_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    first, _, method = name.partition(".")
    found: Any = getattr(module, first)
    return getattr(found(), method) if method else found  # type: ignore[no-any-return]


def node(
    file: str | None, name: str, args: list[Any], *, code: str | None = None, kind: str = "function", within: str = ""
) -> Any:
    """Call JavaScript that needs Node: a function of a file or a package, or the body of one.

    TypeScript is run with `tsx`; a package is looked for `within` a folder.
    """
    package = file is not None and file.startswith("package:")
    path = None if file is None or package else (FOLDER / file).resolve()
    tsx = ["npx", "--yes", "tsx", "-e"] if path is not None and path.suffix in (".ts", ".mts", ".cts") else None
    given = {"file": file if package else path and str(path), "name": name, "code": code, "kind": kind, "args": args}
    done = subprocess.run(
        [*(tsx or ["node", "-e"]), _NODE],
        input=json.dumps(given, default=str),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=path.parent if path else FOLDER / within,
        timeout=600,
        check=False,
    )
    result = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not result:
        raise RuntimeError(done.stderr.strip()[-500:] or "the JavaScript returned nothing")
    return json.loads(result[-1][1:])


def javascript(code: str, output: Any, context: Any = None) -> Any:
    """Return the result of a JavaScript function of two values (`pip install 'fairtrial[javascript]'`)."""
    import quickjs

    engine = quickjs.Context()
    engine.set_memory_limit(64 * 2**20)
    engine.set_time_limit(5)
    engine.set("__given", json.dumps([output, context or {"vars": {}, "metadata": {}}], default=str))
    return json.loads(engine.eval(f"JSON.stringify(({code})(...JSON.parse(__given)) ?? null)"))


def transform(code: str, output: str) -> str | None:
    """Return what a transform in JavaScript makes of an answer."""
    return as_text(javascript(code, output))


def as_text(value: Any) -> str | None:
    """Return what a transform made of an answer as text; None if there is nothing."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def check_context(facts: dict[str, Any], config: Any = None) -> dict[str, Any]:
    """Return what promptfoo passes to a check in addition to the answer."""
    messages = facts.get("messages") or []
    prompt = messages[-1]["content"] if messages else facts["input"]
    metadata = {**(facts.get("trace") or {}), "toolCalls": facts.get("tool_calls") or []}
    return {
        "vars": facts["vars"],
        "prompt": prompt,
        "test": {"vars": facts["vars"]},
        "config": config or {},
        "metadata": metadata,
        "providerResponse": {"output": facts["response"], "metadata": metadata, "raw": metadata.get("raw")},
        "latencyMs": facts.get("latency_ms"),
        "cost": facts.get("cost_usd"),
    }


def grade(check: Callable[..., Any], facts: dict[str, Any], config: Any = None) -> Any:
    """Call a check as promptfoo does, and return its result as a score."""
    return graded(check(facts["response"], check_context(facts, config)))


def grade_in_node(
    file: str | None, name: str, facts: dict[str, Any], config: Any = None, code: str | None = None
) -> Any:
    """Call a check in JavaScript as promptfoo does, with Node, and return its result as a score."""
    output: Any = facts["response"]
    try:
        parsed = json.loads(output)
    except ValueError:
        parsed = output
    output = parsed if isinstance(parsed, dict | list) else output
    return graded(node(file, name, [output, check_context(facts, config)], code=code))


def graded(result: Any) -> Any:
    """Return a result of a check as a score."""
    if hasattr(result, "__dict__"):
        result = vars(result)
    if isinstance(result, dict):
        passed = result.get("pass", result.get("pass_", result.get("passed")))
        kept = {key: result[key] for key in ("score", "reason") if result.get(key) is not None}
        return {**({} if passed is None else {"pass": passed}), **kept}
    if isinstance(result, str):
        word = result.strip().lower()
        return word == "true" if word in ("true", "false") else float(word)
    return result


def combine(function: list[str], parts: dict[str, float], facts: dict[str, Any]) -> Any:
    """Call a function of a file that makes one score of several, as promptfoo does."""
    file, name = function
    context = {**check_context(facts), "namedScores": parts}
    made = load(file, name or "get_score") if file.endswith(".py") else None
    return graded(made(parts, context) if made else node(file, name, [parts, context]))


def with_files(messages: list[dict[str, Any]], files: Any) -> list[dict[str, Any]]:
    """Return a chat with the images and PDFs of a case in its last message, in OpenAI's form."""
    if not files:
        return messages
    *before, last = messages
    parts: list[dict[str, Any]] = [{"type": "text", "text": last["content"]}]
    for file in files:
        address = f"data:{file.media};base64,{base64.b64encode(file.body).decode()}"
        if file.media.startswith("image/"):
            parts.append({"type": "image_url", "image_url": {"url": address}})
        else:
            parts.append({"type": "file", "file": {"filename": file.name, "file_data": address}})
    return [*before, {**last, "content": parts}]


def prompt_text(messages: list[dict[str, Any]]) -> str:
    """Return a chat as promptfoo gives it to a provider."""
    if len(messages) == 1 and isinstance(messages[0]["content"], str):
        return messages[0]["content"]
    return json.dumps(messages)


def post(address: str, body: Any, headers: dict[str, str] | None = None, timeout: float = 600) -> Any:
    """Send JSON to an address, and return the JSON that comes back; without a body, only ask for it."""
    import urllib.error
    import urllib.request

    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, sent, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"HTTP {error.code}: {error.read().decode(errors='replace')[:500]}") from None


def expanded(value: Any) -> Any:
    """Return settings with references to variables of the environment replaced by their values."""
    if isinstance(value, dict):
        return {key: expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(lambda match: os.environ.get(match[1], match[2] or ""), value)


def ask(
    call: Callable[..., Any], options: Any, messages: list[Any], values: dict[str, Any], context: Any = None
) -> Any:
    """Call a provider as promptfoo does, and return its answer."""
    reply = call(prompt_text(messages), {"config": expanded(options)}, {"vars": values, **(context or {})})
    if inspect.isawaitable(reply):
        import asyncio

        async def wait() -> Any:
            return await reply

        reply = asyncio.run(wait())
    return reported(reply)


def ask_in_node(
    file: str,
    name: str,
    options: Any,
    messages: list[Any],
    values: dict[str, Any],
    context: Any = None,
    *,
    kind: str = "provider",
    within: str = "",
) -> Any:
    """Call a provider in JavaScript as promptfoo does, with Node, and return its answer."""
    args = [prompt_text(messages), {"config": expanded(options)}, {"vars": values, **(context or {})}]
    return reported(node(file, name, args, kind=kind, within=within))


def reported(reply: Any) -> Any:
    """Return a provider's reply as a report."""
    if isinstance(reply, str):
        return reply
    if reply.get("error"):
        raise RuntimeError(reply["error"])
    output = reply.get("output")
    tokens = reply.get("tokenUsage") or {}
    report: dict[str, Any] = {"text": output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)}
    if reply.get("cost") is not None:
        report["cost_usd"] = reply["cost"]
    if {"prompt", "completion"} <= tokens.keys():
        report["usage"] = {"prompt_tokens": tokens["prompt"], "completion_tokens": tokens["completion"]}
    metadata = reply.get("metadata")
    if isinstance(metadata, dict):
        report["trace"] = {key: value for key, value in metadata.items() if key != "toolCalls"}
        if isinstance(metadata.get("toolCalls"), list):
            report["tool_calls"] = metadata["toolCalls"]
    return report


def prompted(made: Any) -> Any:
    """Return what a prompt function made as a text, or as a chat."""
    if isinstance(made, dict) and "prompt" in made:
        made = made["prompt"]
    if isinstance(made, str) and made.lstrip().startswith("["):
        try:
            made = json.loads(made)
        except ValueError:
            return made
    return made if isinstance(made, str | list) else json.dumps(made, ensure_ascii=False)


def with_programs(
    made: Any, values: dict[str, Any], programs: dict[str, str], filters: dict[str, str] | None = None
) -> Any:
    """Return a prompt with variables that programs make, as promptfoo calls them, and with filters in JavaScript."""
    given = dict(values)
    for name, value in values.items():
        if isinstance(value, str) and value in programs:
            file, arguments = programs[value], [name, made if isinstance(made, str) else json.dumps(made), values]
            result = load(file, "get_var")(*arguments) if file.endswith(".py") else node(file, "", arguments)
            if result.get("error"):
                raise RuntimeError(result["error"])
            given[name] = result.get("output")
    return filled(made, given, filters)


def printed(command: list[str], values: dict[str, Any], config: Any = None) -> str:
    """Return what a program prints as a prompt; its last argument is the context as JSON."""
    words = [str(FOLDER / word) if (FOLDER / word).is_file() else word for word in command]
    context = json.dumps({"vars": values, "provider": {}, "config": config or {}}, default=str)
    done = subprocess.run([*words, context], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-500:] or f"{words[0]} ended with status {done.returncode}")
    return done.stdout.rstrip("\n")


def filled(value: Any, values: dict[str, Any], filters: dict[str, str] | None = None) -> Any:
    """Return a value with the templates in it filled in; `env` has the environment, filters are in JavaScript."""
    if isinstance(value, dict):
        return {key: filled(item, values, filters) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values, filters) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment()
    for name, file in (filters or {}).items():
        environment.filters[name] = lambda *args, file=file: node(file, "", list(args))
    return environment.from_string(value).render({**values, "env": dict(os.environ)})
