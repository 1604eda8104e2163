"""Every function that reads stored items, given items as no SDK writes them: it raises its own errors at most."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import BufferedReader, BytesIO
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet
from django.template.loader import render_to_string
from hypothesis import example, given, settings

from memadmin.client.items import is_from_user, last_said
from memadmin.client.secret_text import mask_text
from memadmin.json_files import values
from memadmin.json_spans import NotReadable
from memories_app.exchange.formats import FORMATS, entries_of
from memories_app.exchange.rows import entry_of_row
from memories_app.learning import evidence_linking
from memories_app.learning.distillers.rules import RulesDistiller
from memories_app.learning.distillers.types import Before, said_in
from sessions_app.encryption import Sealing, WrapperIds
from sessions_app.encryption.envelope_text import decrypt_for_rewrite
from sessions_app.encryption.keyring import Keyring
from sessions_app.encryption.purging import Purge
from sessions_app.encryption.rotation import Rotation
from sessions_app.masking import ItemView, Masker
from sessions_app.models import AgentMessage, SessionRecord
from sessions_app.redaction import NestedTooDeep, TextToRedact, without_all_text, without_text
from sessions_app.redaction.replay import Replay, is_input, keeps_its_place
from sessions_app.search.snippets import is_shown, snippet
from sessions_app.search_syntax import ParsedSearch
from sessions_app.services import raw_edits
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.dapr.backend import Items
from sessions_app.stores.dapr.sidecar import StateValue
from sessions_app.stores.documents import backend as documents
from sessions_app.stores.documents import messages
from sessions_app.stores.documents.json_edit import Swaps
from sessions_app.stores.json_file.entries import Entries
from sessions_app.stores.mongodb.documents import texts_of
from sessions_app.stores.openai_conversations.api import Account, decoded_answer
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, preview_from
from sessions_app.timeline import Inspector, build_timeline, to_markdown
from sessions_app.transcripts.chat import convert
from sessions_app.transcripts.parsing import parse_conversations
from tests.odd_json import KNOWN, odd_items
from tests.sessions.timeline.items import Raw, in_part, stored

pytestmark = pytest.mark.slow

SEARCH = ParsedSearch.parse('"x" order -never')
TEXT = TextToRedact.parse("order 4711")
RECORD = SessionRecord(pk=UUID(int=1))
AT = datetime(2026, 11, 25, tzinfo=UTC)
SEALS = Sealing("", timedelta(minutes=10), WrapperIds.parse(""), Keyring.of([])).of_session("s")
ROTATION = Rotation(Fernet(Fernet.generate_key()), Fernet(Fernet.generate_key()))
ACCOUNT = Account("https://api.example", "key", "KEY")


def as_file(raw: str) -> BufferedReader:
    return BufferedReader(BytesIO(raw.encode(errors="surrogatepass")))


def decoded(raw: str) -> Any:
    """As far as Python decodes it; else the text."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def previewed(raw: str) -> None:
    for head in (raw, raw[:PREVIEW_HEAD_CHARACTERS]):
        preview_from([head, '{"role":"user","content":"Hello"}'], 2).first_user_text.encode()


def shown(raw: str) -> None:
    for item in (stored(Raw(raw)), in_part(stored(Raw(raw)))):
        for masked in (item, Masker().item(item), Masker().file_item(item)):
            timeline = build_timeline([masked], starts_session=True, ends_session=True)
            assert [item_id for event in timeline.events for item_id in event.item_ids] == [item.id]
            to_markdown(timeline).encode()
        inspector = Inspector()
        inspector.feed([item])
        inspector.finish()


def shown_in_part(raw: str) -> None:
    many = ",".join([raw] * 120)
    for text in (f'{{"role":"user","content":[{many}]}}', f'{{"type":"x","k":{{"a":[{many}]}},"b":{raw}}}'):
        item = stored(Raw(text))
        for short in (
            *(Masker().shown_item(each) for each in (item, in_part(item))),
            ItemView.unmasked(item).item,
        ):
            timeline = build_timeline([short], starts_session=True, ends_session=True)
            assert [item_id for event in timeline.events for item_id in event.item_ids] == [item.id]
            context = {"timeline": timeline, "record": RECORD}
            render_to_string("sessions/events.html", context, using="jinja2").encode()


def searched(raw: str) -> None:
    str(snippet(raw, SEARCH.visible_pattern())).encode()
    is_shown(raw, SEARCH)
    SEARCH.matches_stored(raw)


def redacted(raw: str) -> None:
    with suppress(NestedTooDeep):
        change_is_checked(raw, without_text(raw, TEXT).raw)
    with suppress(NestedTooDeep):
        change_is_checked(raw, without_all_text(raw).raw)


def change_is_checked(before: str, after: str) -> None:
    keeps_its_place(before, after)
    is_input(after)
    Replay().see(stored(Raw(after)))


def examined(raw: str) -> None:
    item = stored(Raw(raw))
    for each in SEALS.examined([item], at=AT, opens=True):
        purge = Purge(AT)
        purge.learn([each])
        purge.goes([each])
    decrypt_for_rewrite(item, SEALS)
    ROTATION.key_state(item)


def learned_from(raw: str) -> None:
    item = stored(Raw(raw))
    RulesDistiller().read(list(said_in([item])), before=Before())
    evidence_linking.texts_of(item)
    mask_text(raw)
    value = decoded(raw)
    is_from_user(value)
    last_said([value])


def edited_by_hand(raw: str) -> None:
    message = AgentMessage(pk=1, session_id="s", message_data=raw)
    raw_edits.is_sealed(message)
    raw_edits.state_of(message)
    with suppress(raw_edits.NotAnItem):
        raw_edits.check_text(message, raw)


def kept_in_documents(raw: str) -> None:
    for text in (raw, f'{{"messages":[{raw}],"summary":{raw}}}'):
        fragments = list(messages.fragments_of_conversation(text, None))
        list(messages.fragment_of_document(text, None))
        list(messages.said_by_users([text]))
        with suppress(NotReadable):
            messages.conversation_without(text, fragments)
        old, new = documents.as_value(raw), documents.as_value('{"content":"y"}')
        documents.swapped([Swaps.between(old, new)], text)
        documents.with_own_members(raw, '{"content":"y"}')


def kept_elsewhere(raw: str) -> None:
    content = raw.encode(errors="surrogatepass")
    for kept in (content, b'["{}",' + content + b"]"):
        assert all(isinstance(text, str) for text in Items.in_value(StateValue(kept, "")).texts)
        entries = Entries(kept)
        [entries.text(span) for span in entries.spans()]
        with suppress(StoreUnavailable, json.JSONDecodeError):
            decoded_answer(ACCOUNT, kept)
    texts_of({"message_data": [raw]})


def imported(raw: str) -> None:
    value = decoded(raw)
    convert(
        [value, {"role": "assistant", "content": [value], "tool_calls": [value]}, {"role": "tool", "content": value}]
    )
    for text in (raw, f'{{"messages":[{raw}]}}', f"[{raw}]"):
        list(parse_conversations(as_file(text)))
        list(values(as_file(text)))
    entry_of_row(stored(Raw(raw)), "user", library="agno", place="1")
    exported = {"format": "memadmin.memory/1", **dict.fromkeys(("subject", "data", "confidence", "agents"), value)}
    for one in (value, exported, {"user": {"key": value}}, {"results": [value, {"results": [value]}]}):
        for of in ("", *FORMATS):
            list(entries_of(one, "1", of=of))


READERS: Iterable[Callable[[str], None]] = (
    *(previewed, shown, shown_in_part, searched, redacted, examined, learned_from, edited_by_hand),
    *(kept_in_documents, kept_elsewhere, imported),
)


def known(test: Any) -> Any:
    for raw in KNOWN:
        test = example(raw)(test)
    return test


@known
@given(odd_items())
@settings(max_examples=150)
def test_no_reader_of_items_raises_whatever_is_stored(raw: str) -> None:
    for read in READERS:
        read(raw)


@known
@given(odd_items())
@settings(max_examples=150)
def test_an_item_is_redacted_or_refused_and_never_half(raw: str) -> None:
    wanted = TextToRedact.parse("4711")
    try:
        after = without_text(raw, wanted)
        again = without_text(after.raw, wanted)
    except NestedTooDeep:
        assert wanted.is_in(raw)
        return
    assert again.places == 0
    assert wanted.count_in(after.raw) <= after.kept + raw.count("encrypted_content")
    assert (after.raw is raw) == (after.places == 0)
    everything = without_all_text_of(raw)
    if everything is not None:
        assert without_all_text(everything).places == 0


def without_all_text_of(raw: str) -> str | None:
    try:
        return without_all_text(raw).raw
    except NestedTooDeep:
        return None


def test_a_member_that_is_there_twice_loses_both_texts() -> None:
    assert "secret" not in without_all_text('{"role":"user","content":"secret","content":""}').raw


def test_no_number_of_levels_is_between_readable_and_too_deep() -> None:
    """A decoder and the function that reads its result run out of stack at different levels."""
    for levels in (300, 600, *range(900, 960, 4)):
        raw = f'{{"role":"user","content":{"[" * levels}"order 4711"{"]" * levels}}}'
        for read in (redacted, kept_in_documents, kept_elsewhere, imported):
            read(raw)
