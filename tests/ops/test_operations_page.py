"""What docs/operations.md and the steps for a broken log state, against the code and the database."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from memadmin.audit.transparency import verifier
from memadmin.variables import SECTIONS
from tests.ops.runbooks import Runbook

DOCS = Path(settings.CHECKOUT_DIR) / "docs"
PAGE = (DOCS / "operations.md").read_text()
DEFAULTS = {variable.name: variable.default for variables in SECTIONS.values() for variable in variables}
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.django_db
def test_its_statements_run() -> None:
    statements = [block for block in BLOCKS if block.startswith("SELECT")]
    assert len(statements) == 2
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            assert cursor.fetchall()


def test_its_connections_are_those_of_the_defaults() -> None:
    pool, jobs = int(DEFAULTS["MEMADMIN_POOL_SIZE"]), int(DEFAULTS["MEMADMIN_WORKER_CONCURRENCY"])
    assert f"| `MEMADMIN_POOL_SIZE`, {pool} |" in PAGE
    assert f"and 7 more, {jobs + 7} |" in PAGE
    assert f"so need {2 * pool + 2 * (jobs + 7)} of" in PAGE


def test_its_settings_exist() -> None:
    names = set(re.findall(r"\b(?:MEMADMIN|AGENT)_[A-Z_]+\b", PAGE))
    assert len(names) > 5
    assert names <= DEFAULTS.keys()


def test_its_files_are_closed_by_the_units() -> None:
    for unit in (DOCS / "systemd").glob("memadmin-w*.service"):
        assert "\nUMask=0077\n" in unit.read_text()


def test_the_way_back_is_that_of_the_upgrade() -> None:
    [back] = [block for block in BLOCKS if block.startswith("ln ")]
    upgrade = Runbook("production.md").sections()["13. Upgrade"]
    link, restart = back.replace("memadmin-0.1.0", "memadmin-0.1.1").splitlines()
    assert link in upgrade.splitlines()
    assert restart in upgrade.splitlines()


def test_the_findings_of_a_broken_log_are_the_verifiers() -> None:
    table = Runbook("audit.md").sections()["When it does not verify"]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(names) > 5
    source = Path(verifier.__file__).read_text()
    assert {name for name in names if f'"{name}"' not in source} == set()
