"""Import from NLP4LP: a folder for each problem, or the rows of the published table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairtrial.core.errors import FairtrialError
from fairtrial.foreign.suites import Reference, read_text
from fairtrial.tracks.optimisation.importers._labelled import LabelledImporter, LabelledQuestion, read_records

_CODES = ("optimus-code.py", "optimus_code.py")


class Nlp4lp(LabelledImporter):
    """Imports NLP4LP: `description.txt`, `parameters.json`, `solution.json`, and `optimus-code.py`, the reference."""

    tool = "NLP4LP"

    def questions(self, file: Path) -> list[LabelledQuestion]:
        return [_question(name, row) for name, row in (_folders(file) if file.is_dir() else _rows(file))]


def _folders(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    found = sorted(folder.rglob("description.txt"), key=lambda path: _natural(path.parent.relative_to(folder)))
    if not found:
        raise FairtrialError(f"{folder} has no problems: each is a folder with description.txt and solution.json")
    for path in found:
        own = path.parent
        code = next((own / name for name in _CODES if (own / name).is_file()), None)
        yield (
            own.relative_to(folder).as_posix() if own != folder else own.name,
            {
                "description": read_text(path),
                "parameters": _optional(own / "parameters.json"),
                "solution": _optional(own / "solution.json"),
                "optimus_code": read_text(code) if code else None,
            },
        )


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else 10**9, part) for part in path.parts]


def _optional(path: Path) -> str | None:
    return read_text(path) if path.is_file() else None


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, record in enumerate(read_records(file), 1):
        yield str(record.get("id", record.get("index", number))), record


def _question(name: str, row: dict[str, Any]) -> LabelledQuestion:
    parameters, solution = _loaded(row.get("parameters")), _loaded(row["solution"])
    values = _values(parameters)
    code = row.get("optimus_code") or row.get("optimus-code")
    reference = None
    if isinstance(code, str) and code.strip():
        body = json.dumps(values).encode()
        reference = Reference(program=code, files={"parameters.json": body, "data.json": body})
    label = solution.get("objective") if isinstance(solution, dict) else solution
    return LabelledQuestion(name.replace("/", "-"), _told(row["description"], parameters), label, reference=reference)


def _loaded(value: Any) -> Any:
    """Return JSON that may be there as an object or as its text."""
    return json.loads(value) if isinstance(value, str) and value.strip() else value


def _values(parameters: Any) -> dict[str, Any]:
    """Return the numbers of the parameters, which may be next to their definitions."""
    if not isinstance(parameters, dict):
        return {}
    return {key: one["value"] if isinstance(one, dict) and "value" in one else one for key, one in parameters.items()}


def _told(description: str, parameters: Any) -> str:
    """Return the description with the numbers of parameters that are only named in it."""
    values = _values(parameters)
    named = {key: value for key, value in values.items() if key in description}
    if not named:
        return description
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in named.items())
    return f"{description.strip()}\n\nThe data:\n{lines}"
