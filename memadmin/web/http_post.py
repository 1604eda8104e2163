"""POST requests to a receiver named in the settings."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

MOST_ANSWER = 64 * 1024


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float) -> tuple[int, str]:
    """Status and text of the response; `timeout_seconds` limits the whole request.

    Connects only to the host of the URL: follows no redirect, uses no proxy of the environment. Raises
    OSError and HTTPException.
    """
    deadline = time.monotonic() + timeout_seconds
    address = urlsplit(url)
    path = (address.path or "/") + (f"?{address.query}" if address.query else "")
    connection = _connection(address.hostname or "", address.port, timeout_seconds, is_tls=address.scheme == "https")
    try:
        connection.connect()
        # The socket's own timeout restarts with each byte, so a slow sender could block for ever.
        ending = threading.Timer(max(0.0, deadline - time.monotonic()), connection.sock.shutdown, [socket.SHUT_RDWR])
        ending.start()
        try:
            connection.request("POST", path, body, dict(headers))
            response = connection.getresponse()
            answer = response.read(MOST_ANSWER)
        except (OSError, http.client.HTTPException):
            if time.monotonic() < deadline:
                raise
        finally:
            ending.cancel()
        if time.monotonic() >= deadline:
            raise TimeoutError(f"no complete response within {timeout_seconds:g} seconds")
        return response.status, answer.decode(errors="replace").replace("\0", "")
    finally:
        connection.close()


def _connection(host: str, port: int | None, timeout_seconds: float, *, is_tls: bool) -> http.client.HTTPConnection:
    if is_tls:
        return http.client.HTTPSConnection(host, port, timeout=timeout_seconds, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout_seconds)
