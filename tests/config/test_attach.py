"""Files sent with a case: images and PDFs in each provider's form, text as part of the question; stored once."""

import base64
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fairtrial import pipeline
from fairtrial.core.errors import ProblemsError
from fairtrial.store.files import contents
from fairtrial.workflows.resume import arescore

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "cat.png").write_bytes(PNG)
    (tmp_path / "copy.png").write_bytes(PNG)
    (tmp_path / "paper.pdf").write_bytes(PDF)
    (tmp_path / "notes.md").write_text("# Notes\nThe cat is grey.\n")
    return tmp_path


def case(*names, **keys):
    return {"id": "a", "input": "What is it?", "expected": "a cat", "attach": list(names), **keys}


async def test_each_provider_gets_its_own_form(run_suite, model, files):
    served = await model()
    picture = base64.b64encode(PNG).decode()
    run = await run_suite(targets=["openai:gpt-5-mini"], cases=[case("cat.png", "paper.pdf")])
    assert run.status == "completed"  # the server refuses what the real one refuses
    image, paper, text = served.bodies[-1]["messages"][-1]["content"]
    assert image == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    assert paper["type"] == "file" and paper["file"]["filename"] == "paper.pdf"
    assert paper["file"]["file_data"] == "data:application/pdf;base64," + base64.b64encode(PDF).decode()
    assert text == {"type": "text", "text": "What is it?"}
    run = await run_suite(targets=["anthropic:claude-sonnet-5"], cases=[case("cat.png", "paper.pdf")])
    assert run.status == "completed"
    image, paper, text = served.bodies[-1]["messages"][-1]["content"]
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    assert paper["type"] == "document" and paper["source"]["media_type"] == "application/pdf"
    assert text == {"type": "text", "text": "What is it?"}


async def test_text_is_part_of_the_question_for_every_target(run_suite, files):
    run = await run_suite(cases=[case("notes.md")], scorer={"type": "regex", "pattern": "grey"})
    (trial,) = run.trials()
    assert trial.answer == "notes.md:\n# Notes\nThe cat is grey.\n\nWhat is it?" and trial.score == 1


async def test_functions_get_the_files(run_suite, files):
    (files / "t.py").write_text("def f(q, s, m, files):\n    return ' '.join(f'{f.name} {f.media}' for f in files)\n")
    run = await run_suite(targets=["python:t.py:f"], cases=[case("cat.png", "paper.pdf")])
    assert next(run.trials()).answer == "cat.png image/png paper.pdf application/pdf"


async def test_equal_content_is_stored_once_and_survives_the_file(run_suite, store, files):
    run = await run_suite(cases=[case("cat.png"), {**case("copy.png"), "id": "b"}])
    (files / "cat.png").unlink()
    sha256 = hashlib.sha256(PNG).hexdigest()
    assert contents(store, [sha256]) == {sha256: ("image/png", PNG)}
    assert (await arescore(run.id, scorer={"type": "exact"}, store=store)).status == "completed"
    store.delete_run(run.id)
    assert contents(store, [sha256]) == {}


async def test_another_picture_is_another_trial(run_suite, files):
    ids = set()
    for body in (PNG, PNG + b"x", PNG):
        (files / "cat.png").write_bytes(body)
        ids |= {trial.trial_id for trial in (await run_suite(cases=[case("cat.png")])).trials()}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("none.png", None, "there is no file"),
        ("big.png", PNG + bytes(21 * 2**20), "has 21 MB: at most 20 MB can be sent"),
        ("long.txt", b"x" * (2**20 + 1), "is a text of 1.0 MB: at most 1 MB can be sent"),
        ("page.docx", b"PK\x03\x04\x00\xff", "is neither an image (PNG, JPEG, GIF, WebP), nor a PDF, nor UTF-8 text"),
        ("folder", "folder", "is not a file"),
    ],
)
def test_what_cannot_be_sent_is_said_beforehand(write_suite, files, name, body, problem):
    if body == "folder":
        (files / name).mkdir()
    elif body is not None:
        (files / name).write_bytes(body)
    with pytest.raises(ProblemsError) as caught:
        pipeline.load(write_suite(cases=[case(name)]))
    assert problem in str(caught.value) and "cases.0" in str(caught.value)


def test_a_target_that_takes_no_files(write_suite, files):
    cat = {"target": "command:x", "options": {"command": ["cat"]}}
    with pytest.raises(ProblemsError, match=r"command:x cannot be sent cat\.png"):
        pipeline.load(write_suite(targets=[cat], cases=[case("cat.png")]))
    pipeline.load(write_suite(targets=[cat], cases=[case("notes.md")]))


@pytest.fixture
def pictures():
    """Serve one picture, and count how often it is fetched."""
    fetched: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            fetched.append(self.path)
            found = self.path.startswith("/cat.png")
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(PNG if found else b"no")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", fetched
    server.shutdown()
    server.server_close()


async def test_a_picture_at_a_web_address_is_fetched_once(run_suite, model, pictures, monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    address, fetched = pictures
    served = await model()
    run = await run_suite(targets=["openai:gpt-5-mini"], cases=[case(f"{address}/cat.png?token=secret")])
    assert run.status == "completed"
    picture = base64.b64encode(PNG).decode()
    image = served.bodies[-1]["messages"][-1]["content"][0]
    assert image == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    (stored,) = run.store.cases(run.plan.id, 0, 1)
    assert [(file.name, file.sha256) for file in stored.attach] == [("cat.png", hashlib.sha256(PNG).hexdigest())]
    await run_suite(targets=["openai:gpt-5-mini"], cases=[case(f"{address}/cat.png?token=secret")])
    assert len(fetched) == 1


def test_without_keys_nothing_is_fetched(write_suite, pictures, monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    address, fetched = pictures
    path = write_suite(targets=["openai:gpt-5-mini"], cases=[case(f"{address}/cat.png")])
    assert pipeline.load(path, placeholders=True).case_count == 1 and not fetched


@pytest.mark.parametrize("place", ["/dog.png", None])
def test_an_address_without_a_picture_is_said(write_suite, pictures, monkeypatch, tmp_path, place):
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIR", str(tmp_path / "cache"))
    address = f"{pictures[0]}{place}" if place else "http://127.0.0.1:9/x.png"
    with pytest.raises(ProblemsError, match=r"(dog|x)\.png cannot be fetched \(.+\): attach a file instead"):
        pipeline.load(write_suite(cases=[case(address)]))
