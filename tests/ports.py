"""Ports that nobody takes between the moment they are chosen and the moment a server listens there."""

import random
import socket


def free_port() -> int:
    """A port below those that systems give to outgoing connections, of which tests make thousands."""
    while True:
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", random.SystemRandom().randrange(12_000, 32_000)))
            except OSError:
                continue
            return int(tried.getsockname()[1])
