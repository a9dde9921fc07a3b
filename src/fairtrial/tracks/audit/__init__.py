"""Audit: are the tasks of a suite sound? Known good answers must pass, and known ways to cheat must not."""

from fairtrial.core.registry import Part

PARTS = {
    "commands": {
        "audit": Part("options:audit", "Check the tasks of a suite: solutions pass, nothing and cheating fail.")
    },
}
