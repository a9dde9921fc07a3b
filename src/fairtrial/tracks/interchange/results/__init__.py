"""Readers for results of other tools, one per file."""
