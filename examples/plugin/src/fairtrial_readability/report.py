"""The format `readability_csv`. What writes it is in `readability_csv.py`, and imported when it is used."""

from fairtrial.plugins import Format

FORMAT = Format("readability_csv", "Reading ease of every answer", (".readability.csv",), home="fairtrial_readability")
