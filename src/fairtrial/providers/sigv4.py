"""AWS Signature Version 4 for JSON requests, which botocore takes several times as long to compute.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
"""

from __future__ import annotations

import hmac
import time
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from yarl import URL

_ALGORITHM = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Credentials(NamedTuple):
    """What a request is signed with."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return "<Credentials>"


class _Prepared(NamedTuple):
    """What the signatures of one second have in common, for one URL."""

    request: Any  # the hash of the request, up to its body
    text: str  # what is signed, up to the hash of the request
    inner: Any  # the two hashes of an HMAC, which have the key so far; `hmac` takes longer to copy
    outer: Any
    headers: dict[str, str]
    authorization: str  # up to the signature


def signed_headers(
    url: str | URL, body: bytes, credentials: Credentials, region: str, service: str, now: datetime | None = None
) -> dict[str, str]:
    """Return the headers of a POST of JSON to a URL without a query, with its signature."""
    second = int(time.time() if now is None else now.timestamp())
    prepared = _prepared(second, url, credentials, region, service)
    request = _digest(prepared.request, sha256(body).hexdigest().encode()).hex()
    inner = _digest(prepared.inner, f"{prepared.text}{request}".encode())
    return {**prepared.headers, "authorization": prepared.authorization + _digest(prepared.outer, inner).hex()}


def _digest(begun: Any, rest: bytes) -> bytes:
    """Return the hash of what is hashed already and the rest."""
    whole = begun.copy()
    whole.update(rest)
    return bytes(whole.digest())


@lru_cache(maxsize=16)
def _prepared(second: int, url: str | URL, credentials: Credentials, region: str, service: str) -> _Prepared:
    moment = f"{datetime.fromtimestamp(second, UTC):%Y%m%dT%H%M%SZ}"
    host, path = _host_and_path(str(url))
    headers = {"content-type": "application/json", "host": host, "x-amz-date": moment}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(headers)  # in the order of the alphabet
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    key = _signing_key(credentials.secret_key, moment[:8], region, service).ljust(sha256().block_size, b"\0")
    del headers["host"]  # the transport sends it
    return _Prepared(
        request=sha256(f"POST\n{path}\n\n{lines}\n{names}\n".encode()),
        text=f"{_ALGORITHM}\n{moment}\n{scope}\n",
        inner=sha256(bytes(byte ^ 0x36 for byte in key)),
        outer=sha256(bytes(byte ^ 0x5C for byte in key)),
        headers=headers,
        authorization=f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature=",
    )


@lru_cache(maxsize=64)
def _host_and_path(url: str) -> tuple[str, str]:
    """Return the host as it is sent, and the path as it is signed: encoded once more than in the request."""
    address = urlsplit(url)
    own_port = address.port is not None and address.port != _DEFAULT_PORTS.get(address.scheme)
    host = f"{address.hostname}:{address.port}" if own_port else address.hostname or ""
    return host, quote(_normal(address.path), safe="/~")


def _normal(path: str) -> str:
    """Return a path without `.`, `..` and empty parts, which AWS leaves out before it checks a signature."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(["", *parts, *([""] if path.endswith("/") or not parts else [])])


@lru_cache(maxsize=16)
def _signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    """Return the key of a day; it is the same for every request."""
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
