"""Recording the models of reference programs. These files run in a sandbox, where nothing of fairtrial is."""

from pathlib import Path

FOLDER = Path(__file__).parent
