"""Attaches the console to a seeded database and tells where the pages are that will be measured.

Runs in a process of its own for each database, because Django has one default database for as long as it lives.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.contrib.admin.utils import quote as admin_quote
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Count
from django.test import Client
from django.urls import reverse

from memadmin.accounts.reauth import SECOND_FACTOR_OF
from memadmin.web.paging import sign_cursor, sort_keys
from sessions_app import registry
from sessions_app.items import Position
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectKind
from sessions_app.search.remembered import remember_search
from sessions_app.services import patterns
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex
from sessions_app.views.overview import NEWEST_SESSIONS
from sessions_app.views.sessions import SESSIONS
from sessions_app.views.window import PAGE_ITEMS, Cursor
from tests.benchmarks.pages import Place

PLAIN_BACKEND = "django.contrib.auth.backends.ModelBackend"
ADMIN_SESSIONS = "/plain_admin/session/"
PLACES = 20
"""So many different pages are asked for by turns, so that none is fast for having been asked for just now."""

PATTERN = "customer_{subject}:ticket_{ticket}"

# The result of `apply_patterns` and of an inspection of every session. By the product's own services, one session at a
# time, this takes 5 ms a session: a quarter of an hour for 200,000, in which nothing is measured. Without the triggers.
SET_SUBJECTS = """
SET LOCAL session_replication_role = replica;
CREATE TEMPORARY TABLE parsed ON COMMIT DROP AS
SELECT id, parts[1] AS key, parts[2] AS ticket
FROM sessions_app_sessionrecord, regexp_match(session_id, '^customer_(.+):ticket_(.+)$') AS parts
WHERE subject_id IS NULL;
CREATE TEMPORARY TABLE found ON COMMIT DROP AS
SELECT gen_random_uuid() AS id, key FROM (SELECT DISTINCT key FROM parsed) AS keys;
INSERT INTO sessions_app_subject (id) SELECT id FROM found;
INSERT INTO sessions_app_subjectalias (subject_id, kind, key, is_primary, source)
SELECT id, 'user', key, true, 'pattern' FROM found;
UPDATE sessions_app_sessionrecord AS record
SET subject_id = found.id, subject_source = 'pattern', ticket = parsed.ticket, inspected_count = activity_count,
    patterns_tried = (SELECT patterns_version FROM sessions_app_sessionstore AS store WHERE store.id = record.store_id)
FROM parsed JOIN found USING (key) WHERE parsed.id = record.id
"""
COMMON_WORD = "refund"


def main(collect_static: bool) -> dict[str, Any]:
    """Where the pages are, for whom, and what making them took.

    Safe to repeat: it does what is missing, and finds the same pages every time.
    """
    seconds: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        seconds[name] = round(time.perf_counter() - started, 1)

    with step("migrate"):
        call_command("migrate", verbosity=0)
    if collect_static:
        call_command("collectstatic", interactive=False, verbosity=0)
    store = declare_store(registry.MAIN_STORE)
    is_new = store.attached_at is None
    with step("attach"):
        attach_store(store)
    with step("find_subjects"):
        find_subjects(store)
    with step("search_index"):
        if not SqlWordIndex(store).state().is_ready:
            SqlWordIndex(store).create()
    if is_new:
        with step("vacuum"):
            settle()
    places = {key: [asdict(place) for place in each] for key, each in find_places().items()}
    return {"seconds": seconds, "places": places, **sign_in()}


@transaction.atomic
def find_subjects(store: SessionStore) -> None:
    """Sets subject and ticket of every session from its id, and marks all as inspected. Once for a database."""
    if SessionIdPattern.objects.of(store).exists():
        return
    operator = User.objects.get_or_create(username="bench")[0]
    patterns.add_pattern(store, name="ours", text=PATTERN, subject_kind=SubjectKind.USER, by=operator)
    with connection.cursor() as cursor:
        cursor.execute(SET_SUBJECTS)


def settle() -> None:
    """The state of a console that has been running for a while: all is vacuumed and analyzed."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute("CHECKPOINT")


def sign_in() -> dict[str, str]:
    """Cookies of two operators: support staff for the console, and one who may do all for the plain admin."""
    reader = User.objects.get_or_create(username="bench")[0]
    reader.groups.set([Group.objects.get(name="support")])
    root = User.objects.get_or_create(username="bench-admin", defaults={"is_staff": True, "is_superuser": True})[0]
    backends = {"cookie": (reader, settings.AUTHENTICATION_BACKENDS[0]), "admin_cookie": (root, PLAIN_BACKEND)}
    return {name: cookie_of(user, backend) for name, (user, backend) in backends.items()}


def cookie_of(user: User, backend: str) -> str:
    client = Client()
    client.force_login(user, backend)
    # As if they had shown it: a password alone opens no page.
    session = client.session
    session[SECOND_FACTOR_OF] = user.pk
    session.save()
    return client.cookies["sessionid"].value


def find_places() -> dict[str, list[Place]]:
    """Addresses of every page that is measured, up to PLACES of each."""
    records = SessionRecord.objects.newest_first()
    newest = reverse("sessions:list")
    # Each a full page away from both ends of the list.
    depths = [SESSIONS.size + step * (records.count() - 2 * SESSIONS.size) // PLACES for step in range(PLACES)]
    deep = {depth: records[depth - 1] for depth in depths}
    subjects = (
        Subject.objects.annotate(session_count=Count("sessions"))
        .filter(session_count__gte=SESSIONS.size)
        .order_by("created_at", "pk")[:PLACES]
    )
    return {
        "list": [Place(newest, [], SESSIONS.size, ADMIN_SESSIONS)],
        "deep": [
            Place(
                f"{newest}?cursor={cursor_after(record)}",
                [record.last_activity_at.isoformat(), str(record.pk)],
                SESSIONS.size,
                f"{ADMIN_SESSIONS}?p={depth // SESSIONS.size + 1}",
            )
            for depth, record in deep.items()
        ],
        "subject": [
            Place(
                f"{newest}?subject={subject.pk}",
                [str(subject.pk)],
                SESSIONS.size,
                f"{ADMIN_SESSIONS}?q=customer_{subject.aliases.get().key}:",
            )
            for subject in subjects
        ],
        "ticket": [
            Place(f"{newest}?ticket={record.ticket}", [record.ticket], 1, f"{ADMIN_SESSIONS}?q=:ticket_{record.ticket}")
            for record in deep.values()
        ],
        "overview": [Place(reverse("sessions:overview"), [], NEWEST_SESSIONS)],
        **timeline_places(),
        **search_places(newest),
    }


def timeline_places() -> dict[str, list[Place]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_id, count(*) FROM agent_messages GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1")
        longest, count = cursor.fetchone()
        cursor.execute(
            "SELECT created_at::text, id FROM agent_messages WHERE session_id = %s"
            " ORDER BY created_at, id OFFSET %s LIMIT 1",
            [longest, count // 2],
        )
        instant, number = cursor.fetchone()
    record = SessionRecord.objects.get(session_id=longest)
    address, rows = record.get_absolute_url(), min(PAGE_ITEMS, count)
    position = Cursor("after", Position((instant, number))).sign(record)
    steady = SessionRecord.objects.filter(session_id__startswith="customer_1:").order_by("session_id")
    return {
        "head": [Place(address, [longest], rows)],
        "middle": [
            Place(f"{address}?at={quote(position)}", [longest, instant, number], min(rows, count - count // 2 - 1))
        ],
        "tail": [Place(f"{address}?end", [longest], rows)],
        "forty": [
            Place(
                each.get_absolute_url(),
                [each.session_id],
                40,
                f"{ADMIN_SESSIONS}{admin_quote(each.session_id)}/change/",
            )
            for each in steady
        ],
    }


def search_places(address: str) -> dict[str, list[Place]]:
    """A search for the rarest word of some texts, and one for a word that many of them have."""
    operator = User.objects.get(username="bench")

    def place(word: str, rows: int) -> Place:
        return Place(f"{address}?search={remember_search(operator, word).pk}", [word], rows)

    rare = min(words_said(), key=expected_items)
    return {
        "rare": [place(rare, min(session_count(rare), SESSIONS.size))],
        "common": [place(COMMON_WORD, SESSIONS.size)],
    }


def words_said() -> list[str]:
    """Words of what customers said first in some sessions."""
    steady = SessionRecord.objects.filter(session_id__startswith="customer_1:").order_by("session_id")[:PLACES]
    previews = backend_for(steady[0].store).previews([record.session_id for record in steady]).values()
    texts = (preview.first_user_text.removesuffix("…").rpartition(" ")[0] for preview in previews)
    return sorted({word for text in texts for word in text.split()})


SAID = "FROM agent_messages WHERE memadmin_item_words(message_data) @@ websearch_to_tsquery('simple', %s)"


def expected_items(word: str) -> int:
    """How many items have a word, as the planner sees it: counting those of a common one takes minutes."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) SELECT {SAID}", [word])
        return int(cursor.fetchone()[0][0]["Plan"]["Plan Rows"])


def session_count(word: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(DISTINCT session_id) {SAID}", [word])
        return int(cursor.fetchone()[0])


def cursor_after(record: SessionRecord) -> str:
    """What the link to older sessions says on a page that ends with this one."""
    keys = sort_keys(SessionRecord.objects.newest_first())
    return quote(sign_cursor("older", record, keys, SESSIONS.salt))
