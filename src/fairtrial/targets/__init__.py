"""The kinds of targets, one per file. A target is anything that answers a request."""
