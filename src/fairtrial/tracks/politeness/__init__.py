"""The politeness studies, repeated on any model."""

from fairtrial.core.registry import Part

PARTS = {
    "commands": {
        "replicate": Part(
            "options:replicate", "Repeat the politeness studies on any model: 50 questions, five tones, ten runs."
        )
    },
}
