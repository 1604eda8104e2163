"""A receiver that is told of each checkpoint by an HTTPS request: `{"origin", "epoch", "size", "root", "note"}`.

It answers 2xx when it has kept the note, and 409 when it knows another root for that epoch and size. It cannot be read
back: what it knows is found out where it runs.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from memadmin.audit.anchors.base import MOST_RECEIPT, AnchorFailed, Position, SecondRoot, shortened
from memadmin.audit.notes import Checkpoint

TIMEOUT_SECONDS = 5.0
MOST_ANSWER = 64 * 1024


@dataclass(frozen=True, slots=True)
class WebhookAnchor:
    """Connects to the host of the URL and to nothing else: follows no redirect, uses no proxy of the environment."""

    url: str
    token: str = field(default="", repr=False)
    timeout_seconds: float = TIMEOUT_SECONDS
    """For all of it."""
    is_local = False

    @property
    def name(self) -> str:
        return shortened(f"webhook:{urlsplit(self.url).hostname}")

    def put(self, checkpoint: Checkpoint, note: str) -> str:
        body = {
            "origin": checkpoint.origin,
            "epoch": checkpoint.epoch,
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "note": note,
        }
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "memadmin",
            "Idempotency-Key": f"{checkpoint.epoch}-{checkpoint.size}-{checkpoint.root.hex()}",
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            status, answer = self._post(json.dumps(body).encode(), headers)
        except (OSError, http.client.HTTPException) as problem:
            raise AnchorFailed(f"{self.name} cannot be reached: {problem or type(problem).__name__}.") from problem
        if status == http.HTTPStatus.CONFLICT:
            raise SecondRoot(self.name, checkpoint)
        if 300 <= status < 400:
            raise AnchorFailed(f"{self.name} answered {status}, a redirect, which is not followed.")
        if not 200 <= status < 300:
            raise AnchorFailed(f"{self.name} answered {status}.")
        return f"{status} {answer}".strip()

    def after(self, position: Position) -> Sequence[str]:
        return []

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        deadline = time.monotonic() + self.timeout_seconds
        address = urlsplit(self.url)
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        connection = self._connection(address.hostname or "", address.port, is_tls=address.scheme == "https")
        try:
            connection.connect()
            # The socket's own limit begins anew with each byte, so one now and then would hold us up for ever.
            ending = threading.Timer(
                max(0.0, deadline - time.monotonic()), connection.sock.shutdown, [socket.SHUT_RDWR]
            )
            ending.start()
            try:
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                answer = response.read(MOST_ANSWER)
            except (OSError, http.client.HTTPException):
                if time.monotonic() < deadline:
                    raise
            finally:
                ending.cancel()
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no whole answer within {self.timeout_seconds:g} seconds")
            return response.status, answer.decode(errors="replace").replace("\0", "")[:MOST_RECEIPT]
        finally:
            connection.close()

    def _connection(self, host: str, port: int | None, *, is_tls: bool) -> http.client.HTTPConnection:
        if is_tls:
            return http.client.HTTPSConnection(
                host, port, timeout=self.timeout_seconds, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(host, port, timeout=self.timeout_seconds)
