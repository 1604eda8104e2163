"""Faults of the database while people read: none of them shows content without its event in the audit log.

docs/faults.md has what each of them does to an installation, and the tests of other faults.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from memadmin.embedded import cluster
from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.settings import TCP_TIMEOUTS, with_our_options
from tests.ops.site import Answer, Site, make_site
from tests.processes import kill_with_children
from tests.stores.servers import without
from tests.template_database import copy_to
from tests.waiting import wait_until

pytestmark = pytest.mark.release

SMALL_DISK = "340m"
MOST_CONNECTIONS = "30"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patching, django_db_blocker.unblock():
        patching.setitem(cluster.SETTINGS, "max_connections", MOST_CONNECTIONS)
        server = server_for(tmp_path_factory.mktemp("faulty"))
        copy_to(server)
        yield make_site(server)
        server.leave()


@pytest.fixture
def site(made: Site, tmp_path: Path) -> Iterator[Site]:
    with made.serving(tmp_path):
        made.wait_until_it_shows_content()
        yield made


class Reader:
    """Reads the same page again and again, in a thread, and keeps what came of it."""

    def __init__(self, site: Site) -> None:
        self.site, self.answers = site, list[Answer]()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        while not self._end.is_set():
            self.answers.append(self.site.read())

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._end.set()
        self._thread.join()

    def wait_for(self, is_meant: Callable[[Answer], bool], what: str) -> None:
        """For an answer that comes from now on."""
        before = len(self.answers)
        wait_until(lambda: any(map(is_meant, self.answers[before:])), what)

    @property
    def statuses(self) -> Counter[int]:
        return Counter(answer.status for answer in self.answers)

    @property
    def shown(self) -> int:
        return sum(answer.shows_content for answer in self.answers)


def shows_content(answer: Answer) -> bool:
    return answer.shows_content


def is_unavailable(answer: Answer) -> bool:
    return answer.status == 503


def stop(server: EmbeddedServer) -> None:
    cluster.stop(server.cluster)


def kill(server: EmbeddedServer) -> None:
    kill_with_children(server.ensure_running().pid)


@pytest.mark.parametrize("end", [stop, kill])
def test_while_postgresql_is_away_pages_say_so_and_afterwards_they_are_back(
    site: Site, end: Callable[[EmbeddedServer], None]
) -> None:
    before = site.reads_in_the_log()
    with Reader(site) as reader:
        reader.wait_for(shows_content, "the page is read")
        end(site.server)
        reader.wait_for(is_unavailable, "the page is unavailable")
        assert site.get("/readyz").status == 503
        assert site.get("/healthz").status == 200
        site.server.ensure_running()
        reader.wait_for(shows_content, "the page is back")
    assert set(reader.statuses) == {200, 503}
    # An event without a page is possible: committed in the moment of the fault. A page without its event is not.
    assert 0 < reader.shown <= site.reads_in_the_log() - before


def test_without_a_free_connection_pages_say_so(site: Site) -> None:
    with contextlib.ExitStack() as stack:
        everybody = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'memadmin'"
        first = stack.enter_context(site.connect())
        while True:
            try:
                stack.enter_context(site.connect())
            except psycopg.OperationalError:
                # All are taken; now those of the web server, too.
                if not first.execute(everybody).fetchall():
                    break
        before = first.execute("SELECT count(*) FROM audit_event").fetchone()
        answer = site.read()
        assert (answer.status, answer.shows_content) == (503, False)
        assert first.execute("SELECT count(*) FROM audit_event").fetchone() == before
    site.wait_until_it_shows_content()


# --- a full disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mounting, check=False).returncode:
        pytest.skip("mounting a small disk takes root")
    folder.chmod(0o755)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_shows_nothing_without_its_event(
    small_disk: Path, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    server = server_for(small_disk / "data")
    with django_db_blocker.unblock():
        copy_to(server)
    made = make_site(server)
    ballast = small_disk / "ballast"
    try:
        with made.serving(tmp_path) as site:
            site.wait_until_it_shows_content()
            before = site.reads_in_the_log()
            with Reader(site) as reader, site.connect() as filler:
                filler.execute("CREATE TABLE filler (text text)")
                # The rest of a whole segment is room enough for what follows; the tables find none at once.
                filler.execute("SELECT pg_switch_wal()")
                filler.execute("INSERT INTO filler VALUES ('begins the next one')")
                fill(ballast)
                with pytest.raises(psycopg.errors.DiskFull):
                    write_until_it_is_refused(filler)
                # An event for which no page of its table is left is refused, and nothing is shown.
                reader.wait_for(is_unavailable, "an event is refused")
                assert filler.execute("SELECT 1").fetchone() == (1,)
                # Without room for the WAL, PostgreSQL ends itself.
                with pytest.raises(psycopg.OperationalError):
                    fill_wal(filler)
                reader.wait_for(is_unavailable, "PostgreSQL is away")
                ballast.unlink()
                server.ensure_running()
                reader.wait_for(shows_content, "the page is back")
            assert set(reader.statuses) == {200, 503}
            assert 0 < reader.shown <= site.reads_in_the_log() - before
        assert made.findings_in_the_log() == []
    finally:
        server.leave()


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))


def write_until_it_is_refused(filler: psycopg.Connection[object]) -> None:
    while True:
        filler.execute("INSERT INTO filler SELECT repeat(md5(n::text), 50) FROM generate_series(1, 500) AS n")


def fill_wal(filler: psycopg.Connection[object]) -> None:
    while True:
        filler.execute("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1000000))")


# --- a network that is cut --------------------------------------------------------------------------------------------


def test_who_asked_a_server_that_is_cut_off_gives_up(tmp_path: Path) -> None:
    """While a statement is sent, and while its result is waited for; left to the operating system, it would hang."""
    in_a_network = ["unshare", "--net"]
    if os.geteuid() or subprocess.run([*in_a_network, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a network of one's own takes root")
    ended = subprocess.run(
        [*in_a_network, sys.executable, "-m", "tests.ops.cut_off", str(tmp_path / "cut")],
        cwd=settings.CHECKOUT_DIR,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.stdout.splitlines() == ["SELECT 1 is away", "SELECT pg_sleep(3600) is away"], ended.stderr


def test_every_connection_of_the_console_has_these_limits() -> None:
    given = with_our_options({"NAME": "console"})["OPTIONS"]
    assert {name for name in given if name.startswith(("tcp_", "keepalives_"))} == set(TCP_TIMEOUTS)


# --- a clock that jumps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", ["+1d", "-1d"])
def test_a_server_whose_clock_jumps_by_a_day_keeps_the_order_of_the_log(
    made: Site, tmp_path: Path, jump: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of events is that of their numbers, and no time of one has to be after that of another."""
    if not (libraries := sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))):
        without("libfaketime", "libfaketime")
    with made.serving(tmp_path):
        made.wait_until_it_shows_content()
        before = made.reads_in_the_log()
        with Reader(made) as reader:
            stop(made.server)
            with monkeypatch.context() as patching:
                for name, value in (("LD_PRELOAD", libraries[0]), ("FAKETIME", jump)):
                    patching.setenv(name, str(value))
                patching.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                made.server.ensure_running()
            with made.connect() as connection:
                row = connection.execute("SELECT extract(epoch FROM now())").fetchone()
            assert row
            hours = (float(row[0]) - time.time()) / 3600
            assert round(hours) == (24 if jump == "+1d" else -24)
            reader.wait_for(shows_content, "the page is read in another time")
            stop(made.server)
            made.server.ensure_running()
            reader.wait_for(shows_content, "the page is read in our time")
        assert set(reader.statuses) <= {200, 503}
        assert 0 < reader.shown <= made.reads_in_the_log() - before
    # The verifier names the jump, and finds nothing else.
    assert {finding.kind for finding in made.findings_in_the_log()} == {"clock_step_back"}
