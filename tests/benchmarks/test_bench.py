"""Each bench runs from end to end at its smallest size. The figures are not checked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from memadmin.embedded.server import server_for
from memadmin.settings import CHECKOUT_DIR
from tests.benchmarks.pages import PAGES
from tests.stores.mariadb import PACKAGES, PROGRAMS, program
from tests.stores.servers import REDIS, without
from tests.template_database import copy_to

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Path:
    """One server for all benches, whose `template1` is migrated: so is every database that they create."""
    server = server_for(tmp_path_factory.mktemp("bench"))
    with django_db_blocker.unblock():
        copy_to(server, "template1")
    # A bench may have to restart the server, which it can while it is the only user.
    server.leave()
    return server.data_dir


def figures_of(bench: str, data_dir: Path, *options: str) -> Any:
    """The JSON that a bench wrote, once its table has been found to contain every target of it."""
    written = data_dir / f"{bench}.json"
    ended = subprocess.run(
        [sys.executable, "-m", bench, *options, "--json", str(written)],
        cwd=CHECKOUT_DIR,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(written.read_text())
    assert figures["targets"]
    for target in figures["targets"]:
        assert target["name"] in ended.stdout
    return figures


def test_every_page(data_dir: Path) -> None:
    options = ["--size", "tiny", "--requests", "1", "--data-dir", str(data_dir)]
    found = figures_of("tests.benchmarks", data_dir, *options)
    assert found["pages"].keys() == PAGES.keys()
    for page in found["pages"].values():
        assert {"console", "raw", "console_tenth", "raw_tenth"} <= page.keys()
        assert all(each["requests"] == 1 and each["p50_ms"] > 0 for each in page.values())
    assert [each["clients"] for each in found["add_items"]] == [1, 8]
    assert [each["calls"] > 0 for each in found["attach_store"]] == [True, True]


def test_audit_log(data_dir: Path) -> None:
    options = ["--events", "300", "--seconds", "0.1", "--rounds", "1", "--proofs", "5", "--data-dir", str(data_dir)]
    found = figures_of("tests.benchmarks.audit", data_dir, *options)
    assert found["verified"].keys() == {"an export", "the database"}


def test_sealed_sessions(tmp_path: Path) -> None:
    found = figures_of("tests.benchmarks.encryption", tmp_path, "--items", "200")
    assert all(rate > 0 for rate in found["items_per_s"].values())


def test_stores(data_dir: Path) -> None:
    if not (REDIS and all(map(program, PROGRAMS))):
        without("Redis or MariaDB", f"redis-tools {PACKAGES}")
    # Starting a web server for each of the ten stores would take most of the time.
    options = ["--sessions", "12", "--items", "20", "--requests", "1", "--one-server", "--data-dir", str(data_dir)]
    found = figures_of("tests.benchmarks.stores", data_dir, *options)
    kinds = {"main", "postgres", "mariadb", "sqlite_url", "sqlite", "advanced", "redis", "chats", "agno", "phidata"}
    assert found["stores"].keys() == kinds
    for figures in found["stores"].values():
        assert figures["list"]["p50_ms"] > 0
        assert figures["timeline"]["p50_ms"] > 0


def test_memories(data_dir: Path) -> None:
    found = figures_of(
        "tests.benchmarks.memories", data_dir, "--memories", "400", "--requests", "1", "--data-dir", str(data_dir)
    )
    assert found["recall_for_agent"]["requests"] == 1
