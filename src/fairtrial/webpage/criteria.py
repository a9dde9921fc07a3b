"""The criteria that pages are judged on, and whether a browser has opened them."""

from __future__ import annotations

from collections.abc import Container

CRITERIA = {"visual_accuracy": 40, "code_quality": 30, "functionality": 20, "responsiveness": 10}  # weights
BROWSER_METRIC = "blocked_requests"  # measured whenever a browser opened the page


def judged_unseen(metrics: Container[str]) -> bool:
    """Return whether pages with these metrics were judged without being opened in a browser."""
    return "visual_accuracy" in metrics and "code_bytes" in metrics and BROWSER_METRIC not in metrics
