"""Attacks by those who may be hostile: who wrote a suite, a page, a repository, an archive, an answer, a check's input."""
