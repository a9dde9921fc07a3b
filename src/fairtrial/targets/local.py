"""`local`: an embedded chat model that runs on the CPU, without a key or a network."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

from fairtrial.core.answer import Answer, Failure, Request
from fairtrial.core.errors import NotInstalledError, TargetUnusableError
from fairtrial.core.experiment import EMBEDDER, TargetSpec
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
    embeds: ClassVar[bool] = True

    def __init__(self, spec: TargetSpec, options: LocalOptions, folder: Path) -> None:
        super().__init__(spec, options, folder)
        self._options = options
        self._servers: dict[bool, _LlamaServer] = {}  # whether for embeddings: llama.cpp has a server for either
        self._starting = asyncio.Lock()
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
        self._concurrency = concurrency
        if self._options.path is not None:
            self._path = self.folder / self._options.path
        else:
            self._path = path = weights_path(self.spec.model)
            if not await asyncio.to_thread(is_intact, self.spec.model):
                problem = "are damaged or were altered" if path.is_file() else "have not been downloaded"
                raise TargetUnusableError(
                    f"{self.spec.id}: the weights {problem}; get them with `fairtrial fetch {self.spec.model}`"
                )
        await self._client(embed=self.spec.id.startswith(EMBEDDER))  # so that a problem shows at once

    async def _client(self, *, embed: bool) -> OpenaiApi:
        """Return a client of the server for chats or embeddings, which is started when it is needed."""
        async with self._starting:
            if embed not in self._servers:
                key = secrets.token_hex(16)
                server = await asyncio.to_thread(_start, self._path, self._options, key, embed=embed)
                spec = msgspec.structs.replace(self.spec, base_url=f"{server.listening_address}/v1", api_key=key)
                client = OpenaiApi(spec, Options(), self.folder)
                await client.open(self._concurrency)
                self._servers[embed] = _LlamaServer(server, client)
            return self._servers[embed].client

    def sent(self, request: Request) -> dict[str, Any]:
        return self._servers[request.embed].client.sent(request) if request.embed in self._servers else {}

    def versions(self) -> dict[str, str]:
        return {"xllamacpp": version("xllamacpp")}

    async def ask(self, request: Request) -> Answer | Failure:
        result = await (await self._client(embed=request.embed)).ask(request)
        # The server reports the path of the file as its model, which must not be recorded.
        return msgspec.structs.replace(result, model=self.spec.model) if isinstance(result, Answer) else result

    async def close(self) -> None:
        while self._servers:
            ending = self._servers.popitem()[1]
            await ending.client.close()
            holder = [ending.server]
            del ending
            await asyncio.to_thread(holder.clear)  # dropping the last reference stops it, and waits for its threads


class _LlamaServer(NamedTuple):
    """A server of llama.cpp, and the client that talks to it."""

    server: Any
    client: OpenaiApi


def _start(path: Path, options: LocalOptions, key: str, *, embed: bool) -> Any:
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
    params.fit_params = False  # it would load the model twice to see what fits where; there is only the processor
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    threads = options.threads or max(1, (os.cpu_count() or 2) // 2)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    if embed:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_batch = params.n_ubatch = options.context  # a text is embedded in one piece
    try:
        return xllamacpp.Server(params)
    except Exception as error:  # llama.cpp gives hardly any reason
        raise TargetUnusableError(f"{path} cannot be loaded ({error}): is it a GGUF model?") from None
