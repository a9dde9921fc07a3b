"""`json_schema`: does the answer contain JSON that is valid against a schema?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from fairtrial.core.experiment import Case
from fairtrial.core.score import Score, ScoreContext, Unscored
from fairtrial.core.scorer import Guide, Scorer
from fairtrial.core.trust import within
from fairtrial.text.json_text import last_json, same_json

_MAX_FINDINGS = 3


class JsonSchema(Scorer, frozen=True, kw_only=True):
    """Valid JSON scores 1, else 0. The schema is inline or in a file; unless `strict`, JSON in prose or a fence counts.

    If the case has an expected value, the JSON must also equal it (or, for a list, any one of its values; to expect a
    JSON list, write it as text or as a list in a list). With `schema_only` the expected value is left to other scorers.
    """

    guide: ClassVar = Guide(
        scale="0 or 100", reproducibility="deterministic", best_for="structured output: keys, types, ranges"
    )
    schema: dict[str, Any] | None = None
    schema_file: str | None = None
    strict: bool = False
    schema_only: bool = False

    def check(self, case: Case, folder: Path) -> Iterable[str]:
        if (self.schema is None) == (self.schema_file is None):
            yield "a json_schema scorer needs exactly one of `schema` and `schema_file`"
            return
        try:
            self._validator(folder)
        except (OSError, ValueError) as error:
            yield f"the schema cannot be used: {getattr(error, 'message', None) or error}"
        for text in () if self.schema_only else case.accepted:
            if last_json(text, strict=True) is None:
                yield f"`expected` must be JSON for a json_schema scorer, not {text!r}"

    def _validator(self, folder: Path) -> Any:
        if self.schema_file is not None:
            return _compile(within(folder, self.schema_file).read_text("utf-8"))
        return _compile(json.dumps(self.schema, sort_keys=True))

    async def score(self, context: ScoreContext) -> Score | Unscored:
        answer_json = last_json(context.response, strict=self.strict)
        if answer_json is None:
            return _to_score(["no JSON in the answer" if not self.strict else "the answer is not JSON"])
        validator = self._validator(context.folder)
        findings = [
            f"{'/'.join(map(str, error.instance_path)) or 'document'}: {error.message}"
            for error in validator.iter_errors(answer_json.value)
        ]
        expected = "" if self.schema_only else context.expected
        if not findings and expected and not same_json(answer_json.value, json.loads(expected)):
            findings.append("matches the schema but is not the expected value")
        return _to_score(findings)


def _to_score(findings: list[str]) -> Score:
    value = float(not findings)
    shown = "; ".join(findings[:_MAX_FINDINGS])
    more = f" (and {len(findings) - _MAX_FINDINGS} more)" if len(findings) > _MAX_FINDINGS else ""
    details = {"findings": findings} if findings else None
    return Score(value=value, raw=value, confidence=1.0, notes=(shown + more) or "valid", details=details)


@lru_cache(maxsize=256)
def _compile(schema: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(msgspec.json.decode(schema))
