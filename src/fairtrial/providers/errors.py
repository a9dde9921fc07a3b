"""Turning what goes wrong with an HTTP call into a failure with its kind: network errors, statuses, bodies."""

from __future__ import annotations

import errno
import re
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fairtrial.core.answer import Answer, Failure, Usage
from fairtrial.providers.moments import seconds_until
from fairtrial.providers.replies import UNREADABLE
from fairtrial.providers.streams import AnswerTooLargeError, read_beginning
from fairtrial.providers.unpacking import UnknownEncodingError

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class ErrorBody(msgspec.Struct):
    """The error format of OpenAI, Anthropic, Google and compatible servers; Bedrock has only a message."""

    error: Any = None
    message: Any = None
    detail: Any = None
    code: Any = None
    type: Any = None


_MAX_TEXT, _MAX_CODE = 4000, 200  # characters
_error_body = msgspec.json.Decoder(ErrorBody)


class Filtered(msgspec.Struct, frozen=True):
    """An error status that means the provider's filter blocked the prompt. It counts as a special kind of answer."""

    text: str


def failure_of(error: Exception, *, answering: bool, streaming: bool) -> Failure:
    """Turn an exception into a failure; `answering` means that status 200 had arrived, so the call may be billed."""
    import aiohttp

    text = _shortened(str(error)) or type(error).__name__
    if isinstance(error, AnswerTooLargeError):  # a retry would be just as large
        return Failure(kind="malformed", message=f"the server sent {text}")
    if isinstance(error, UnknownEncodingError):  # it would be sent again; a stream may come as it is
        return Failure(
            kind="stream" if streaming else "malformed", message=f"the server sent {text}", retryable=streaming
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return Failure(kind="files", message=f"too many files are open: {text}", retryable=True)
    if isinstance(error, aiohttp.ClientConnectorError):
        return Failure(kind="connection", message=f"cannot connect: {text}", retryable=True)
    if isinstance(error, aiohttp.ClientError | OSError | zlib.error):
        if not answering:
            message = f"the connection was lost: {text}"
            return Failure(kind="connection", message=message, retryable=True, maybe_billed=True)
        # Only an answer that broke off while streaming is retried without streaming.
        kind = "stream" if streaming else "malformed"
        return Failure(kind=kind, message=f"the answer was cut off: {text}", retryable=True)
    raise error


def unreadable(body: bytes, what: str, error: Exception) -> Failure:
    """Return the failure for a reply whose body is not valid."""
    if not body.strip():
        reason = "the body is empty"
    elif isinstance(error, UnicodeDecodeError):
        reason = f"the body is not a valid {what} (not UTF-8)"
    else:
        reason = f"the body is not a valid {what} ({error})"
    return malformed(reason)


def malformed(reason: str) -> Failure:
    """Return the failure for a reply without an error status that is not an answer either; it may be billed."""
    return Failure(
        kind="malformed", message=f"the server accepted the request, but {_shortened(reason)}", retryable=True
    )


def unreadable_event(error: Exception) -> Failure:
    """Return the failure for a stream event that is not valid."""
    reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    return Failure(kind="stream", message=f"unreadable event in the stream: {reason}", retryable=True)


async def error_of(response: ClientResponse, *, streaming: bool) -> Failure | Filtered:
    """Read an HTTP error response."""
    result = error_of_status(response.status, await read_beginning(response), response.headers)
    if streaming and isinstance(result, Failure) and result.kind == "refused" and "stream" in result.message.lower():
        # The server may not support streaming, or not with usage: retry without streaming.
        return Failure(kind="stream", message=result.message, retryable=True)
    return result


def cut_off() -> Failure:
    """Return the failure for a stream that ended without its end marker; official clients would take it for whole."""
    return Failure(kind="stream", message="the stream ended before the answer was complete", retryable=True)


def failed_mid_stream(result: Answer | Failure, usage: Usage | None = None) -> Answer | Failure:
    """Mark an error in the middle of a stream: what came before may be billed, and `usage` may be incomplete."""
    if isinstance(result, Answer):
        return result
    return msgspec.structs.replace(result, usage=usage, maybe_billed=True, given_up=True)


def error_of_status(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Failure | Filtered:
    """Return what an error status means for the call and the target."""
    error = _read_error(body)
    headers = headers or {}
    if status == 400 and error.code == "content_filter":
        return Filtered(error.text)
    kind = _kind_of(status, error)
    retryable = kind in ("rate_limited", "server")
    should_retry = headers.get("x-should-retry", "").lower()
    if should_retry in ("true", "false"):
        retryable = should_retry == "true"
    text = error.text
    if 300 <= status < 400:  # following a redirect could send the key to a third party
        text = "the server redirects; set the base URL to the address that it redirects to"
    wait = _retry_after(headers) if error.wait is None else error.wait
    return Failure(
        kind=kind,
        message=f"HTTP {status}: {text}",
        retryable=retryable,
        retry_after=wait if retryable else None,
    )


class _Error(msgspec.Struct, frozen=True, kw_only=True):
    """An error as a provider describes it; `wait` is how many seconds to wait, if the body says so."""

    text: str
    code: str = ""
    wait: float | None = None
    used_up: bool = False  # a quota that does not come back within minutes


# Codes and texts that say more than the status: which key, model or quota does not work, whatever the case asks.
_AUTH_CODES = frozenset({"insufficient_quota", "API_KEY_INVALID", "billing_not_active"})
_MODEL_CODES = frozenset({"invalid_model", "DeploymentNotFound", "model_not_found", "model_decommissioned"})
_CONTEXT_CODE = "context_length_exceeded"
_TOO_LONG = re.compile(
    r"context.(?:length|window|size|limit)|(?:prompt|input) is too long|input token count .*exceeds"
    r"|maximum prompt length",
    re.IGNORECASE,
)
# Bedrock: the model needs an inference profile; there is no such model; its end has come.
_NO_MODEL = re.compile(
    r"with on-demand throughput isn|provided model identifier is invalid|model version has reached the end of its life",
    re.IGNORECASE,
)
_NOT_THIS_WAY = re.compile(r"no endpoints found that support", re.IGNORECASE)  # OpenRouter: it has the model


def _kind_of(status: int, error: _Error) -> str:
    if status in (401, 402, 403) or error.used_up or error.code in _AUTH_CODES:
        return "auth"
    if status == 404 and _NOT_THIS_WAY.search(error.text):
        return "refused"
    if status == 404 or error.code in _MODEL_CODES or _NO_MODEL.search(error.text):
        return "model"
    if error.code == _CONTEXT_CODE or (status in (400, 413, 422) and _TOO_LONG.search(error.text)):
        return "context"
    if status == 429:
        return "rate_limited"
    return "server" if status in (408, 409, 424) or status >= 500 else "refused"


def _read_error(body: bytes) -> _Error:
    text, code, wait, used_up = "", "", None, False
    try:
        parsed = _error_body.decode(body)
        error = parsed.error if parsed.error is not None else parsed.message or parsed.detail
        code = str(parsed.type or "")
        if isinstance(error, dict):
            code = str(error.get("code") or error.get("type") or "")
            code, wait, used_up = _read_details(error.get("details"), code)
            error = error.get("message")
        text = _in_words(error) if error else ""
    except UNREADABLE:
        pass
    text = " ".join((text or body.decode("utf-8", "replace")).split())
    return _Error(text=_shortened(text) or "no message", code=code[:_MAX_CODE], wait=wait, used_up=used_up)


def _shortened(text: str) -> str:
    """Shorten what a server says between two words: half a secret could not be recognised and hidden."""
    if len(text) <= _MAX_TEXT:
        return text
    words, _, _ = text[:_MAX_TEXT].rpartition(" ")
    return f"{words} … ({len(text):,} characters)".lstrip()


def _in_words(error: Any) -> str:
    """Return a message; a list of them, as validators send it, says of which field each is."""
    if isinstance(error, list) and all(isinstance(item, dict) and "msg" in item for item in error):
        return "; ".join(f"{'.'.join(map(str, item.get('loc', ())))}: {item['msg']}" for item in error)
    return str(error)


def _read_details(details: Any, code: str) -> tuple[str, float | None, bool]:
    """Return what Google's details say: the reason, how long to wait, and whether a daily quota is used up."""
    wait, used_up = None, False
    for detail in details if isinstance(details, list) else ():
        if not isinstance(detail, dict):
            continue
        code = str(detail.get("reason") or code)
        if str(detail.get("retryDelay", "")).endswith("s"):
            wait = _seconds(detail["retryDelay"][:-1])
        for violation in detail.get("violations") or ():
            used_up = used_up or (isinstance(violation, dict) and "PerDay" in str(violation.get("quotaId")))
    return code, wait, used_up


def _seconds(value: str) -> float | None:
    try:
        return max(0.0, float(value))
    except ValueError:
        return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds to wait; the header may also hold milliseconds or a date."""
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("Retry-After") or headers.get("retry-after")
    if not value:
        return None
    if (seconds := _seconds(value)) is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        return seconds_until(parsedate_to_datetime(value).timestamp(), headers)
    except (ValueError, OverflowError):
        return None
