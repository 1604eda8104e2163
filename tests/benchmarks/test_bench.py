"""The bench runs from end to end, so that it still does when somebody needs a figure. Figures are not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memadmin.settings import CHECKOUT_DIR
from tests.benchmarks.pages import PAGES
from tests.stores.mariadb import PACKAGES, PROGRAMS, program
from tests.stores.servers import REDIS, without


@pytest.mark.slow
def test_the_bench_measures_every_page_and_writes_it_down(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    options = ["--size", "tiny", "--requests", "2", "--data-dir", str(tmp_path / "bench"), "--json", str(written)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *options], cwd=CHECKOUT_DIR, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(written.read_text())
    assert found["pages"].keys() == PAGES.keys()
    for page in found["pages"].values():
        assert {"console", "raw", "console_tenth", "raw_tenth"} <= page.keys()
        assert all(each["requests"] == 2 and each["p50_ms"] > 0 for each in page.values())
    assert [each["clients"] for each in found["add_items"]] == [1, 8]
    assert [each["calls"] > 0 for each in found["attach_store"]] == [True, True]
    for target in found["targets"]:
        assert target["name"] in run.stdout


@pytest.mark.slow
def test_the_bench_of_the_audit_log_measures_and_writes_it_down(tmp_path: Path) -> None:
    options = ["--events", "300", "--seconds", "1", "--data-dir", str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.audit", *options], cwd=CHECKOUT_DIR, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "bench-audit.json").read_text())
    assert found["verified"].keys() == {"an export", "the database"}
    for target in found["targets"]:
        assert target["name"] in run.stdout


@pytest.mark.slow
def test_the_bench_of_sealed_sessions_measures_and_writes_it_down(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    options = ["--items", "200", "--json", str(written)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.encryption", *options],
        cwd=CHECKOUT_DIR,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(written.read_text())
    assert all(rate > 0 for rate in found["items_per_s"].values())
    for target in found["targets"]:
        assert target["name"] in run.stdout


@pytest.mark.slow
def test_the_bench_of_stores_measures_and_writes_it_down(tmp_path: Path) -> None:
    if not (REDIS and all(map(program, PROGRAMS))):
        without("Redis or MariaDB", f"redis-tools {PACKAGES}")
    options = ["--sessions", "12", "--items", "20", "--requests", "2", "--data-dir", str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.stores", *options], cwd=CHECKOUT_DIR, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "bench-stores.json").read_text())
    kinds = {"main", "postgres", "mariadb", "sqlite_url", "sqlite", "advanced", "redis", "chats", "agno", "phidata"}
    assert found["stores"].keys() == kinds
    for figures in found["stores"].values():
        assert figures["list"]["p50_ms"] > 0
        assert figures["timeline"]["p50_ms"] > 0
    for target in found["targets"]:
        assert target["name"] in run.stdout


@pytest.mark.slow
def test_the_bench_of_memories_measures_and_writes_it_down(tmp_path: Path) -> None:
    options = ["--memories", "400", "--requests", "2", "--data-dir", str(tmp_path)]
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.memories", *options], cwd=CHECKOUT_DIR, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "bench-memories.json").read_text())
    assert found["recall_for_agent"]["requests"] == 2
    for target in found["targets"]:
        assert target["name"] in run.stdout
