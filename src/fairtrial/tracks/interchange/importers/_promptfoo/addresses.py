"""Providers that are addresses: our `http` target, or functions next to the suite for code, signatures and sockets."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.conversion import Conversion
from fairtrial.tracks.interchange.importers._promptfoo.files import PREFIX
from fairtrial.tracks.interchange.importers._promptfoo.nunjucks import all_to_jinja, converted, to_jinja
from fairtrial.tracks.interchange.importers._promptfoo.transforms import is_body

ADVICE = "add it to the function in {}"
_KEYS = {
    "url", "method", "headers", "body", "transformResponse", "responseParser", "maxRetries", "request", "queryParams",
    "messageTemplate", "timeoutMs", "useHttps", "transformRequest", "stateful", "streamResponse", "tls",
    "signatureAuth", "auth", "sessionParser", "sessionSource", "validateStatus", "mode", "agentCardUrl", "polling",
    "maxTokens", "tokenEstimation", "session",
}  # fmt: skip
_FUNCTION = re.compile(r"(?:async\s+)?(?:\([^()]*(?:\{[^}]*\})?[^()]*\)|\w+)\s*=>|(?:async\s+)?function\b")
_SECURITY = {"tls": "tls", "signatureAuth": "signature", "auth": "auth"}  # how a request is made, by our name for it
_PATH = re.compile(r"json((?:\.\w+|\[\d+\])*)")  # an answer that is a part of the reply
_PLACE = re.compile(r"\{\{\s*(?!env\b)(\w+)\s*\}\}")
_TAG = re.compile(r"\{\{(?!\s*env\.\w+\s*\}\})|\{%")
_METHODS = ("GET", "POST", "PUT", "PATCH")
_PROMPT = "{{ messages | tojson if messages | length > 1 else input }}"  # a chat is sent as JSON


def target(at: Conversion, name: str, config: dict[str, Any]) -> dict[str, Any] | None:
    """Return a target for an address: a function that sends the prompt there."""
    url = re.sub(r"^(webhook|a2a):", "", name) if "://" in name else str(config.get("url") or "")
    at.notes.lost_keys(config, _KEYS, f"config `{{}}` of provider {name}", ADVICE.format(at.code.name))
    answer = _answer(at, config.get("transformResponse") or config.get("responseParser"))
    _note(at, name, config)
    if name.startswith("a2a:"):
        auth = {key: _settings(at, config[key]) for key in ("headers", "auth") if config.get(key)}
        made = at.code.call("call_a2a", where="vars", url=to_jinja(url), **auth)
    elif url.startswith("ws"):
        made = at.code.call(
            "call_socket", where="vars", url=to_jinja(url), message=all_to_jinja(config.get("messageTemplate")),
            answer=answer, stream=str(config.get("streamResponse") or ""),
        )  # fmt: skip
    else:
        parts = _request(at, config) if config.get("request") else _parts(at, name, url, config)
        if not parts["url"]:
            at.notes.lost(f"provider {name}", "it has no `url`; add one and import again")
            return None
        if options := _options(parts, config):
            own = str(parts["url"]) if name in ("http", "https") else name
            return {"target": "http", "id": own, "options": options}
        extra = {ours: _settings(at, config[key]) for key, ours in _SECURITY.items() if config.get(key)}
        made = at.code.call("call_address", where="vars", **all_to_jinja(parts), answer=answer, **extra)
        url = str(parts["url"])
    at.notes.differs(f"{name} is called by a function in {made.split(':', maxsplit=1)[0]}, without retries")
    return {"target": f"python:{made}", "id": url if name in ("http", "https", "websocket") else name}


def _note(at: Conversion, name: str, config: dict[str, Any]) -> None:
    """Say what is different about a provider with a session, or with rules of its own for what is an error."""
    if any(config.get(key) for key in ("sessionParser", "sessionSource", "session")):
        at.notes.differs(f"{name}: every trial has a `sessionId` of its own, which we make up")
    if config.get("validateStatus"):
        at.notes.differs(f"{name}: `validateStatus`: an answer with a status of 400 or above is a failure")


def _settings(at: Conversion, value: Any) -> Any:
    """Return settings with templates as those of Jinja2, and files relative to the suite."""
    made = all_to_jinja(value)
    if not isinstance(made, dict):
        return made
    return {
        key: at.folder.path / item if key.endswith("Path") and isinstance(item, str) and "{" not in item else item
        for key, item in made.items()
    }


def _parts(at: Conversion, name: str, url: str, config: dict[str, Any]) -> dict[str, Any]:
    body, headers = config.get("body"), dict(config.get("headers") or {})
    if name.startswith("webhook:"):
        body = {"prompt": "{{prompt}}", "config": config}
    if isinstance(body, str):
        if body.startswith(PREFIX):
            body = at.folder.text(body)
        with suppress(ValueError):
            body = json.loads(body)
    if isinstance(config.get("queryParams"), dict):
        query = "&".join(f"{key}={value}" for key, value in config["queryParams"].items())
        url = f"{url}{'&' if '?' in url else '?'}{query}"
    if isinstance(config.get("transformRequest"), str):
        body = _wrapped(config["transformRequest"], body)
        if body is None:
            at.notes.lost(f"`transformRequest` of provider {name}", ADVICE.format(at.code.name))
    if isinstance(body, dict | list) and not any(key.lower() == "content-type" for key in headers):
        headers = {"Content-Type": "application/json", **headers}
    method = str(config.get("method") or ("POST" if body is not None else "GET")).upper()
    return {"url": url, "method": method, "headers": headers, "body": body}


def _request(at: Conversion, config: dict[str, Any]) -> dict[str, Any]:
    text = str(config["request"])
    if text.startswith(PREFIX):
        text = at.folder.text(text)
    head, _, body = text.strip().replace("\r\n", "\n").partition("\n\n")
    first, *lines = head.split("\n")
    method, _, rest = first.strip().partition(" ")
    path = rest.rsplit(" HTTP/", 1)[0].strip()
    pairs = [line.partition(":") for line in lines if ":" in line]
    headers = {key.strip(): value.strip() for key, _, value in pairs}
    host = headers.pop("Host", headers.pop("host", ""))
    scheme = "http" if config.get("useHttps") is False or re.match(r"(localhost|127\.)", host) else "https"
    drop = [key for key in headers if key.lower() == "content-length"]
    headers = {key: value for key, value in headers.items() if key not in drop}
    url = path if "://" in path else f"{scheme}://{host}{path}" if host else ""
    return {"url": url, "method": method.upper(), "headers": headers, "body": body.strip() or None}


def _answer(at: Conversion, given: Any) -> Any:
    """Return where the answer is in a reply: the body of a function, or a function of a file."""
    text = str(given or "").strip().rstrip(";")
    if not text:
        return ""
    if text.startswith(PREFIX):
        name, _, function = text.removeprefix(PREFIX).partition(":")
        path = at.folder.find(name)[0]
        return (path, function or ("get_transform" if path.suffix == ".py" else ""))
    if _FUNCTION.match(text):
        return f"return ({text})(json, text, context);"
    return text if is_body(text) else f"return ({text});"


def _options(parts: dict[str, Any], config: dict[str, Any]) -> dict[str, Any] | None:
    """Return the options of our own `http` target; None if there is code in the request or in how its reply is read."""
    found = _PATH.fullmatch(
        str(config.get("transformResponse") or config.get("responseParser") or "json").strip().rstrip(";")
    )
    body = parts["body"]
    if isinstance(body, str) and body.lstrip().startswith(("{", "[")):
        with suppress(ValueError):
            body = json.loads(body)
    text = json.dumps([parts["url"], parts["headers"], body])
    more = any(config.get(key) for key in (*_SECURITY, "sessionParser", "sessionSource", "session"))
    if more or not found or (body is None) != (parts["method"] == "GET") or parts["method"] not in _METHODS:
        return None
    if _TAG.search(_PLACE.sub("", text)) or "sessionId" in text:
        return None
    answer = {"answer": found[1].lstrip(".")} if found[1] else {}
    return {**_placed({**parts, "body": body}), **answer}


def _placed(value: Any) -> Any:
    """Return a value with the places in it as our `http` target names them; None is left out."""
    if isinstance(value, dict):
        return {key: _placed(item) for key, item in value.items() if item not in (None, {})}
    if isinstance(value, list):
        return [_placed(item) for item in value]
    return _PLACE.sub(_place, converted(value)) if isinstance(value, str) else value


def _place(match: re.Match[str]) -> str:
    return _PROMPT if match[1] == "prompt" else f"{{{{ vars.{match[1]} }}}}"


def _wrapped(template: str, body: Any) -> Any:
    """Return a body whose prompt is put into a template first; None if that is a program."""
    if template.startswith(PREFIX) or "=>" in template or "return" in template:
        return None
    if body is None:
        with suppress(ValueError):
            return json.loads(template)
        return template
    return json.loads(json.dumps(body).replace("{{prompt}}", json.dumps(template)[1:-1]))
