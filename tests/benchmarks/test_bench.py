"""Each bench runs from end to end at its smallest size. The figures are not checked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
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

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Path:
    """One server for all benches, whose `template1` is migrated: so is every database that they create."""
    server = server_for(tmp_path_factory.mktemp("bench"))
    with django_db_blocker.unblock():
        copy_to(server, "template1")
    # A bench may have to restart the server, which it can while it is the only user.
    server.leave()
    return server.data_dir


RUNS_BENCHES = """
import json
import os
import runpy
import sys

import agents.extensions.memory
import django.db
import sqlalchemy.ext.asyncio

for line in sys.stdin:
    bench, output, *sys.argv[1:] = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    written = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(written, 1)
    os.dup2(written, 2)
    runpy.run_module(bench, run_name="__main__", alter_sys=True)
    break
"""
"""As `python -m` does with each of them, in a new process in which the largest libraries are loaded already."""


@pytest.fixture(scope="module")
def benches() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", RUNS_BENCHES],
        cwd=CHECKOUT_DIR,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as benches:
        yield benches


@pytest.fixture
def figures_of(benches: subprocess.Popen[str], tmp_path: Path) -> Callable[..., Any]:
    def run(bench: str, *options: str) -> Any:
        """The JSON that a bench wrote, once its table has been found to contain every target of it."""
        written, output = tmp_path / "figures.json", tmp_path / "output"
        assert benches.stdin
        assert benches.stdout
        print(json.dumps([bench, str(output), *options, "--json", str(written)]), file=benches.stdin, flush=True)
        assert benches.stdout.readline() == "0\n", output.read_text()
        figures = json.loads(written.read_text())
        assert figures["targets"]
        for target in figures["targets"]:
            assert target["name"] in output.read_text()
        return figures

    return run


def test_every_page(figures_of: Callable[..., Any], data_dir: Path) -> None:
    options = ["--size", "tiny", "--requests", "1", "--data-dir", str(data_dir)]
    found = figures_of("tests.benchmarks", *options)
    assert found["pages"].keys() == PAGES.keys()
    for page in found["pages"].values():
        assert {"console", "raw", "console_tenth", "raw_tenth"} <= page.keys()
        assert all(each["requests"] == 1 and each["p50_ms"] > 0 for each in page.values())
    assert [each["clients"] for each in found["add_items"]] == [1, 8]
    assert [each["calls"] > 0 for each in found["attach_store"]] == [True, True]


def test_users(figures_of: Callable[..., Any], data_dir: Path) -> None:
    options = ["--size", "tiny", "--workers", "1", "--users", "2", "--seconds", "2"]
    found = figures_of("tests.benchmarks.users", *options, "--data-dir", str(data_dir))
    assert [row["requests"] > 0 for row in found["rows"]] == [True]


def test_audit_log(figures_of: Callable[..., Any], data_dir: Path) -> None:
    options = ["--events", "300", "--seconds", "0.1", "--rounds", "1", "--proofs", "5", "--data-dir", str(data_dir)]
    found = figures_of("tests.benchmarks.audit", *options)
    assert found["verified"].keys() == {"an export", "the database"}


def test_sealed_sessions(figures_of: Callable[..., Any]) -> None:
    found = figures_of("tests.benchmarks.encryption", "--items", "200")
    assert all(rate > 0 for rate in found["items_per_s"].values())


def test_stores(figures_of: Callable[..., Any], data_dir: Path) -> None:
    if not (REDIS and all(map(program, PROGRAMS))):
        without("Redis or MariaDB", f"redis-tools {PACKAGES}")
    # Starting a web server for each of the ten stores would take most of the time.
    options = ["--sessions", "12", "--items", "20", "--requests", "1", "--one-server", "--data-dir", str(data_dir)]
    found = figures_of("tests.benchmarks.stores", *options)
    kinds = {"main", "postgres", "mariadb", "sqlite_url", "sqlite", "advanced", "redis", "chats", "agno", "phidata"}
    assert found["stores"].keys() == kinds
    for figures in found["stores"].values():
        assert figures["list"]["p50_ms"] > 0
        assert figures["timeline"]["p50_ms"] > 0


def test_memories(figures_of: Callable[..., Any], data_dir: Path) -> None:
    found = figures_of("tests.benchmarks.memories", "--memories", "400", "--requests", "1", "--data-dir", str(data_dir))
    assert found["recall_for_agent"]["requests"] == 1


def test_retention(figures_of: Callable[..., Any], data_dir: Path) -> None:
    options = ["--items", "600", "--seconds", "0.5"]
    found = figures_of("tests.benchmarks.retention", *options, "--data-dir", str(data_dir))
    assert found["figures"]["items"] == 600


def test_erasures(figures_of: Callable[..., Any], data_dir: Path) -> None:
    options = ["--items", "200", "--person-items", "100", "--rounds", "1", "--seconds", "0.5"]
    found = figures_of("tests.benchmarks.erasure", *options, "--data-dir", str(data_dir))
    assert {name: figures["items"] for name, figures in found["growth"].items()} == {"small": 200, "large": 2_000}


def test_batches_of_erasures(figures_of: Callable[..., Any], data_dir: Path) -> None:
    found = figures_of("tests.benchmarks.erasure", "--batch", "2", "4", "--data-dir", str(data_dir))
    assert [batch["subjects"] for batch in found["batches"]] == [2, 4]
