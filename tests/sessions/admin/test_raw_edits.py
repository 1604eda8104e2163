"""Raw edits of the agents' rows: with a permission of its own, under the session's lock, and never by accident."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.fixtures import Settings

from memadmin.accounts.content_access import rules
from memadmin.audit.models import AuditEvent
from sessions_app.admin import listing
from sessions_app.models import AgentMessage, AgentSession, SessionRecord, SessionStore, Subject
from tests.agents import add_items, run_sql, second_connection, value_of
from tests.builders import make_session, make_store
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.people import person, signed_in
from tests.raw_edits import WHY

CALL = {"type": "function_call", "call_id": "call_1", "name": "refund", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
SECRET = "zebra finch"


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


@pytest.fixture
def editor(db: None) -> Client:
    """Somebody who was given raw_edit, for as long as they need it."""
    user = User.objects.create_user("editor")
    user.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    return signed_in(user)


def address(verb: str, item: AgentMessage) -> str:
    return reverse(f"admin:sessions_app_agentmessage_{verb}", args=[item.pk])


def items_of(record: SessionRecord) -> str:
    return reverse("admin:sessions_app_agentmessage_changelist", query={"record": str(record.pk)})


def deletion_of(record: SessionRecord) -> str:
    return reverse("admin:sessions_app_agentsession_delete", args=[record.pk])


def stored(text: str) -> AgentMessage:
    """The item whose stored text has this in it."""
    return AgentMessage.objects.get(message_data__contains=text)


def fields_of(page: Any) -> dict[str, str]:
    """What a browser would send back from the form of an item."""
    inputs = {
        name: unescape(value)
        for tag in re.findall(r"<input[^>]*>", page.text)
        if 'type="hidden"' in tag
        for name, value in [(re.search(r'name="([^"]*)"', tag)[1], (re.search(r'value="([^"]*)"', tag) or ["", ""])[1])]  # type: ignore[index]
    }
    text = re.search(r"<textarea name=\"message_data[^>]*>\n?(.*?)</textarea>", page.text, re.DOTALL)
    return inputs | WHY | {"message_data": unescape(text[1]) if text else ""}


def put_back(item: AgentMessage) -> None:
    """What was stored when the item was read is stored again."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agent_messages SET message_data = %s WHERE id = %s", [item.message_data, item.pk])


def edit(client: Client, item: AgentMessage, text: str, **changed: str) -> Any:
    """Opens the form, changes the text, and saves."""
    return client.post(
        address("change", item), fields_of(client.get(address("change", item))) | {"message_data": text} | changed
    )


def tick_box(page: Any) -> dict[str, str]:
    box = re.search(r'<input type="checkbox" name="confirmed" value="(\w+)"', page.text)
    assert box, "there is no box to tick"
    return {"confirmed": box[1]}


class TestReading:
    @pytest.fixture(autouse=True)
    def nothing_remembered(self) -> Iterator[None]:
        """As in a process that has just started."""
        rules._opened.clear()
        yield
        rules._opened.clear()

    @pytest.fixture
    def items(self, store: SessionStore, settings: Settings) -> list[AgentMessage]:
        settings.READ_NOTICE, settings.READ_LIMIT = 1, 1
        add_items("s", "hello", "once more")
        add_items("t", SECRET)
        return list(AgentMessage.objects.order_by("pk"))

    def test_items_count_as_their_sessions(self, items: list[AgentMessage], editor: Client) -> None:
        for item in items[:2]:
            assert editor.get(address("change", item)).status_code == 200
        page = editor.get(address("change", items[2]))
        assert page.status_code == 429
        assert SECRET not in page.text
        assert AuditEvent.objects.filter(type="reading.stopped").count() == 1
        assert AuditEvent.objects.filter(type="item.viewed").count() == 2

    def test_they_are_opened_for_a_purpose(self, items: list[AgentMessage], editor: Client, settings: Settings) -> None:
        settings.PURPOSE_REQUIRED = True
        assert editor.get(address("change", items[0]))["Location"].startswith("/accounts/purpose/")
        assert not AuditEvent.objects.filter(type="item.viewed").exists()


class TestEditing:
    def test_an_editor_mends_what_an_agent_stored(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "helo", "other")
        item = stored("helo")

        answer = edit(editor, item, '{"content": "hello",\r\n "role": "user"}')

        assert answer.status_code == 302
        assert (
            value_of(f"SELECT message_data FROM agent_messages WHERE id = {item.pk}")
            == '{"content": "hello",\n "role": "user"}'
        )
        assert stored("other")

    def test_what_is_not_an_item_is_refused(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        before = stored("hello").message_data
        refused = {
            '{"role": "user"': "This is not valid JSON: Expecting ',' delimiter, in line 1, column 16.",
            "": "This field is required.",
            '{"role": "user", "content": NaN}': "This is not valid JSON: NaN is not a JSON value.",
            '["role"]': "An item is a JSON object with a type or a role",
            '{"content": "hello"}': "An item is a JSON object with a type or a role",
            "[" * 100_000: "nested too deeply",
        }
        for text, sentence in refused.items():
            page = edit(editor, stored("hello"), text)

            assert page.status_code == 422, text[:20]
            assert sentence in unescape(page.text), text[:20]
            assert stored("hello").message_data == before, text[:20]

    def test_a_row_that_was_no_item_may_stay_none(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        run_sql("UPDATE agent_messages SET message_data = 'corrupt {'")
        assert edit(editor, AgentMessage.objects.get(), '{"mended": true}').status_code == 302
        assert AgentMessage.objects.get().message_data == '{"mended": true}'

    def test_an_encrypted_item_cannot_be_written_by_hand(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        envelope = '{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":"gAAAA"}'
        run_sql(f"UPDATE agent_messages SET message_data = '{envelope}'")
        page = editor.get(address("change", AgentMessage.objects.get()))
        assert "This item is encrypted" in page.text
        assert "<textarea" not in page.text
        assert editor.post(address("change", AgentMessage.objects.get()), {"message_data": "{}"}).status_code == 403

    def test_an_endless_item_is_shown_in_part(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "x" * 3_000_000)
        page = editor.get(address("change", AgentMessage.objects.get()))
        assert "too long to edit here" in page.text
        assert len(page.text) < 100_000

    def test_two_editors_at_once(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        item = stored("hello")
        mine = fields_of(editor.get(address("change", item)))
        assert edit(editor, item, '{"role": "user", "content": "theirs"}').status_code == 302

        page = editor.post(address("change", item), mine | {"message_data": '{"role": "user", "content": "mine"}'})

        assert "changed since you opened it" in page.text
        assert "theirs" in page.text
        assert stored("theirs")

    def test_the_agent_took_the_item_back(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        item = stored("hello")
        mine = fields_of(editor.get(address("change", item)))
        run_sql("DELETE FROM agent_messages")
        answer = editor.post(address("change", item), mine, follow=True)
        assert "Perhaps it was deleted?" in answer.text

    def test_it_waits_for_the_agent_and_the_agent_for_it(self, store: SessionStore, editor: Client) -> None:
        """The session's row is locked first, as the SDK does: locking the item first deadlocks with pop_item."""
        add_items("s", "hello")
        item = stored("hello")
        mine = fields_of(editor.get(address("change", item))) | {"message_data": '{"role": "user", "content": "new"}'}
        with second_connection() as agent, somebody_else() as start:
            agent.execute("SELECT FROM agent_sessions WHERE session_id = 's' FOR UPDATE")
            edited = start(lambda: editor.post(address("change", item), mine))
            wait_until_blocked(edited)
            # The agent goes on with the very item. It would deadlock, had the edit locked that already.
            agent.execute("SELECT FROM agent_messages WHERE id = %s FOR UPDATE NOWAIT", [item.pk])
            agent.commit()
            assert edited.result().status_code == 302
        assert stored("new")

    def test_a_session_that_stays_busy_is_a_sentence(
        self, store: SessionStore, editor: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sessions_app.services.raw_edits.LOCK_TIMEOUT", "50ms")
        add_items("s", "hello")
        with second_connection() as agent:
            agent.execute("SELECT FROM agent_sessions WHERE session_id = 's' FOR UPDATE")
            page = edit(editor, stored("hello"), '{"role": "user"}')
        assert page.status_code == 409
        assert "Agents are using this session now" in page.text


def test_an_item_before_a_compaction_is_deleted_after_a_warning(store: SessionStore, editor: Client) -> None:
    add_items("s", "a secret", {"type": "compaction", "id": "c", "encrypted_content": "gAAA"}, "after it")
    page = editor.get(address("delete", stored("a secret")))
    assert "may also be contained in the compaction block" in page.text
    assert "compaction block" not in editor.get(address("delete", stored("after it"))).text


class TestPairs:
    @pytest.fixture(autouse=True)
    def session(self, store: SessionStore) -> None:
        add_items("s", "refund it", CALL, OUTPUT)

    def test_an_edit_that_breaks_a_pair_has_to_be_meant(self, editor: Client) -> None:
        cases: list[tuple[str, dict[str, str], str]] = [
            ('"name"', CALL | {"call_id": "call_2"}, "would remain without its call"),
            ('"name"', {"type": "message", "role": "user", "content": "x"}, "would remain without its call"),
            ("done", OUTPUT | {"call_id": "call_2"}, "would remain without its output"),
            ("done", OUTPUT | {"call_id": "call_2"}, "No open call has the ID of this output"),
            ("refund it", OUTPUT | {"call_id": "call_3"}, "No open call has the ID of this output"),
        ]
        for item, changed, sentence in cases:
            edited = stored(item)

            page = edit(editor, edited, json.dumps(changed))
            assert sentence in page.text, item
            assert stored(item).message_data == edited.message_data, item

            confirmed = tick_box(page)
            assert editor.post(address("change", edited), fields_of(page) | confirmed).status_code == 302, item
            assert json.loads(AgentMessage.objects.get(pk=edited.pk).message_data) == changed, item
            put_back(edited)

    def test_a_box_ticked_for_another_warning_does_not_count(self, editor: Client) -> None:
        page = edit(editor, stored("done"), json.dumps(OUTPUT | {"call_id": "call_2"}))
        confirmed = tick_box(page)
        page = edit(editor, stored('"name"'), json.dumps(CALL | {"call_id": "call_2"}), **confirmed)
        assert "would remain without its call" in page.text

    def test_an_edit_that_keeps_the_pair_is_just_saved(self, editor: Client) -> None:
        call, output = CALL | {"arguments": '{"all": true}'}, OUTPUT | {"output": "not done"}
        assert edit(editor, stored('"name"'), json.dumps(call)).status_code == 302
        assert edit(editor, stored("done"), json.dumps(output)).status_code == 302

    def test_one_of_two_calls_with_the_same_id_may_go(self, editor: Client) -> None:
        add_items("s", CALL | {"name": "again"})
        assert edit(editor, stored("again"), '{"role": "user", "content": "x"}').status_code == 302

    @pytest.mark.parametrize("item", ['"name"', "done"])
    def test_deleting_one_half_has_to_be_meant(self, editor: Client, item: str) -> None:
        half = stored(item)
        page = editor.get(address("delete", half))
        assert "would remain without its" in page.text
        sent = fields_of(page)

        refused = editor.post(address("delete", half), sent, follow=True)
        assert "Nothing was deleted" in refused.text
        assert stored(item)

        editor.post(address("delete", half), sent | tick_box(page))
        assert not AgentMessage.objects.filter(pk=half.pk).exists()

    def test_deleting_a_message_is_one_question(self, editor: Client) -> None:
        item = stored("refund it")
        page = editor.get(address("delete", item))
        assert "would stay" not in page.text
        assert "refund it" not in page.text
        editor.post(address("delete", item), fields_of(page))
        assert AgentMessage.objects.count() == 2

    def test_what_changed_since_the_question_is_not_deleted(self, editor: Client) -> None:
        item = stored("refund it")
        sent = fields_of(editor.get(address("delete", item)))
        run_sql(f"UPDATE agent_messages SET message_data = '{{}}' WHERE id = {item.pk}")
        assert "changed since you opened it" in editor.post(address("delete", item), sent, follow=True).text
        assert AgentMessage.objects.filter(pk=item.pk).exists()


class TestSessions:
    def test_a_session_goes_with_its_items(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        add_items("other", "stays")
        record = SessionRecord.objects.get(session_id="s")
        assert deletion_of(record) in editor.get(items_of(record)).text
        assert "with all its items" in editor.get(deletion_of(record)).text
        assert AgentSession.objects.count() == 2

        assert editor.post(deletion_of(record), WHY).status_code == 302

        assert [row.session_id for row in AgentMessage.objects.all()] == ["other"]
        assert [row.pk for row in AgentSession.objects.all()] == ["other"]
        entry = LogEntry.objects.get()
        assert entry.object_id == str(record.pk)
        assert entry.object_repr == f"session {record.pk}"
        assert editor.post(deletion_of(record), WHY).status_code == 404

    def test_a_session_that_stays_busy_is_not_deleted(
        self, store: SessionStore, editor: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sessions_app.services.raw_edits.LOCK_TIMEOUT", "50ms")
        add_items("s", "hello")
        with second_connection() as agent:
            agent.execute("SELECT FROM agent_sessions WHERE session_id = 's' FOR UPDATE")
            assert editor.post(deletion_of(SessionRecord.objects.get()), WHY).status_code == 409
        assert stored("hello")

    def test_a_session_is_reached_by_its_row_and_never_named_in_an_address(
        self, store: SessionStore, editor: Client
    ) -> None:
        add_items("other", "hello")
        odd = ["x" * 10_000, "a/b/c", "50%", "%2F", "🦓 zebra", "_5F", "a_b", "'\"<b>", "new\nline", ".", ".."]
        for session_id in [f"{each} ann@example.com" for each in odd]:
            add_items(session_id, "hello")
            record = SessionRecord.objects.get(session_id=session_id)

            page = editor.get(items_of(record))

            assert [row.session_id for row in page.context["cl"].result_list] == [session_id]
            for shown in (
                page,
                editor.get(deletion_of(record)),
                editor.get(address("change", page.context["cl"].result_list[0])),
            ):
                assert shown.status_code == 200, session_id
                links = re.findall(r'(?:href|action)="([^"]*)"', shown.text)
                assert not [link for link in links if "example" in link], session_id
            editor.post(deletion_of(record), WHY)
            assert [row.session_id for row in AgentMessage.objects.all()] == ["other"], session_id

    def test_an_unknown_session_has_no_items(self, store: SessionStore, editor: Client) -> None:
        add_items("customer_1", "hello")
        for record in ("00000000-0000-4000-8000-000000000000", "customer_1", "'", "\0"):
            page = editor.get(reverse("admin:sessions_app_agentmessage_changelist"), {"record": record})
            assert list(page.context["cl"].result_list) == [], record

    def test_rows_of_another_store_are_not_taken_for_those_of_this(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        elsewhere = make_session("s", store=make_store("other"))
        assert list(editor.get(items_of(elsewhere)).context["cl"].result_list) == []
        assert editor.post(deletion_of(elsewhere)).status_code == 404
        assert stored("hello")

    def test_the_page_of_a_session_leads_to_its_rows(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        record = SessionRecord.objects.get()
        everything = signed_in_superuser()
        place = reverse("admin:sessions_app_sessionrecord_change", args=[record.pk])
        assert items_of(record) in everything.get(place).text
        assert items_of(record) in everything.get(record.get_absolute_url()).text

        administrator, support = Client(), Client()
        administrator.force_login(person("administrator"))
        support.force_login(person("support"))
        assert items_of(record) not in administrator.get(place).text
        assert items_of(record) not in support.get(record.get_absolute_url()).text


class TestLists:
    def test_no_content_but_on_the_page_of_an_item(self, store: SessionStore, editor: Client) -> None:
        add_items("s", SECRET)
        item = stored(SECRET)
        edit(editor, item, json.dumps({"role": "user", "content": f"{SECRET} again"}))

        page = editor.get(address("change", item))
        assert SECRET in page.text
        assert SECRET not in re.sub(r"<textarea.*?</textarea>", "", page.text, flags=re.DOTALL)
        for other in (
            reverse("admin:index"),
            reverse("admin:sessions_app_agentmessage_changelist"),
            items_of(SessionRecord.objects.get()),
            deletion_of(SessionRecord.objects.get()),
            address("history", item),
            address("delete", item),
        ):
            assert SECRET not in editor.get(other).text, other
        entry = LogEntry.objects.get()
        assert SECRET not in entry.object_repr + entry.change_message
        assert entry.object_repr == f"stored item {item.pk}"

    def test_no_list_is_searched_by_an_address(self) -> None:
        """Else the ids of people would stand in histories and logs."""
        for model in (AgentMessage, SessionRecord, SessionStore, Subject):
            assert not admin.site.get_model_admin(model).search_fields

    def test_a_list_neither_counts_nor_skips_to_the_end(
        self, store: SessionStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listed = 200
        monkeypatch.setattr(listing, "LISTED", listed)
        run_sql(
            f"""INSERT INTO agent_sessions SELECT 's' || n FROM generate_series(1, {listed + 100}) AS n;
                INSERT INTO agent_messages (session_id, message_data) SELECT session_id, '{{}}' FROM agent_sessions"""
        )
        everything = signed_in_superuser()
        record = SessionRecord.objects.newest_first()[0]
        make_store("other")  # a filter by store is offered when there are two
        for model, filtered in (("agentmessage", {"record": str(record.pk)}), ("sessionrecord", {})):
            pages_of = reverse(f"admin:sessions_app_{model}_changelist")
            with CaptureQueriesContext(connection) as asked:
                pages = [
                    everything.get(pages_of),
                    everything.get(pages_of, {"p": listed // 100}),
                    everything.get(pages_of, {"_facets": "True"} | filtered),
                ]
            assert [page.status_code for page in pages] == [200, 200, 200]
            assert pages[0].context["cl"].result_count == listed
            queries = [query["sql"] for query in asked if "agent_" in query["sql"] or "sessionrecord" in query["sql"]]
            assert all(f"LIMIT {listed}" in query for query in queries if "COUNT(" in query)
            assert all(int(skipped) < listed for query in queries for skipped in re.findall(r"OFFSET (\d+)", query))

    def test_the_text_does_not_leave_the_database_for_a_list(self, store: SessionStore, editor: Client) -> None:
        add_items("s", "hello")
        with CaptureQueriesContext(connection) as asked:
            editor.get(reverse("admin:sessions_app_agentmessage_changelist"))
        for query in asked:
            assert "message_data" not in re.sub(r"octet_length\([^)]*\)", "", query["sql"])


def signed_in_superuser() -> Client:
    return signed_in(User.objects.create_superuser(f"root{User.objects.count()}"))


class TestAccess:
    def test_no_role_sees_the_agents_rows(self, store: SessionStore) -> None:
        add_items("s", SECRET)
        record, item = SessionRecord.objects.get(), AgentMessage.objects.get()
        for role in ("administrator", "support", "compliance"):
            client = signed_in(person(role))
            for place in (
                reverse("admin:sessions_app_agentmessage_changelist"),
                items_of(record),
                deletion_of(record),
                *(address(verb, item) for verb in ("change", "delete", "history")),
            ):
                page = client.get(place)
                assert page.status_code == 403, (role, place)
                assert SECRET not in page.text
                assert client.post(place, {"post": "yes"}).status_code in (403, 405), (role, place)
            assert stored(SECRET)
            assert "stored item" not in client.get(reverse("admin:index")).text.lower(), role

    def test_nobody_adds_an_item(self, store: SessionStore) -> None:
        assert signed_in_superuser().get(reverse("admin:sessions_app_agentmessage_add")).status_code == 403

    def test_an_editor_may_not_edit_the_registry(self, editor: Client, store: SessionStore) -> None:
        assert editor.get(reverse("admin:sessions_app_subject_changelist")).status_code == 403


def test_without_the_agents_tables_the_rest_works(agent_tables: None, editor: Client) -> None:
    assert editor.get(reverse("admin:index")).status_code == 200
    for place in (
        reverse("admin:sessions_app_agentmessage_changelist"),
        reverse("admin:sessions_app_agentmessage_change", args=[1]),
        reverse("admin:sessions_app_agentmessage_delete", args=[1]),
        deletion_of(make_session("s")),
    ):
        page = editor.get(place)
        assert page.status_code == 503
        assert "The tables agent_sessions and agent_messages are not in this database." in page.text
