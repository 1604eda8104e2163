"""Walk of a run over all sessions of a store, resumable after each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memadmin.runs.engine import Lease
from sessions_app.stores.rewriting import Rewriter

START: dict[str, Any] = {"page": "", "last": None}
"""Cursor of a run before its walk. Later it names the last session, so the engine clears it when the run ends."""


def each_session(lease: Lease, rewriter: Rewriter) -> Iterator[str]:
    """Every session id from the run's cursor on. A session counts as done when the caller asks for the next one.

    The cursor is a dictionary that begins as START and may have other keys. Raises StoreUnavailable, and what the lease
    raises.
    """
    page, last = lease.run.cursor["page"], lease.run.cursor["last"]
    while True:
        session_ids, following = rewriter.session_page(page)
        done = session_ids.index(last) + 1 if last in session_ids else 0
        for session_id in session_ids[done:]:
            yield session_id
            with lease.chunk() as run:
                run.done += 1
                run.cursor = {**run.cursor, "page": page, "last": session_id}
            lease.checkpoint()
        if not following:
            return
        page, last = following, None
