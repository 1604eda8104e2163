"""Figures of erasures, by `python -m tests.benchmarks.erasure`: beside raw deletes, beside Django admin, and growth.

A person with 50 sessions and 2,000 items is erased beside the same rows by plain DELETEs and by what Django admin's
"delete selected" does; then a person with many items and one with ten times as many, while eight agents write, with a
preview and the scan of all items. With `--batch 20 40 80`, batches of so many subjects instead, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from memadmin.settings import DATA_DIR
from tests.benchmarks import erasure_batches, report
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import load_average
from tests.benchmarks.processes import ConsoleProcess, load_console, say
from tests.benchmarks.report import Target
from tests.benchmarks.writes import ITEMS

DATABASE = "bench_erasure"
SESSIONS = 50
WRITERS = 8

INSERT_SESSIONS = """
INSERT INTO agent_sessions (session_id) SELECT %(key)s || ':' || n FROM generate_series(1, %(sessions)s) AS n
"""
INSERT_ITEMS = """
INSERT INTO agent_messages (session_id, message_data)
SELECT %(key)s || ':' || (1 + n %% %(sessions)s), %(item)s FROM generate_series(1, %(items)s) AS n
"""


def main() -> None:
    arguments = parse_arguments()
    server = BenchServer(arguments.data_dir, is_tuned=arguments.items >= 10_000)
    load_console(server)
    load = [load_average()]
    server.create_empty(DATABASE)
    if arguments.batch:
        measure_batches(server, arguments)
        return
    try:
        with ConsoleProcess(DATABASE) as console:
            figures = console.run("tests.benchmarks.erasure.measure", arguments.rounds, arguments.person_items)
            growth = asyncio.run(measure_growth(server, console, arguments.items, arguments.seconds))
    finally:
        server.drop(DATABASE)
    load.append(load_average())
    targets = targets_of(figures, growth)
    report.print_targets(targets)
    write(arguments.json, load, {"seconds": figures, "growth": growth}, targets)


def measure_batches(server: BenchServer, arguments: argparse.Namespace) -> None:
    load = [load_average()]
    try:
        with ConsoleProcess(DATABASE) as console:
            batches = console.run("tests.benchmarks.erasure_batches.measure", arguments.batch)
    finally:
        server.drop(DATABASE)
    load.append(load_average())
    targets = erasure_batches.targets_of(batches)
    erasure_batches.print_figures(batches)
    if targets:
        report.print_targets(targets)
    write(arguments.json, load, {"batches": batches}, targets)


def write(file: Path | None, load: list[float], figures: dict[str, Any], targets: list[Target]) -> None:
    """The figures as JSON, if a file is given."""
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        **figures,
        "targets": [target.as_json() for target in targets],
    }
    if file:
        file.write_text(json.dumps(result, indent=2))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--items", type=int, default=20_000, help="of the smaller of two large persons")
    parser.add_argument("--person-items", type=int, default=2_000, help="of the person beside raw deletes")
    parser.add_argument("--batch", type=int, nargs="+", metavar="N", help="measure batches of N subjects, nothing else")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="that agents write without an erasure")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def targets_of(figures: dict[str, list[float]], growth: dict[str, Any]) -> list[Target]:
    raw, admin, ours = (statistics.median(figures[name]) for name in ("raw", "admin", "ours"))
    small, large = growth["small"], growth["large"]
    per_item = (large["seconds"] / large["items"]) / (small["seconds"] / small["items"])
    return [
        Target("erasing a person: destructive part over raw deletes", ours / raw, "at most", 3, "times"),
        Target("erasing a person: Django admin's time over ours", admin / ours, "at least", 1, "times"),
        Target("erasing: cost of an item at ten times the items", per_item, "at most", 1.5, "times"),
        Target("agents' writes during an erasure over those without", large["share"], "at least", 0.8),
        Target("preview over a sequential read of the rows", large["preview"], "at most", 1.5, "times"),
        Target("scan over a sequential read of all items", large["scan"], "at most", 1.5, "times"),
    ]


# --- in a process of the console --------------------------------------------------------------------------------------


def measure(rounds: int, items: int) -> dict[str, list[float]]:
    """Seconds of each round, by who deletes."""
    from sessions_app.models import SessionStore
    from tests.agents import attach_main_store, make_agent_tables

    prepare()
    make_agent_tables()
    attach_main_store()
    assert SessionStore.objects.exists()
    seconds: dict[str, list[float]] = {"raw": [], "admin": [], "ours": []}
    deletes: dict[str, Callable[[str], float]] = {"raw": delete_raw, "admin": delete_in_admin, "ours": erase}
    for number in range(rounds):
        for name, delete in deletes.items():
            key = f"{name}-{number}"
            add_person(key, SESSIONS, items)
            seconds[name].append(delete(key))
    return seconds


def prepare() -> None:
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)
    # Its own: with that of another database no erasure would begin, and no page of the other benches would open.
    settings.SUPPRESSION_LEDGER = Path(mkdtemp()) / "suppressions.jsonl"


def add_person(key: str, sessions: int, items: int) -> None:
    """A person with sessions, attached to a subject."""
    from django.db import connection

    from sessions_app.models import SessionRecord
    from tests.builders import make_subject

    values: dict[str, Any] = {"key": key, "sessions": sessions, "items": items, "item": json.dumps(ITEMS[0])}
    with connection.cursor() as cursor:
        cursor.execute(INSERT_SESSIONS, values)
        cursor.execute(INSERT_ITEMS, values)
        cursor.execute("VACUUM ANALYZE agent_messages")
    SessionRecord.objects.filter(session_id__startswith=f"{key}:").update(subject=make_subject(key))


def delete_raw(key: str) -> float:
    """A transaction for each session."""
    from django.db import connection, transaction

    from sessions_app.models import SessionRecord

    ids = list(SessionRecord.objects.filter(session_id__startswith=f"{key}:").values_list("session_id", flat=True))
    began = time.perf_counter()
    for session_id in ids:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM agent_messages WHERE session_id = %s", [session_id])
            cursor.execute("DELETE FROM agent_sessions WHERE session_id = %s", [session_id])
    return time.perf_counter() - began


def delete_in_admin(key: str) -> float:
    """What the action "delete selected" does with these items: it collects them for both pages, logs and deletes."""
    from django.contrib.admin import site
    from django.contrib.admin.models import DELETION, LogEntry
    from django.contrib.admin.utils import get_deleted_objects
    from django.contrib.auth.models import User
    from django.db import transaction
    from django.test import RequestFactory

    from sessions_app.models import AgentMessage

    user, _ = User.objects.get_or_create(username="bench", is_superuser=True)
    request = RequestFactory().get("/")
    request.user = user
    rows = AgentMessage._base_manager.filter(session_id__startswith=f"{key}:")
    began = time.perf_counter()
    get_deleted_objects(rows, request, site)
    with transaction.atomic():
        get_deleted_objects(rows, request, site)
        LogEntry.objects.log_actions(user_id=user.pk, queryset=rows, action_flag=DELETION)
        rows.delete()
    return time.perf_counter() - began


def approved_person(key: str) -> Any:
    from django.contrib.auth.models import Group, User

    from sessions_app.models import SubjectAlias
    from tests.erasure.builders import approved

    officer, _ = User.objects.get_or_create(username="officer")
    second, _ = User.objects.get_or_create(username="second")
    second.groups.set(Group.objects.filter(name="compliance"))
    return approved(SubjectAlias.objects.get(key=key).subject, by=officer, second=second)


def erase(key: str) -> float:
    """Seconds of the step that deletes the sessions."""
    from memadmin.erasure.models import ErasureStep
    from memadmin.runs import engine

    request = approved_person(key)
    engine.carry_on(request.run)
    step = ErasureStep.objects.get(request=request, name="sessions")
    assert step.started_at, "it is not begun"
    assert step.ended_at, "it is not done"
    return float((step.ended_at - step.started_at).total_seconds())


def preview_over_read(key: str) -> float:
    """Seconds of a preview over those of one sequential read of the person's items."""
    from django.db import connection

    from memadmin.erasure.preview import preview_erasure
    from memadmin.erasure.scope import scope_of
    from sessions_app.models import SubjectAlias

    scope = scope_of(SubjectAlias.objects.get(key=key).subject)
    began = time.perf_counter()
    preview_erasure(scope)
    preview = time.perf_counter() - began
    began = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(length(message_data)) FROM agent_messages WHERE session_id LIKE %s", [f"{key}:%"])
    return preview / (time.perf_counter() - began)


def scan_over_read(key: str) -> float:
    """Seconds of the literal scan of the agents' items, for three ids, over those of one sequential read of them."""
    from django.db import connection, transaction

    from memadmin.erasure.scan import tables
    from memadmin.erasure.scan.people import People, ScannedPerson
    from memadmin.erasure.scan.progress import Progress

    (table,) = [each for each in tables.tables() if each.name == "agent_messages"]
    texts = [f"no-{key}-48213", f"no.{key}@example.org", f"No Body Called {key.title()}"]
    began = time.perf_counter()
    tables.TableScan(table, People([ScannedPerson(1, texts=texts)]), Progress()).work("items")
    scan = time.perf_counter() - began
    began = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        cursor.execute("SELECT sum(length(session_id) + length(message_data)) FROM agent_messages")
    return scan / (time.perf_counter() - began)


# --- growth -----------------------------------------------------------------------------------------------------------


async def measure_growth(server: BenchServer, console: ConsoleProcess, items: int, rest: float) -> dict[str, Any]:
    """Of a person with so many items and of one with ten times as many, while agents write."""
    figures: dict[str, Any] = {}
    for name, count in (("small", items), ("large", 10 * items)):
        say(f"Measuring: an erasure of {count:,} items.")
        console.run("tests.benchmarks.erasure.add_person", name, 2 * SESSIONS, count)
        preview = console.run("tests.benchmarks.erasure.preview_over_read", name)
        scan = console.run("tests.benchmarks.erasure.scan_over_read", name)
        seconds: list[float] = []

        def erase_now(key: str = name, seconds: list[float] = seconds) -> None:
            seconds.append(console.run("tests.benchmarks.erasure.erase", key))

        meanwhile = await writes_during(server, erase_now)
        without = await writes_during(server, lambda: time.sleep(rest))
        figures[name] = {"items": count, "seconds": seconds[0], "share": meanwhile / without}
        figures[name] |= {"preview": preview, "scan": scan}
    return figures


async def writes_during(server: BenchServer, work: Callable[[], object]) -> float:
    """Calls of `add_items` a second by eight agents while `work` runs."""
    from tests.benchmarks.attaching import write_until

    engine = server.engine(DATABASE, pool_size=WRITERS)
    calls: list[tuple[float, float]] = []
    is_over = asyncio.Event()
    writing = [asyncio.create_task(write_until(is_over, engine, calls)) for _ in range(WRITERS)]
    while len(calls) < WRITERS and not any(each.done() for each in writing):
        await asyncio.sleep(0.1)
    started = time.perf_counter()
    await asyncio.to_thread(work)
    ended = time.perf_counter()
    is_over.set()
    await asyncio.gather(*writing)
    await engine.dispose()
    return sum(began >= started and end <= ended for began, end in calls) / (ended - started)


if __name__ == "__main__":
    main()
