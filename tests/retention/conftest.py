"""Moments of a sweep at which something else happens."""

from __future__ import annotations

import pytest

from memadmin.retention.targets import sessions
from tests.erasure.faults import ROWS, after_chunk, start
from tests.erasure.faults import small_chunks as small_chunks_of_runs

__all__ = ["after_chunk", "small_chunks", "small_chunks_of_runs", "start"]


@pytest.fixture
def small_chunks(small_chunks_of_runs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of ROWS rows, however fast this machine is."""
    monkeypatch.setattr(sessions, "FEWEST_ITEMS", ROWS)
