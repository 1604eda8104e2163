"""What depends on the database's version, on Debian's own PostgreSQL: 15 in Debian 12, and without pgvector.

The rest of the suite runs on the embedded PostgreSQL 18, as these tests do besides. By hand any tests run on another
version with `POSTGRES_OF_TESTS=/usr/lib/postgresql/15/bin MEMADMIN_DATA_DIR=/tmp/postgres-15 pytest ...`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from django.conf import settings

from tests.stores.postgres import INSTALLED
from tests.stores.servers import without

CHOSEN = [
    # The fence and its triggers, with agents that write.
    "tests/registry/test_attach.py",
    "tests/registry/test_fence.py",
    "tests/registry/test_giving_way.py",
    "tests/registry/test_tombstones.py",
    # The log, its triggers, and the order that the sequencer gives events.
    "tests/audit/test_recording.py",
    "tests/audit/test_before_showing.py",
    "tests/audit/test_reads.py",
    "tests/audit/test_sequencer.py",
    "tests/audit/test_governance.py",
    # Roles and row policies.
    "tests/deploy/test_db_roles.py",
    "tests/deploy/test_refusals.py",
    "tests/deploy/test_policies_by_sql.py",
    # Erasure, retention, search.
    "tests/erasure/test_erase_subject.py",
    "tests/erasure/test_scan.py",
    "tests/retention/test_sweep.py",
    "tests/sessions/search/test_index.py",
    "tests/sessions/search/test_matching_sessions.py",
]

LEFT_OUT = [
    # A program of its own, with the embedded server, whose extension it makes.
    "tests/deploy/test_db_roles.py::test_a_managed_database_from_nothing_to_its_first_event",
]


@pytest.mark.release
def test_chosen_tests_pass_on_it() -> None:
    if not INSTALLED:
        without("PostgreSQL of Debian", "postgresql")
    programs = INSTALLED[0].parent
    deselected = [f"--deselect={name}" for name in LEFT_OUT]
    # A socket's path is short, so the folder is not pytest's.
    with tempfile.TemporaryDirectory(prefix="debians-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *deselected, *CHOSEN],
            cwd=settings.CHECKOUT_DIR,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "RECORD_OF"))},
                "POSTGRES_OF_TESTS": str(programs),
                "MEMADMIN_DATA_DIR": folder,
            },
            check=False,
            capture_output=True,
            text=True,
        )
        version = Path(folder, "postgres", "PG_VERSION").read_text().strip()
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-2000:]
    assert version == programs.parent.name
