"""Comparison of host names and ports, for servers without an identifier of their own."""

from __future__ import annotations

import socket
from ipaddress import ip_address

THIS_MACHINE = "this machine"


def endpoint(host: str, port: int | None) -> str:
    """Text that is equal for all names of a machine, as far as its addresses show; the path of a socket is unchanged.

    Resolves the name; callers have just connected to it.
    """
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return f"{host} {port}"
    where = THIS_MACHINE if any(map(is_own, found)) else " ".join(sorted(found))
    return f"{where} {port}"


def is_own(address: str) -> bool:
    """Whether an address belongs to this machine: then a socket can be bound to it."""
    plain = address.split("%")[0]
    if ip_address(plain).is_loopback:
        return True
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asked:
        try:
            asked.bind((plain, 0))
        except OSError:
            return False
    return True
