"""Batch APIs, one provider's per file."""
