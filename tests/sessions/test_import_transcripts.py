"""`import_transcripts`: nothing is lost, nothing is written twice, and what cannot be imported is named."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.models import AuditEvent
from memadmin.log_context import LogContext, within
from sessions_app import registry
from sessions_app.management.commands import import_transcripts as import_command
from sessions_app.models import AgentMessage, AgentSession, SessionRecord, Subject, SubjectKind
from sessions_app.services import subjects, transcripts
from sessions_app.services.transcripts import IMPORT_LOCK, import_transcripts
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from tests.agents import add_items, agent_process, attach_main_store, in_sdk, second_connection
from tests.builders import make_session, make_store

pytestmark = pytest.mark.usefixtures("agent_tables")

SAMPLE = Path(__file__).parents[1] / "data" / "support-chats.jsonl"
SAMPLE_ITEMS = {"chat-1": 7, "chat-2": 5, "3": 2}

SAID = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Makes a file of JSON Lines out of conversations, or of lines as they are."""

    def make(*lines: dict[str, Any] | bytes) -> Path:
        path = tmp_path / "chats.jsonl"
        path.write_bytes(
            b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines) + b"\n"
        )
        return path

    return make


def run(path: Path, *options: str, store: str = "main") -> dict[str, Any]:
    told = io.StringIO()
    call_command("import_transcripts", path, "--json", *options, store=store, stdout=told)
    report: dict[str, Any] = json.loads(told.getvalue())
    return report


def told(path: Path, *options: str) -> str:
    out = io.StringIO()
    call_command("import_transcripts", path, *options, store="main", stdout=out)
    return out.getvalue()


def stored(session_id: str) -> list[Any]:
    """The session as an agent would read it."""
    return in_sdk(lambda tables: tables.session(session_id).get_items())


def item_counts() -> dict[str, int]:
    return Counter(AgentMessage.objects.values_list("session_id", flat=True))


def subject_key(session_id: str) -> str | None:
    record = SessionRecord.objects.get(session_id=session_id)
    return record.subject.aliases.get().key if record.subject else None


def test_every_text_call_and_output_becomes_an_item() -> None:
    report = run(SAMPLE)
    assert (report["sessions"], report["items"], report["skipped"]) == (3, 14, [])
    assert item_counts() == SAMPLE_ITEMS
    assert stored("chat-1")[1:6] == [
        {"role": "user", "content": "Wo ist mein Tee? 🫖"},
        {"type": "function_call", "call_id": "call_a", "name": "find_orders", "arguments": '{"words": "tea"}'},
        {"type": "function_call", "call_id": "call_b", "name": "track_parcel", "arguments": '{"order": "SO-1"}'},
        {"type": "function_call_output", "call_id": "call_a", "output": "SO-1"},
        {"type": "function_call_output", "call_id": "call_b", "output": ""},
    ]


def test_each_turn_has_its_own_time() -> None:
    run(SAMPLE)
    times = AgentMessage.objects.filter(session_id="chat-1").order_by("id").values_list("created_at", flat=True)
    assert list(Counter(times).values()) == [1, 1, 4, 1]
    assert list(times) == sorted(times)


def test_a_second_run_adds_nothing() -> None:
    run(SAMPLE)
    report = run(SAMPLE)
    assert (report["sessions"], report["items"], report["skipped"]) == (0, 0, [])
    assert item_counts() == SAMPLE_ITEMS


def test_a_run_that_was_broken_off_is_completed_in_the_middle_of_a_turn() -> None:
    run(SAMPLE)
    whole = stored("chat-1")
    last_three = AgentMessage.objects.filter(session_id="chat-1").order_by("-id").values_list("id", flat=True)[:3]
    AgentMessage.objects.filter(id__in=list(last_three)).delete()
    AgentSession.objects.filter(pk="chat-2").delete()
    report = run(SAMPLE)
    assert (report["sessions"], report["items"]) == (2, 3 + 5)
    assert stored("chat-1") == whole


def test_a_session_that_an_agent_went_on_with_is_complete() -> None:
    run(SAMPLE)
    add_items("chat-1", "Danke!")
    report = run(SAMPLE)
    assert (report["sessions"], report["skipped"]) == (0, [])


def test_a_session_with_other_items_is_left_alone_and_named(file: Callable[..., Path]) -> None:
    add_items("s1", "Something else")
    report = run(file({"session": "s1", "messages": SAID}, {"session": "s2", "messages": SAID}))
    assert report["sessions"] == 1
    assert report["skipped"] == [{"line": 1, "reason": "the session contains other items; nothing was added"}]
    assert item_counts() == {"s1": 1, "s2": 2}


def test_a_session_with_an_item_that_python_cannot_decode_is_named(file: Callable[..., Path]) -> None:
    add_items("odd", "first")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agent_messages SET message_data = %s", ['{"role":"user","content":' + "9" * 5_000 + "}"])
    report = run(file({"session_id": "odd", "messages": SAID}, {"session_id": "next", "messages": SAID}))
    assert [skipped["reason"] for skipped in report["skipped"]] == [
        "the session contains an item that cannot be read; nothing was added"
    ]
    assert report["sessions"] == 1


def test_a_session_twice_in_one_file(file: Callable[..., Path]) -> None:
    """The same again, a longer copy, and another conversation under the same id."""
    longer = [*SAID, {"role": "user", "content": "Bye"}]
    report = run(
        file(
            {"session": "s1", "messages": SAID},
            {"session": "s1", "messages": SAID},
            {"session": "s1", "messages": longer},
            {"session": "s1", "messages": longer[2:]},
        )
    )
    assert report["items"] == 3
    assert [skipped["line"] for skipped in report["skipped"]] == [4]
    assert item_counts() == {"s1": 3}


def test_what_cannot_be_read_is_named_and_the_rest_imported(file: Callable[..., Path]) -> None:
    path = file(
        {"session": "s1", "messages": [*SAID, {"role": "critic", "content": "Hm"}]},
        b'{"session": "cut',
        b"\xff",
        b"",
        {"session": "s2", "messages": SAID},
    )
    reasons = {
        1: "message 3: unknown role 'critic'",
        2: "not JSON: Unterminated string starting at (column 13)",
        3: "not UTF-8",
    }
    report = run(path)
    assert {skipped["line"]: skipped["reason"] for skipped in report["skipped"]} == reasons
    assert item_counts() == {"s1": 2, "s2": 2}
    said = told(path)
    assert "Imported 0 sessions and 0 items into main." in said
    assert all(f"line {line}: {reason}" in said for line, reason in reasons.items())


@pytest.mark.parametrize("session_id", ["a/b%c", "🫖" * 50, "S1", "s1", "x" * 10_000])
def test_odd_session_ids(file: Callable[..., Path], session_id: str) -> None:
    """Stored as they are, or refused by the database with its reason; never an end of the import."""
    report = run(file({"session": session_id, "messages": SAID}, {"session": "after", "messages": SAID}))
    counts = item_counts()
    assert counts["after"] == 2
    if report["skipped"]:
        assert report["skipped"][0]["line"] == 1
        assert report["skipped"][0]["reason"].startswith("the database refused it: index row size")
    else:
        assert counts[session_id] == 2


def test_characters_that_break_databases_come_back_as_they_were(file: Callable[..., Path]) -> None:
    nasty = "NUL \0, half \ud800, é, 🫖, \u2028"
    run(file({"session": "s1", "messages": [{"role": "user", "content": nasty}]}))
    assert stored("s1") == [{"role": "user", "content": nasty}]


def test_a_line_of_ten_megabytes(file: Callable[..., Path]) -> None:
    run(file({"session": "s1", "messages": [{"role": "user", "content": "x" * 10_000_000}]}))
    assert len(stored("s1")[0]["content"]) == 10_000_000


def test_the_subject_is_noted_in_the_registry() -> None:
    attach_main_store()
    run(SAMPLE, "--subject-field", "user")
    assert subject_key("chat-1") == "cust_48213"
    assert subject_key("3") == "48213"
    assert SessionRecord.objects.get(session_id="chat-1").subject_source == "import"


def test_two_sessions_of_one_customer_have_one_subject(file: Callable[..., Path]) -> None:
    attach_main_store()
    run(file(*({"id": name, "user": "u1", "messages": SAID} for name in ("a", "b"))), "--subject-field", "user")
    assert SessionRecord.objects.values("subject").distinct().count() == 1


def test_an_operators_decision_outlives_the_next_import() -> None:
    store = attach_main_store()
    run(SAMPLE)
    other = subjects.subject_for_key(SubjectKind.USER, "somebody else")
    records = SessionRecord.objects.filter(store=store)
    records.filter(session_id="chat-1").update(subject=other, subject_source="operator")
    records.filter(session_id="chat-2").update(subject=None, subject_source="operator")
    run(SAMPLE, "--subject-field", "user")
    assert subject_key("chat-1") == "somebody else"
    assert subject_key("chat-2") is None
    assert subject_key("3") == "48213"


def test_a_conversation_without_the_subject_field_is_imported_and_named(file: Callable[..., Path]) -> None:
    attach_main_store()
    report = run(file({"session": "s1", "messages": SAID}), "--subject-field", "user")
    assert report["sessions"] == 1
    assert report["skipped"] == [{"line": 1, "reason": "it has no usable subject in “user”"}]


def test_a_store_that_is_not_attached_says_so_and_the_next_run_notes_the_subjects() -> None:
    said = told(SAMPLE, "--subject-field", "user")
    assert "The subjects of 3 sessions were not recorded, because main is not attached." in said
    attach_main_store()
    assert run(SAMPLE, "--subject-field", "user")["items"] == 0
    assert subject_key("chat-1") == "cust_48213"


def test_a_subject_goes_with_what_was_imported_alone(file: Callable[..., Path]) -> None:
    """Not with a conversation of which nothing could be read, nor with one whose session holds another."""
    attach_main_store()
    add_items("taken", "Something else")
    said = told(
        file(
            {"session": "empty", "user": "nobody", "messages": [{"role": "zebra", "content": "?"}]},
            {"session": "taken", "user": "stranger", "messages": [{"role": "user", "content": "Hello"}]},
        ),
        "--subject-field",
        "user",
    )
    assert "not attached" not in said
    assert "contains other items" in said
    assert not Subject.objects.exists()


def test_an_erased_session_does_not_come_back() -> None:
    make_session("chat-1", store=make_store(), erased_at=now())
    report = run(SAMPLE)
    assert report["sessions"] == 2
    assert report["skipped"] == [{"line": 1, "reason": "this session was erased; an import does not restore it"}]
    assert "chat-1" not in item_counts()


def test_a_session_that_is_erased_in_that_very_moment_is_refused_by_the_fence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = attach_main_store()
    add_items("chat-1", {"role": "system", "content": "You answer for a tea shop."})
    with transaction.atomic():
        backend_for(store).erase_session("chat-1")
    monkeypatch.setattr(transcripts, "_is_erased", lambda *_: False)
    report = run(SAMPLE)
    assert report["skipped"][0]["reason"].startswith("the database refused it: This session was erased")
    assert report["sessions"] == 2
    assert "chat-1" not in item_counts()


def test_two_imports_at_once_are_one_too_many() -> None:
    store = make_store()
    with second_connection() as other:
        other.execute("SELECT pg_advisory_lock(%s, %s)", [IMPORT_LOCK, store.pk])
        with pytest.raises(CommandError, match="Another import into the store main is running"):
            run(SAMPLE)
        other.execute("SELECT pg_advisory_unlock(%s, %s)", [IMPORT_LOCK, store.pk])
    run(SAMPLE)
    with second_connection() as other:
        assert other.execute("SELECT pg_try_advisory_lock(%s, %s)", [IMPORT_LOCK, store.pk]).fetchone() == (True,)


def test_a_database_that_goes_away_in_the_middle_is_one_sentence(file: Callable[..., Path]) -> None:
    path = file(*({"session": f"s{number}", "messages": SAID} for number in range(5)))
    ended = iter(range(5))

    def pull_the_plug() -> None:
        if next(ended) == 2:
            with second_connection(autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() AND pid <> %s",
                    [connection.connection.info.backend_pid],
                )
            agent_process.end()

    with pytest.raises(StoreUnavailable, match="run the same import again"), path.open("rb") as source:
        import_transcripts(source, make_store(), after_each=pull_the_plug)
    assert item_counts() == {"s0": 2, "s1": 2, "s2": 2}
    assert run(path)["items"] == 4


def test_ctrl_c_leaves_whole_turns_and_no_lock(file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(*({"session": f"s{number}", "messages": SAID} for number in range(3)))

    def interrupted(*args: Any, **options: Any) -> Any:
        def ctrl_c() -> None:
            raise KeyboardInterrupt

        return import_transcripts(*args, **options | {"after_each": ctrl_c})

    monkeypatch.setattr(import_command, "import_transcripts", interrupted)
    with pytest.raises(CommandError, match="Run the same import again to continue") as stopped:
        run(path)
    assert stopped.value.returncode == 130
    assert item_counts() == {"s0": 2}
    monkeypatch.undo()
    assert run(path)["items"] == 4


@pytest.mark.parametrize(
    ("name", "store", "sentence"),
    [("missing.jsonl", "main", "cannot be read: No such file"), (".", "main", "cannot be read: Is a directory")],
)
def test_a_file_that_is_none(tmp_path: Path, name: str, store: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run(tmp_path / name, store=store)


def test_a_store_that_is_none() -> None:
    with pytest.raises(CommandError, match="There is no store nowhere"):
        run(SAMPLE, store="nowhere")


def test_rows_of_an_import_in_a_job_have_its_id_in_the_log() -> None:
    attach_main_store()
    job, context = audit.Actor("job", "import"), LogContext(job="import", job_id=77)
    with SAMPLE.open("rb") as source, audit.acting(job), within(context):
        import_transcripts(source, registry.known_store("main"))
    events = AuditEvent.objects.filter(object_ref__in=SessionRecord.objects.values("pk"))
    assert {(event.actor_kind, event.job_id) for event in events} == {("job", 77)}


def test_a_schema_and_tables_of_another_name() -> None:
    with connection.cursor() as cursor:
        cursor.execute('CREATE SCHEMA "Agents"')
    store = make_store(
        "other", sessions_table="Agents.Talks", messages_table="Agents.Words", writer_timezone="Asia/Tokyo"
    )
    with SAMPLE.open("rb") as source:
        assert import_transcripts(source, store).items == 14
    with connection.cursor() as cursor:
        cursor.execute('SELECT count(*), min(created_at) > localtimestamp + interval \'8 hours\' FROM "Agents"."Words"')
        assert cursor.fetchone() == (14, True)


# --- files, counted: chats of ours, and a hundred real ones where the machine has them -------------------------------


@pytest.fixture(params=["ours", "real"])
def transcripts_file(request: pytest.FixtureRequest, file: Callable[..., Path]) -> Path:
    if request.param == "ours":
        return file(*SAMPLE.read_bytes().splitlines()[:2])
    given = os.environ.get("MEMADMIN_TRANSCRIPTS")
    if not given:
        pytest.skip("MEMADMIN_TRANSCRIPTS names no file: THE REAL TRANSCRIPTS WERE NOT TRIED. See CONTRIBUTING.md.")
    return Path(given)


def test_no_message_of_a_file_is_lost(transcripts_file: Path) -> None:
    opened = gzip.open if transcripts_file.suffix == ".gz" else open
    with opened(transcripts_file, "rt", encoding="utf-8") as lines:
        conversations = [json.loads(line) for line in lines]
    messages = [message for conversation in conversations for message in conversation["messages"]]
    texts = sum(bool(message["content"]) for message in messages if message["role"] != "tool")
    calls = sum(len(message.get("tool_calls") or []) for message in messages)
    outputs = sum(message["role"] == "tool" for message in messages)

    attach_main_store()
    report = run(transcripts_file, "--subject-field", "user")
    assert report["skipped"] == []
    assert report["sessions"] == len(conversations)
    assert report["items"] == AgentMessage.objects.count() == texts + calls + outputs

    for conversation in conversations:
        history = stored(conversation["session"])
        assert subject_key(conversation["session"]) == conversation["user"]
        assert [item["content"] for item in history if "role" in item] == [
            message["content"]
            for message in conversation["messages"]
            if message["role"] != "tool" and message["content"]
        ]
        assert [item["output"] for item in history if item.get("type") == "function_call_output"] == [
            message["content"] for message in conversation["messages"] if message["role"] == "tool"
        ]

    again = run(transcripts_file, "--subject-field", "user")
    assert (again["sessions"], again["items"], again["skipped"]) == (0, 0, [])
