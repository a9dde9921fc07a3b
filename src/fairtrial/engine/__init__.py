"""Run a plan: the engine, the steps of a single call, rate limits, retries, budget and scoring."""
