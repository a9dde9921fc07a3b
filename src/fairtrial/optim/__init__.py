"""Optimisation problems as data: made from seeds, written as text, evaluated, and solved to certified baselines."""
