"""Ports for servers that tests start as programs."""

from __future__ import annotations

import os
import random
import socket

GIVEN_TO_NOBODY = range(20_000, 32_000)
"""Below those that the system gives to whoever asks for any: none of these is taken by chance before it is used."""

_chosen: set[int] = set()


def free_port() -> int:
    """One that nobody listens on, and never the same. Each process of a test run chooses among its own."""
    is_odd = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2
    while True:
        port = random.choice(GIVEN_TO_NOBODY[is_odd::2])
        if port in _chosen:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _chosen.add(port)
            return port
