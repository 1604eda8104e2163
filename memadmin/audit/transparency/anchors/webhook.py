"""Anchor at an HTTPS receiver of each checkpoint: `{"origin", "epoch", "size", "root", "note"}`.

It answers 2xx when it has stored the note, and 409 when it has another root for that epoch and size. It is write-only:
its content is checked where it runs.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from memadmin.audit.transparency.anchors.base import MOST_RECEIPT, AnchorFailed, Position, SecondRoot, shortened
from memadmin.audit.transparency.notes import Checkpoint
from memadmin.web.http_post import post

TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class WebhookAnchor:
    """See memadmin.web.http_post for the connection."""

    url: str
    token: str = field(default="", repr=False)
    timeout_seconds: float = TIMEOUT_SECONDS
    """For the whole request."""
    is_local = False
    is_readable = False

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
            status, answer = post(self.url, json.dumps(body).encode(), headers, timeout_seconds=self.timeout_seconds)
        except (OSError, http.client.HTTPException) as problem:
            raise AnchorFailed(f"{self.name} cannot be reached: {problem or type(problem).__name__}.") from problem
        if status == http.HTTPStatus.CONFLICT:
            raise SecondRoot(self.name, checkpoint)
        if 300 <= status < 400:
            raise AnchorFailed(f"{self.name} answered {status}, a redirect; redirects are not followed.")
        if not 200 <= status < 300:
            raise AnchorFailed(f"{self.name} answered {status}.")
        return f"{status} {answer[:MOST_RECEIPT]}".strip()

    def after(self, position: Position) -> Sequence[str]:
        return []
