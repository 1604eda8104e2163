"""What every kind of store has to do with what agents seal, as one class of tests beside `StoreContract`.

    class TestRedis(StoreContract, SealedContract): ...

The agent seals with the SDK's `EncryptedSession` around the session class of the kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memadmin.retention.models import SweepResult
from sessions_app.audit_events import RedactReason
from sessions_app.items import SealState
from sessions_app.models import SessionRecord
from sessions_app.redaction.services import RedactionRequest, redact_in_session
from sessions_app.search_syntax import ParsedSearch
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.purging import preview_purge, purge_expired
from sessions_app.services.registering import register_sessions
from sessions_app.services.rotation import RotationReport, rotate_key
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, ItemChanged
from sessions_app.stores.rewriting import CannotRewrite
from sessions_app.stores.sealed import SealedBackend, sealed_backend_for
from sessions_app.stores.search_protocol import SearchOrder
from tests.agents import assistant, user
from tests.retention.policies import in_force, swept
from tests.runs.working import report_of, work_off
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, secrets, written_ago
from tests.stores.contract import CALL, OUTPUT, SECRET, SdkAgent, Writer, put_on_record, said

DAY = timedelta(days=1)


def tokens(agent: SdkAgent, session_id: str) -> list[str]:
    """What is in the stored envelopes, each of which nothing else is like."""
    return [json.loads(raw)["payload"] for raw in agent.stored(session_id)]


@contextmanager
def sealing_with(agent: SdkAgent, key: str) -> Iterator[None]:
    """Another key, or none, for some of what it says or reads."""
    before, agent.seal_key = agent.seal_key, key
    try:
        yield
    finally:
        agent.seal_key = before


class SealedContract:
    """Inherited beside StoreContract, whose fixtures it uses, by each kind that `EncryptedSession` goes around."""

    @pytest.fixture
    def sealer(self, agent: SdkAgent, settings: Any) -> SdkAgent:
        return self.sealing(agent, settings)

    def sealing(self, agent: SdkAgent, settings: Any) -> SdkAgent:
        """It seals with the key that its store names; the new one is in the keyring, too."""
        settings.SESSION_KEYS = secrets(old=OLD_KEY, new=NEW_KEY)
        agent.seal_key = OLD_KEY
        agent.store = declare_encryption(agent.store, key="old", ttl=timedelta(minutes=10))
        return agent

    def opened(self, agent: SdkAgent) -> SealedBackend:
        return sealed_backend_for(agent.store, opens=True)

    def can(self, agent: SdkAgent, *capabilities: Capability) -> bool:
        return set(capabilities) <= backend_for(agent.store).capabilities

    def seals(self, agent: SdkAgent, session_id: str = "talk") -> list[tuple[datetime | None, datetime | None]]:
        """When each item was written and sealed."""
        items = self.opened(agent).first_page(session_id, 99).items
        return [(item.written_at, item.seal.sealed_at if item.seal else None) for item in items]

    # --- reading ------------------------------------------------------------------------------------------------------

    def test_what_was_sealed_is_read_with_the_key_and_each_seal_is_told(self, sealer: SdkAgent) -> None:
        self.what_was_sealed_is_read_with_the_key_and_only_with_it(sealer)
        # The store has no key afterwards.
        self.each_seal_is_told_as_what_it_is(sealer)

    def what_was_sealed_is_read_with_the_key_and_only_with_it(self, sealer: SdkAgent) -> None:
        begun = datetime.now(UTC).replace(microsecond=0)
        sealer.add("talk", user(f"{SECRET} é 😀"), CALL, OUTPUT)
        sealer.add("talk", assistant(f"About {SECRET}"))
        assert sealer.leftovers(SECRET) == []

        reader = self.opened(sealer)
        items = list(reader.first_page("talk", 9).items)
        assert [json.loads(item.raw) for item in items] == sealer.read("talk")
        assert [item.raw for item in reader.every_item("talk")] == [item.raw for item in items]
        assert reader.item("talk", items[0].id).raw == items[0].raw
        for item in items:
            assert item.seal
            assert (item.seal.state, item.seal.is_open, item.seal.is_expired) == (SealState.SOUND, True, False)
            assert item.seal.sealed_at
            assert begun <= item.seal.sealed_at <= datetime.now(UTC)

        closed = sealed_backend_for(sealer.store, opens=False)
        kept = closed.first_page("talk", 9).items
        assert [item.raw for item in kept] == sealer.stored("talk")
        assert [item.id for item in kept] == [item.id for item in items]
        assert {item.seal.state for item in kept if item.seal} == {SealState.SOUND}
        for view, is_found in ((reader, True), (closed, False)):
            looks = view.search.look(
                ParsedSearch.parse(SECRET), {"talk": None}, limit=9, order=SearchOrder.NEWEST_FIRST, seconds=30
            )
            assert bool(looks["talk"].hit) == is_found
        preview = backend_for(sealer.store).previews(["talk"])["talk"]
        assert (preview.item_count, preview.is_encrypted) == (4, True)
        assert SECRET not in preview.first_user_text

    def each_seal_is_told_as_what_it_is(self, sealer: SdkAgent) -> None:
        sealer.add("states", user("sound"))
        (envelope,) = (json.loads(raw) for raw in sealer.stored("states"))
        with written_ago(DAY):
            sealer.add("states", user("expired"))
        with sealing_with(sealer, NEW_KEY):
            sealer.add("states", user("of another key"))
        with sealing_with(sealer, ""):
            middle = len(envelope["payload"]) // 2
            changed = "A" if envelope["payload"][middle] != "A" else "B"
            payload = envelope["payload"][:middle] + changed + envelope["payload"][middle + 1 :]
            sealer.add("states", {**envelope, "payload": payload}, user("in the clear"))
        with sealing_with(sealer, STRANGE_KEY):
            sealer.add("strange", user("of a key that is not here"))

        def states(session_id: str) -> list[SealState | None]:
            return [
                item.seal.state if item.seal else None for item in self.opened(sealer).first_page(session_id, 9).items
            ]

        assert states("states") == [
            SealState.SOUND,
            SealState.SOUND,
            SealState.OTHER_KEY,
            SealState.TAMPERED,
            None,
        ]
        items = self.opened(sealer).first_page("states", 9).items
        assert [bool(item.seal and item.seal.is_expired) for item in items] == [False, True, False, False, False]
        assert states("strange") == [SealState.WRONG_KEY]
        assert sealer.read("states") == [user("sound")]
        sealer.store = declare_encryption(sealer.store, key="")
        assert states("states") == [SealState.NO_KEY] * 4 + [None]
        assert all("payload" in item.raw for item in self.opened(sealer).first_page("states", 4).items)

    def on_record(self, agent: SdkAgent) -> None:
        """What a store cannot list, somebody has registered."""
        if not self.can(agent, Capability.ENUMERATE):
            register_sessions(agent.store, ["talk", "other"])

    # --- another key --------------------------------------------------------------------------------------------------

    def rotate(self, agent: SdkAgent) -> RotationReport | None:
        """None where items cannot be replaced, which is said, and nothing is changed then."""
        self.on_record(agent)
        if self.can(agent, Capability.REPLACE_ITEMS):
            return rotate_key(agent.store, old="old", new="new")
        before = {session_id: agent.stored(session_id) for session_id in ("talk", "other")}
        with pytest.raises(CannotRewrite, match="does not support this change"):
            rotate_key(agent.store, old="old", new="new")
        assert {session_id: agent.stored(session_id) for session_id in before} == before
        assert sealing_key(agent) == "old"
        return None

    def test_a_store_is_sealed_anew_and_nothing_of_the_old_seals_is_left(self, sealer: SdkAgent) -> None:
        with written_ago(DAY):
            sealer.add("talk", user("long ago"))
        sealer.add("talk", user("now — é 😀"), CALL, OUTPUT)
        sealer.add("other", assistant("hello"))
        before, old = self.seals(sealer), [*tokens(sealer, "talk"), *tokens(sealer, "other")]
        talk = sealer.read("talk")
        report = self.rotate(sealer)
        if report is None:
            return
        assert report.is_complete
        assert (report.resealed, report.sessions) == (5, 2)
        assert sealer.read("talk") == []
        with sealing_with(sealer, NEW_KEY):
            assert sealer.read("talk") == talk
            assert sealer.read("other") == [assistant("hello")]
        assert self.seals(sealer) == before
        assert [token for token in old if sealer.leftovers(token)] == []
        assert sealing_key(sealer) == "new"

    def test_what_an_agent_says_while_its_store_is_sealed_anew_stays(self, sealer: SdkAgent) -> None:
        for turn in range(3):
            sealer.add("talk", *(user(f"old {turn}.{number}") for number in range(4)))
        sealer.add("other", said(0))
        talk = sealer.read("talk")
        sealer.seal_key = NEW_KEY
        with Writer(sealer, "talk") as writer:
            writer.wait_for_turns(2)
            report = self.rotate(sealer) if self.can(sealer, Capability.REPLACE_ITEMS) else None
            writer.wait_for_turns(2)
        assert writer.problem is None
        if report is None:
            return
        if sealer.brings_back or report.busy:
            report = self.rotate(sealer)
            assert report
        assert report.is_complete
        read, expected = sealer.read("talk"), writer.turns(range(1, writer.done + 1))
        assert read[:12] == talk
        if sealer.mixes_turns:
            read[12:], expected = sorted(read[12:], key=str), sorted(expected, key=str)
        assert read[12:] == expected

    # --- what nobody reads any more -----------------------------------------------------------------------------------

    def test_what_agents_no_longer_read_is_removed_and_nothing_else(self, sealer: SdkAgent) -> None:
        with written_ago(DAY):
            sealer.add("talk", user("long ago"), assistant("and its answer"))
        old = tokens(sealer, "talk")
        if self.can(sealer, Capability.ITEM_TIMES):
            # Its own clock was the place's: without this all would have been written at once.
            sealer.age("talk", DAY)
        sealer.add("talk", user("now"), CALL, OUTPUT)
        with sealing_with(sealer, ""):
            sealer.add("talk", user("in the clear"))
        kept, read = sealer.stored("talk")[2:], sealer.read("talk")
        self.on_record(sealer)
        if not self.can(sealer, Capability.ERASE_ITEMS):
            with pytest.raises(CannotRewrite, match="does not support this change"):
                preview_purge(sealer.store)
            assert sealer.stored("talk")[2:] == kept
            return
        # What is old is told by the envelope itself.
        sealer.store = declare_encryption(sealer.store, key="")
        report = purge_expired(preview_purge(sealer.store))
        assert (report.purged, report.unproven) == (2, 2)
        assert sealer.stored("talk") == kept
        assert sealer.read("talk") == read
        assert [token for token in old if sealer.leftovers(token)] == []
        assert preview_purge(sealer.store).report.purged == 0
        self.old_envelopes_expire_without_the_key(sealer)

    def old_envelopes_expire_without_the_key(self, sealer: SdkAgent) -> None:
        with written_ago(40 * DAY):
            sealer.add("expiring", user("long ago"), CALL, OUTPUT)
        if self.can(sealer, Capability.ITEM_TIMES):
            sealer.age("expiring", 40 * DAY)
        with written_ago(3 * DAY / 24):
            sealer.go_on("expiring", user("now"))
        if self.can(sealer, Capability.ITEM_TIMES):
            sealer.age("expiring", 3 * DAY / 24)
        kept = sealer.stored("expiring")[3:]
        put_on_record(sealer, "expiring", activity=2 * DAY / 24)
        in_force("Envelopes", target="items", clock="written", store=sealer.store.name, days=30)
        run = swept()
        assert sealer.stored("expiring") == kept, (run.reason, run.exceptions)
        assert SweepResult.objects.get(run=run).items == 3

    # --- redacting ----------------------------------------------------------------------------------------------------

    def redact(self, agent: SdkAgent, session_id: str) -> dict[str, Any]:
        record, _ = SessionRecord.objects.get_or_create(store=agent.store, session_id=session_id)
        record.refresh_from_db()
        asked = redact_in_session(record, RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=None))
        work_off()
        asked.refresh_from_db()
        report: dict[str, Any] = report_of(asked)
        return report

    def test_a_sealed_text_is_redacted_by_who_has_its_key_and_has_read_it(self, sealer: SdkAgent) -> None:
        self.a_text_is_redacted_under_its_seal_and_the_agent_goes_on(sealer)
        self.what_no_key_opens_is_left_as_it_is_and_named(sealer)
        self.an_envelope_is_only_replaced_by_who_has_read_it(sealer)

    def a_text_is_redacted_under_its_seal_and_the_agent_goes_on(self, sealer: SdkAgent) -> None:
        sealer.add("talk", said(0), user(f"My key is {SECRET} ü"), {**CALL, "arguments": json.dumps({"key": SECRET})})
        sealer.add("talk", {**OUTPUT, "output": f"sent {SECRET}"}, said(4))
        before, stored = self.seals(sealer), tokens(sealer, "talk")
        report = self.redact(sealer, "talk")
        if not self.can(sealer, Capability.REPLACE_ITEMS):
            assert report["reasons"] == [["cannot", sealer.store.name, 1]]
            return
        assert report["reasons"] == []
        assert (report["items"], report["replayed"]) == (3, 1)
        assert sealer.read("talk") == [
            said(0),
            user("My key is [redacted] ü"),
            {**CALL, "arguments": '{"key":"[redacted]"}'},
            {**OUTPUT, "output": "sent [redacted]"},
            said(4),
        ]
        assert self.seals(sealer) == before
        assert tokens(sealer, "talk")[::4] == stored[::4], "what says nothing of it was sealed anew"
        assert [token for token in stored[1:4] if sealer.leftovers(token)] == []
        sealer.add("talk", said(9))
        assert sealer.read("talk")[-1] == said(9)

    def what_no_key_opens_is_left_as_it_is_and_named(self, sealer: SdkAgent) -> None:
        with sealing_with(sealer, STRANGE_KEY):
            sealer.add("strange", user(SECRET))
        stored = sealer.stored("strange")
        assert self.redact(sealer, "strange")["reasons"] == [["sealed", sealer.store.name, 1]]
        assert sealer.stored("strange") == stored

    def an_envelope_is_only_replaced_by_who_has_read_it(self, sealer: SdkAgent) -> None:
        """As every other item: what was sealed meanwhile with other words is not overwritten."""
        if not self.can(sealer, Capability.REPLACE_ITEMS):
            return
        sealer.add("compared", user("one"))
        backend = backend_for(sealer.store)
        (item,) = backend.first_page("compared", 2).items
        (opened,) = self.opened(sealer).first_page("compared", 2).items
        for stale in (opened.raw, item.raw.replace("payload", "payloaD")):
            with pytest.raises(ItemChanged):
                backend.replace_item("compared", item.id, "{}", expected=stale)
        assert sealer.read("compared") == [user("one")]


def sealing_key(agent: SdkAgent) -> str:
    agent.store.refresh_from_db()
    return str(agent.store.encryption_key)
