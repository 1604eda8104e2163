"""Metrics for Prometheus: figures, labels without ids, and what happens when the database or a process is away."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings as real_settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from prometheus_client.core import Metric
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.parser import text_string_to_metric_families

from memadmin.audit.transparency import status
from memadmin.deploy.counts.processes import CountsInFolder, pid_of
from memadmin.deploy.metrics import database
from memadmin.deploy.roles import Roles
from memadmin.deploy.system import components
from memadmin.erasure.models import SubjectRequest
from sessions_app.models import SubjectAlias
from tests.agents import run_sql
from tests.builders import make_session, make_store, make_subject
from tests.deploy.connecting import connected_as
from tests.memories.builders import proposed
from tests.ports import free_port
from tests.waiting import wait_until

NO_PROCESS = 2**30
"""Above the ids that Linux gives to processes."""

TOKEN = "token-of-the-tests-0123456789"


@pytest.fixture(autouse=True)
def token(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN


def scraped(client: Client | None = None) -> str:
    answer = (client or Client()).get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    return answer.text


def value(text: str, name: str, **labels: str) -> float | None:
    """The value of one sample; None if there is none."""
    for metric in text_string_to_metric_families(text):
        for sample in metric.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


@pytest.mark.django_db
def test_only_with_the_token(settings: Any) -> None:
    client = Client()
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401
    assert client.get("/metrics", headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
    assert scraped().startswith("# HELP memadmin_")
    settings.METRICS_TOKEN = ""
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404


@pytest.mark.django_db
def test_requests_are_counted_by_page_method_and_status(operator: Client) -> None:
    subject = make_subject("quokka")
    before = scraped()
    assert operator.get(subject.get_absolute_url(), {"q": "quokka"}).status_code == 200
    operator.get("/nowhere/quokka/")
    operator.generic("QUOKKA", "/healthz")
    after = scraped()

    def counted(**labels: str) -> float:
        return (value(after, "memadmin_requests_total", **labels) or 0) - (
            value(before, "memadmin_requests_total", **labels) or 0
        )

    assert counted(page="sessions:subject", method="GET", status="200") == 1
    assert counted(page="unknown", method="GET", status="404") == 1
    assert counted(page="healthz", method="other", status="405") == 1
    assert value(after, "memadmin_request_seconds_count", page="sessions:subject")
    assert value(after, "memadmin_requests_in_progress") == 1  # the scrape itself
    assert "quokka" not in after.lower()


@pytest.mark.django_db
def test_figures_are_those_of_the_page() -> None:
    run_sql("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now()), (now() - interval '4 minutes')")
    run_sql(
        "WITH job AS (INSERT INTO procrastinate_jobs (task_name, queue_name, status)"
        " VALUES ('late', 'default', 'todo'), ('failed', 'default', 'failed') RETURNING id, status)"
        " UPDATE procrastinate_events SET at = now() - interval '20 minutes' FROM job WHERE job_id = job.id"
    )
    store = make_store("support")
    store.checked_at, store.last_check = now(), {"problems": [{"code": "a", "sentence": "b", "is_fatal": True}]}
    store.dropped_writes = 3
    store.save()
    proposed("Prefers tea.")
    for days in (-1, 2, 20):
        SubjectRequest.objects.create(
            kind="erasure",
            subject=make_subject(),
            channel="letter",
            received_on=date(2026, 1, 1),
            due_on=now().date() + timedelta(days=days),
        )
    text = scraped()
    assert value(text, "memadmin_up") == 1
    assert value(text, "memadmin_ready") == 1
    page = {fact.name: fact.words for fact in components.worker().facts}
    assert page["Processes"] == "1 running, 1 silent"
    assert value(text, "memadmin_workers", state="running") == value(text, "memadmin_workers", state="silent") == 1
    assert page["Waiting jobs"] == f"{value(text, 'memadmin_jobs', state='waiting'):.0f}"
    assert page["Failed, 24 h"] == f"{value(text, 'memadmin_jobs', state='failed'):.0f}"
    assert value(text, "memadmin_stores", state="down") == 1
    assert value(text, "memadmin_fence_dropped_writes_total") == 3
    assert value(text, "memadmin_reviews", state="waiting") == 1
    requests = {
        state: value(text, "memadmin_subject_requests", kind="erasure", state=state)
        for state in ("open", "due", "overdue")
    }
    assert requests == {"open": 3, "due": 1, "overdue": 1}
    assert value(text, "memadmin_audit_events") == status.log_status().size


@pytest.mark.django_db
def test_labels_are_words_of_our_code(operator: Client) -> None:
    """No id, key or name: neither of a subject nor of a store."""
    subject = make_subject("quokka-7@example.org")
    store = make_store("of-quokka")
    make_session("quokka-session", store=store, subject=subject)
    operator.get(reverse("sessions:subjects"), {"q": "quokka"})
    operator.get("/quokka/?quokka")
    assert SubjectAlias.objects.filter(key__contains="quokka").exists()
    text = scraped()
    assert "quokka" not in text
    label = re.compile(r"[A-Za-z0-9_:.-]{1,80}|\+Inf")
    for metric in text_string_to_metric_families(text):
        for sample in metric.samples:
            for found in sample.labels.values():
                assert label.fullmatch(found), sample
                assert not re.search(r"[0-9a-f]{8}-|\d{4,}", found), sample


@pytest.mark.django_db
def test_everything_can_be_read_with_the_rights_of_the_web_server(ours: Roles) -> None:
    with connected_as(ours["web"]):
        assert value(scraped(), "memadmin_up") == 1


@pytest.mark.django_db
def test_figures_take_few_statements(django_assert_max_num_queries: Any) -> None:
    scraped()
    with django_assert_max_num_queries(60):  # savepoints included
        scraped()


@pytest.mark.django_db(transaction=True)
def test_a_slow_part_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow() -> Iterator[Metric]:
        run_sql("SELECT pg_sleep(60)")
        yield from ()

    def broken() -> Iterator[Metric]:
        raise KeyError("fence")

    monkeypatch.setattr(database, "PARTS", {"slow": slow, "broken": broken, "reviews": database.reviews})
    monkeypatch.setattr(database, "STATEMENT_SECONDS", 1)
    monkeypatch.setattr(database, "LONGEST_SECONDS", 60)
    text = scraped()
    assert [value(text, "memadmin_part_up", part=part) for part in ("slow", "broken", "reviews")] == [0, 0, 1]
    assert value(text, "memadmin_up") == 0
    assert value(text, "memadmin_reviews", state="waiting") == 0
    run_sql("SELECT pg_sleep(1.1)")  # no longer limited


@pytest.mark.django_db
def test_without_time_left_no_part_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LONGEST_SECONDS", 0)
    text = scraped()
    assert {value(text, "memadmin_part_up", part=part) for part in database.PARTS} == {0}


def test_without_a_database_the_scrape_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No `db` fixture here."""

    def refuse() -> None:
        raise OperationalError("connection refused for role console")

    monkeypatch.setattr(connections[DEFAULT_DB_ALIAS], "ensure_connection", refuse)
    text = scraped()
    assert value(text, "memadmin_up") == 0
    assert value(text, "memadmin_requests_in_progress") == 1
    assert "refused" not in text


# --- several processes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Address of a web server with two processes, whose database is away."""
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "granian", "memadmin.wsgi:application", "--interface", "wsgi", "--workers", "2"),
            *("--host", "127.0.0.1", "--port", str(port), "--blocking-threads", "2", "--respawn-failed-workers"),
            # One that is asked to stop before it serves would stay for ever.
            *("--workers-kill-timeout", "1"),
        ],
        cwd=real_settings.CHECKOUT_DIR,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memadmin.settings",
            "DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing",
            "MEMADMIN_CONNECT_TIMEOUT_SECONDS": "1",
            "MEMADMIN_DATA_DIR": str(tmp_path),
            "MEMADMIN_METRICS_TOKEN": TOKEN,
        },
    )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: asked(f"{address}/healthz"))
        yield address
    finally:
        for child in psutil.Process(process.pid).children():
            child.kill()
        process.kill()
        process.wait()


def asked(address: str) -> str:
    """The text of an answer; empty when nothing answers yet."""
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


def health_checks(server: str) -> float:
    text = wait_until(lambda: asked(f"{server}/metrics"))
    return value(text, "memadmin_requests_total", page="healthz", method="GET", status="200") or 0


@pytest.mark.release
def test_processes_report_the_sum_of_all_and_keep_it_when_one_is_killed(server: str, tmp_path: Path) -> None:
    # Scrapes of either process have the same figure, and each sees what the other one counted.
    before = health_checks(server)
    for _ in range(20):
        assert asked(f"{server}/healthz")
    assert health_checks(server) == before + 20
    assert health_checks(server) == before + 20
    text = asked(f"{server}/metrics")
    assert value(text, "memadmin_up") == 0
    assert value(text, "memadmin_pool_connections_max") in (8, 16)  # of the processes that were asked

    (folder,) = (tmp_path / "metrics").iterdir()
    main = psutil.Process(int(folder.name))
    for child in main.children():
        if any(folder.glob(f"counter_{child.pid}.db")):
            child.kill()
            break
    wait_until(lambda: asked(f"{server}/healthz"))
    assert health_checks(server) >= before + 20
    assert len(list((tmp_path / "metrics").iterdir())) == 1


def files_of_processes(folder: Path) -> set[int]:
    """Ids of the processes whose own files are in the folder."""
    return {pid for path in folder.glob("*.db") if (pid := pid_of(path)) is not None}


@pytest.mark.release
def test_recycled_processes_leave_their_counts_and_no_files(server: str, tmp_path: Path) -> None:
    for _ in range(20):
        assert asked(f"{server}/healthz")
    before = health_checks(server)
    (folder,) = (tmp_path / "metrics").iterdir()
    main = psutil.Process(int(folder.name))

    def serving() -> set[int]:
        """Processes that have begun to count."""
        children = {child.pid for child in main.children()}
        return {pid for pid in files_of_processes(folder) if pid in children}

    def recycled() -> set[int]:
        """Has granian replace its processes, as at the end of their lifetime; returns those that were replaced."""
        wait_until(lambda: len(serving()) == 2)
        earlier = serving()
        main.send_signal(signal.SIGHUP)
        wait_until(lambda: len(serving()) == 2 and not any(map(psutil.pid_exists, earlier)))
        return earlier

    first = recycled()
    # Nothing read the counts meanwhile: a process that starts takes care of those that ended before.
    second = recycled()
    assert not files_of_processes(folder) & first
    assert health_checks(server) == before
    assert files_of_processes(folder) == serving()
    assert not serving() & second
    assert {path.name for path in folder.glob("*ended*")} == {"counter_ended.db", "histogram_ended.db"}
    text = asked(f"{server}/metrics")
    assert value(text, "memadmin_requests_in_progress") == 1  # the scrape itself
    assert value(text, "memadmin_request_seconds_bucket", page="healthz", le="+Inf") >= before  # type: ignore[operator]


def test_counts_are_added_up_once(tmp_path: Path) -> None:
    """Merged with what other processes left, and read beside those of one that lives."""
    key = mmap_key("memadmin_requests", "memadmin_requests_total", ["page"], ["healthz"], "Answered requests.")
    for pid, count in ((os.getpid(), 1.0), (NO_PROCESS, 2.0), (NO_PROCESS + 1, 4.0)):
        file = MmapedDict(str(tmp_path / f"counter_{pid}.db"))  # type: ignore[no-untyped-call]
        file.write_value(key, count, 0.0)  # type: ignore[no-untyped-call]
        file.close()  # type: ignore[no-untyped-call]
    for _ in range(2):
        (metric,) = CountsInFolder(tmp_path).collect()
        assert [(sample.labels, sample.value) for sample in metric.samples] == [({"page": "healthz"}, 7.0)]
        assert files_of_processes(tmp_path) == {os.getpid()}
