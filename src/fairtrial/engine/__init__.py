"""Carrying out a plan: the engine, the ladder of one call, limits, retries, budget, scoring."""
