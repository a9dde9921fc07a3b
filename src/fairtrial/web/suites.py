"""Suites: listed, written and changed. What is on the page and what is on disk is the same text.

The text is the state. A form is a view of it: every change of a field is a change of the text, made here, and the file
is written when somebody says so.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairtrial import drafting, models, pipeline
from fairtrial.api import wait_for
from fairtrial.config.dataset import FORMATS, rows_of
from fairtrial.config.editing import Editor
from fairtrial.core import registry
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.variables import display
from fairtrial.reports.csv import cell
from fairtrial.suites import suite_path
from fairtrial.web import files
from fairtrial.web.desk import Desk, attachment, go_to, posted, url, whole_body
from fairtrial.web.runs import page_number

_CASES = 50
_MOST_EDITORS = 8
_LARGEST = 20 * 2**20
_CASE_KEYS = ("id", "input", "expected", "weight", "tags", "category", "difficulty", "cluster", "scorer")
_EMPTY = """name: {name}
targets:
  - mock:echo
scorer: exact
cases:
  - id: first
    input: Say Paris
    expected: Paris
"""
_AGENTS = """name: {name}
targets:
  - claude-code
mcp_servers:
  time: {{command: python, args: [-m, mcp_server_time]}}
conditions:
  baseline: {{system: Answer from your own knowledge.}}
  with-time: {{system: Use your tools where they help., mcp: [time], require_tool_use: true}}
judge: {{target: openai:gpt-5}}
scorer: golden_judge
repeats: 3
cases:
  - id: first
    input: What is the time difference between Tokyo and Berlin in January?
    expected: 8 hours; Tokyo is ahead.
"""
_STYLES = """name: {name}
targets:
  - openai:gpt-5-mini
suite: {{kind: optimisation, difficulty: [easy, medium], styles: [polite, strict]}}
repeats: 5
"""
_PAGES = """name: {name}
targets:
  - openai:gpt-5-mini
  - anthropic:claude-sonnet-4-5
judge: {{target: openai:gpt-5}}
suite: code_arena
"""
_EXAMPLE = """# Two mock models, so that everything can be tried without a key. A mock answers from its own script.
name: {name}
targets:
  - {{id: knows, target: mock:knows, options: {{latency_ms: 250, jitter_ms: 400, answers: {{France: Paris, Spain: Madrid, Italy: "It is **Rome**.", Japan: Tokyo, Peru: Lima, Chad: "N'Djamena", Kenya: Nairobi, Norway: Oslo}}}}}}
  - {{id: guesses, target: mock:guesses, options: {{latency_ms: 250, jitter_ms: 400, answers: {{France: Paris, Spain: Barcelona, Italy: Rome, Japan: Kyoto, Peru: Lima, Chad: Chad, Kenya: Mombasa, Norway: Oslo}}}}}}
conditions:
  plain: {{system: You are a helpful assistant.}}
  brief: {{system: Answer with the name of the city alone.}}
scorer: exact
cases:
  - {{id: france, input: "What is the capital of France?", expected: Paris, category: Europe, difficulty: easy}}
  - {{id: spain, input: "What is the capital of Spain?", expected: Madrid, category: Europe, difficulty: easy}}
  - {{id: italy, input: "What is the capital of Italy?", expected: Rome, category: Europe, difficulty: easy}}
  - {{id: norway, input: "What is the capital of Norway?", expected: Oslo, category: Europe, difficulty: easy}}
  - {{id: japan, input: "What is the capital of Japan?", expected: Tokyo, category: Asia, difficulty: medium}}
  - {{id: peru, input: "What is the capital of Peru?", expected: Lima, category: America, difficulty: medium}}
  - {{id: kenya, input: "What is the capital of Kenya?", expected: Nairobi, category: Africa, difficulty: hard}}
  - {{id: chad, input: "What is the capital of Chad?", expected: "N'Djamena", category: Africa, difficulty: hard}}
"""  # noqa: E501
_STARTS = {
    "questions": ("Questions and answers", _EMPTY),
    "example": ("An example with mock models, no key needed", _EXAMPLE),
    "template": ("A commented example of everything", ""),
    "agents": ("An agent under conditions, with MCP servers", _AGENTS),
    "styles": ("Prompt styles on optimisation problems", _STYLES),
    "pages": ("Web pages that models write", _PAGES),
}


class Suites:
    """Pages about suites."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._editors: dict[str, Editor] = {}
        self.routes = [
            Route("/suites", self._list),
            Route("/suites/new", posted(self._create), methods=["POST"]),
            Route("/suites/edit", self._edit),
            Route("/suites/duplicate", posted(self._duplicate), methods=["POST"]),
            Route("/suites/delete", posted(self._delete), methods=["POST"]),
            Route("/suites/import", posted(self._import), methods=["POST"]),
            Route("/suites/export", self._export),
            Route("/suites/check", told(self._check), methods=["POST"]),
            Route("/suites/change", told(self._change), methods=["POST"]),
            Route("/suites/save", told(self._save), methods=["POST"]),
            Route("/suites/draft", told(self._draft), methods=["POST"]),
            Route("/models", self._models),
        ]

    def _list(self, request: Request) -> Response:
        found = files.suite_files(self._desk.folder)
        wanted = request.query_params.get("text", "").strip().lower()
        shown = [file for file in found if wanted in f"{file.name} {file.path}".lower()]
        starts = {name: words for name, (words, _) in _STARTS.items()}
        return self._desk.page(
            request, "suites.html.j2", suites=shown, total=len(found), text=wanted, starts=starts,
            folder=str(self._desk.folder),
        )  # fmt: skip

    def _create(self, request: Request, form: FormData) -> Response:
        name = str(form.get("name", "")).strip()
        file = str(form.get("file", "")).strip() or f"{_slug(name)}.yaml"
        text = str(form.get("text", ""))
        if not text:
            start = _STARTS.get(str(form.get("start")), _STARTS["questions"])[1]
            text = (
                start.format(name=_scalar(name or "my suite")) if start else suite_path("template").read_text("utf-8")
            )
        files.write(self._desk.folder, file, text, before=None)
        return go_to(url("/suites/edit", file=file))

    def _duplicate(self, request: Request, form: FormData) -> Response:
        file = str(form.get("file", ""))
        copy = files.free_name(self._desk.folder, file)
        files.write(self._desk.folder, copy, files.read(self._desk.folder, file), before=None)
        return go_to(url("/suites/edit", file=copy))

    def _delete(self, request: Request, form: FormData) -> Response:
        path = files.place_of(self._desk.folder, str(form.get("file", "")))
        path.unlink(missing_ok=True)
        return go_to("/suites")

    # -- the editor ------------------------------------------------------------------------------

    def _edit(self, request: Request) -> Response:
        file = request.query_params.get("file", "")
        text = files.read(self._desk.folder, file)
        return self._desk.page(
            request,
            "suite.html.j2",
            file=file,
            text=text,
            before=files.fingerprint(text),
            # The page asks at once what is wrong with it: a large dataset takes longer to check than a page may take.
            **self._form(text, page_number(request.query_params)),
        )

    def _form(self, text: str, page: int = 1) -> dict[str, Any]:
        """What the form shows of a text; a text that is no YAML has no form."""
        try:
            value = Editor(text).value
        except FairtrialError as error:
            return {"suite": None, "broken": str(error)}
        listed = value.get("cases")
        cases = listed if isinstance(listed, list) else []
        pages = max(1, -(-len(cases) // _CASES))
        page = min(page, pages)
        first = (page - 1) * _CASES
        return {
            "suite": _soft({key: item for key, item in value.items() if key != "cases"}),
            "broken": "",
            "scorers": scorer_guides(),
            "cases": [
                (index, _soft(case if isinstance(case, dict) else {"input": str(case)}))
                for index, case in list(enumerate(cases))[first : first + _CASES]
            ],
            "case_count": len(cases),
            "page": page,
            "pages": pages,
            "targets": [_soft(_target(entry)) for entry in _list_of(value.get("targets"))],
            "conditions": _mappings(value.get("conditions")),
            "servers": _mappings(value.get("mcp_servers")),
            "judge": _soft(_judge(value.get("judge"))),
            "params": _soft(_mapping_of(value.get("params"))),
            "kind_of": _scorer_type,
            "options_of": _scorer_options,
            "lines": _as_lines,
            "shell": lambda words: shlex.join(str(word) for word in _list_of(words)),
        }

    def _found(self, text: str, file: str) -> dict[str, Any]:
        """Everything that can be known before anything is spent: the messages of `fairtrial validate`."""
        folder = files.place_of(self._desk.folder, file).parent
        try:
            suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
        except ProblemsError as error:
            return {"problems": [msgspec.to_builtins(problem) for problem in error.problems], "facts": ""}
        except FairtrialError as error:
            return {"problems": [{"message": str(error), "file": "", "line": 0, "key": ""}], "facts": ""}
        trials = sum(arm.repeats_of(case) for case in suite.cases() for arm in suite.arms)
        warned = [{"message": words, "file": "", "line": 0, "key": "warning"} for words in pipeline.warnings(suite)]
        facts = f"{_many(suite.case_count, 'case')} × {_many(len(suite.arms), 'arm')}, {_many(trials, 'trial')}"
        return {"problems": warned, "facts": facts}

    def _check(self, request: Request, asked: dict[str, Any]) -> dict[str, Any]:
        text, file = str(asked["text"]), str(asked["file"])
        found = self._found(text, file)
        if asked.get("form"):
            found["html"] = self._part(request, text, int(asked.get("page", 1)))
        return found

    def _change(self, request: Request, asked: dict[str, Any]) -> dict[str, Any]:
        editor = self._opened(str(asked["text"]))
        for change in asked["changes"]:
            apply(editor, change)
        text = editor.text
        self._editors[files.fingerprint(text)] = editor
        found = {"text": text, **self._found(text, str(asked["file"]))}
        if asked.get("form"):
            found["html"] = self._part(request, text, int(asked.get("page", 1)))
        return found

    def _opened(self, text: str) -> Editor:
        """An editor on a text: the one that has just made it, if there is one, since reading a long text takes long."""
        while len(self._editors) > _MOST_EDITORS:
            self._editors.pop(next(iter(self._editors)), None)
        return self._editors.pop(files.fingerprint(text), None) or Editor(text)

    def _part(self, request: Request, text: str, page: int) -> str:
        body = self._desk.page(request, "parts/suite_form.html.j2", **self._form(text, page)).body
        return bytes(body).decode()

    def _save(self, request: Request, asked: dict[str, Any]) -> dict[str, Any]:
        file, text = str(asked["file"]), str(asked["text"])
        if asked.get("force"):  # somebody has seen that the file was changed, and means it
            asked["before"] = files.fingerprint(files.read(self._desk.folder, file))
        before = files.write(self._desk.folder, file, text, before=str(asked["before"]))
        return {"before": before, **self._found(text, file)}

    # -- cases in and out ------------------------------------------------------------------------

    def _import(self, request: Request, form: FormData) -> Response:
        """Cases from a table, put behind those that are there; what comes back is a text to look at."""
        upload = form.get("table")
        if not isinstance(upload, UploadFile) or not upload.filename:
            return JSONResponse({"error": "choose a file: .csv, .tsv, .jsonl or .json"}, 400)
        suffix = Path(upload.filename).suffix.lower()
        if suffix not in FORMATS:
            return JSONResponse({"error": f"cases come as one of {', '.join(FORMATS)}, not `{upload.filename}`"}, 400)
        try:
            cases = read_cases(upload.file.read(_LARGEST + 1), suffix)
            editor = Editor(str(form.get("text", "")))
            editor.insert(("cases",), None, cases)
        except FairtrialError as error:
            return JSONResponse({"error": str(error)}, 400)
        text, file = editor.text, str(form.get("file", ""))
        html = self._part(request, text, 10**6)
        return JSONResponse({"text": text, "count": len(cases), "html": html, **self._found(text, file)})

    def _export(self, request: Request) -> Response:
        """The cases of a suite, also those from its dataset, as a table."""
        file, ending = request.query_params.get("file", ""), request.query_params.get("format", "csv")
        text = files.read(self._desk.folder, file)
        folder = files.place_of(self._desk.folder, file).parent
        suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
        rows = [
            {
                "id": case.id, "input": case.input, "expected": case.expected, "weight": case.weight,
                "tags": list(case.tags), "category": case.category, "difficulty": case.difficulty,
                "cluster": case.cluster, "scorer": case.scorer,
            }
            for case in suite.cases()
        ]  # fmt: skip
        rows = [{key: _shown(suite.variables.template_all(value)) for key, value in row.items()} for row in rows]
        body, media = table_text(rows, ending)
        headers = {"Content-Disposition": attachment(f"{Path(file).stem}-cases.{ending}")}
        return Response(body, media_type=media, headers=headers)

    # -- drafts ----------------------------------------------------------------------------------

    def _draft(self, request: Request, asked: dict[str, Any]) -> dict[str, Any]:
        """A model proposes; a person decides."""
        model, kind = str(asked.get("model", "")).strip(), asked.get("kind")
        if not model:
            raise FairtrialError("name a model that should write the draft, such as openai:gpt-5-mini")
        count = max(1, min(50, int(asked.get("count") or 5)))
        folder = self._desk.folder
        if kind == "suite":
            draft = wait_for(drafting.adraft_suite(model, description=str(asked["about"]), count=count, folder=folder))
            return {"text": _suite_text(draft, model), "draft": msgspec.to_builtins(draft)}
        if kind == "prompt":
            prompt, wishes = str(asked["prompt"]), str(asked.get("about", ""))
            better = wait_for(drafting.adraft_prompt(model, prompt=prompt, wishes=wishes, folder=folder))
            return {"draft": msgspec.to_builtins(better)}
        value = Editor(str(asked["text"])).value
        examples = [
            {"input": str(case.get("input", "")), "expected": str(case.get("expected", ""))}
            for case in _list_of(value.get("cases"))
            if isinstance(case, dict)
        ]
        about = str(asked.get("about") or value.get("description") or value.get("name") or "")
        drafted = wait_for(drafting.adraft_cases(model, about=about, examples=examples, count=count, folder=folder))
        return {"draft": [_given(msgspec.to_builtins(case)) for case in drafted.cases]}

    def _models(self, request: Request) -> Response:
        found = models.search(request.query_params.get("q", ""))
        return JSONResponse({"models": [msgspec.to_builtins(model) for model in found]})


def told(work: Callable[[Request, dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """A view that takes and gives JSON; what cannot be done is said in it."""

    async def view(request: Request) -> Response:
        try:
            body = await whole_body(request, _LARGEST)
            asked = msgspec.json.decode(body, type=dict[str, Any])
            return JSONResponse(await run_in_threadpool(work, request, asked))
        except (FairtrialError, msgspec.MsgspecError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return JSONResponse({"error": f"this change does not fit the suite any more ({error}); reload"}, 400)

    return view


def apply(editor: Editor, change: dict[str, Any]) -> None:
    """One change of a form, made in the text."""
    make = CHANGES.get(change["do"])
    if make is None:
        raise FairtrialError(f"there is no change `{change['do']}`")
    make(editor, tuple(change.get("path", ())), change)


_NEEDED = ("input", "target", "name")


def _written(key: Any, value: Any) -> Any:
    """An empty field is not written, unless something must stand there."""
    if value in ("", None):
        return "" if key in _NEEDED else None
    return value


def _set_mapping(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Options and the like, written `name: value`, one a line."""
    given = _mapping(change["text"])
    if path[0] in ("targets", "judge") and isinstance(editor.get(path[:-1]), str):
        editor.set(path[:-1], {"target": editor.get(path[:-1])})
    editor.set(path, given or None)


def _mapping(text: str) -> dict[str, Any]:
    try:
        given = yaml.safe_load(text) if text.strip() else {}
    except yaml.YAMLError:
        given = text
    if not isinstance(given, dict):
        raise FairtrialError("options are written `name: value`, one a line")
    return given


def _set_words(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Arguments as one types them in a shell."""
    try:
        editor.set(path, shlex.split(change["text"]) or None)
    except ValueError as error:
        raise FairtrialError(f"these arguments cannot be read: {error}") from None


def _duplicate(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    taken = {case.get("id") for case in editor.get(path[:-1]) if isinstance(case, dict)}
    editor.duplicate(path[:-1], int(path[-1]), lambda copy: _rename(copy, taken))


def _rename_key(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """Another name; whoever uses a server by its name uses the new one."""
    editor.rename(path, change["name"])
    if path[0] != "mcp_servers":
        return
    for condition in _mapping_of(editor.get(("conditions",))).values():
        used = _list_of(condition.get("mcp")) if isinstance(condition, dict) else []
        used[:] = [change["name"].strip() if server == path[-1] else server for server in used]


def _set_judge(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    entry = editor.get(("judge",))
    if isinstance(entry, str):
        editor.set(("judge",), {"target": entry})
    if change["key"] == "target" and not change["value"] and set(editor.get(("judge",)) or {}) <= {"target"}:
        editor.remove(("judge",))  # no judge at all
        return
    editor.set(("judge", change["key"]), _written(change["key"], change["value"]))


def _set_target(editor: Editor, path: tuple[Any, ...], change: dict[str, Any]) -> None:
    """A target may be written as a name alone, and is as long as it has nothing else."""
    entry = editor.get(path)
    if isinstance(entry, str) and change["key"] != "target":
        editor.set(path, {"target": entry, change["key"]: change["value"]} if change["value"] != "" else entry)
    elif isinstance(entry, str):
        editor.set(path, change["value"])
    else:
        editor.set((*path, change["key"]), _written(change["key"], change["value"]))


Change = Callable[[Editor, tuple[Any, ...], dict[str, Any]], None]
CHANGES: dict[str, Change] = {
    "set": lambda editor, path, change: editor.set(path, _written(path[-1], change["value"])),
    "mapping": _set_mapping,
    "words": _set_words,
    "scorer": lambda editor, path, change: editor.set(path, _scorer(change["type"], change["options"])),
    "remove": lambda editor, path, change: editor.remove(path),
    "insert": lambda editor, path, change: editor.insert(path, change.get("index"), change["values"]),
    "add": lambda editor, path, change: editor.set(
        (*path, _new_key(editor.get(path) or {}, change["name"])), change["value"]
    ),
    "move": lambda editor, path, change: editor.move(path[:-1], int(path[-1]), int(path[-1]) + change["by"]),
    "rename": _rename_key,
    "duplicate": _duplicate,
    "target": _set_target,
    "judge": _set_judge,
}


def _rename(copy: Any, taken: set[Any]) -> None:
    """A copy needs a name of its own."""
    if isinstance(copy, dict) and copy.get("id"):
        copy["id"] = _new_key(taken, str(copy["id"]))


def _new_key(taken: Any, name: str) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in range(2, 10**6) if f"{name}-{number}" not in taken)


def _scorer(kind: str, options: str) -> Any:
    if not kind:
        return None
    given = _mapping(options)
    return {"type": kind, **given} if given else kind


def _scorer_type(scorer: Any) -> str:
    return str(scorer.get("type", "")) if isinstance(scorer, dict) else str(scorer or "")


def _scorer_options(scorer: Any) -> str:
    """A scorer's options as people write them."""
    given = {key: value for key, value in scorer.items() if key != "type"} if isinstance(scorer, dict) else {}
    return _as_lines(given)


def _as_lines(given: Any) -> str:
    """A mapping as people write it, one a line."""
    return yaml.safe_dump(_plain(given), sort_keys=False, allow_unicode=True).strip() if given else ""


def _plain(value: Any) -> Any:
    """Without what the editor knows of a value's spelling."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


class Soft(dict[str, Any]):
    """What somebody wrote: a key that is not there is None."""

    def __missing__(self, key: str) -> None:
        return None


def _soft(value: Any) -> Any:
    if isinstance(value, dict):
        return Soft({str(key): _soft(item) for key, item in value.items()})
    return [_soft(item) for item in value] if isinstance(value, list) else value


def _mappings(value: Any) -> dict[str, Any]:
    """Named mappings; what is none, such as a condition without anything, is an empty one."""
    return {str(name): _soft(item if isinstance(item, dict) else {}) for name, item in _mapping_of(value).items()}


def _target(entry: Any) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, dict) else {"target": str(entry)}


def _judge(entry: Any) -> dict[str, Any]:
    return dict(entry) if isinstance(entry, dict) else {"target": str(entry)} if entry else {}


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in ("", None, [], {})}


def scorer_guides() -> list[dict[str, Any]]:
    """Every scorer with what a person should know when choosing one."""
    found = []
    for name in registry.names("scorers"):
        cls = registry.load("scorers", name)
        guide = cls.guide
        words = (cls.__doc__ or "").strip().split("\n")[0]
        found.append({"name": name, "words": words, "judged": cls.judged, **msgspec.to_builtins(guide)})
    return found


def read_cases(body: bytes, suffix: str) -> list[dict[str, Any]]:
    """Cases from an uploaded table; columns have the names that cases have."""
    import tempfile

    if len(body) > _LARGEST:
        raise FairtrialError("that is more than 20 MB: put it beside the suite and name it under `dataset:`")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"cases{suffix}"
        path.write_bytes(body)
        cases = []
        for row in rows_of(path):
            if row.problem:
                raise FairtrialError(f"line {row.line}: {row.problem}")
            cases.append(_case(row.fields, row.line))
    if not cases:
        raise FairtrialError("there is no case in this file")
    return cases


def _case(fields: dict[str, Any], line: int) -> dict[str, Any]:
    names = {"question": "input", "prompt": "input", "answer": "expected", "golden_answer": "expected"}
    found = {names.get(str(key).lower(), str(key).lower()): value for key, value in fields.items()}
    if not found.get("input"):
        raise FairtrialError(f"line {line}: a case needs a column `input` (or `question`, or `prompt`)")
    case = _given({key: found.get(key) for key in _CASE_KEYS})
    if isinstance(case.get("tags"), str):
        case["tags"] = [tag.strip() for tag in case["tags"].replace(";", ",").split(",") if tag.strip()]
    if isinstance(case.get("weight"), str):
        try:
            case["weight"] = float(case["weight"])
        except ValueError:
            raise FairtrialError(f"line {line}: a weight is a number, not `{case['weight']}`") from None
    if case.get("weight") == 1:
        del case["weight"]
    if isinstance(case.get("scorer"), str) and case["scorer"].startswith("{"):
        try:
            case["scorer"] = msgspec.json.decode(case["scorer"])
        except msgspec.MsgspecError:
            raise FairtrialError(f"line {line}: this scorer cannot be read: `{case['scorer']}`") from None
    case = {key: _unquoted(value) for key, value in case.items()}
    # What comes from a table is text: it must not name a variable.
    return {key: value.replace("${", "$${") if isinstance(value, str) else value for key, value in case.items()}


def _unquoted(value: Any) -> Any:
    """Without the mark that keeps spreadsheets from taking a text for a formula."""
    if isinstance(value, str) and value.startswith("'") and cell(value[1:]) == value:
        return value[1:]
    return value


def _shown(value: Any) -> Any:
    """A template as people read it."""
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return display(value) if isinstance(value, str) else value


def table_text(rows: list[dict[str, Any]], ending: str) -> tuple[str, str]:
    """Rows as CSV, JSON or JSON lines, with the media type."""
    if ending == "json":
        return msgspec.json.format(
            msgspec.json.encode([_given(row) for row in rows]), indent=2
        ).decode(), "application/json"
    if ending == "jsonl":
        return "".join(msgspec.json.encode(_given(row)).decode() + "\n" for row in rows), "application/x-ndjson"
    if ending != "csv":
        raise FairtrialError(f"cases are exported as csv, json or jsonl, not `{ending}`")
    out = io.StringIO()
    writer = csv.DictWriter(out, _CASE_KEYS)
    writer.writeheader()
    for row in rows:
        flat = {key: ", ".join(value) if isinstance(value, list) else value for key, value in row.items()}
        writer.writerow(
            {
                key: cell(msgspec.json.encode(value).decode() if isinstance(value, dict) else value)
                for key, value in flat.items()
            }
        )
    return out.getvalue(), "text/csv"


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _slug(name: str) -> str:
    slug = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")
    return "-".join(part for part in slug.split("-") if part) or "suite"


def _scalar(text: str) -> str:
    return yaml.safe_dump(text, allow_unicode=True, width=10**6).strip().removesuffix("...").strip()


def _suite_text(draft: Any, model: str) -> str:
    """A drafted suite as a file; what a model wrote names no variable."""
    document = {
        "name": draft.name,
        "description": draft.description,
        "targets": [model],
        "system": draft.system,
        "scorer": draft.scorer if draft.scorer in registry.names("scorers") else "llm_judge",
        "cases": [_given(msgspec.to_builtins(case)) for case in draft.cases],
    }
    if document["scorer"] == "llm_judge":
        document["judge"] = {"target": model}
    editor = Editor("")
    for key, value in _literal(_given(document)).items():
        editor.set((key,), value)
    return editor.text


def _literal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return value.replace("${", "$${") if isinstance(value, str) else value
