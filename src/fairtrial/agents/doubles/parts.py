"""The files of the program that stands in for servers: it runs without the package, also in a sandbox."""

from pathlib import Path

PARTS = tuple(Path(__file__).with_name(name) for name in ("double.py", "links.py", "matching.py"))
