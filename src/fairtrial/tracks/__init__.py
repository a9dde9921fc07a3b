"""Tracks: each serves one audience, through the same doors as any plug-in. Nothing outside imports them."""
