"""A fake of the comments of GitHub and GitLab, with the few calls that are made; it counts them."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_GITHUB = re.compile(r"/repos/[^/]+/[^/]+/issues/(?:(\d+)/comments|comments/(\d+))$")
_GITLAB = re.compile(r"/projects/\d+/merge_requests/(\d+)/notes(?:/(\d+))?$")


class Forge:
    """Comments in memory; `login` is who calls, `read_only` a token without rights."""

    def __init__(self) -> None:
        self.comments: dict[int, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.login, self.read_only = "github-actions[bot]", False
        self.before_listing: list[Any] = []  # called once each, before a list is given out
        self._lock = threading.Lock()
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                status, value = forge.answer(self.command, self.path, body)
                text = b"" if value is None else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, body: str, login: str | None = None) -> dict[str, Any]:
        with self._lock:
            number = max(self.comments, default=0) + 1
            who = login or self.login
            self.comments[number] = {"id": number, "body": body, "user": {"login": who}, "author": {"id": hash(who)}}
            return self.comments[number]

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        path, _, query = path.partition("?")
        self.calls.append((method, path))
        if path == "/user":
            return (200, {"id": hash(self.login)}) if "GITLAB" in self.login else (403, {"message": "no"})
        match = _GITHUB.search(path) or _GITLAB.search(path)
        if match is None:
            return 404, {"message": "Not Found"}
        if method == "GET":
            if self.before_listing:
                self.before_listing.pop(0)()
            page = int(re.search(r"[?&]?page=(\d+)$", query)[1])
            return 200, list(self.comments.values())[100 * (page - 1) : 100 * page]
        if self.read_only:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST":
            return 201, self.add(body["body"])
        number = int(match[2])
        if number not in self.comments:
            return 404, {"message": "Not Found"}
        if method == "DELETE":
            del self.comments[number]
            return 204, None
        self.comments[number]["body"] = body["body"]
        return 200, self.comments[number]
