"""What several tests of the log begin with."""

from __future__ import annotations

import pytest

from tests.flushing import empty

LOG = [f"audit_{table}" for table in ("event", "detail", "pending", "leaf", "node", "checkpoint", "anchor", "verdict")]


@pytest.fixture
def empty_log(transactional_db: None) -> None:
    """A log without the events of the migrations, and of whatever else made the test's database."""
    empty(LOG)
