"""Runs in formats of other tools, one per file, and tracking services."""
