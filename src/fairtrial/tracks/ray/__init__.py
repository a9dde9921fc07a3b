"""Workers on a Ray cluster."""

PARTS = {"engines": {"ray": "workers:RayWorkers"}}
