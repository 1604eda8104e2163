"""Sessions encrypted with the key of their subject: talked in, read in the console, and unreadable in every old copy
once the key is destroyed."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from agents import SQLiteSession
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIConversationsSession
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from openai import AsyncOpenAI

from memadmin.accounts.grants import services as grants
from memadmin.audit.models import AuditEvent
from memadmin.client.connection import Console
from memadmin.client.sessions import GovernedSession, SubjectErased, SubjectMismatch
from memadmin.client.subject_keys import KeyFolder, SubjectKeysUnavailable
from memadmin.client.subjects import Subject as SubjectInHost
from memadmin.deploy.checks import operation
from memadmin.retention.holds.guard import OnLegalHold
from sessions_app import registry
from sessions_app.encryption import sealing_of
from sessions_app.encryption.envelope_text import decrypt_for_rewrite
from sessions_app.items import SealState, StoredItem
from sessions_app.models import AgentMessage, AgentSession, SessionFinding, SessionRecord, SessionStore, Subject
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.inspection import inspect_session
from sessions_app.services.subject_keys import KeyNotDestroyed, allow_new_key, destroy_subject_keys
from sessions_app.services.subjects import merge_subjects
from sessions_app.stores import backend_for
from sessions_app.stores.sealed import sealed_backend_for
from tests.approvals import approve_grant
from tests.client.agents import console_at, in_agent, in_postgres, talk
from tests.client.conftest import address
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.sealed import NEW_KEY, OLD_KEY, add_sealed, secrets

pytestmark = pytest.mark.django_db(transaction=True)

HOURS = 10 * 3600
SECRET = "The cardiologist has time on Monday"


@pytest.fixture
def keys(tmp_path: Path, settings: Any) -> KeyFolder:
    """The folder, as agents have it; the console has it in its settings."""
    settings.SUBJECT_KEYS_DIR = tmp_path / "subject-keys"
    settings.SUBJECT_KEYS_DIR.mkdir(mode=0o700)
    settings.SESSION_KEYS = secrets(old=OLD_KEY, new=NEW_KEY)
    return KeyFolder(settings.SUBJECT_KEYS_DIR, {"new": NEW_KEY})


@pytest.fixture
def console(main_store: SessionStore) -> Console:
    return console_at(address())


Governing = Callable[..., GovernedSession]


@pytest.fixture
def governed(console: Console, keys: KeyFolder) -> Governing:
    def make(session_id: str, subject: str = "cust_1", **options: Any) -> GovernedSession:
        given = {"console": console, "store": "main", "subject": subject, "subject_keys": keys, "ttl": HOURS, **options}
        return GovernedSession(in_postgres(session_id), encrypt="subject", **given)

    return make


def write(governed: Governing, session_id: str, subject: str, *said: str) -> None:
    async def run() -> None:
        for each in said:
            await talk(governed(session_id, subject), each)

    in_agent(run)


def subject_of(key: str) -> Subject:
    return Subject.objects.get(aliases__key=key)


def items_of(session_id: str, *, opens: bool = True) -> list[StoredItem]:
    store = SessionStore.objects.get(name="main")
    return list(sealed_backend_for(store, opens=opens).every_item(session_id))


def states_of(session_id: str) -> set[SealState]:
    return {item.seal.state for item in items_of(session_id) if item.seal}


def text_of(session_id: str) -> str:
    return " ".join(item.raw for item in items_of(session_id))


class TestAgents:
    def test_a_conversation_is_remembered_and_stored_in_envelopes(self, governed: Governing) -> None:
        async def run() -> Any:
            await talk(governed("s"), SECRET, "Noted.")
            return await talk(governed("s"), "When?", "On Monday.")

        model = in_agent(run)
        assert SECRET in json.dumps(model.calls[0].input)
        stored = "".join(map(str, AgentMessage.objects.values_list("message_data", flat=True)))
        assert stored.count('"__enc__"') == 4
        assert "Monday" not in stored
        assert SessionRecord.objects.get(session_id="s").subject == subject_of("cust_1")

    def test_the_sdk_sees_its_own_encrypted_session(self, governed: Governing) -> None:
        async def run() -> None:
            session = governed("s")
            assert isinstance(session, EncryptedSession)
            assert session.ttl == HOURS
            with pytest.raises(AttributeError, match="keeps its id"):
                session.session_id = "other"

        in_agent(run)

    def test_another_subjects_key_opens_nothing(self, governed: Governing) -> None:
        async def run() -> Any:
            await talk(governed("s"), SECRET)
            return await governed("s", "cust_2").get_items()

        # The registry refuses the session to another subject, or the envelopes stay closed.
        with pytest.raises(SubjectMismatch):
            in_agent(run)

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"subject": None}, "needs the subject"),
            ({"subject": ""}, "needs the subject"),
            ({"subject_keys": None}, "needs the subject"),
        ],
    )
    def test_what_is_missing_is_said_at_once(self, governed: Governing, options: Any, problem: str) -> None:
        async def run() -> None:
            with pytest.raises(ValueError, match=problem):
                governed("s", **options)

        in_agent(run)

    def test_sessions_that_cannot_be_encrypted_are_refused(self, console: Console, keys: KeyFolder) -> None:
        options: Any = {"console": console, "store": "main", "subject": "cust_1", "subject_keys": keys}
        twice: Any = EncryptedSession("s", SQLiteSession("s"), OLD_KEY)
        with pytest.raises(ValueError, match="without EncryptedSession"):
            GovernedSession(twice, encrypt="subject", **options)
        kept = OpenAIConversationsSession(openai_client=AsyncOpenAI(api_key="none"))
        with pytest.raises(ValueError, match="its id from the start"):
            GovernedSession(kept, encrypt="subject", **options)

    def test_without_a_key_nothing_is_stored(self, governed: Governing, keys: KeyFolder) -> None:
        keys.path.rename(keys.path.with_name("unmounted"))

        async def run() -> None:
            with pytest.raises(SubjectKeysUnavailable, match="does not exist"):
                governed("s")

        in_agent(run)

    def test_a_session_that_has_its_key_survives_an_unmounted_folder(
        self, governed: Governing, keys: KeyFolder, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def run() -> None:
            session = governed("s")
            keys.path.rename(keys.path.with_name("unmounted"))
            await talk(session, "Hello")

        in_agent(run)
        assert AgentMessage.objects.count() == 2
        assert "The run continues with the key that it has." in caplog.text
        assert "cust_1" not in caplog.text


class TestAgentsAfterTheDestruction:
    @pytest.fixture
    def away(self) -> Console:
        """The console's database is not responding: what refuses is the folder."""
        return console_at("host=127.0.0.1 port=1")

    def test_a_run_under_way_stores_nothing_more(self, governed: Governing, keys: KeyFolder, away: Console) -> None:
        async def run() -> None:
            session = governed("s", console=away)
            await talk(session, "Hello")
            keys.destroy(SubjectInHost("cust_1"))
            for again in (talk(session, SECRET), session.add_items([]), session.get_items(), session.pop_item()):
                with pytest.raises(SubjectErased, match="key of this subject was destroyed"):
                    await again
            with pytest.raises(SubjectErased, match="key of this subject was destroyed"):
                governed("s2", console=away)

        in_agent(run)
        assert AgentMessage.objects.count() == 2

    def test_or_goes_on_and_nothing_of_it_is_stored(self, governed: Governing, keys: KeyFolder, away: Console) -> None:
        async def run() -> None:
            session = governed("s", console=away, erased="drop")
            await talk(session, "Hello")
            keys.destroy(SubjectInHost("cust_1"))
            for each in (session, governed("s", console=away, erased="drop")):
                model = await talk(each, SECRET)
                assert "Hello" not in json.dumps(model.calls[0].input)
                assert await each.pop_item() is None
                # Past the methods that refuse: what the SDK calls by name is encrypted with a key that nobody has.
                await each.inner.add_items([{"role": "user", "content": SECRET}])

        in_agent(run)
        stored = "".join(map(str, AgentMessage.objects.values_list("message_data", flat=True)))
        assert stored.count('"__enc__"') == 4
        assert SECRET not in stored


class TestConsole:
    def test_it_reads_what_agents_wrote(self, governed: Governing) -> None:
        write(governed, "s", "cust_1", SECRET)
        assert SECRET in text_of("s")
        assert states_of("s") == {SealState.SOUND}
        assert SECRET not in " ".join(item.raw for item in items_of("s", opens=False))

    def test_beside_sessions_of_the_stores_key(self, governed: Governing, main_store: SessionStore) -> None:
        declare_encryption(main_store, key="old", session_ids="sealed:{id} -> {id}")
        add_sealed("sealed:t", "With the store's key", key=OLD_KEY, wrapper_id="t")
        write(governed, "sealed:s", "cust_1", SECRET)
        assert SECRET in text_of("sealed:s")
        assert "With the store" in text_of("sealed:t")
        assert states_of("sealed:s") == states_of("sealed:t") == {SealState.SOUND}
        SessionRecord.objects.update(is_encrypted=True)
        assert registry.health(SessionStore.objects.get(name="main")).problems == ()

    def test_a_store_of_such_sessions_needs_no_key(self, governed: Governing) -> None:
        write(governed, "s", "cust_1", SECRET)
        SessionRecord.objects.update(is_encrypted=True)
        assert not any("no key is set" in hint for hint in registry.health(SessionStore.objects.get()).hints)

    def test_merged_subjects_keep_their_own_keys(self, governed: Governing) -> None:
        write(governed, "s", "cust_1", SECRET)
        write(governed, "t", "cust_2", SECRET)
        merge_subjects(subject_of("cust_1"), subject_of("cust_2"), by=person("compliance"))
        SessionRecord.objects.update(subject=subject_of("cust_2"))
        assert SECRET in text_of("s")
        assert SECRET in text_of("t")

    def test_an_item_is_rewritten_with_the_same_key(self, governed: Governing) -> None:
        write(governed, "s", "cust_1", SECRET)
        record = SessionRecord.objects.get(session_id="s")
        item = next(backend_for(record.store).every_item("s"))
        opened = decrypt_for_rewrite(item, sealing_of(record.store).of_session("s"))
        assert opened
        assert SECRET in opened.text
        AgentMessage.objects.filter(pk=item.id).update(message_data=opened.stored_with('{"role":"user","content":"-"}'))

        async def read() -> Any:
            return await governed("s").get_items()

        assert in_agent(read)[0]["content"] == "-"

    def test_pages_show_words_under_a_grant_and_say_when_the_key_is_gone(self, governed: Governing) -> None:
        write(governed, "s", "cust_1", SECRET)
        record, support = SessionRecord.objects.get(session_id="s"), person("support")
        inspect_session(record)
        reader = signed_in(support)

        def page(client: Client) -> str:
            return " ".join(client.get(record.get_absolute_url()).text.split())

        assert SECRET not in page(reader)
        asked = grants.request_grant(by=support, record_ids=[record.pk], reason="support_case", ticket="T-1")
        approve_grant(asked, by=person("compliance"))
        assert SECRET in page(reader)
        destroy_subject_keys(subject_of("cust_1"))
        shown = page(reader)
        assert SECRET not in shown
        assert "key destroyed" in shown
        inspect_session(record)
        assert SessionFinding.objects.values_list("kind", flat=True)[0] == "key_destroyed"


class TestDestruction:
    def test_a_restored_dump_stays_unreadable_for_this_person_and_readable_for_others(
        self, governed: Governing, keys: KeyFolder
    ) -> None:
        write(governed, "of-anna", "cust_1", SECRET, "Thanks")
        write(governed, "of-ben", "cust_2", SECRET)
        dump = programs("pg_dump", "--data-only", "--table=agent_sessions", "--table=agent_messages")
        assert destroy_subject_keys(subject_of("cust_1")) == 1
        AgentMessage.objects.all().delete()
        AgentSession.objects.all().delete()

        programs("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", input=dump)

        assert len(items_of("of-anna")) == 4
        assert SECRET not in text_of("of-anna")
        assert states_of("of-anna") == {SealState.KEY_DESTROYED}
        assert SECRET in text_of("of-ben")
        assert states_of("of-ben") == {SealState.SOUND}

        async def by_agents() -> Any:
            with pytest.raises(SubjectErased):
                governed("of-anna", "cust_1")
            return await governed("of-ben", "cust_2").get_items()

        assert SECRET in json.dumps(in_agent(by_agents))
        # Nor with anything that is left in the folder, or in the keyring.
        left = "".join(file.read_text() for file in keys.path.iterdir() if file.name != "names")
        assert left.count("destroyed_at") == left.count("wrapped_with") == 1

    def test_the_keys_of_a_merged_group_once(self, governed: Governing, keys: KeyFolder) -> None:
        for number in (1, 2, 3):
            write(governed, f"s{number}", f"cust_{number}", SECRET)
        into = merge_subjects(subject_of("cust_1"), subject_of("cust_2"), by=person("compliance"))
        assert destroy_subject_keys(subject_of("cust_1")) == 2
        assert destroy_subject_keys(into) == 0
        assert states_of("s1") == states_of("s2") == {SealState.KEY_DESTROYED}
        assert SECRET in text_of("s3")
        (event,) = AuditEvent.objects.filter(type="subject.keys_destroyed")
        assert (event.subject_ref, event.counters) == (into.pk, {"keys": 2})

    def test_nothing_is_done_without_a_folder(self, governed: Governing, settings: Any) -> None:
        write(governed, "s", "cust_1", SECRET)
        settings.SUBJECT_KEYS_DIR = None
        assert destroy_subject_keys(subject_of("cust_1")) == 0
        assert states_of("s") == {SealState.NO_KEY}

    def test_a_folder_that_is_away_is_no_success(self, governed: Governing, keys: KeyFolder) -> None:
        write(governed, "s", "cust_1", SECRET)
        keys.path.rename(keys.path.with_name("unmounted"))
        with pytest.raises(SubjectKeysUnavailable):
            destroy_subject_keys(subject_of("cust_1"))
        assert not AuditEvent.objects.filter(type="subject.keys_destroyed").exists()

    def test_nor_is_a_keyring_that_finds_no_files(self, governed: Governing, settings: Any) -> None:
        write(governed, "s", "cust_1", SECRET)
        settings.SESSION_KEYS = secrets(old=OLD_KEY)
        with pytest.raises(SubjectKeysUnavailable, match="'new', which is not in the keyring"):
            destroy_subject_keys(subject_of("cust_1"))

    @pytest.mark.parametrize("what", ["subject", "session"])
    def test_a_legal_hold_keeps_the_keys(self, governed: Governing, keys: KeyFolder, what: str) -> None:
        write(governed, "s", "cust_1", SECRET)
        subject, by = subject_of("cust_1"), person("compliance")
        make_hold(subject if what == "subject" else SessionRecord.objects.get(session_id="s"), by=by)
        with pytest.raises(OnLegalHold):
            destroy_subject_keys(subject)
        assert SECRET in text_of("s")

    def test_a_key_that_still_opens_is_noticed(
        self, governed: Governing, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(governed, "s", "cust_1", SECRET)
        monkeypatch.setattr(KeyFolder, "destroy", lambda self, subject: True)
        with pytest.raises(KeyNotDestroyed):
            destroy_subject_keys(subject_of("cust_1"))

    def test_a_person_who_comes_back_has_a_new_key(self, governed: Governing, keys: KeyFolder) -> None:
        write(governed, "s", "cust_1", SECRET)
        subject = subject_of("cust_1")
        destroy_subject_keys(subject)
        assert allow_new_key(subject, kind="user", key="cust_1")
        assert not allow_new_key(subject, kind="user", key="cust_1")
        write(governed, "t", "cust_1", "Hello again")
        assert "Hello again" in text_of("t")
        assert SECRET not in text_of("s")


class TestAnotherKeyOfTheKeyring:
    """Of the store, whose rotation leaves the keys of subjects alone, and around those."""

    def test_rotation_leaves_them_and_warns_of_removing_what_wraps_them(
        self, governed: Governing, keys: KeyFolder, main_store: SessionStore
    ) -> None:
        declare_encryption(main_store, key="new")
        write(governed, "s", "cust_1", SECRET)
        add_sealed("t", "With the store's key", key=NEW_KEY)
        report = called("rotate_key", "main", "--from=new", "--to=old")
        assert "1 item of 2 sessions were re-encrypted." in report
        assert "2 are encrypted with keys of subjects and stay so." in report
        assert (
            "Do not remove new yet: it wraps the keys of 1 id of subjects. Run subject_keys --wrap-with old." in report
        )
        assert called("subject_keys") == "1 key wrapped with new\n0 destroyed\n"
        assert called("subject_keys", "--wrap-with=old").splitlines()[1:] == ["1 key wrapped with old", "0 destroyed"]
        assert AuditEvent.objects.get(type="subject.keys_wrapped").counters == {"keys": 1}
        assert SECRET in text_of("s")
        assert keys.wrapped_with() == {"old": 1}
        assert "Do not remove" not in called("rotate_key", "main", "--from=new", "--to=old")

    def test_the_command_counts_for_scripts_and_explains_what_is_missing(
        self, governed: Governing, settings: Any
    ) -> None:
        write(governed, "s", "cust_1", SECRET)
        destroy_subject_keys(subject_of("cust_1"))
        assert json.loads(called("subject_keys", "--json")) == {
            "keys": {},
            "destroyed": 1,
            "wrapped": 0,
            "problems": [],
        }
        with pytest.raises(CommandError, match="'other' is not in the keyring"):
            called("subject_keys", "--wrap-with=other")
        settings.SUBJECT_KEYS_DIR = None
        with pytest.raises(CommandError, match="MEMADMIN_SUBJECT_KEYS_DIR is not set"):
            called("subject_keys")


class TestHealth:
    def test_a_folder_in_order_is_not_mentioned(self, main_store: SessionStore, keys: KeyFolder) -> None:
        assert list(operation.subject_keys()) == []
        assert "Keys of subjects" not in called("check_stores")

    def test_a_folder_that_is_missing_or_open_is_told(self, main_store: SessionStore, keys: KeyFolder) -> None:
        keys.path.chmod(0o755)
        assert "is open to other users. Set its mode to 0700." in called("check_stores")
        keys.path.rmdir()
        assert "does not exist. Mount or create it" in called("check_stores")
        (finding,) = operation.subject_keys()
        assert finding.level == "error"
        assert "does not exist" in finding.hint
        assert json.loads(called("check_stores", "--json"))["subject_keys"] == [finding.hint]


def called(command: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


def programs(name: str, *arguments: str, input: bytes | None = None) -> bytes:
    """A program of the server's own version, with the database of the tests."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        folder = Path(psutil.Process(cursor.fetchone()[0]).exe()).parent
    command = [str(folder / name), "--dbname", address(), *arguments]
    return subprocess.run(command, check=True, input=input, stdout=subprocess.PIPE).stdout
