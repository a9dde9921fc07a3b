"""A suite as users hold it in Python: loaded from a file, or made with the keys of one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fairtrial.config.check_suite import check_source
from fairtrial.config.checked_suite import CheckedSuite
from fairtrial.config.document import SuiteDocument
from fairtrial.config.keys import variables_of
from fairtrial.config.python import Case as CaseGiven
from fairtrial.config.python import Made, Scorer, Target, as_yaml
from fairtrial.config.run_options import RunOptions
from fairtrial.config.source import SuiteSource
from fairtrial.core.errors import FairtrialError
from fairtrial.core.registry import nearest
from fairtrial.core.variables import Variables


class Suite(CheckedSuite):
    """A checked suite: its arms, its settings, and a stream of its cases. From a file (`load_suite`), or made here."""

    def __init__(
        self,
        *,
        name: str,
        targets: Sequence[Target],
        cases: Iterable[CaseGiven | Mapping[str, Any]] | Any | None = None,
        scorer: Scorer | None = None,
        repeats: int | None = None,
        dataset: str | Path | Mapping[str, Any] | Any | None = None,
        conditions: Mapping[str, Mapping[str, Any]] | None = None,
        prompts: Mapping[str, Any] | None = None,
        system: str | None = None,
        system_file: str | Path | None = None,
        judge: Target | None = None,
        judges: Sequence[Target] | None = None,
        panel: Mapping[str, Any] | None = None,
        second_judge: Target | None = None,
        params: Mapping[str, Any] | None = None,
        case_defaults: Mapping[str, Any] | None = None,
        vars: Mapping[str, Any] | None = None,
        extract: str | Mapping[str, Any] | None = None,
        on_refusal: Literal["wrong", "unscored", "right"] | None = None,
        on_limit: Literal["check", "wrong", "fail"] | None = None,
        solved: float | None = None,
        primary_metric: str | None = None,
        largest: float | None = None,
        cluster_by: Literal["question"] | None = None,
        looks: int | None = None,
        race: bool | None = None,
        gap: float | None = None,
        gate: Mapping[str, Any] | None = None,
        concurrency: int | None = None,
        timeout: float | None = None,
        budget_usd: float | None = None,
        benchmark_mode: bool | None = None,
        stream: bool | None = None,
        cache: bool | None = None,
        retry: Mapping[str, Any] | None = None,
        providers: Mapping[str, Mapping[str, Any]] | None = None,
        prices: Mapping[str, Mapping[str, float]] | None = None,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
        workspace: Mapping[str, Any] | None = None,
        user: Mapping[str, Any] | None = None,
        suite: str | Mapping[str, Any] | None = None,
        description: str | None = None,
        folder: str | Path | None = None,
        options: RunOptions | None = None,
    ) -> None:
        """Make a suite in Python; the keys are those of a suite file, and so are the checks.

        Raises ProblemsError, a FairtrialError, with everything that is wrong with it.

        Args:
            name: Its name.
            targets: What answers: names such as `openai:gpt-6-luna`, mappings with `target`, `id` and `params`,
                functions (sync or async), or objects with `invoke`.
            cases: `ft.Case` objects or mappings, a data frame (pandas, polars, Arrow), or an iterator of rows; text
                in them is data.
            scorer: How answers are scored, unless a case says otherwise: a name, a mapping with options, or a
                function. Default: `match`.
            repeats: How many times each case is answered, independently.
            dataset: A data file, or a mapping with `path` and the names of columns; `path` may be a data frame.
            conditions: What targets get in addition to the case, by name: `system`, `prompt`, `mcp`.
            prompts: Wordings by name, each a condition; with `conditions`, every pair.
            system: The system prompt; or `system_file`.
            judge: The model that judges; or `judges`, several as a panel.
            panel: How the verdicts of several judges are combined.
            second_judge: A better judge of a random part of the cases (`share`); it corrects the others.
            params: Sampling parameters, such as `{"temperature": 0}`.
            case_defaults: Defaults for every case.
            vars: Values for templates, `{{ name }}` in prompts.
            extract: Which part of an answer is scored.
            on_refusal: The score of a refusal: 0, none, or 1.
            on_limit: What a limit is that an agent reaches: `check` scores what is there, `wrong` is 0, or `fail`.
            solved: The score, from 0 to 1, from which on a trial counts as solved; default: 1, full marks.
            primary_metric: The metric used in comparisons; default: the score.
            cluster_by: `question`: cases that ask the same, word for word, are one cluster.
            looks: Stop at one of this many planned looks, once the question is answered.
            race: Whether arms that a look has shown to be worse than another one are asked no more.
            gap: The difference that looks are for, in points; they stop where it cannot show any more.
            largest: The largest difference between two arms that a case can show, in points; narrows intervals.
            gate: What a run must satisfy before a merge: `margin`, `must_pass`, `k_of_n`, `categories`, `guards`.
            concurrency: Calls at the same time.
            timeout: Seconds for one request; default: 120 for a model, 600 for an agent's session.
            budget_usd: Stop before spending more than this.
            benchmark_mode: Lock temperature and penalties to 0.
            stream: Whether answers are streamed.
            cache: Reuse answers to the same trial from earlier runs.
            retry: How failed calls are retried.
            providers: Your own model servers; `${VAR}` keeps a key out of the suite.
            prices: USD per million tokens, by target.
            mcp_servers: MCP servers that conditions can use.
            workspace: A fresh folder for every trial of an agent: `files`, `setup`, `keep`, `sandbox`.
            user: A simulated user: every case is a conversation with it.
            suite: Cases that come with fairtrial.
            description: What it is about.
            folder: What paths are relative to; default: the working directory.
            options: Which part of it to run, such as `RunOptions(limit=5)`: 5 random cases, always the same.
        """
        keys = {key: value for key, value in locals().items() if key in SuiteDocument.__struct_fields__}
        home = Path(folder) if folder is not None else Path()
        self._made = Made(keys, variables_of(home), home)
        check_source(self, self._made.source, options or RunOptions())

    @classmethod
    def from_dict(
        cls, keys: Mapping[str, Any], *, folder: str | Path | None = None, options: RunOptions | None = None
    ) -> Suite:
        """Make a suite from a mapping with the keys of a suite file."""
        unknown = [str(key) for key in keys if key not in SuiteDocument.__struct_fields__]
        if unknown:
            hint = nearest(unknown[0], list(SuiteDocument.__struct_fields__))
            raise FairtrialError(f"suite: {unknown[0]}: unknown key{hint}")
        missing = next((key for key in ("name", "targets") if key not in keys), None)
        if missing:
            raise FairtrialError(f"suite: `{missing}` is missing")
        return cls(**keys, folder=folder, options=options)

    def to_yaml(self) -> str:
        """Return the suite as the text of a file; raise if something in it has no name that a file could have."""
        if self._made is None:
            return self.text
        return as_yaml(self._made.value, self._made.rows)


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
        return nearest(path.name, there)
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
    folder = folder or Path()
    if environment is None:
        variables = variables_of(folder, placeholders=placeholders)
    else:
        variables = Variables(environment, placeholders=placeholders)
    source = SuiteSource(text, file, variables, folder)
    return check_source(Suite.__new__(Suite), source, options or RunOptions(), whole=whole)
