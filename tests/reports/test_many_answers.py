"""Very many answers to one case, and very long ones: refused or cut, with a sentence that says where all of it is."""

import io

import pytest

from benchmarks.size import suite
from benchmarks.size.fill import fill
from fairtrial.analyse.run import Run
from fairtrial.cli.console import Console
from fairtrial.cli.trial_page import print_text
from fairtrial.core.errors import FairtrialError
from fairtrial.present.word_diff import word_diff
from fairtrial.reports import html, html_answers
from fairtrial.reports.site import write_site
from fairtrial.store import Store


@pytest.fixture
def run(tmp_path):
    store = Store(str(tmp_path / "store.db"))
    yield Run(store, store.find_run(fill(store, suite.write_suite(tmp_path, 1, 6, arms=2))))
    store.close()


def test_a_page_of_more_answers_than_a_browser_can_show_is_refused(run, monkeypatch, tmp_path):
    monkeypatch.setattr(html_answers, "_MOST_ANSWERS", 11)
    said = "has 12 answers to each case, and an HTML page shows at most 11: `fairtrial export`"
    with pytest.raises(FairtrialError, match=said):
        html.write(run, io.StringIO())
    with pytest.raises(FairtrialError, match=said):
        write_site([run], tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_terminal_shows_the_beginning_of_a_very_long_text(capsys):
    print_text(Console(), "answered", "word " * 1_000_000)
    out = capsys.readouterr().out
    assert len(out) < 400_000 and "… and 4,800,000 more characters: --json has them all" in " ".join(out.split())


def test_very_long_texts_are_not_compared_word_by_word():
    assert word_diff("word", "word " * 30_000) is None
    assert word_diff("one word", "two words") is not None
