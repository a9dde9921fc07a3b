"""The scorers, one per file; the file's name is the scorer's name in suites."""
