"""Ports for servers that must be told one before they start."""

import random
import socket

# Systems give out ports above 32,767 to whoever asks for any port. One from there can be taken between the
# look and the start of the server, and then a test talks to a stranger.
_PORTS = range(10_000, 32_000)


def find_free_port() -> int:
    """Return a port that is free and that the system gives to nobody by itself."""
    return find_free_ports(1)


def find_free_ports(count: int) -> int:
    """Return the first of so many free ports in a row."""
    for _ in range(1_000):
        first = random.SystemRandom().choice(_PORTS)
        if all(_is_free(first + offset) for offset in range(count)):
            return first
    raise AssertionError(f"no {count} ports in a row are free")


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
