"""Files of the real tools; `expected.json` beside them is what each tool reports."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "data" / "results"


@pytest.fixture(scope="session")
def results_data() -> Path:
    return DATA
