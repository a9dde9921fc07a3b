"""The parts of a promptfoo configuration, one per file."""
