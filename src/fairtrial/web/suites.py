"""Suites: listed, written and changed. What is on the page and what is on disk is the same text.

The text is the state. A form is a view of it: every change of a field is a change of the text, made here, and the file
is written when somebody says so.
"""

from __future__ import annotations

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

from fairtrial import pipeline
from fairtrial.api import wait_for
from fairtrial.config.advice import warnings
from fairtrial.config.dataset import FORMATS
from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError, ProblemsError
from fairtrial.core.experiment import read_expected, show_expected
from fairtrial.providers import models
from fairtrial.suites import suite_path
from fairtrial.web import files
from fairtrial.web.changes import apply, list_of
from fairtrial.web.form import form_of
from fairtrial.web.grid import page_number
from fairtrial.web.site import Site, attachment, go_to, posted, url, whole_body
from fairtrial.web.tables import LARGEST, case_rows, given, read_cases, table_text
from fairtrial.workflows.draft import adraft_cases, adraft_prompt, adraft_suite, suite_text

_MOST_EDITORS = 8
_BEGINNINGS = Path(__file__).parent / "starts"
_STARTS = {
    "questions": "Questions and answers",
    "example": "An example with mock models, no key needed",
    "template": "A commented example of everything",
    "agents": "An agent under conditions, with MCP servers",
    "styles": "Prompt styles on optimisation problems",
    "pages": "Web pages that models write",
}


class Suites:
    """Pages about suites."""

    def __init__(self, site: Site) -> None:
        self._site = site
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
        found = files.suite_files(self._site.folder)
        wanted = request.query_params.get("text", "").strip().lower()
        shown = [file for file in found if wanted in f"{file.name} {file.path}".lower()]
        return self._site.page(
            request, "suites.html.j2", suites=shown, total=len(found), text=wanted, starts=_STARTS,
            folder=str(self._site.folder),
        )  # fmt: skip

    def _create(self, request: Request, form: FormData) -> Response:
        name = str(form.get("name", "")).strip()
        file = str(form.get("file", "")).strip() or f"{_slug(name)}.yaml"
        text = str(form.get("text", ""))
        if not text:
            text = _beginning(str(form.get("start")), name or "my suite")
        files.write(self._site.folder, file, text, before=None)
        return go_to(url("/suites/edit", file=file))

    def _duplicate(self, request: Request, form: FormData) -> Response:
        file = str(form.get("file", ""))
        copy = files.free_name(self._site.folder, file)
        files.write(self._site.folder, copy, files.read(self._site.folder, file), before=None)
        return go_to(url("/suites/edit", file=copy))

    def _delete(self, request: Request, form: FormData) -> Response:
        path = files.path_of(self._site.folder, str(form.get("file", "")))
        path.unlink(missing_ok=True)
        return go_to("/suites")

    # -- the editor ------------------------------------------------------------------------------

    def _edit(self, request: Request) -> Response:
        file = request.query_params.get("file", "")
        text = files.read(self._site.folder, file)
        return self._site.page(
            request,
            "suite.html.j2",
            file=file,
            text=text,
            before=files.fingerprint(text),
            # The page asks at once what is wrong with it: a large dataset takes longer to check than a page may take.
            **form_of(text, page_number(request.query_params)),
        )

    def _found(self, text: str, file: str) -> dict[str, Any]:
        """Everything that can be known before anything is spent: the messages of `fairtrial validate`."""
        folder = files.path_of(self._site.folder, file).parent
        try:
            suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
        except ProblemsError as error:
            return {"problems": [msgspec.to_builtins(problem) for problem in error.problems], "facts": ""}
        except FairtrialError as error:
            return {"problems": [{"message": str(error), "file": "", "line": 0, "key": ""}], "facts": ""}
        trials = sum(arm.repeats_of(case) for case in suite.cases() for arm in suite.arms)
        warned = [{"message": words, "file": "", "line": 0, "key": "warning"} for words in warnings(suite)]
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
        found = {"text": text, **self._found(text, str(asked["file"]))}
        if asked.get("form"):
            found["html"] = self._part(request, text, int(asked.get("page", 1)), editor)
        self._editors[files.fingerprint(text)] = editor  # from here on another request may have it
        return found

    def _opened(self, text: str) -> Editor:
        """An editor on a text: the one that has just made it, if there is one, since reading a long text takes long."""
        while len(self._editors) > _MOST_EDITORS:
            self._editors.pop(next(iter(self._editors)), None)
        return self._editors.pop(files.fingerprint(text), None) or Editor(text)

    def _part(self, request: Request, text: str, page: int, editor: Editor | None = None) -> str:
        body = self._site.page(request, "parts/suite_form.html.j2", **form_of(text, page, editor)).body
        return bytes(body).decode()

    def _save(self, request: Request, asked: dict[str, Any]) -> dict[str, Any]:
        file, text = str(asked["file"]), str(asked["text"])
        if asked.get("force"):  # somebody has seen that the file was changed, and means it
            asked["before"] = files.fingerprint(files.read(self._site.folder, file))
        before = files.write(self._site.folder, file, text, before=str(asked["before"]))
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
            cases = read_cases(upload.file.read(LARGEST + 1), suffix)
            editor = Editor(str(form.get("text", "")))
            editor.insert(("cases",), None, cases)
        except FairtrialError as error:
            return JSONResponse({"error": str(error)}, 400)
        text, file = editor.text, str(form.get("file", ""))
        html = self._part(request, text, 10**6, editor)
        return JSONResponse({"text": text, "count": len(cases), "html": html, **self._found(text, file)})

    def _export(self, request: Request) -> Response:
        """The cases of a suite, also those from its dataset, as a table."""
        file, ending = request.query_params.get("file", ""), request.query_params.get("format", "csv")
        text = files.read(self._site.folder, file)
        folder = files.path_of(self._site.folder, file).parent
        suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
        body, media = table_text(case_rows(suite), ending)
        headers = {"Content-Disposition": attachment(f"{Path(file).stem}-cases.{ending}")}
        return Response(body, media_type=media, headers=headers)

    # -- drafts ----------------------------------------------------------------------------------

    def _draft(self, request: Request, asked: dict[str, Any]) -> dict[str, Any]:
        """A model proposes; a person decides."""
        model, kind = str(asked.get("model", "")).strip(), asked.get("kind")
        if not model:
            raise FairtrialError("name a model that should write the draft, such as openai:gpt-5-mini")
        count = max(1, min(50, int(asked.get("count") or 5)))
        folder = self._site.folder
        if kind == "suite":
            draft = wait_for(adraft_suite(model, description=str(asked["about"]), count=count, folder=folder))
            return {"text": suite_text(draft, model), "draft": msgspec.to_builtins(draft)}
        if kind == "prompt":
            prompt, wishes = str(asked["prompt"]), str(asked.get("about", ""))
            better = wait_for(adraft_prompt(model, prompt=prompt, wishes=wishes, folder=folder))
            return {"draft": msgspec.to_builtins(better)}
        value = Editor(str(asked["text"])).value
        examples = [
            {"input": str(case.get("input", "")), "expected": show_expected(read_expected(case.get("expected")))}
            for case in list_of(value.get("cases"))
            if isinstance(case, dict)
        ]
        about = str(asked.get("about") or value.get("description") or value.get("name") or "")
        drafted = wait_for(adraft_cases(model, about=about, examples=examples, count=count, folder=folder))
        return {"draft": [given(msgspec.to_builtins(case)) for case in drafted.cases]}

    def _models(self, request: Request) -> Response:
        found = models.search(request.query_params.get("q", ""))
        return JSONResponse({"models": [msgspec.to_builtins(model) for model in found]})


def told(work: Callable[[Request, dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """A view that takes and gives JSON; what cannot be done is said in it."""

    async def view(request: Request) -> Response:
        try:
            body = await whole_body(request, LARGEST)
            asked = msgspec.json.decode(body, type=dict[str, Any])
            return JSONResponse(await run_in_threadpool(work, request, asked))
        except (FairtrialError, msgspec.MsgspecError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return JSONResponse({"error": f"this change does not fit the suite any more ({error}); reload"}, 400)

    return view


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _slug(name: str) -> str:
    slug = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")
    return "-".join(part for part in slug.split("-") if part) or "suite"


def _beginning(start: str, name: str) -> str:
    """A suite to begin with, under a name of its own."""
    if start == "template":
        return suite_path("template").read_text("utf-8")
    path = _BEGINNINGS / f"{start if start in _STARTS else 'questions'}.yaml"
    return path.read_text("utf-8").replace("name: NAME", f"name: {_scalar(name)}", 1)


def _scalar(text: str) -> str:
    return yaml.safe_dump(text, allow_unicode=True, width=10**6).strip().removesuffix("...").strip()
