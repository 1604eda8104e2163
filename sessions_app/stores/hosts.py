"""Telling that two names and ports are one and the same, where a server does not say which one it is."""

from __future__ import annotations

import socket
from ipaddress import ip_address

THIS_MACHINE = "this machine"


def endpoint(host: str, port: int | None) -> str:
    """The same for all names of a machine, as far as its addresses tell; a path of a socket stays what it is.

    Asks for the addresses of a name, so whoever calls it has just reached that name.
    """
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return f"{host} {port}"
    where = THIS_MACHINE if any(map(is_own, found)) else " ".join(sorted(found))
    return f"{where} {port}"


def is_own(address: str) -> bool:
    """Whether an address is one of this machine: then a socket can be bound to it."""
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
