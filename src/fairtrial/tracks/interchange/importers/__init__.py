"""Importers for suites of other tools, one per file; they report what cannot be carried over."""
