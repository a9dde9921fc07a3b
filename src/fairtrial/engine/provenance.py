"""The record of how a run was made: the parameters sent for each arm and the versions of everything involved."""

from __future__ import annotations

import asyncio
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from fairtrial.agents.mcp.offers import Inventory
from fairtrial.core.answer import Request
from fairtrial.core.experiment import Arm
from fairtrial.core.target import Target
from fairtrial.forges.git import git_facts
from fairtrial.providers.params import remarks
from fairtrial.providers.sheet import refreshed_layers, sheet_hash, shipped_on

_PACKAGES = ("fairtrial", "aiohttp", "rapidfuzz", "regex", "genai-prices")


async def run_context(
    arms: Sequence[Arm],
    targets: Mapping[str, Target],
    inventory: Sequence[Inventory],
    folder: Path | None = None,
    *,
    looks: bool,
) -> dict[str, Any]:
    """Return what is known when a run starts; `looks` says whether pages will be opened in a browser."""
    packages = {name: _version_of(name) for name in (*_PACKAGES, *(("mcp",) if inventory else ()))}
    for target in targets.values():
        packages |= target.versions()
    if looks:
        packages |= await asyncio.to_thread(_browser_versions)
    context: dict[str, Any] = {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": packages,
        "models": {"sheet": sheet_hash(), "checked": shipped_on(), **_refreshed()},
        "arms": [_arm(arm, targets[arm.target.id]) for arm in arms],
    }
    if folder is not None and (facts := await asyncio.to_thread(git_facts, folder)):
        context["git"] = facts
    return {**context, "mcp_servers": msgspec.to_builtins(inventory)} if inventory else context


def _refreshed() -> dict[str, dict[str, str]]:
    days = {layer.file: layer.rows.checked for layer in refreshed_layers()}
    return {"refreshed": days} if days else {}


def with_what_was_learned(
    context: dict[str, Any], arms: Sequence[Arm], targets: Mapping[str, Target]
) -> dict[str, Any]:
    """Return the record with the parameters of the last requests, where servers have refused some of the first."""
    refusing = {arm.position: arm for arm in arms if getattr(targets.get(arm.target.id), "refused", None)}
    recorded = [
        {**row, **_arm(refusing[position], targets[refusing[position].target.id])} if position in refusing else row
        for position, row in enumerate(context["arms"])
    ]
    return {**context, "arms": recorded}


def own_version() -> str:
    """Return the version of this package."""
    return _version_of("fairtrial")


@cache  # reading a package's description takes milliseconds, and every run asks for the same few
def _version_of(package: str) -> str:
    return version(package)


def _arm(arm: Arm, target: Target) -> dict[str, Any]:
    """Return what an arm's target is given: parameters, and the names of variables, never their values."""
    # Individual cases may override the parameters.
    request = Request(
        trial_id="", case_id="", input="", params=arm.params, defaulted=arm.defaulted, mcp=arm.condition.mcp
    )
    record: dict[str, Any] = {
        "variables": target.variables(),
        "refused": sorted(getattr(target, "refused", ())),
        "agent": target.agent,
        "remarks": list(remarks(arm.target, arm.chosen_params, tools=bool(arm.condition.mcp))),
    }
    return {"arm": arm.name, "sent": target.sent(request), **{name: value for name, value in record.items() if value}}


def _browser_versions() -> dict[str, str]:
    from fairtrial.webpage.browser import NoBrowserError, usable_browser  # only runs with pages need it

    try:
        program = usable_browser()
        output = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=120, check=True)
    except (NoBrowserError, OSError, subprocess.SubprocessError):
        return {}
    match = re.match(r"(\D+?) (\d[\d.]*)", output.stdout)
    return {"playwright": version("playwright"), **({match[1]: match[2]} if match else {})}
