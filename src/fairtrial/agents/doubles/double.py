"""Stand in for an MCP server: `python double.py SETTINGS PLAY [PROGRAM ARGS…]` speaks MCP on stdin and stdout.

An agent starts it in the place of the server. It passes everything on to the server (PROGRAM, or an address) and notes
what was called and returned; or it plays what was recorded or written down, and then no server is needed. PLAY is the
file with that, or `-`. SETTINGS is a JSON file:

    notes      a file for what was called, one line per call that returned
    unknown    for calls that it does not have: `fail`, `ask` (the server), or a result
    case       the id of the case: the same call may have returned other things in other cases
    folders    the paths of the trial's folder
    url, transport, timeout    of a server with an address; the variable FAIRTRIAL_HEADERS has its headers

This file and its neighbours run on their own, without the package and without site packages: that starts quickly.
"""

import json
import os
import sys
import threading
import time

TYPE_CHECKING = False  # `typing` would take longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fairtrial.agents.doubles.links import connect
    from fairtrial.agents.doubles.matching import contains, key_of, with_places, without_places

    Message = dict[str, Any]
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from links import connect
    from matching import contains, key_of, with_places, without_places

# What is the same every time, and can be asked for again: how each request names what it asks for.
_CALLS = {"tools/call": ("tool", "name"), "resources/read": ("resource", "uri"), "prompts/get": ("prompt", "name")}
_LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
_DONE = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")  # with an empty result
_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # that begin with `initialize`
_NEUTRAL = "This tool is not available at the moment."
_NO_METHOD, _BAD_PARAMS, _INTERNAL = -32601, -32602, -32603


class Notebook:
    """What was called and returned, in the order of the returns."""

    def __init__(self, path: str) -> None:
        self._path, self._lock = path, threading.Lock()

    def write(self, call: "dict[str, Any]", **more: "Any") -> None:
        """Note a call; a note is a whole line or nothing."""
        line = json.dumps({**call, **more}).encode() + b"\n"
        with self._lock, open(self._path, "ab", buffering=0) as file:
            file.write(line)

    def read(self) -> "list[dict[str, Any]]":
        """Return the notes of earlier turns of the trial."""
        try:
            with open(self._path, "rb") as file:
                return [json.loads(line) for line in file.read().split(b"\n")[:-1]]
        except OSError:
            return []


def main() -> None:
    """Stand in until the client has gone."""
    with open(sys.argv[1], "rb") as file:
        settings = json.load(file)
    notes = Notebook(settings["notes"])
    stand_in = Recorder(settings, notes) if sys.argv[2] == "-" else Player(settings, notes)
    for line in sys.stdin.buffer:
        stand_in.take(line)
    stand_in.close()


_writing = threading.Lock()


def say(message: "Message") -> None:
    """Send a message to the client."""
    pass_on(json.dumps(message).encode() + b"\n")


def pass_on(line: bytes) -> None:
    """Send a line to the client; if the client has gone, end."""
    with _writing:
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except OSError:
            os._exit(0)


def message_of(line: bytes) -> "Message":
    """Return the message in a line; an empty one if it has none."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def call_in(message: "Message") -> "dict[str, Any] | None":
    """Return what a request calls; None for other requests."""
    if message.get("method") not in _CALLS or "id" not in message:
        return None
    kind, field = _CALLS[message["method"]]
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    return {"kind": kind, "name": str(params.get(field)), "arguments": params.get("arguments") or {}}


class Recorder:
    """Passes on every message between client and server, and notes the calls."""

    def __init__(self, settings: "dict[str, Any]", notes: Notebook) -> None:
        self._notes = notes
        self._open: dict[str, tuple[dict[str, Any], float]] = {}
        self._server = connect(settings, sys.argv[3:], self._reply, ended=os._exit)

    def take(self, line: bytes) -> None:
        message = message_of(line)
        call = call_in(message)
        if call is not None:
            self._open[str(message["id"])] = call, time.time()
        self._server.send(line)

    def _reply(self, line: bytes) -> None:
        message = message_of(line)
        found = None if "method" in message else self._open.pop(str(message.get("id")), None)
        if found is not None:
            self._notes.write(found[0], **reply_in(message), source="live", at=found[1])
        pass_on(line)

    def close(self) -> None:
        self._server.close()


def reply_in(message: "Message") -> "dict[str, Any]":
    """Return the part of a message that answers a call."""
    return {name: message[name] for name in ("result", "error") if name in message}


class Player:
    """Answers by what was recorded or written down."""

    def __init__(self, settings: "dict[str, Any]", notes: Notebook) -> None:
        with open(sys.argv[2], "rb") as file:
            self._played = json.load(file)
        self._settings, self._notes = settings, notes
        self._offers: dict[str, Any] = self._played["offers"]
        self._tools = {tool["name"]: tool for tool in self._offers.get("tools", ())}
        self._made: dict[str, int] = {}  # how often each call was made in this trial
        for note in notes.read():
            self._count(note)
            if note["kind"] == "tool" and note.get("source") == "mock" and "ruled" not in note:
                self._mocked(note)
        self._hello: dict[str, Any] = {}
        self._asking: Asking | None = None
        self._lock = threading.Lock()

    def _count(self, call: "dict[str, Any]") -> "tuple[str, int]":
        schema = self._tools.get(call["name"], {}).get("inputSchema") if call["kind"] == "tool" else None
        ignore = self._played.get("ignore", ())
        arguments = without_places(call["arguments"], self._settings["folders"])
        key = key_of(call["kind"], without_places(call["name"], self._settings["folders"]), arguments, schema, ignore)
        self._made[key] = self._made.get(key, 0) + 1
        return key, self._made[key]

    def take(self, line: bytes) -> None:
        message = message_of(line)
        if "id" not in message or "method" not in message:
            return  # what is told, and what answers a request that we never make
        call = call_in(message)
        try:
            if call is not None:
                self._call(message, call)
            else:
                self._manage(message)
        except Exception as error:  # a broken recording must not look like a server that hangs
            fail(message, _INTERNAL, f"{type(error).__name__}: {error}")

    def _manage(self, message: "Message") -> None:
        method, params = message["method"], message.get("params") or {}
        if method == "initialize":
            self._hello = params
            wanted = params.get("protocolVersion")
            version = wanted if wanted in _VERSIONS else _VERSIONS[-1]
            reply(message, {**self._introduction(), "protocolVersion": version})
        elif method in _LISTS:
            reply(message, {_LISTS[method]: self._offers.get(_LISTS[method], [])})
        elif method in _DONE:
            reply(message, {})
        else:
            fail(message, _NO_METHOD, "Method not found")

    def _introduction(self) -> "dict[str, Any]":
        known = self._offers.get("capabilities", {})
        told = {
            "capabilities": {name: {} for name in ("tools", "resources", "prompts") if name in known},
            "serverInfo": {"name": self._offers.get("name", ""), "version": self._offers.get("version", "")},
        }
        instructions = self._offers.get("instructions")
        return {**told, "instructions": instructions} if instructions else told

    def _call(self, message: "Message", call: "dict[str, Any]") -> None:
        key, nth = self._count(call)
        at = time.time()
        found = self._found(key, nth, call)
        if found is not None:
            found = with_places(found, next(iter(self._settings["folders"]), ""))
            self._notes.write(call, **found, source=self._played["source"], at=at)
            say({"jsonrpc": "2.0", "id": message["id"], **found})
        elif call["kind"] == "tool" and call["name"] not in self._tools:
            problem = {"code": _BAD_PARAMS, "message": f"Unknown tool: {call['name']}"}
            self._notes.write(call, error=problem, source=self._played["source"], at=at)
            say({"jsonrpc": "2.0", "id": message["id"], "error": problem})
        elif self._settings["unknown"] == "ask":
            threading.Thread(target=self._ask, args=(message, call, at), daemon=True).start()
        elif self._settings["unknown"] == "fail":
            self._notes.write(call, unknown=nth, at=at)
            self._refuse(message, call)
        else:
            ruled = self._settings["unknown"]
            self._notes.write(call, result=ruled, source="mock", ruled=True, at=at)
            reply(message, ruled)

    def _refuse(self, message: "Message", call: "dict[str, Any]") -> None:
        """Say no more than a server would that cannot do it: what is missing is not the agent's business."""
        if call["kind"] == "tool":
            reply(message, {"content": [{"type": "text", "text": _NEUTRAL}], "isError": True})
        else:
            fail(message, _INTERNAL, "It is not available at the moment.")

    def _found(self, key: str, nth: int, call: "dict[str, Any]") -> "dict[str, Any] | None":
        """Return what the nth such call of a trial returned, if that is known."""
        variants = self._played["calls"].get(key, ())
        own = [one for one in variants if self._settings["case"] in one["cases"]]
        for variant in (own or variants)[:1]:
            results = variant["results"]
            found = results[min(nth, len(results)) - 1]
            if "too_large" not in found and (nth <= len(results) or self._only_reads(call)):
                return found  # type: ignore[no-any-return]
        return self._mocked(call) if call["kind"] == "tool" else None

    def _only_reads(self, call: "dict[str, Any]") -> bool:
        """Return whether a call changes nothing, so that it returns the same once more."""
        hints = self._tools.get(call["name"], {}).get("annotations") or {}
        return call["kind"] != "tool" or bool(hints.get("readOnlyHint"))

    def _mocked(self, call: "dict[str, Any]") -> "dict[str, Any] | None":
        """Return the first answer of a mock that fits; the last of several results goes on for ever."""
        answers = self._played.get("answers", {}).get(call["name"], ())
        place = next((n for n, one in enumerate(answers) if contains(call["arguments"], one["when"])), None)
        if place is None:
            return None
        counted = f"{call['name']}#{place}"
        self._made[counted] = self._made.get(counted, 0) + 1
        results = answers[place]["results"]
        return results[min(self._made[counted], len(results)) - 1]  # type: ignore[no-any-return]

    def _ask(self, message: "Message", call: "dict[str, Any]", at: float) -> None:
        try:
            with self._lock:
                self._asking = self._asking or Asking(self._settings, self._hello)
            answer = self._asking.ask(message)
        except OSError as error:  # it cannot be started
            answer = {"jsonrpc": "2.0", "error": {"code": _INTERNAL, "message": f"the server is not there: {error}"}}
        self._notes.write(call, **reply_in(answer), source="live", at=at)
        say({**answer, "id": message["id"]})

    def close(self) -> None:
        if self._asking is not None:
            self._asking.close()


class Asking:
    """The server itself, started for the first call that was not recorded."""

    def __init__(self, settings: "dict[str, Any]", hello: "dict[str, Any]") -> None:
        self._waiting: dict[str, Callable[[Message], None]] = {}
        self._gone = False
        self._server = connect(settings, sys.argv[3:], self._reply, ended=lambda _: self._end())
        self._timeout = settings["timeout"]
        params = hello or {"protocolVersion": _VERSIONS[-1], "capabilities": {}, "clientInfo": {}}
        self.ask({"jsonrpc": "2.0", "method": "initialize", "id": "hello", "params": params})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, message: "Message") -> "Message":
        """Return the server's answer to a request."""
        done = threading.Event()
        slot: list[Message] = []

        def take(answer: "Message") -> None:
            slot.append(answer)
            done.set()

        self._waiting[str(message["id"])] = take
        if self._gone:
            self._end()
        else:
            self._send(message)
        # Clients have limits of their own for a call; this one is for a server that never starts.
        done.wait(self._timeout if message["method"] == "initialize" else None)
        problem = {"code": _INTERNAL, "message": "the server did not answer"}
        return slot[0] if slot else {"jsonrpc": "2.0", "id": message["id"], "error": problem}

    def _reply(self, line: bytes) -> None:
        message = message_of(line)
        if "method" in message and "id" in message:  # it asks the client, which has not announced that it answers
            error = {"code": _NO_METHOD, "message": "Method not found"}
            self._send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif take := self._waiting.pop(str(message.get("id")), None):
            take(message)

    def _end(self) -> None:
        self._gone = True
        problem = {"code": _INTERNAL, "message": "the server has ended"}
        while self._waiting:
            self._waiting.popitem()[1]({"jsonrpc": "2.0", "id": None, "error": problem})

    def _send(self, message: "Message") -> None:
        self._server.send(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        self._server.close()


def reply(message: "Message", result: "dict[str, Any]") -> None:
    """Answer a request."""
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})


def fail(message: "Message", code: int, problem: str) -> None:
    """Answer a request with an error of the protocol."""
    say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": problem}})


if __name__ == "__main__":
    main()
