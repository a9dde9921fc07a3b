"""The Python API: thin functions, synchronous where users expect that, each with an async twin (`run`, `arun`).

Scores are 0–1 in Python. Only what you type as points is in points, as on the command line: `min_score`, and the
`delta` and `margin` of `power` and `gate`. A run may be given as an object, its id, a prefix of it, a tag, or `latest`.
"""
