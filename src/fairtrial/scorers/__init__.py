"""Ways to score an answer, one per file; the file's name is the name in suites."""
