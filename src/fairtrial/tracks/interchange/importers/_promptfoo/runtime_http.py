"""Providers of promptfoo that are addresses, in the form in which fairtrial calls them."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from fairtrial.tracks.interchange.importers._promptfoo.runtime import (
    FOLDER,
    as_text,
    expanded,
    filled,
    javascript,
    load,
    node,
    post,
    prompt_text,
)


def call_address(
    messages: list[dict[str, str]],
    values: dict[str, Any],
    *,
    url: str,
    method: str,
    headers: Any,
    body: Any,
    answer: Any,
    tls: Any = None,
    signature: Any = None,
    auth: Any = None,
) -> str | None:
    """Send a prompt to an address, and return the part of the reply that is the answer."""
    import urllib.request

    prompt = prompt_text(messages)
    given = {"sessionId": os.urandom(16).hex(), **values, **(signed(signature) if signature else {}), "prompt": prompt}
    # A prompt inside of a text that is JSON is escaped, as it would not be JSON otherwise.
    inside = {**given, "prompt": json.dumps(prompt)[1:-1]}
    sent = filled(body, inside if isinstance(body, str) and body.lstrip().startswith(("{", "[")) else given)
    if sent is not None and not isinstance(sent, str):
        sent = json.dumps(sent)
    request = urllib.request.Request(
        filled(url, given),
        None if sent is None else sent.encode(),
        {**filled(headers, given), **(authorised(filled(auth, given)) if auth else {})},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=600, context=secured(tls) if tls else None) as reply:
        text = reply.read().decode()
    return part_of(text, answer)


def secured(settings: dict[str, Any]) -> Any:
    """Return how a connection is secured: certificates of servers and of our own, versions and ciphers."""
    import ssl

    given = filled(settings, {})
    context = ssl.create_default_context(cafile=_path(given.get("caPath")), cadata=given.get("ca"))
    if given.get("rejectUnauthorized") is False:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if given.get("certPath"):
        context.load_cert_chain(_path(given["certPath"]) or "", _path(given.get("keyPath")), given.get("passphrase"))
    if given.get("pfxPath"):
        _load_bundle(context, given)
    if given.get("ciphers"):
        context.set_ciphers(given["ciphers"])
    for key, name in (("minVersion", "minimum_version"), ("maxVersion", "maximum_version")):
        if given.get(key):
            setattr(context, name, getattr(ssl.TLSVersion, given[key].replace(".", "_")))
    return context


def _path(name: str | None) -> str | None:
    return str(FOLDER / name) if name else None


def _load_bundle(context: Any, given: dict[str, Any]) -> None:
    """Load a certificate and its key from a bundle (PKCS #12), by way of a file that only we can read."""
    import tempfile

    from cryptography.hazmat.primitives import serialization as form

    key, certificate, _ = _bundle(given["pfxPath"], given.get("passphrase"))
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.public_bytes(form.Encoding.PEM))
        file.write(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
        file.flush()
        context.load_cert_chain(file.name)


def _bundle(name: str, password: str | None) -> Any:
    from cryptography.hazmat.primitives.serialization import pkcs12

    return pkcs12.load_key_and_certificates((FOLDER / name).read_bytes(), password.encode() if password else None)


def signed(settings: dict[str, Any]) -> dict[str, Any]:
    """Return a signature, and the time for which it was made (`pip install cryptography`; pyjks for key stores)."""
    import base64

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import padding

    given = filled(settings, {"signatureTimestamp": "{{signatureTimestamp}}"})
    kind = given.get("type") or ("pfx" if given.get("pfxPath") else "jks" if given.get("keystorePath") else "pem")
    if kind == "pfx":
        key = _bundle(given["pfxPath"], given.get("pfxPassword") or os.environ.get("PROMPTFOO_PFX_PASSWORD"))[0]
    elif kind == "jks":
        import jks

        password = given.get("keystorePassword") or os.environ.get("PROMPTFOO_JKS_PASSWORD") or ""
        entry = jks.KeyStore.load(_path(given["keystorePath"]), password).private_keys[given.get("keyAlias") or "mykey"]
        entry.decrypt(given.get("keyPassword") or password) if not entry.is_decrypted() else None
        key = form.load_der_private_key(entry.pkey_pkcs8, None)
    else:
        text = given.get("privateKey") or (FOLDER / given["privateKeyPath"]).read_text("utf-8")
        key = form.load_pem_private_key(text.encode(), None)
    stamp = str(int(time.time() * 1000))
    template = given.get("signatureDataTemplate") or "{{signatureTimestamp}}"
    data = filled(template.replace("\\n", "\n"), {"signatureTimestamp": stamp}).encode()
    algorithm = getattr(hashes, str(given.get("signatureAlgorithm") or "SHA256").upper().removeprefix("RSA-"))
    made = key.sign(data, padding.PKCS1v15(), algorithm())
    return {"signature": base64.b64encode(made).decode(), "signatureTimestamp": stamp}


def authorised(auth: dict[str, Any]) -> dict[str, str]:
    """Return the headers of an `auth`: a token, a key, a name and a password, or a token that is asked for first."""
    import base64
    import urllib.parse
    import urllib.request

    kind = auth.get("type")
    if kind == "basic":
        pair = f"{auth.get('username', '')}:{auth.get('password', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    if kind in ("api_key", "apiKey"):
        return {auth.get("keyName") or "X-API-Key": auth.get("value") or auth.get("apiKey") or ""}
    if kind == "oauth":
        names = {"clientId": "client_id", "clientSecret": "client_secret"}
        given = (*names, "username", "password")
        form = {names.get(key, key): auth[key] for key in given if auth.get(key)}
        form |= {"scope": " ".join(auth["scopes"])} if auth.get("scopes") else {}
        form["grant_type"] = auth.get("grantType") or "client_credentials"
        with urllib.request.urlopen(auth["tokenUrl"], urllib.parse.urlencode(form).encode(), timeout=60) as reply:
            return {"Authorization": f"Bearer {json.loads(reply.read())['access_token']}"}
    return {"Authorization": f"Bearer {auth.get('token', '')}"}


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


def call_a2a(
    messages: list[dict[str, str]], values: dict[str, Any], *, url: str, headers: Any = None, auth: Any = None
) -> Any:
    """Send a prompt to an agent that speaks A2A, and return what it answers, once its task has ended."""
    given = {**filled(headers or {}, values), **(authorised(filled(auth, values)) if auth else {})}
    address = filled(expanded(url), values)

    def call(method: str, params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": os.urandom(8).hex(), "method": method, "params": params}
        reply = post(address, body, given)
        if reply.get("error"):
            raise RuntimeError(str(reply["error"].get("message") or reply["error"]))
        return reply["result"]

    parts = [{"kind": "text", "text": prompt_text(messages)}]
    message = {"kind": "message", "role": "user", "parts": parts, "messageId": os.urandom(16).hex()}
    result = call("message/send", {"message": message})
    while (result.get("status") or {}).get("state") in ("submitted", "working"):
        time.sleep(1)
        result = call("tasks/get", {"id": result["id"]})
    found = [
        *(result.get("parts") or []),
        *(p for one in result.get("artifacts") or [] for p in one.get("parts") or []),
    ]
    found = found or ((result.get("status") or {}).get("message") or {}).get("parts") or []
    return "\n".join(part["text"] for part in found if part.get("text"))


def call_openclaw_tool(tool: str, options: dict[str, Any], messages: list[dict[str, str]]) -> Any:
    """Call a tool of an OpenClaw gateway; the prompt has its arguments as JSON."""
    given = expanded(options)
    root = given.get("gateway_url") or os.environ.get("OPENCLAW_GATEWAY_URL") or "http://127.0.0.1:18789"
    token = given.get("auth_token") or os.environ.get("OPENCLAW_GATEWAY_TOKEN") or ""
    extra = {name: given[key] for name, key in (("action", "action"), ("sessionKey", "session_key")) if given.get(key)}
    body = {"tool": tool, "args": json.loads(prompt_text(messages) or "{}"), **extra}
    reply = post(f"{root}/tools/invoke", body, {"Authorization": f"Bearer {token}"} if token else {})
    return as_text(reply.get("result", reply))
