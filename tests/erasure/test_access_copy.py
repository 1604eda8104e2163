"""Content of copies: everything about the person, nothing about others, and pages that load nothing."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from memadmin import audit
from memadmin.audit.log.types import known
from memadmin.erasure.access_copy import files
from memadmin.erasure.access_copy.records import READING
from memadmin.erasure.data_map.services import change_record
from memadmin.erasure.models import AccessCopy
from memories_app.models import Evidence, Memory, Recall, RecalledMemory, Review, Signal
from sessions_app import audit_events
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, assistant, attach_main_store, run_sql
from tests.builders import make_subject
from tests.erasure.copies import all_text, built_copy, files_in_folder, full_copy, json_in, opened, plain_file
from tests.hostile import MARKUP
from tests.memories.builders import approved, proposed
from tests.odd_json import KNOWN
from tests.sealed import OLD_KEY, STRANGE_KEY, add_sealed
from tests.sealed import keys as keys

pytestmark = pytest.mark.usefixtures("copies_folder", "agent_tables")

CALL = {"type": "function_call", "call_id": "c1", "name": "look_up_order", "arguments": '{"number": "A-17"}'}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
REMOTE = [
    {"type": "input_image", "image_url": "https://elsewhere.example/picture.png"},
    {"type": "input_file", "file_url": "https://elsewhere.example/file.pdf", "filename": "file.pdf"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
]
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sent to Grüße-Straße 5"}


def give(subject: Subject, *session_ids: str, by: User) -> None:
    attach_sessions(SessionRecord.objects.filter(session_id__in=session_ids), subject, by=by)


def test_everything_about_the_person_and_nothing_about_others(officer: User, second: User, keys: Any) -> None:
    attach_main_store()
    SessionStore.objects.update(encryption_key="old")
    ada, bob = make_subject("ada-1"), make_subject("bob-1")
    add_items("a1", "Wo ist meine Bestellung? 你好 🙂", CALL, OUTPUT, assistant("It was sent."))
    add_sealed("a2", "my sealed words", key=OLD_KEY)
    add_sealed("a3", "words nobody can open", key=STRANGE_KEY)
    add_items("b1", "words of Bob alone")
    give(ada, "a1", "a2", "a3", by=officer)
    give(bob, "b1", by=officer)
    of_ada, of_bob = (SessionRecord.objects.get(session_id=name) for name in ("a1", "b1"))
    memory, other = approved("Ada likes tea.", subject=ada), approved("Bob likes coffee.", subject=bob)
    rejected = proposed("Ada likes milk.", subject=ada)
    Memory.objects.filter(pk=rejected.pk).update(status=Memory.Status.REJECTED)
    Evidence.objects.create(memory=memory, quote="Tea, please.", record_id=of_ada.pk, session_id="a1")
    Evidence.objects.create(memory=memory, quote="Ada told Bob in secret", record_id=of_bob.pk, session_id="b1")
    Signal.objects.create(subject=ada, kind="preference", text="prefers mornings")
    Signal.objects.create(subject=bob, kind="preference", text="prefers evenings")
    recall = Recall.objects.create(subject=ada, record_id=of_ada.pk, session_id="a1", agent="Shop")
    RecalledMemory.objects.create(recall=recall, memory=memory, version=1, place=1)
    RecalledMemory.objects.create(recall=recall, memory=other, version=1, place=2)
    reader = User.objects.create_user("grace.hopper", first_name="Grace")
    audit.record_alone(audit_events.SESSION_VIEWED, by=reader, target=of_ada, subject=ada.pk, reason_code="quality")
    audit.record_alone(audit_events.SESSION_VIEWED, by=reader, target=of_bob, subject=bob.pk, reason_code="legal")
    audit.record_alone(audit_events.SESSIONS_LISTED, by=reader, shown=[of_ada.pk, of_bob.pk])

    values = {name: f"our {name}" for name in ("controller", "contact", "purpose", "recipients", "third_countries")}
    change_record({**values, "subjects": "customers", "security": "locks"}, by=officer, seen=None)

    inspect_quiet_sessions(quiet=timedelta(0))
    archive = opened(full_copy(ada, by=officer, second=second))

    assert archive.testzip() is None
    assert json_in(archive, "about.json")["processing"] == values
    assert all(value in archive.read("index.html").decode() for value in values.values())
    text = all_text(archive)
    for own in ("你好 🙂", "look_up_order", "Grüße-Straße 5", "my sealed words", "Ada likes tea.", "Ada likes milk."):
        assert own in text
    assert text.count("Tea, please.") == 2
    for foreign in ("words of Bob alone", "Bob likes coffee.", "in secret", "evenings", "bob-1", "grace", "Grace"):
        assert foreign not in text, foreign
    assert "nobody can open" not in text
    assert Review.objects.filter(memory=memory).exists()
    assert "reviewer_0" not in text
    sessions = json_in(archive, "data.json")["sessions"]
    assert [session["session"] for session in sessions] == ["a1", "a2", "a3"]
    items = json_in(archive, "sessions/1.json")["items"]
    assert [item["item"].get("type", "message") for item in items][1:3] == ["function_call", "function_call_output"]
    assert json_in(archive, "sessions/3.json")["items"][0]["not_included"].startswith("encrypted")
    assert {row["status"] for row in json_in(archive, "memories.json")} == {"approved", "rejected"}
    assert [told["statement"] for told in json_in(archive, "told_to_agents.json")[0]["told"]] == [
        "Ada likes tea.",
        "(about another person: left out)",
    ]
    looked = [row for row in json_in(archive, "who_looked.json") if row["by"].startswith("staff member")]
    assert [(row["purpose"], row["access"]) for row in looked] == [
        ("answer quality", audit_events.SESSION_VIEWED.meaning),
        ("", audit_events.SESSIONS_LISTED.meaning),
    ]
    # One number for one person in all files.
    assert json_in(archive, "decisions.json")[0]["by"] == "staff member 1 (no role)"
    assert {row["by"] for row in looked} == {"staff member 2 (no role)"}
    reasons = {row["reason"]: row["count"] for row in json_in(archive, "about.json")["not_included"]}
    assert reasons["These items are encrypted, and their key is not available."] == 1


def test_every_type_of_reading_is_a_type_of_the_log() -> None:
    assert [name for name in READING if known(name) is None] == []


class Addresses(HTMLParser):
    """What a page would load, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            if name in ("src", "href", "srcset", "action", "data", "poster", "background", "style") or name[:2] == "on":
                self.found.append(f"{name}={value}")


def test_pages_load_nothing_whatever_is_stored(officer: User) -> None:
    attach_main_store()
    ada = make_subject("ada-1")
    add_items("a1", *MARKUP.values(), *(assistant(text) for text in MARKUP.values()))
    add_items("a1", {"type": "function_call", "call_id": "x", "name": MARKUP["script"], "arguments": MARKUP["image"]})
    add_items("a1", {"role": "user", "content": REMOTE})
    give(ada, "a1", by=officer)
    with connection.cursor() as cursor:
        for odd in (*(text for text in KNOWN if "\ud800" not in text), '{"role":"user","content":"\\ud800 half"}'):
            cursor.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('a1', %s)", [odd])
    for name, text in MARKUP.items():
        proposed(f"{name}: {text}"[:2000], subject=ada)

    archive = opened(built_copy(ada, by=officer))

    names = set(archive.namelist())
    for name in names:
        content = archive.read(name).decode()
        if name.endswith(".json"):
            json.loads(content)
            continue
        page = Addresses()
        page.feed(content)
        assert page.tags <= {
            *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "a", "div", "dl", "dt", "dd"),
            *("pre", "span", "strong", "ul", "li", "code", "img"),
        }
        for found in page.found:
            target = found.removeprefix("href=")
            folder = Path(name).parent
            assert str(folder / target).replace("sessions/../", "") in names or found.startswith("src=data:image/")
        assert "default-src 'none'" in content
        assert not re.search(r"@import|url\(", content.split("</style>")[0])
    items = json_in(archive, "sessions/1.json")["items"]
    assert len(items) == 2 * len(MARKUP) + 2 + len(KNOWN)
    assert [item["text"] for item in items if item.get("text", "").startswith('{"role":"user","content":"x"')] == [
        '{"role":"user","content":"x","content":""}'
    ]
    assert "https://elsewhere.example/file.pdf" in archive.read("sessions/1.html").decode()
    assert "data:image/png;base64," in archive.read("sessions/1.html").decode()


def test_the_file_holds_no_plain_text_and_is_nobody_elses(officer: User) -> None:
    attach_main_store()
    ada = make_subject("ada-1")
    add_items("a1", "a sentence that must not be found")
    give(ada, "a1", by=officer)
    copy = built_copy(ada, by=officer)
    (path,) = files_in_folder()
    content = path.read_bytes()
    for plain in (b"must not be found", b"ada-1", b"index.html", b"PK\x03\x04", b"PK\x01\x02"):
        assert plain not in content
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder().stat().st_mode) == 0o700
    assert copy.size == len(plain_file(copy))
    assert copy.sha256 == hashlib.sha256(plain_file(copy)).hexdigest()


def test_a_subject_without_anything_has_a_copy_that_says_so(officer: User) -> None:
    archive = opened(built_copy(make_subject("ada-1"), by=officer))
    assert "Nothing is stored here." in archive.read("memories.html").decode()
    assert json_in(archive, "data.json")["person"]["ids"] == [{"kind": "user", "id": "ada-1"}]
    assert AccessCopy.objects.count() == 1


def test_a_number_that_json_cannot_hold_is_text(officer: User) -> None:
    ada = make_subject("ada-1")
    for text in ("Ada likes tea.", "Ada likes numbers."):
        proposed(text, subject=ada)
    infinite = "9" * 400 + ".5"  # for Python, not for PostgreSQL
    run_sql(f"""UPDATE memories_app_memory SET data = '{{"n": {infinite}}}' WHERE statement LIKE '%numbers%'""")
    archive = opened(built_copy(ada, by=officer))
    data = {row["statement"]: row["data"] for row in json_in(archive, "memories.json")}
    assert data == {"Ada likes tea.": {}, "Ada likes numbers.": "{'n': inf}"}
    assert "Ada likes numbers." in archive.read("memories.html").decode()
