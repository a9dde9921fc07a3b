"""The politeness studies, repeated on any model."""

from fairtrial.core.registry import Part

PARTS = {
    "commands": {
        "replicate": Part(
            "command:command", "Repeat the politeness studies on any model: 50 questions, five tones, ten runs."
        )
    },
}
