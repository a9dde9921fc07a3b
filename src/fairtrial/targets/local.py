"""`local`: an embedded chat model that runs on the CPU, without a key or a network."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import NotInstalledError, TargetUnusableError
from fairtrial.core.experiment import TargetSpec
from fairtrial.core.target import Options, Target
from fairtrial.providers.weights import WEIGHTS, is_intact, weights_path
from fairtrial.targets.openai_api import OpenaiApi

_QUIET = -1  # keeps llama.cpp's log off the terminal


class LocalOptions(Options, frozen=True, kw_only=True):
    """`context` is the context size in tokens, for prompt and answer together; `path` runs your own GGUF file."""

    threads: Annotated[int, msgspec.Meta(ge=1)] | None = None
    slots: Annotated[int, msgspec.Meta(ge=1, le=16)] = 2
    context: Annotated[int, msgspec.Meta(ge=256)] = 4096
    path: str | None = None


class Local(Target):
    """llama.cpp's server in this process, on loopback, protected by a random key."""

    options_type: ClassVar[type[Options]] = LocalOptions
    takes_chats: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: LocalOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options
        self.most_at_once = options.slots  # type: ignore[misc]  # known only per instance

    @classmethod
    def check(cls, spec: TargetSpec, options: Any, folder: Path) -> Iterable[str]:
        if options.path is not None:
            if not (folder / options.path).is_file():
                yield f"there is no file {folder / options.path}"
        elif spec.model not in WEIGHTS:
            yield f"there is no embedded model `{spec.model}`; available: {', '.join(WEIGHTS)}"

    @property
    def lane(self) -> str:
        return f"local:{self.spec.id}"

    async def open(self, concurrency: int) -> None:
        if self._options.path is not None:
            path = self.folder / self._options.path
        else:
            path = weights_path(self.spec.model)
            if not await asyncio.to_thread(is_intact, self.spec.model):
                problem = "are damaged or were altered" if path.is_file() else "have not been downloaded"
                raise TargetUnusableError(
                    f"{self.spec.id}: the weights {problem}; get them with `fairtrial fetch {self.spec.model}`"
                )
        key = secrets.token_hex(16)
        self._server = await asyncio.to_thread(_start, path, self._options, key)
        spec = msgspec.structs.replace(self.spec, base_url=f"{self._server.listening_address}/v1", api_key=key)
        self._client = OpenaiApi(spec, Options(), self.folder)
        await self._client.open(concurrency)

    def sent(self, request: Request) -> dict[str, Any]:
        return self._client.sent(request)

    def versions(self) -> dict[str, str]:
        return {"xllamacpp": version("xllamacpp")}

    async def ask(self, request: Request) -> Answer | Failure:
        result = await self._client.ask(request)
        # The server reports the path of the file as its model, which must not be recorded.
        return msgspec.structs.replace(result, model=self.spec.model) if isinstance(result, Answer) else result

    async def close(self) -> None:
        if hasattr(self, "_client"):
            await self._client.close()
            server = self._server
            del self._server
            await asyncio.to_thread(_stop, server)


def _start(path: Path, options: LocalOptions, key: str) -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise NotInstalledError("the embedded model", "local") from None
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.offline = True
    params.use_jinja = True
    params.verbosity = _QUIET
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    threads = options.threads or max(1, (os.cpu_count() or 2) // 2)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    try:
        return xllamacpp.Server(params)
    except Exception as error:  # llama.cpp gives hardly any reason
        raise TargetUnusableError(f"{path} cannot be loaded ({error}): is it a GGUF model?") from None


def _stop(server: Any) -> None:
    """Stop the server by dropping the last reference; this waits for its threads, so call it in a thread."""
    del server
