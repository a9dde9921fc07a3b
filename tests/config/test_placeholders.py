"""A suite can be checked without its keys: variables that are not set count as set, and everything else is checked."""

import pytest

from fairtrial.config import parse_suite
from fairtrial.core.errors import ProblemsError

SUITE = """
name: keys
targets: [openai:gpt-5-mini, lab:model, claude-code]
providers: {lab: {base_url: "${LAB_URL}", api_key: "${LAB_KEY}"}}
concurrency: ${LANES}
timeout: ${SECONDS:-30}
cases: [{input: "${QUESTION}", expected: x}]
"""


@pytest.mark.slow
def test_variables_that_are_not_set_are_no_problem():
    suite = parse_suite(SUITE, environment={"LAB_URL": "http://127.0.0.1"}, placeholders=True)
    assert suite.variables.assumed == {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LAB_KEY", "LANES", "QUESTION"}
    assert suite.arms[1].target.base_url == "http://127.0.0.1" and suite.settings.timeout == 30
    with pytest.raises(ProblemsError):
        parse_suite(SUITE, environment={"LAB_URL": "http://127.0.0.1"})


@pytest.mark.slow
def test_everything_else_is_checked():
    text = SUITE.replace("expected: x", "scorer: {type: regex, pattern: '('}")
    with pytest.raises(ProblemsError) as caught:
        parse_suite(text, environment={}, placeholders=True)
    assert "is not valid" in str(caught.value) and "not set" not in str(caught.value)
