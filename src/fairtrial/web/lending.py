"""What forms borrow from a suite of this folder, or from that of a run: providers, prices, keys, models, judges."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from fairtrial import pipeline
from fairtrial.config import RunOptions, Suite
from fairtrial.core.errors import FairtrialError
from fairtrial.core.providers import known_providers, split_name
from fairtrial.text.yaml_text import read_yaml
from fairtrial.web import files
from fairtrial.web.site import Site

_RUN = "run:"  # before the id of a run whose suite is meant


def lenders(site: Site, chosen: str) -> list[tuple[str, str]]:
    """Return what can be chosen, and how it is called: suites of the folder, and the run that was chosen already."""
    found = [(file.path, f"{file.name} ({file.path})") for file in files.suite_files(site.folder)]
    if run_id := run_of(chosen):
        record = site.run(run_id).record
        found.insert(0, (chosen, f"{record.suite_name}, as in run {record.number}"))
    return found


def lent_by_run(run_id: str) -> str:
    """Return the choice of a run's suite."""
    return f"{_RUN}{run_id}"


def run_of(chosen: str) -> str | None:
    """Return the run whose suite was chosen, if it was one."""
    return chosen.removeprefix(_RUN) if chosen.startswith(_RUN) else None


def lent_suite(site: Site, file: str) -> Suite:
    """Return a suite of the folder, of which only what a form borrows is needed."""
    text = files.read(site.folder, file)
    folder = files.path_of(site.folder, file).parent
    return pipeline.load_text(text, file=Path(file).name, folder=folder, options=RunOptions(first=1))


def lent_document(site: Site, file: str) -> tuple[dict[str, Any], Path]:
    """Return a suite of the folder as it is written, and the folder that its paths are relative to."""
    try:
        document = read_yaml(files.read(site.folder, file))
    except yaml.YAMLError:
        document = None
    if not isinstance(document, dict):
        raise FairtrialError(f"`{file}` is not a suite: open it under Suites to see what is wrong")
    return document, files.path_of(site.folder, file).parent


def check_providers(site: Site, names: Iterable[str]) -> None:
    """Raise if a model is of a provider that only a suite of this folder defines: then that suite must be chosen."""
    known = known_providers()
    for name in names:
        provider = split_name(name)[0]
        if provider and provider not in known and (file := _defines(site, provider)):
            raise FairtrialError(f"`{provider}` is a provider of {file}: choose that suite, so that `{name}` is known")


def _defines(site: Site, provider: str) -> str | None:
    for file in files.suite_files(site.folder):
        try:
            document, _ = lent_document(site, file.path)
        except FairtrialError:
            continue
        providers = document.get("providers")
        if isinstance(providers, dict) and provider in providers:
            return file.path
    return None
