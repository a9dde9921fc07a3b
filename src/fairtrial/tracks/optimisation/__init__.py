"""Optimisation problems as data: generated from seeds, written as text, evaluated and solved to certified baselines."""
