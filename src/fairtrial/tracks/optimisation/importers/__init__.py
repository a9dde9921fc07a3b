"""Importers for labelled benchmarks of optimisation, one per file."""
