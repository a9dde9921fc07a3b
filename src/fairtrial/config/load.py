"""Loading of a suite from a file or a text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from fairtrial.config.check_suite import check_source
from fairtrial.config.keys import variables_of
from fairtrial.config.run_options import RunOptions
from fairtrial.config.source import SuiteSource
from fairtrial.config.suite import Suite
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError
from fairtrial.core.variables import Variables


def load_suite(
    path: str | Path,
    options: RunOptions | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    placeholders: bool = False,
    whole: bool = True,
) -> Suite:
    """Load and check a suite file; raise ProblemsError with all its problems.

    Variables come from `environment` if it is set, else from the process environment and from `.env` files next to the
    suite or in the working directory. With `placeholders`, variables may be unset: the suite can be
    checked, but not run. Unless `whole`, later cases of a large dataset are checked when they are read.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise FairtrialError(f"there is no file {path}{_instead_of(path)}") from None
    except IsADirectoryError:
        raise FairtrialError(f"{path} is a folder; give the suite file in it") from None
    except UnicodeDecodeError:
        raise FairtrialError(f"{path} is not a UTF-8 text file") from None
    except OSError as error:
        raise FairtrialError(f"{path} cannot be read: {error.strerror}") from None
    return parse_suite(
        text,
        file=str(path),
        folder=path.parent,
        options=options,
        environment=environment,
        placeholders=placeholders,
        whole=whole,
    )


def _instead_of(path: Path) -> str:
    """Say what to do without this file: take one that is there, or write one."""
    there = sorted(file.name for file in path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
    if there:
        return registry.nearest(path.name, there)
    return f"; `{shlex.join(['fairtrial', 'init', str(path.parent)])}` writes a suite to start from"


def parse_suite(
    text: str,
    *,
    file: str = "suite",
    folder: Path | None = None,
    options: RunOptions | None = None,
    environment: Mapping[str, str] | None = None,
    placeholders: bool = False,
    whole: bool = True,
) -> Suite:
    """Parse and check the text of a suite."""
    folder, options = folder or Path(), options or RunOptions()
    if environment is None:
        variables = variables_of(folder, placeholders=placeholders)
    else:
        variables = Variables(environment, placeholders=placeholders)
    source = SuiteSource(text, file, variables)
    return check_source(Suite.__new__(Suite), source, folder, options, variables, whole=whole)
