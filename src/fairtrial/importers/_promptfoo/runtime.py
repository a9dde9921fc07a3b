"""Checks, providers, prompts and transforms of a promptfoo configuration, in the form in which fairtrial calls them."""

from __future__ import annotations

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
  let found = await import(pathToFileURL(file).href);
  if (name) found = found[name] ?? found.default?.[name];
  else while (found && typeof found !== 'function' && found.default) found = found.default;
  if (kind === 'function') return show(typeof found === 'function' ? await found(...args) : found);
  const [prompt, options, context] = args;
  if (kind === 'agent') {
    const {run} = await import(createRequire(file).resolve('@openai/agents'));
    const done = await run(found, prompt, {maxTurns: options.config.maxTurns, context: context.vars});
    const calls = done.newItems.filter((item) => item.type === 'tool_call_item').map((item) => item.rawItem);
    return show({output: done.finalOutput, metadata: {toolCalls: calls}});
  }
  if (typeof found === 'function' && found.prototype?.callApi) found = new found(options);
  const ask = typeof found === 'function' ? found : found.callApi.bind(found);
  show(await ask(prompt, context, {}));
}
let text = '';
process.stdin.on('data', (part) => { text += part; }).on('end', () => {
  main(JSON.parse(text)).then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
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


def node(file: str | None, name: str, args: list[Any], *, code: str | None = None, kind: str = "function") -> Any:
    """Call JavaScript that needs Node: a function of a file, or the body of one; TypeScript is run with `tsx`."""
    path = None if file is None else (FOLDER / file).resolve()
    tsx = ["npx", "--yes", "tsx", "-e"] if path is not None and path.suffix in (".ts", ".mts", ".cts") else None
    given = {"file": path and str(path), "name": name, "code": code, "kind": kind, "args": args}
    done = subprocess.run(
        [*(tsx or ["node", "-e"]), _NODE],
        input=json.dumps(given, default=str),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=path.parent if path else FOLDER,
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
    """Return what promptfoo tells a check beside the answer."""
    messages = facts.get("messages") or []
    prompt = messages[-1]["content"] if messages else facts["input"]
    metadata = {**(facts.get("trace") or {}), "toolCalls": facts.get("tool_calls") or []}
    return {
        "vars": facts["vars"],
        "prompt": prompt,
        "test": {"vars": facts["vars"]},
        "config": config or {},
        "metadata": metadata,
        "providerResponse": {"output": facts["response"], "metadata": metadata},
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


def combine(check: Callable[..., Any], scores: dict[str, float], facts: dict[str, Any]) -> Any:
    """Call a function that combines the parts of a score, as promptfoo does."""
    return graded(check(scores, check_context(facts)))


def prompt_text(messages: list[dict[str, str]]) -> str:
    """Return a chat as promptfoo gives it to a provider."""
    return messages[0]["content"] if len(messages) == 1 else json.dumps(messages)


def expanded(value: Any) -> Any:
    """Return settings with references to variables of the environment replaced by their values."""
    if isinstance(value, dict):
        return {key: expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(lambda match: os.environ.get(match[1], match[2] or ""), value)


def ask(call: Callable[..., Any], options: Any, messages: list[dict[str, str]], values: dict[str, Any]) -> Any:
    """Call a provider as promptfoo does, and return its answer."""
    reply = call(prompt_text(messages), {"config": expanded(options)}, {"vars": values})
    if inspect.isawaitable(reply):
        import asyncio

        async def wait() -> Any:
            return await reply

        reply = asyncio.run(wait())
    return reported(reply)


def ask_in_node(
    file: str, name: str, options: Any, messages: list[dict[str, str]], values: dict[str, Any], kind: str = "provider"
) -> Any:
    """Call a provider in JavaScript as promptfoo does, with Node, and return its answer."""
    args = [prompt_text(messages), {"config": expanded(options)}, {"vars": values}]
    return reported(node(file, name, args, kind=kind))


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


def with_programs(made: Any, values: dict[str, Any], programs: dict[str, str]) -> Any:
    """Return a prompt whose variables are made by programs, as promptfoo calls them."""
    given = dict(values)
    for name, value in values.items():
        if isinstance(value, str) and value in programs:
            file, arguments = programs[value], [name, made if isinstance(made, str) else json.dumps(made), values]
            result = load(file, "get_var")(*arguments) if file.endswith(".py") else node(file, "", arguments)
            if result.get("error"):
                raise RuntimeError(result["error"])
            given[name] = result.get("output")
    return filled(made, given)


def filled(value: Any, values: dict[str, Any]) -> Any:
    """Return a value with the templates in it filled in; `env` has the environment."""
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment().from_string(value).render({**values, "env": dict(os.environ)})


def call_address(
    messages: list[dict[str, str]],
    values: dict[str, Any],
    *,
    url: str,
    method: str,
    headers: Any,
    body: Any,
    answer: Any,
) -> str | None:
    """Send a prompt to an address, and return the part of the reply that is the answer."""
    import urllib.request

    prompt = prompt_text(messages)
    given = {**values, "prompt": prompt}
    # A prompt inside of a text that is JSON is escaped, as it would not be JSON otherwise.
    inside = {**given, "prompt": json.dumps(prompt)[1:-1]}
    sent = filled(body, inside if isinstance(body, str) and body.lstrip().startswith(("{", "[")) else given)
    if sent is not None and not isinstance(sent, str):
        sent = json.dumps(sent)
    request = urllib.request.Request(
        filled(url, given), None if sent is None else sent.encode(), filled(headers, given), method=method
    )
    with urllib.request.urlopen(request, timeout=600) as reply:
        text = reply.read().decode()
    return part_of(text, answer)


def part_of(text: str, answer: Any) -> str | None:
    """Return the part of a reply that is the answer: an expression, or a function of a file."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not answer:
        return text if data is None else as_text(data)
    if isinstance(answer, list):
        file, name = answer
        result = load(file, name)(data, text, {}) if file.endswith(".py") else node(file, name, [data, text, {}])
    else:
        result = javascript(f"(json, text) => {{ const data = json, context = {{}}; {answer} }}", data, text)
    return as_text(result.get("output") if isinstance(result, dict) and "output" in result else result)


def call_socket(
    messages: list[dict[str, str]], values: dict[str, Any], *, url: str, message: Any, answer: Any, stream: str = ""
) -> Any:
    """Send a prompt over a WebSocket, and return the part of the first message back that is the answer."""
    import asyncio

    import aiohttp

    async def talk() -> str:
        sent = filled(message or "{{ prompt }}", {**values, "prompt": prompt_text(messages)})
        async with aiohttp.ClientSession() as session, session.ws_connect(filled(url, values)) as socket:
            await socket.send_str(sent if isinstance(sent, str) else json.dumps(sent))
            so_far: Any = None
            done = False
            while not done:
                data = str((await socket.receive(timeout=600)).data)
                if not stream:
                    return data
                so_far, done = javascript(stream, so_far, {"data": data})
            return json.dumps(so_far)

    return part_of(asyncio.run(talk()), answer or ("return json.output;" if stream else ""))


def call_litellm(model: str, params: dict[str, Any], messages: list[dict[str, str]]) -> dict[str, Any]:
    """Ask a model through LiteLLM (`pip install litellm`), which knows most vendors."""
    import litellm

    reply = litellm.completion(model=model, messages=messages, drop_params=True, **expanded(params))
    choice = reply.choices[0]
    calls = [call.model_dump() for call in choice.message.tool_calls or []]
    return {
        "text": choice.message.content or "",
        "cost_usd": getattr(reply, "_hidden_params", {}).get("response_cost"),
        "usage": {"prompt_tokens": reply.usage.prompt_tokens, "completion_tokens": reply.usage.completion_tokens},
        "finish_reason": choice.finish_reason,
        **({"tool_calls": calls} if calls else {}),
    }


def call_responses(model: str, params: dict[str, Any], messages: list[dict[str, str]]) -> dict[str, Any]:
    """Ask a model through OpenAI's responses API (`OPENAI_API_KEY`)."""
    import urllib.request

    given = {"max_output_tokens" if key == "max_tokens" else key: value for key, value in expanded(params).items()}
    if form := given.pop("response_format", None):
        shape = form.get("json_schema") or {}
        given["text"] = {"format": {"type": form.get("type"), **{k: v for k, v in shape.items() if v is not None}}}
    body = json.dumps({"model": model, "input": messages, **given}).encode()
    address = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/responses"
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=600) as reply:
        data = json.loads(reply.read())
    parts = [part for item in data["output"] if item["type"] == "message" for part in item["content"]]
    calls = [item for item in data["output"] if item["type"].endswith("_call")]
    usage = data.get("usage") or {}
    return {
        "text": "".join(part.get("text", "") for part in parts),
        "usage": {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")},
        "tool_calls": [
            {"tool": call.get("name") or call["type"], "arguments": call.get("arguments")} for call in calls
        ],
    }


def call_codex(
    flags: list[str], schema: Any, images: list[str], env: dict[str, str], messages: list[dict[str, str]]
) -> dict[str, Any]:
    """Let Codex work on a prompt: `codex exec`, one session of its own."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        words = ["codex", "exec", "--json", *expanded(flags)]
        if schema is not None:
            file = Path(folder) / "schema.json"
            file.write_text(json.dumps(schema), "utf-8")
            words += ["--output-schema", str(file)]
        words += [word for image in images for word in ("--image", str(FOLDER / image))]
        done = subprocess.run(
            [*words, "-"],
            input=prompt_text(messages),
            capture_output=True,
            text=True,
            cwd=FOLDER,
            check=False,
            env={**os.environ, **expanded(env)},
        )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    items = [event["item"] for event in events if event.get("type") == "item.completed"]
    texts = [str(item.get("text", "")) for item in items if item.get("type") == "agent_message"]
    if not texts:
        raise RuntimeError(done.stderr.strip()[-500:] or "Codex said nothing")
    usage = [event["usage"] for event in events if event.get("type") == "turn.completed" and event.get("usage")]
    calls = [
        {
            "tool": item.get("tool") or item["type"],
            "arguments": item.get("arguments") or {"command": item.get("command")},
        }
        for item in items
        if item.get("type") in ("command_execution", "mcp_tool_call", "web_search", "file_change")
    ]
    spent = (
        {"prompt_tokens": usage[-1]["input_tokens"], "completion_tokens": usage[-1]["output_tokens"]} if usage else {}
    )
    return {"text": texts[-1], "tool_calls": calls, **({"usage": spent} if spent else {})}


def is_xml(response: str, elements: list[str] | tuple[str, ...] = (), inside: bool = False) -> bool:
    """Return whether an answer is XML, or has XML in it, with these elements (`root.child`)."""
    import xml.etree.ElementTree as ET

    pieces = [response.strip()]
    if inside:
        pieces = [match[0] for match in re.finditer(r"<(\w[\w.:-]*)\b[^>]*>.*</\1\s*>", response, re.DOTALL)]
    for piece in pieces:
        try:
            root = ET.fromstring(piece)
        except ET.ParseError:
            continue
        if all(_has(root, element.split(".")) for element in elements):
            return True
    return False


def _has(root: Any, path: list[str]) -> bool:
    return bool(root.tag == path[0] and (len(path) == 1 or root.find("/".join(path[1:])) is not None))


def is_sql(response: str, inside: bool = False, dialect: str | None = None, tables: list[str] | None = None) -> bool:
    """Return whether an answer is SQL, or has SQL in a fence (`pip install sqlglot`), of these tables alone."""
    import sqlglot
    from sqlglot import exp

    fence = re.search(r"```(?:\w*)\s*\n?(.*?)```", response, re.DOTALL) if inside else None
    try:
        statements = [one for one in sqlglot.parse(fence[1] if fence else response, dialect=dialect) if one]
    except sqlglot.errors.SqlglotError:
        return False
    known = (exp.Query, exp.DML, exp.DDL, exp.Alter, exp.Drop)
    named = {table.name for one in statements for table in one.find_all(exp.Table)}
    return (
        bool(statements) and all(isinstance(one, known) for one in statements) and (not tables or named <= set(tables))
    )


def call_webhook(url: str, facts: dict[str, Any]) -> Any:
    """Send an answer to an address that checks it, as promptfoo does."""
    import urllib.request

    body = json.dumps({"output": facts["response"], "context": check_context(facts)}, default=str).encode()
    request = urllib.request.Request(filled(url, facts["vars"]), body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return graded(json.loads(reply.read()))


def is_harmless(response: str, categories: list[str] | None = None) -> Any:
    """Ask OpenAI's moderation whether an answer is harmless (`OPENAI_API_KEY`)."""
    import urllib.request

    key = os.environ["OPENAI_API_KEY"]
    body = json.dumps({"model": "omni-moderation-latest", "input": response}).encode()
    address = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/moderations"
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=30) as reply:
        flagged = [name for name, hit in json.loads(reply.read())["results"][0]["categories"].items() if hit]
    found = [name for name in flagged if not categories or name in categories]
    return {"pass": not found, "score": float(not found), "reason": ", ".join(found) or "nothing was flagged"}


def classify(response: str, model: str, label: str, threshold: float = 1.0) -> Any:
    """Ask a classifier of Hugging Face for the share of a class in an answer (`HF_TOKEN`)."""
    import urllib.request

    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("HF_TOKEN") or os.environ.get("HF_API_TOKEN"):
        headers["Authorization"] = f"Bearer {key}"
    address = f"https://router.huggingface.co/hf-inference/models/{model}"
    request = urllib.request.Request(address, json.dumps({"inputs": response}).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        rows = json.loads(reply.read())
    rows = rows[0] if rows and isinstance(rows[0], list) else rows
    score = max((row["score"] for row in rows if not label or row["label"] == label), default=0.0)
    return {"pass": score >= threshold, "score": score}


def calls_are_valid(tool_calls: list[Any], tools: list[Any]) -> Any:
    """Return whether an answer is calls of tools that were offered, with arguments that fit."""
    import jsonschema_rs

    offered = {one.get("function", one).get("name"): one.get("function", one) for one in tools}
    for call in tool_calls:
        tool = offered.get(call["tool"])
        if offered and tool is None:
            return {"pass": False, "score": 0.0, "reason": f"there is no tool {call['tool']}"}
        schema = (tool or {}).get("parameters") or (tool or {}).get("input_schema") or {"type": "object"}
        if not jsonschema_rs.is_valid(schema, call.get("arguments") or {}):
            return {"pass": False, "score": 0.0, "reason": f"the arguments of {call['tool']} do not fit"}
    return {"pass": bool(tool_calls), "score": float(bool(tool_calls))}


def count_steps(
    tool_calls: list[Any], kind: str = "tool", pattern: str = "*", min: int | None = None, max: int | None = None
) -> Any:
    """Return whether an agent made as many steps of a kind as it should."""
    from fnmatch import fnmatchcase

    def text(call: Any) -> str:
        arguments = call.get("arguments") or {}
        return str(arguments.get("command") or "") if kind == "command" else str(call.get("tool"))

    number = sum(1 for call in tool_calls if text(call) and fnmatchcase(text(call), pattern))
    fits = (min is None or number >= min) and (max is None or number <= max)
    return {"pass": fits, "score": float(fits), "reason": f"{number} steps"}
