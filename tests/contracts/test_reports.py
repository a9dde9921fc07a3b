"""One contract for every format that a run can be written in."""

import pytest

from fairtrial.core.errors import FairtrialError
from fairtrial.reports.export import export
from fairtrial.reports.formats import FORMATS, format_of
from tests.conftest import numbered

NASTY = "<script>alert(1)</script> =cmd|'x'!A0 \x1b[31m \u202e]]> `|` 🙂"

FOR_PEOPLE = ("html", "md", "junit")  # the others carry answers as they are


@pytest.fixture
async def runs(run_suite):
    """A run as most are, and one that nobody could answer."""
    scripted = {"target": "mock:a", "options": {"answers": {"q0": "42", "q1": NASTY}, "answer": "41"}}
    down = {"target": "mock:echo", "options": {"faults": {"500": 1.0}}}
    usual = await run_suite(targets=[scripted], cases=numbered(3))
    unanswered = await run_suite(targets=[down], cases=numbered(2), retry={"attempts": 1})
    return usual, unanswered


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.module)
class TestEveryFormat:
    def test_its_names_ask_for_it(self, form, tmp_path):
        assert form.title and form.endings
        for ending in form.endings:
            assert format_of(tmp_path / f"a.b{ending}") is form
            assert format_of(tmp_path / f"A.B{ending.upper()}") is form

    @pytest.mark.slow
    async def test_any_run_can_be_written(self, form, runs, tmp_path):
        for number, run in enumerate(runs):
            if form.one == "trial":
                with pytest.raises(FairtrialError, match="write a folder of files"):
                    export(run, tmp_path / f"{number}{form.endings[0]}")
                assert export(run, f"{tmp_path}/{number}/", form).is_dir()
                continue
            path = export(run, tmp_path / f"{number}{form.endings[0]}")
            body = path.read_bytes()
            assert body and (form.module not in FOR_PEOPLE or b"\x1b[31m" not in body)
            if not form.binary:
                body.decode("utf-8")
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.endswith(".part")) == []

    async def test_whole_or_not_at_all(self, form, runs, tmp_path):
        path = tmp_path / "folder" / f"x{form.endings[0]}"
        with pytest.raises(FairtrialError, match="cannot be written"):
            export(runs[0], path)
        assert not path.parent.exists()


def test_an_ending_that_nobody_knows_names_those_that_there_are(tmp_path):
    with pytest.raises(FairtrialError, match=r"\.html.*\.eee\.jsonl"):
        format_of(tmp_path / "run.docx")
