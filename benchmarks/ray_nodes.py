"""A Ray cluster of several nodes on this machine, whose workers and nodes can be killed."""

from __future__ import annotations

import logging
import os
import random
import shutil
import sys
import tempfile
from typing import Any

_ATTEMPTS = 8
_MEMORY = 100 * 2**20  # bytes of each node's object store: nothing large is kept there


class RayNodes:
    """A head without processors, so that it carries out nothing, and nodes that do. A context manager."""

    def __init__(self, nodes: int = 2, cpus: int = 2) -> None:
        self._wanted, self._cpus = nodes, cpus
        self._folder = tempfile.mkdtemp(prefix="ftr", dir="/tmp")  # short, because it becomes part of a socket's name

    def __enter__(self) -> RayNodes:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        head = {"num_cpus": 0, "object_store_memory": _MEMORY, "include_dashboard": False, "temp_dir": self._folder}
        head["include_log_monitor"] = False  # nobody reads what workers print
        self._cluster = Cluster()
        self._start(**head)
        self.address: str = self._cluster.address
        self.nodes: list[Any] = []
        for _ in range(self._wanted):
            self.add_node()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add_node(self) -> None:
        self.nodes.append(self._start(num_cpus=self._cpus, object_store_memory=_MEMORY))

    def _start(self, **options: Any) -> Any:
        """Start a node; on a busy machine it may not start in the 30 s that Ray gives it, and is tried again."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._cluster.add_node(**options)
            except Exception as error:
                print(f"a node did not start: {error}", file=sys.stderr)
        return self._cluster.add_node(**options)

    def workers(self) -> list[Any]:
        """The processes of our workers, on all nodes of this cluster and no other."""
        import psutil

        found = []
        for node in self.nodes:
            for raylet in node.all_processes.get("raylet", []):
                try:
                    children = psutil.Process(raylet.process.pid).children()
                    found += [
                        child for child in children if child.cmdline()[:1] and "ray::Worker" in child.cmdline()[0]
                    ]
                except psutil.Error:
                    continue
        return found

    def kill_worker(self, luck: random.Random) -> bool:
        """Kill a worker; whether there was one."""
        workers = self.workers()
        if not workers:
            return False
        luck.choice(workers).kill()
        return True

    def kill_node(self, luck: random.Random) -> None:
        """Kill a node as if its machine had lost power, and add another one."""
        node = self.nodes.pop(luck.randrange(len(self.nodes)))
        self._cluster.remove_node(node, allow_graceful=False)
        self.add_node()
