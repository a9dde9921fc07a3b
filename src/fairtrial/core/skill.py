"""Skills as data: a folder with `SKILL.md`, which tells an agent how to do something."""

from __future__ import annotations

from typing import Any

import msgspec

from fairtrial.core.file import Attachment

FOLDER = ".skills"  # in a workspace: where the files of skills are for agents that do not take skills themselves


class Skill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill that a condition gives to an agent; the content of its folder is in the store."""

    name: str
    description: str
    files: Attachment  # the archive of its folder, under its name, without its evals
    tokens: int  # what it takes before it is used, estimated: name and description, or all of `SKILL.md` as text
    more_files: bool = False  # whether it has files besides `SKILL.md`
    rest: str = ""  # the hash of its files, whatever its description says
    as_text: bool = False  # whether it is part of the system prompt, for targets that do not take skills

    def identity(self) -> dict[str, Any]:
        """Return what identifies this skill."""
        return {"name": self.name, "files": self.files.sha256, "as_text": self.as_text}
