"""Somebody asks for a text to go, the worker takes it out, and the agent goes on with what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message
from django.contrib.auth.models import User
from django.db import connection
from django.utils.timezone import now

from memadmin.audit.models import AuditDetail, AuditEvent
from memadmin.runs.engine import Lease, carry_on, take
from memadmin.runs.models import Run
from memadmin.runs.services import cancel_run, pause_run
from sessions_app.audit_events import RedactReason
from sessions_app.encryption.envelope_text import DecryptedItem
from sessions_app.models import Redaction, SessionRecord, SessionStore, Subject, TextSearch
from sessions_app.redaction import MARKER, InvalidText, occurrences, services, sessions
from sessions_app.redaction.previews import preview_redaction
from sessions_app.redaction.services import RedactionRequest
from sessions_app.search.remembered import remember_search
from sessions_app.stores import backend_for
from tests.agents import add_items, assistant, in_sdk, user
from tests.builders import make_subject
from tests.people import person
from tests.runs.working import report_of, work_off
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, add_sealed, read_by_agent
from tests.sealed import keys as keys

SECRET = "sk-live-Zürich-4711"
REASON = RedactReason.LEAKED_SECRET
CALL = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": json.dumps({"key": SECRET})}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": json.dumps({"said": [f"<{SECRET}>"]})}
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABo"}


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


@pytest.fixture
def officer(store: SessionStore) -> User:
    return person("compliance")


@pytest.fixture
def subject(store: SessionStore) -> Subject:
    return make_subject("customer_1")


def session_with(session_id: str, *items: Any, subject: Subject | None = None) -> SessionRecord:
    add_items(session_id, *items)
    record = SessionRecord.objects.select_related("store", "subject").get(session_id=session_id)
    if subject:
        SessionRecord.objects.filter(pk=record.pk).update(subject=subject)
        record.refresh_from_db()
    return record


def read(session_id: str) -> list[Any]:
    return list(in_sdk(lambda tables: tables.session(session_id).get_items()))


def done(asked: Redaction) -> dict[str, Any]:
    """The report after the worker has been there."""
    work_off()
    asked.refresh_from_db()
    assert asked.ended_at
    assert asked.text == ""
    return report_of(asked)


def test_a_leaked_secret_goes_from_every_item_of_a_session(officer: User) -> None:
    record = session_with("s", user(f"My key is {SECRET}"), CALL, OUTPUT, assistant(f"Thanks for {SECRET}."), "and now")
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert read("s") == [
        user(f"My key is {MARKER}"),
        {**CALL, "arguments": '{"key":"[redacted]"}'},
        {**OUTPUT, "output": '{"said":["<[redacted]>"]}'},
        assistant(f"Thanks for {MARKER}."),
        user("and now"),
    ]
    assert (report["items"], report["places"], report["replayed"], report["reasons"]) == (4, 4, 1, [])
    assert leftovers(SECRET) == []


def test_items_that_the_column_does_not_take_are_named_and_the_next_session_is_redacted(
    officer: User, subject: Subject
) -> None:
    """A jsonb column takes any number. Python reads one beyond all floats as infinity, which is no JSON."""
    odd = session_with("odd", "first", subject=subject)
    session_with("ordinary", f"My key is {SECRET}", subject=subject)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE agent_messages ALTER COLUMN message_data TYPE jsonb USING message_data::jsonb")
        raw = json.dumps(user(SECRET))[:-1] + f',"n":1{"0" * 400}.5}}'
        cursor.execute("UPDATE agent_messages SET message_data = %s WHERE session_id = 'odd'", [raw])
    report = done(services.redact_about(subject, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["reasons"] == [["refused", f"/sessions/{odd.pk}/", 1]]
    assert (report["items"], report["sessions"]) == (1, 2)


def test_the_next_run_of_the_agent_works_and_sees_nothing_of_it(officer: User) -> None:
    """The proof in full: the SDK's runner reads the session and gives the model what is in it."""
    record = session_with("s", user(f"My key is {SECRET}"), CALL, OUTPUT, assistant(f"Thanks for {SECRET}."))
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["replayed"] == 1
    model = ScriptedModel([[assistant_message("Still here.")]])

    async def run(tables: Any) -> Any:
        agent = Agent(name="Helper", model=model)
        config = RunConfig(tracing_disabled=True)
        return await Runner.run(agent, "Go on", session=tables.session("s"), run_config=config)

    assert in_sdk(run).final_output == "Still here."
    assert model.last_call
    given = json.dumps(model.last_call.input, ensure_ascii=False)
    assert MARKER in given
    assert "Zürich" not in given
    assert [item.get("type") or item["role"] for item in model.last_call.input] == [
        *("user", "function_call", "function_call_output", "assistant", "user")
    ]
    assert len(read("s")) == 6


def test_one_item_loses_all_its_text_and_its_neighbours_none(officer: User) -> None:
    record = session_with("s", user("before"), CALL, OUTPUT, assistant("after"))
    items = stored_ids("s")
    report = done(services.redact_item(record, items[2], RedactionRequest(reason=REASON, by=officer)))
    assert read("s") == [user("before"), CALL, {**OUTPUT, "output": MARKER}, assistant("after")]
    assert report["items"] == 1
    assert stored_ids("s") == items
    assert AuditEvent.objects.filter(type="item.redacted", object_ref=record.pk).count() == 1


def test_a_text_goes_from_one_item_alone(officer: User) -> None:
    record = session_with("s", user(f"one {SECRET}"), user(f"two {SECRET}"))
    done(services.redact_item(record, stored_ids("s")[0], RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert read("s") == [user(f"one {MARKER}"), user(f"two {SECRET}")]


def test_an_item_that_changed_since_somebody_looked_stays(officer: User) -> None:
    record = session_with("s", user("what was meant"))
    asked = services.redact_item(record, stored_ids("s")[0], RedactionRequest(reason=REASON, by=officer))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agent_messages SET message_data = %s", [json.dumps(user("something else"))])
    report = done(asked)
    assert read("s") == [user("something else")]
    assert ["changed", "main", 1] in report["reasons"]


def test_a_text_goes_from_all_sessions_of_a_subject_and_from_nobody_elses(officer: User, subject: Subject) -> None:
    merged = make_subject("customer_1_too")
    merged.merged_into = subject
    merged.save()
    for number in range(3):
        session_with(f"s{number}", user(f"{SECRET} {number}"), subject=subject)
    session_with("merged", user(SECRET), subject=merged)
    session_with("clean", user("nothing"), subject=subject)
    session_with("other", user(SECRET))
    report = done(
        services.redact_about(subject, RedactionRequest(SECRET, reason=REASON, explanation="ticket 7", by=officer))
    )
    assert (report["sessions"], report["changed"], report["items"]) == (5, 4, 4)
    assert read("s1") == [user(f"{MARKER} 1")]
    assert read("merged") == [user(MARKER)]
    assert read("other") == [user(SECRET)]
    (event,) = AuditEvent.objects.filter(type="subject.redacted")
    assert event.counters == {"sessions": 4, "items": 4, "places": 4, "left": 0}
    assert AuditEvent.objects.filter(type="session.redacted").count() == 4


def test_the_text_is_in_no_event_no_detail_and_no_job(officer: User, subject: Subject) -> None:
    record = session_with("s", user(SECRET), subject=subject)
    asked = services.redact_in_session(
        record, RedactionRequest(SECRET, reason=REASON, explanation="it leaked in chat", by=officer)
    )
    done(asked)
    detail = AuditDetail.objects.get(event__type="redaction.requested")
    assert "it leaked in chat" in detail.details
    assert leftovers(SECRET) == []


def test_a_place_that_keeps_the_text_would_be_found(officer: User) -> None:
    """What the search for leftovers is worth."""
    record = session_with("s", user(SECRET))
    services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer))
    assert {"agent_messages", "sessions_app_redaction"} <= set(leftovers(SECRET))


def test_searches_for_the_text_go_with_it(officer: User) -> None:
    record = session_with("s", user(SECRET))
    remember_search(officer, f"where is {SECRET}")
    remember_search(officer, "something else")
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["searches"] == 1
    assert [search.text for search in TextSearch.objects.all()] == ["something else"]


SEARCHES = [
    SECRET.upper(),
    "zürich",
    "Z\u00fcri",  # one form of Unicode
    "zu\u0308rich",  # and the other
    r"z\u00fcrich",
    r"z\\xfcrich",
    "4711 refund",
    "sklive",
    'said "live Zürich" or lost',
    "my-sk-live-zürich-4711-key",
]


def test_no_search_of_any_user_keeps_a_part_of_the_text(officer: User) -> None:
    record = session_with("s", user(f"Use {SECRET}\nor 東京都"))
    colleague = person("support")
    for text in [*SEARCHES, "where is it", "12", "sk", "東"]:
        remember_search(colleague, text)
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert [search.text for search in TextSearch.objects.order_by("created_at")] == ["where is it", "12", "sk", "東"]
    assert report["searches"] == len(SEARCHES)
    done(services.redact_in_session(record, RedactionRequest("東京都", reason=REASON, by=officer)))
    assert [search.text for search in TextSearch.objects.order_by("created_at")] == ["where is it", "12", "sk"]


def test_without_a_known_text_no_search_is_kept(officer: User) -> None:
    record = session_with("s", user("Where is my refund?"))
    remember_search(person("support"), "refund")
    item = backend_for(record.store).last_page("s", 1).items[0]
    done(services.redact_item(record, item.id, RedactionRequest(reason=REASON, by=officer)))
    assert not TextSearch.objects.exists()


def test_a_label_with_the_text_is_said(officer: User) -> None:
    record = session_with("s", user(SECRET))
    SessionRecord.objects.filter(pk=record.pk).update(labels=[f"has {SECRET}"])
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert ["label", "main", 1] in report["reasons"]


def test_sealed_items_are_sealed_anew_with_their_key_and_time(officer: User, store: SessionStore, keys: Any) -> None:
    store.encryption_key = "old"
    store.save()
    add_sealed("sealed", f"say {SECRET}", key=OLD_KEY, age=timedelta(seconds=90))
    add_sealed("sealed", f"again {SECRET}", key=NEW_KEY)
    add_sealed("sealed", f"never {SECRET}", key=STRANGE_KEY)
    record = SessionRecord.objects.select_related("store", "subject").get(session_id="sealed")
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["items"] == 2
    assert report["reasons"] == [["sealed", "main", 1]]
    assert read_by_agent("sealed", key=OLD_KEY) == [user(f"say {MARKER}")]
    assert read_by_agent("sealed", key=OLD_KEY, ttl=60) == [], "an agent that did not read it before reads it now"
    assert read_by_agent("sealed", key=NEW_KEY) == [user(f"again {MARKER}")]
    assert AuditEvent.objects.get(type="redaction.ended").outcome == "failed"


def test_a_store_that_is_away_is_named_and_the_others_are_done(
    officer: User, subject: Subject, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_with("s", user(SECRET), subject=subject)
    elsewhere = SessionStore.objects.create(name="bots", kind="sqlite", options={"path": "/nowhere/bots.db"})
    for number in range(3):
        SessionRecord.objects.create(store=elsewhere, session_id=f"there {number}", subject=subject)
    report = done(services.redact_about(subject, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["reasons"] == [["away", "bots", 3]]
    assert read("s") == [user(MARKER)]


def test_killed_anywhere_it_is_gone_on_with(officer: User, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        session_with(f"s{number}", user(f"{SECRET} {number}"), subject=subject)
    asked = services.redact_about(subject, RedactionRequest(SECRET, reason=REASON, by=officer))
    whole = sessions.redact_session
    calls: list[str] = []

    def killed_at_the_third(lease: Lease, asked: Redaction, record: SessionRecord, *given: Any, **named: Any) -> Any:
        calls.append(record.session_id)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(lease, asked, record, *given, **named)

    monkeypatch.setattr(services, "redact_session", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        work_off()
    asked.refresh_from_db()
    assert not asked.ended_at
    report = done(asked)
    assert calls == ["s0", "s1", "s2", "s2", "s3"]
    assert report["items"] == 4
    assert leftovers(SECRET) == []


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_interrupted_within_a_session_its_numbers_are_those_of_the_whole(
    officer: User, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """Counted is by what was there before the first change, whichever process began with it."""
    record = session_with("s", *(user(f"{SECRET} {number}") for number in range(25)))
    monkeypatch.setattr(sessions, "ITEMS_A_CHUNK", 10)
    asked = services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer))
    whole, chunks = Lease.chunk, list[int]()

    @contextmanager
    def killed(lease: Lease) -> Iterator[Run]:
        chunks.append(1)
        with whole(lease) as run:
            yield run
        if len(chunks) == chunk:
            raise KeyboardInterrupt

    monkeypatch.setattr(Lease, "chunk", killed)
    with pytest.raises(KeyboardInterrupt):
        work_off()
    report = done(asked)
    assert (report["items"], report["places"], report["changed"], report["reasons"]) == (25, 25, 1, [])
    assert leftovers(SECRET) == []


def test_paused_it_redacts_nothing_more_and_cancelled_it_forgets_the_text(officer: User, subject: Subject) -> None:
    for number in range(3):
        session_with(f"s{number}", user(f"{SECRET} {number}"), subject=subject)
    asked = services.redact_about(subject, RedactionRequest(SECRET, reason=REASON, by=officer))
    carry_on(asked.run, seconds=0)
    pause_run(asked.run, by=officer)
    assert work_off() == 0
    cancel_run(asked.run, by=officer)
    asked.refresh_from_db()
    assert (asked.text, asked.run.state) == ("", Run.State.CANCELLED)
    assert asked.ended_at
    assert [SECRET in str(read(f"s{number}")) for number in range(3)] == [False, True, True]
    assert AuditEvent.objects.get(type="subject.redacted").outcome == "failed"


def test_two_workers_are_not_at_the_same_one(officer: User) -> None:
    record = session_with("s", user(SECRET))
    asked = services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer))
    lease = take(asked.run.pk)
    assert lease
    assert work_off() == 0
    assert read("s") == [user(SECRET)]
    lease.release()
    done(asked)
    assert read("s") == [user(MARKER)]


def test_each_gets_its_turn(officer: User, subject: Subject) -> None:
    for number in range(3):
        session_with(f"s{number}", user(f"{SECRET} {number}"), subject=subject)
    asked = services.redact_about(subject, RedactionRequest(SECRET, reason=REASON, by=officer))
    rounds = 0
    while not carry_on(asked.run, seconds=0).is_finished:
        rounds += 1
    assert rounds == 3
    assert leftovers(SECRET) == []


def test_what_no_worker_began_with_is_given_up_and_its_text_forgotten(officer: User) -> None:
    record = session_with("s", user(SECRET))
    asked = services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer))
    Redaction.objects.filter(pk=asked.pk).update(expires_at=now())
    report = done(asked)
    assert report["reasons"] == [["too_late", "", 1]]
    assert read("s") == [user(SECRET)]


def test_an_agent_that_writes_the_text_again_meanwhile_is_taken_up_again(
    officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = session_with("s", user(SECRET))
    whole = occurrences.count_occurrences
    looks: list[int] = []

    def look_and_write(*given: Any, **named: Any) -> Any:
        look = whole(*given, **named)
        looks.append(look.places)
        if len(looks) == 1:
            add_items("s", user(f"again {SECRET}"))
        return look

    monkeypatch.setattr(sessions, "count_occurrences", look_and_write)
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert read("s") == [user(MARKER), user(f"again {MARKER}")]
    assert report["reasons"] == []


def test_what_the_sdk_would_refuse_afterwards_is_not_written(officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    record = session_with("s", user(SECRET), user("fine"))
    monkeypatch.setattr(sessions, "keeps_its_place", lambda before, after: False)
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert read("s") == [user(SECRET), user("fine")]
    assert report["reasons"] == [["unfit", "main", 1]]


def test_a_history_that_the_sdk_no_longer_takes_is_said(officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the replay is worth: it finds what every check before the writing has missed."""
    record = session_with("s", user(SECRET), user("fine"))
    monkeypatch.setattr(DecryptedItem, "stored_with", lambda item, text: '{"role":"user"}')
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["reasons"] == [["unreplayable", "main", 1]]
    assert report["replayed"] == 0


# --- compaction -------------------------------------------------------------------------------------------------------


def test_a_block_behind_the_text_stays_unless_it_is_asked_for(officer: User) -> None:
    record = session_with("s", user(SECRET), COMPACTION, assistant("done"))
    report = done(services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, by=officer)))
    assert report["reasons"] == [["compacted", "main", 1]]
    assert COMPACTION in read("s")


def test_a_block_goes_with_the_text_where_it_is_asked_for(officer: User) -> None:
    before, behind = {**COMPACTION, "id": "cmp_0"}, COMPACTION
    record = session_with("s", before, user(SECRET), behind, assistant("done"))
    asked = services.redact_in_session(
        record, RedactionRequest(SECRET, reason=REASON, takes_compactions=True, by=officer)
    )
    report = done(asked)
    assert read("s") == [before, user(MARKER), assistant("done")], "only what is behind the text can hold it"
    assert (report["taken_out"], report["replayed"], report["reasons"]) == (1, 1, [])


def test_a_block_that_reasoning_belongs_to_stays(officer: User) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    record = session_with("s", user(SECRET), thought, COMPACTION, assistant("done"))
    report = done(
        services.redact_in_session(record, RedactionRequest(SECRET, reason=REASON, takes_compactions=True, by=officer))
    )
    assert COMPACTION in read("s")
    assert report["reasons"] == [["compacted", "main", 1]]


def test_a_block_by_itself_is_taken_out(officer: User) -> None:
    record = session_with("s", user("one"), COMPACTION, assistant("done"))
    report = done(services.redact_item(record, stored_ids("s")[1], RedactionRequest(reason=REASON, by=officer)))
    assert read("s") == [user("one"), assistant("done")]
    assert report["taken_out"] == 1


# --- before it is done ------------------------------------------------------------------------------------------------


def test_a_preview_counts_and_changes_nothing(officer: User, subject: Subject) -> None:
    record = session_with("s", user(f"{SECRET} {SECRET}"), user(SECRET), COMPACTION, subject=subject)
    session_with("clean", user("nothing"), subject=subject)
    locked = session_with("locked", user(SECRET), subject=subject)
    SessionRecord.objects.filter(pk=locked.pk).update(is_sensitive=True)
    from sessions_app.redaction import TextToRedact

    records = SessionRecord.objects.about(subject).with_names()
    wanted = TextToRedact.parse(SECRET)
    preview = preview_redaction(records, wanted, by=officer, granted=())
    assert (preview.found_sessions, preview.items, preview.places, preview.unseen) == (1, 2, 3, 1)
    assert (preview.seen, preview.compactions) == (2, 1)
    assert preview.found_in[0].record == record
    assert preview_redaction(records, wanted, by=officer, granted=[locked.pk]).found_sessions == 2
    assert preview_redaction(records, wanted, by=officer, granted=(), seconds=-1).is_cut_short
    assert read("locked") == [user(SECRET)]
    assert Redaction.objects.count() == 0


@pytest.mark.parametrize("text", ["", "ab", "a\0bc"])
def test_texts_that_cannot_be_redacted(officer: User, text: str) -> None:
    record = session_with("s", user("x"))
    with pytest.raises(InvalidText):
        services.redact_in_session(record, RedactionRequest(text, reason=REASON, by=officer))
    assert not Redaction.objects.exists()


# --- helpers ----------------------------------------------------------------------------------------------------------


def stored_ids(session_id: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM agent_messages WHERE session_id = %s ORDER BY created_at, id", [session_id])
        return [str(row[0]) for row in cursor.fetchall()]


def leftovers(text: str) -> list[str]:
    """The tables in which the text is found, in whatever column and spelling."""
    escaped = json.dumps(text)[1:-1]
    found = []
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        for (table,) in cursor.fetchall():
            cursor.execute(
                f'SELECT EXISTS (SELECT FROM "{table}" AS row WHERE position(%s IN row::text) > 0'
                f" OR position(%s IN replace(row::text, '\\\\', '\\')) > 0)",
                [text, escaped],
            )
            if cursor.fetchone()[0]:
                found.append(table)
    return found
