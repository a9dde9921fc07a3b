"""Kinds of targets, one per file: anything that answers a request."""
