"""The Code Arena: models write web pages, which are scored by what a browser shows."""

from fairtrial.core.registry import Part

PARTS = {
    "scorers": {"browser": "browser:Browser", "code_judge": "code_judge:CodeJudge"},
    "suite_kinds": {"code_arena": "suite_kind"},
    "commands": {"arena": Part("options:arena", "Let models write web pages, and score them in a real browser.")},
    "pages": {"code_arena": "pages:Code"},
}
