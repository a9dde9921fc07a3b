"""What every campaign gets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.torture.campaign import Campaign


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """The campaign of this test; when a round fails, the report says how to repeat it."""
    made = Campaign(request.node.nodeid)
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    made = getattr(item, "funcargs", {}).get("campaign")
    if made is not None and report.failed:
        report.sections.append(("repeat this round with", made.current))
    return report
