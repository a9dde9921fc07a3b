"""What judged pages are marked on, and how one can tell whether a browser saw them."""

from __future__ import annotations

from collections.abc import Container

CRITERIA = {"visual_accuracy": 40, "code_quality": 30, "functionality": 20, "responsiveness": 10}  # weights
BROWSER_METRIC = "blocked_requests"  # measured whenever a browser opened the page


def judged_unseen(metrics: Container[str]) -> bool:
    """Whether pages with these metrics were judged, but never opened in a browser."""
    return "visual_accuracy" in metrics and "code_bytes" in metrics and BROWSER_METRIC not in metrics
