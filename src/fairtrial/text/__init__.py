"""Text: comparing it, finding numbers, letters and JSON in it, reading it within limits, showing it safely."""
