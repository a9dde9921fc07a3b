"""Suites: list, create and edit. The page and the file hold the same text.

The text is the state. The form is a view of it: every change of a field is made here as a change of the text, and the
file is written when the user saves.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import escape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fairtrial import pipeline
from fairtrial.api.twins import wait_for
from fairtrial.config import Suite
from fairtrial.config.advice import notes, warnings
from fairtrial.config.editing import Editor
from fairtrial.core.errors import FairtrialError, ProblemsError, WorkFirstError
from fairtrial.core.expected import read_expected, show_expected
from fairtrial.core.experiment import Arm, Case
from fairtrial.core.templates import TemplateError
from fairtrial.providers import models
from fairtrial.tables import FORMATS
from fairtrial.web import files
from fairtrial.web.changes import apply, as_list
from fairtrial.web.form import form_of
from fairtrial.web.grid import page_number
from fairtrial.web.new_run import estimate_of
from fairtrial.web.site import Site, attachment, form_view, go_to, read_body, url
from fairtrial.web.starting import STARTS, start_text
from fairtrial.web.tables import MAX_BYTES, case_rows, read_cases, table_text, without_empty
from fairtrial.workflows.draft import adraft_cases, adraft_prompt, adraft_suite, suite_text

_MAX_EDITORS = 8
_LONG = 20_000  # characters of a suite from which its form comes after the page


class Suites:
    """Pages about suites."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._editors: dict[str, Editor] = {}
        self.routes = [
            Route("/suites", self._list),
            Route("/suites/new", form_view(self._create), methods=["POST"]),
            Route("/suites/edit", self._edit),
            Route("/suites/duplicate", form_view(self._duplicate), methods=["POST"]),
            Route("/suites/delete", form_view(self._delete), methods=["POST"]),
            Route("/suites/import", form_view(self._import), methods=["POST"]),
            Route("/suites/export", self._export),
            Route("/suites/check", json_view(self._check), methods=["POST"]),
            Route("/suites/change", json_view(self._change), methods=["POST"]),
            Route("/suites/preview", json_view(self._preview), methods=["POST"]),
            Route("/suites/save", json_view(self._save), methods=["POST"]),
            Route("/suites/draft", json_view(self._draft), methods=["POST"]),
            Route("/models", self._models),
        ]

    def _list(self, request: Request) -> Response:
        suites = files.suite_files(self._site.folder)
        wanted = request.query_params.get("text", "").strip().lower()
        shown = [file for file in suites if wanted in f"{file.name} {file.path}".lower()]
        return self._site.page(
            request, "suites.html.j2", suites=shown, total=len(suites), text=wanted, starts=STARTS,
            folder=str(self._site.folder),
        )  # fmt: skip

    def _create(self, request: Request, form: FormData) -> Response:
        name = str(form.get("name", "")).strip()
        file = str(form.get("file", "")).strip() or f"{_slug(name)}.yaml"
        text = str(form.get("text", ""))
        if not text:
            text = start_text(str(form.get("start")), name or "my suite")
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
        page, late = page_number(request.query_params), len(text) > _LONG
        # The page requests the check itself: a large dataset takes longer to check than a page may take to load. The
        # form of a long text comes with it.
        form = {"suite": None, "broken": "", "page": page} if late else form_of(text, page)
        return self._site.page(
            request, "suite.html.j2", file=file, text=text, before=files.fingerprint(text), late=late, **form
        )

    def _check_text(self, text: str, file: str) -> dict[str, Any]:
        """Check a suite before anything is spent and return the messages of `fairtrial validate`."""
        folder = files.path_of(self._site.folder, file).parent
        try:
            suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
        except WorkFirstError as error:
            warning = {"message": str(error), "file": "", "line": 0, "key": "warning"}
            return {"problems": [warning], "facts": error.work}
        except ProblemsError as error:
            return {"problems": [msgspec.to_builtins(problem) for problem in error.problems], "facts": ""}
        except FairtrialError as error:
            return {"problems": [{"message": str(error), "file": "", "line": 0, "key": ""}], "facts": ""}
        trials = sum(arm.repeats_of(case) for case in suite.cases() for arm in suite.arms)
        said = {"warning": warnings(suite), "note": notes(suite)}
        advice = [
            {"message": message, "file": "", "line": 0, "key": kind} for kind, own in said.items() for message in own
        ]
        facts = f"{_count(suite.case_count, 'case')} × {_count(len(suite.arms), 'arm')}, {_count(trials, 'trial')}"
        return {"problems": advice, "facts": facts}

    def _check(self, request: Request, data: dict[str, Any]) -> dict[str, Any]:
        text, file = str(data["text"]), str(data["file"])
        result = self._check_text(text, file)
        if data.get("form"):
            result["html"] = self._form_html(request, text, int(data.get("page", 1)))
        return result

    def _change(self, request: Request, data: dict[str, Any]) -> dict[str, Any]:
        editor = self._editor_for(str(data["text"]))
        for change in data["changes"]:
            apply(editor, change)
        text = editor.text
        result = {"text": text, **self._check_text(text, str(data["file"]))}
        if data.get("form"):
            result["html"] = self._form_html(request, text, int(data.get("page", 1)), editor)
        self._editors[files.fingerprint(text)] = editor  # from now on another request may use it
        return result

    def _preview(self, request: Request, data: dict[str, Any]) -> dict[str, Any]:
        """Show what one arm would be asked for one case, with variables filled in, and the estimate."""
        file = str(data["file"])
        folder = files.path_of(self._site.folder, file).parent
        try:
            suite = pipeline.load_text(str(data["text"]), file=Path(file).name, folder=folder)
        except WorkFirstError as error:
            return {"html": f'<p class="mute">{escape(str(error))}</p>', "case": 0}
        except FairtrialError:
            return {"html": ""}  # the problems are shown elsewhere
        number = max(0, min(suite.case_count - 1, int(data.get("case") or 0)))
        case = next(islice(suite.cases(), number, None), None)
        chosen = next((arm for arm in suite.arms if arm.name == data.get("arm")), suite.arms[0])
        body = self._site.page(
            request,
            "parts/suite_preview.html.j2",
            arms=[arm.name for arm in suite.arms],
            arm=chosen.name,
            number=number,
            total=suite.case_count,
            case=case,
            estimated=estimate_of(self._site, suite),
            error="",
            **_rendered(suite, chosen, case),
        ).body
        return {"html": bytes(body).decode(), "case": number}

    def _editor_for(self, text: str) -> Editor:
        """Return an editor on a text; reuse the one that produced it, since parsing a long text is slow."""
        while len(self._editors) > _MAX_EDITORS:
            self._editors.pop(next(iter(self._editors)), None)
        return self._editors.pop(files.fingerprint(text), None) or Editor(text)

    def _form_html(self, request: Request, text: str, page: int, editor: Editor | None = None) -> str:
        body = self._site.page(request, "parts/suite_form.html.j2", **form_of(text, page, editor)).body
        return bytes(body).decode()

    def _save(self, request: Request, data: dict[str, Any]) -> dict[str, Any]:
        file, text = str(data["file"]), str(data["text"])
        if data.get("force"):  # the user knows that the file was changed, and confirmed
            data["before"] = files.fingerprint(files.read(self._site.folder, file))
        before = files.write(self._site.folder, file, text, before=str(data["before"]))
        return {"before": before, **self._check_text(text, file)}

    # -- import and export -----------------------------------------------------------------------

    def _import(self, request: Request, form: FormData) -> Response:
        """Append cases from a table and return the new text for review; nothing is saved."""
        upload = form.get("table")
        if not isinstance(upload, UploadFile) or not upload.filename:
            return JSONResponse({"error": f"choose a file: {', '.join(FORMATS)}"}, 400)
        suffix = Path(upload.filename).suffix.lower()
        if suffix not in FORMATS:
            return JSONResponse(
                {"error": f"cases can be imported from {', '.join(FORMATS)}, not `{upload.filename}`"}, 400
            )
        try:
            cases = read_cases(upload.file.read(MAX_BYTES + 1), suffix)
            editor = Editor(str(form.get("text", "")))
            editor.insert(("cases",), None, cases)
        except FairtrialError as error:
            return JSONResponse({"error": str(error)}, 400)
        text, file = editor.text, str(form.get("file", ""))
        html = self._form_html(request, text, 10**6, editor)
        return JSONResponse({"text": text, "count": len(cases), "html": html, **self._check_text(text, file)})

    def _export(self, request: Request) -> Response:
        """Send the cases of a suite, including its dataset, as a table."""
        file, ending = request.query_params.get("file", ""), request.query_params.get("format", "csv")
        text = files.read(self._site.folder, file)
        folder = files.path_of(self._site.folder, file).parent
        suite = pipeline.load_text(text, file=Path(file).name, folder=folder)
        body, media = table_text(case_rows(suite), ending)
        headers = {"Content-Disposition": attachment(f"{Path(file).stem}-cases.{ending}")}
        return Response(body, media_type=media, headers=headers)

    # -- drafts ----------------------------------------------------------------------------------

    def _draft(self, request: Request, data: dict[str, Any]) -> dict[str, Any]:
        """Let a model draft a suite, cases or a prompt, for a person to review."""
        model, kind = str(data.get("model", "")).strip(), data.get("kind")
        if not model:
            raise FairtrialError("name a model to write the draft, such as openai:gpt-6-luna")
        count = max(1, min(50, int(data.get("count") or 5)))
        folder = self._site.folder
        if kind == "suite":
            draft = wait_for(adraft_suite(model, description=str(data["about"]), count=count, folder=folder))
            return {"text": suite_text(draft, model), "draft": msgspec.to_builtins(draft)}
        if kind == "prompt":
            prompt, wishes = str(data["prompt"]), str(data.get("about", ""))
            better = wait_for(adraft_prompt(model, prompt=prompt, wishes=wishes, folder=folder))
            return {"draft": msgspec.to_builtins(better)}
        value = Editor(str(data["text"])).value
        examples = [
            {"input": str(case.get("input", "")), "expected": show_expected(read_expected(case.get("expected")))}
            for case in as_list(value.get("cases"))
            if isinstance(case, dict)
        ]
        about = str(data.get("about") or value.get("description") or value.get("name") or "")
        drafted = wait_for(adraft_cases(model, about=about, examples=examples, count=count, folder=folder))
        return {"draft": [without_empty(msgspec.to_builtins(case)) for case in drafted.cases]}

    def _models(self, request: Request) -> Response:
        matches = models.search(request.query_params.get("q", ""))
        return JSONResponse({"models": [msgspec.to_builtins(model) for model in matches]})


def json_view(handler: Callable[[Request, dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    """Return a view that takes and returns JSON, with errors under `error`."""

    async def view(request: Request) -> Response:
        try:
            body = await read_body(request, MAX_BYTES)
            data = msgspec.json.decode(body, type=dict[str, Any])
            return JSONResponse(await run_in_threadpool(handler, request, data))
        except (FairtrialError, msgspec.MsgspecError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return JSONResponse({"error": f"this change no longer fits the suite ({error}): reload the page"}, 400)

    return view


def _rendered(suite: Suite, arm: Arm, case: Case | None) -> dict[str, Any]:
    """Return the messages of a trial as its target would get them; values of variables stay hidden."""
    if case is None:
        return {"messages": [], "system": "", "broken": "this suite has no case yet"}
    try:
        chat = arm.condition.render(case, 0)
    except TemplateError as error:
        return {"messages": [], "system": "", "broken": str(error)}
    hide = suite.variables.hide
    messages = [(message.role, hide(message.content)) for message in chat.messages]
    return {
        "messages": [*messages, *(("user", hide(turn)) for turn in case.turns)],
        "system": hide(chat.system),
        "broken": "",
    }


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _slug(name: str) -> str:
    slug = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")
    return "-".join(part for part in slug.split("-") if part) or "suite"
