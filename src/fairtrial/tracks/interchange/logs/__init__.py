"""Logs of agents' sessions, one format per file: `recognises(source)`, `sessions(source)`, `companions(source)`.

No vendor promises that its format stays: readers take what they know, count what they do not, and never end with it.
"""
