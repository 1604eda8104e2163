"""What several tests of the log begin with."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.flushing import flush_as_owner

LOG = "audit_event, audit_detail, audit_pending, audit_leaf, audit_node, audit_checkpoint, audit_anchor, audit_verdict"


@pytest.fixture
def empty_log(transactional_db: None) -> None:
    """A log without the events of the migrations, and of whatever else made the test's database."""
    flush_as_owner(connection.ops, [f"TRUNCATE {LOG}"])  # type: ignore[arg-type]
