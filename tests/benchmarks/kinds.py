"""The figures of a store of each kind, on the bench's database: see `tests.benchmarks.stores`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from tests.benchmarks.measure import Browser, Contender, in_turns
from tests.benchmarks.places import LONG, VERY_LONG, VERY_LONG_TIMES, connected_stores
from tests.benchmarks.prepare import sign_in
from tests.benchmarks.processes import say
from tests.benchmarks.servers import WebServer, running_server


def measure(
    stores: Sequence[SessionStore], items: int, requests: int, folder: Path, *, one_server: bool
) -> dict[str, Any]:
    """By the store's name; pages in turns, then what takes the whole of a session."""
    client = Client()
    client.cookies["sessionid"] = sign_in()["cookie"]

    def ask(address: str) -> Contender:
        def call(number: int) -> None:
            answer = client.get(address, headers={"host": "localhost"}, secure=settings.SECURE_SSL_REDIRECT)
            assert answer.status_code == 200, answer.status_code

        return Contender(call, time.process_time)

    contenders = {}
    for store in stores:
        long = SessionRecord.objects.get(store=store, session_id=LONG)
        contenders["list", store.name] = ask(f"{reverse('sessions:list')}?store={store.name}")
        contenders["timeline", store.name] = ask(reverse("sessions:timeline", args=[long.pk]))
    say(f"Measuring {len(contenders)} pages.")
    pages = in_turns(contenders, requests)
    figures = {}

    def web_server(log: str) -> AbstractContextManager[WebServer]:
        return running_server(dict(os.environ), folder / log)

    with web_server("all.log") if one_server else nullcontext() as shared:
        for store in stores:
            with nullcontext(shared) if shared else web_server(f"{store}.log") as server:
                download_s, download_mb = downloaded(store, VERY_LONG_TIMES * items, server)
            began = time.perf_counter()
            assert backend_for(store).erase_session(LONG) == items
            figures[store.name] = {
                "list": pages["list", store.name].as_json(),
                "timeline": pages["timeline", store.name].as_json(),
                "erased_s": round(time.perf_counter() - began, 2),
                "download_s": round(download_s, 1),
                "download_mb": download_mb,
            }
            say(f"{store}: {figures[store.name]}")
    return figures


def downloaded(store: SessionStore, items: int, server: WebServer) -> tuple[float, float]:
    """Downloads the very long session.

    Returns how long that took, and by how much its memory grew above what it has when it has shown pages.
    """
    record = SessionRecord.objects.get(store=store, session_id=VERY_LONG)
    long = SessionRecord.objects.get(store=store, session_id=LONG)
    # A download asks for a proof of at most 5 minutes.
    browser = Browser(server.port, sign_in()["cookie"])
    for page in (reverse("sessions:list"), reverse("sessions:timeline", args=[long.pk])):
        browser.get(page)
    rest = server.forget_peak_memory()
    began = time.perf_counter()
    lines = browser.count_lines(reverse("sessions:export-jsonl", args=[record.pk]))
    seconds = time.perf_counter() - began
    assert lines == items, f"{lines} of {items} items"
    peak = server.peak_memory_mb() or 0
    return seconds, round(peak - rest, 1)


def measure_all(
    sessions: int, items: int, requests: int, agents_database: str, only: Sequence[str], *, one_server: bool
) -> dict[str, Any]:
    """By the store's name."""
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="stores-", ignore_cleanup_errors=True)))
        stores = connected_stores(stack, folder, sessions, items, agents_database, only)
        with connection.cursor() as cursor:
            # As autovacuum has done for a console that has been running for a while.
            cursor.execute("VACUUM (ANALYZE)")
        return measure(stores, items, requests, folder, one_server=one_server)
