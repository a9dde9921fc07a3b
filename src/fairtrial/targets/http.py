"""`http`: anything with a URL: what is sent is a template, and paths say where the answer is in the reply."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from fairtrial.core.answer import Answer, Failure, Request, Usage
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.core.templates import TemplateError, fill, names_in, template_problems
from fairtrial.providers.conversation import within_limit
from fairtrial.providers.errors import error_of, failure_of, unreadable
from fairtrial.providers.mending import read_mended
from fairtrial.providers.replies import UNREADABLE, tokens
from fairtrial.providers.streams import read_body
from fairtrial.providers.transport import as_answer, open_session
from fairtrial.text.json_path import follow, parse_path

if TYPE_CHECKING:
    from aiohttp import ClientSession

_VALUES = ("input", "system", "messages", "params", "vars", "case_id")
_MESSAGE = {"input": "{{ input }}"}


class ReplyTokenPaths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the token counts are in a reply."""

    prompt: str = ""
    completion: str = ""


class HttpOptions(Options, frozen=True, kw_only=True):
    """`body` is a mapping or a text with templates; `answer`, `tokens` and `cost` are paths into a JSON reply."""

    url: str = ""
    method: Literal["GET", "POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = {}
    body: Any = None  # default: {"input": the prompt}
    answer: str = ""  # default: the whole reply is the answer
    tokens: ReplyTokenPaths = ReplyTokenPaths()
    cost: str = ""  # in USD


class Http(Target):
    """A URL that is asked once per trial; templates may use `input system messages params vars case_id`."""

    options_type: ClassVar[type[Options]] = HttpOptions
    priced: ClassVar[bool] = True
    names_its_cost: ClassVar[bool] = True
    takes_chats: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: HttpOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options
        self._body = _MESSAGE if options.body is None else options.body
        self._session: ClientSession | None = None

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        if not _address(spec, options):
            yield "an http target needs an address: `target: https://…`, or `options: {url: …}`"
        for path in (options.answer, options.tokens.prompt, options.tokens.completion, options.cost):
            try:
                parse_path(path)
            except ValueError as error:
                yield str(error)
        for text in _texts([_address(spec, options), options.headers, options.body]):
            yield from template_problems(text, _VALUES, "in a request")

    @classmethod
    def tells_cost(cls, options: Any) -> bool:
        return bool(options.cost)

    @property
    def lane(self) -> str:
        return f"http:{self.spec.id}"

    def sent(self, request: Request) -> dict[str, Any]:
        """Return the parameters if the template sends them."""
        used = any("params" in names_in(text) for text in _texts([self._body, self._options.headers]))
        return request.params if used else {}

    async def open(self, concurrency: int) -> None:
        self._session = await open_session(self.spec, {}, _address(self.spec, self._options))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, request: Request) -> Answer | Failure:
        values = {name: getattr(request, name, None) for name in _VALUES} | {"messages": _messages(request)}
        try:
            url, headers, body = (
                _filled(part, values)
                for part in (_address(self.spec, self._options), self._options.headers, self._body)
            )
        except TemplateError as error:
            return Failure(kind="template", message=str(error))
        data = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
        started, answering = time.perf_counter(), False
        assert self._session is not None, "it is open"
        try:
            async with self._session.request(
                self._options.method,
                url,
                headers=headers,
                data=None if self._options.method == "GET" else data,
                allow_redirects=False,
            ) as response:
                if not 200 <= response.status < 300:
                    return as_answer(await error_of(response, streaming=False), started)
                answering = True
                latency = (time.perf_counter() - started) * 1000
                return within_limit(read_mended(partial(self._read, latency), await read_body(response)))
        except Exception as error:  # `failure_of` re-raises everything that is not a network error
            return failure_of(error, answering=answering, streaming=False)

    def _read(self, latency: float, body: bytes) -> Answer | Failure:
        options = self._options
        if not (options.answer or options.cost or options.tokens.prompt):
            return Answer(text=body.decode("utf-8", "replace"), finish_reason="stop", latency_ms=latency)
        try:
            reply = msgspec.json.decode(body)
            text = follow(reply, parse_path(options.answer))
        except UNREADABLE as error:
            return unreadable(body, "JSON", error)
        except LookupError:
            return Failure(kind="malformed", message=f"the reply has no `{options.answer}`", retryable=True)
        prompt, completion = (tokens(_at(reply, path)) for path in (options.tokens.prompt, options.tokens.completion))
        known = prompt is not None and completion is not None
        return Answer(
            text=text if isinstance(text, str) else msgspec.json.encode(text).decode(),
            finish_reason="stop",
            usage=Usage(prompt=prompt or 0, completion=completion or 0) if known else None,
            cost_usd=_cost(_at(reply, options.cost)),
            latency_ms=latency,
        )


def _address(spec: TargetSpec, options: HttpOptions) -> str:
    """Return the URL: from the options, or the target's own name."""
    return options.url or (f"{spec.provider}:{spec.model}" if spec.model.startswith("//") else "")


def _messages(request: Request) -> list[dict[str, str]]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    earlier = [{"role": message.role, "content": message.content} for message in request.history]
    return [*system, *earlier, {"role": "user", "content": request.input}]


def _filled(value: Any, values: dict[str, Any]) -> Any:
    """Fill in every text of a value; `{{ params }}` alone stays a mapping, `{{ messages }}` a list."""
    if isinstance(value, str):
        alone = value.strip()
        name = alone[2:-2].strip() if alone.startswith("{{") and alone.endswith("}}") else ""
        if name in ("messages", "params", "vars"):
            return values[name]
        return fill(value, values)
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    return [_filled(item, values) for item in value] if isinstance(value, list) else value


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _at(reply: Any, path: str) -> Any:
    try:
        return follow(reply, parse_path(path)) if path else None
    except LookupError:
        return None


def _cost(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
