"""Logs of agents' sessions; tests/data/logs/README.md says how the recorded ones were made."""

from pathlib import Path

DATA = Path(__file__).parents[3] / "data" / "logs"
