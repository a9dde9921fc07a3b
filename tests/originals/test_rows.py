"""Every row of docs/originals.md is shown by tests that exist, and the page is what the rows say."""

from __future__ import annotations

import pytest

from tests.originals.rows import PAGE, missing_tests, originals, page

ALL = [(name, row) for name, original in originals().items() for row in original.rows]


def test_there_is_a_row_for_everything_that_the_originals_describe():
    assert len(ALL) >= 167
    texts = [row.describes for _, row in ALL]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("original", originals())
def test_every_row_is_shown_by_tests(original):
    rows = originals()[original].rows
    assert not [row.describes for row in rows if not row.tests]
    assert not [(row.describes, missing) for row in rows if (missing := missing_tests(original, row))]


def test_no_row_is_half_done_without_a_reason():
    vague = ("partly", "todo", "not yet", "later")
    assert not [row.describes for _, row in ALL if any(word in f"{row.here} {row.differs}".lower() for word in vague)]


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.originals`"
