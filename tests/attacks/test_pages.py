"""Every page about a stranger's suites only looks, until somebody presses Run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from tests.attacks.suites import READING, RUNNING, SECRETS
from tests.attacks.watched import watching
from tests.web.conftest import TOKEN

ALL = {f"running {name}": files for name, files in RUNNING.items()} | {
    f"reading {name}": files for name, files in READING.items()
}


def _lay(root: Path) -> list[str]:
    """Write every hostile suite into a folder of its own below one that is served; return their files."""
    outside = root / "outside"
    outside.mkdir()
    for name, text in SECRETS.items():
        (outside / name).write_text(text.replace("CANARY", str(root / "canary")))
    suites = []
    for number, files in enumerate(ALL.values()):
        folder = root / "theirs" / f"s{number}"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("@link:"):
                path.symlink_to(text.removeprefix("@link:").replace("../", "../../"))
            else:
                own = text.replace("CANARY", str(root / "canary")).replace("OUTSIDE", str(outside))
                path.write_text(own.replace("../outside", "../../outside"))
        suites.append(f"s{number}/suite.yaml")
    return suites


@pytest.mark.slow
async def test_no_page_runs_anything(tmp_path, store, monkeypatch):
    from fairtrial.web.serving import serve_site

    suites = _lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with serve_site(store, tmp_path / "theirs", token=TOKEN) as address, aiohttp.ClientSession() as session:

        async def get(path: str) -> str:
            async with session.get(f"{address.rstrip('/')}{path}", headers=headers) as reply:
                assert reply.status < 500, path
                return await reply.text()

        async def post(path: str, body: dict[str, object]) -> None:
            same = {**headers, "origin": address.rstrip("/"), "accept": "application/json"}
            async with session.post(f"{address.rstrip('/')}{path}", json=body, headers=same) as reply:
                assert reply.status < 500, path

        await get("/")  # connects, and imports what pages need
        with watching(tmp_path / "theirs", tmp_path / "test.db", tmp_path / ".fairtrial") as watched:
            texts = [
                await get(path) for path in ("/", "/suites", "/optimisation", "/optimisation/new", "/judges", "/arena")
            ]
            for file in suites:
                query = urlencode({"file": file})
                for page in ("/suites/edit", "/suites/export", "/new", "/new/estimate"):
                    texts.append(await get(f"{page}?{query}"))
                text = (tmp_path / "theirs" / file).read_text()
                await post("/suites/check", {"file": file, "text": text})
                await post("/suites/preview", {"file": file, "text": text, "case": 0})
            await asyncio.sleep(0)
    local = [line for line in watched.seen if "'127.0.0.1', " not in line or ":9" in line]
    assert [line for line in local if str(tmp_path / "test.db") not in line] == []
    assert not (tmp_path / "canary").exists()
    assert not [text for text in texts if "top secret" in text]
