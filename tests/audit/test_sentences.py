"""Sentences and groups of events: every declared type has both."""

from __future__ import annotations

import re
from typing import ClassVar
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from memadmin import audit
from memadmin.audit.log import groups, sentences, types
from memadmin.audit.log.groups import EventGroup, group_of
from memadmin.audit.log.label_registry import Name
from memadmin.audit.log.types import ANY_OBJECT, EventType
from memadmin.audit.models import AuditEvent
from memadmin.audit.pages.forms import AuditFilter
from memadmin.audit.pages.listing import ListedEvent, Who
from memadmin.counting import counted
from sessions_app.audit_events import SESSION_VIEWED, SESSIONS_LISTED
from tests.audit.log_pages import address, texts
from tests.builders import make_session, make_subject
from tests.people import person

# Not the register itself: other tests declare types of their own there.
DOCUMENTED = re.findall(r"^\| `(\w+\.\w+)` \|", (settings.CHECKOUT_DIR / "docs" / "audit-events.md").read_text(), re.M)

ODD = re.compile(r"[{}\[\]]| {2}")
"""What is left of a template that was not filled."""


def declared(name: str) -> EventType:
    event_type = types.known(name)
    assert event_type
    return event_type


def listed(event_type: EventType, *, counters: dict[str, int], has_object: bool) -> ListedEvent:
    """An event of this type by "Ann", of the object "the object" and the subject "the subject"."""
    kind = event_type.object if event_type.object != ANY_OBJECT else "auth.user"
    has_object = has_object and bool(kind)
    event = AuditEvent(
        id=uuid4(),
        type=event_type.name,
        actor_kind="person",
        object_kind=kind if has_object else None,
        object_ref=uuid4() if has_object else None,
        subject_ref=uuid4() if has_object else None,
        counters=counters,
        reason_code=next(iter(event_type.reasons), ""),
        shown=[],
    )
    who = Who(uuid4(), "person", "Ann")
    return ListedEvent(
        event=event,
        who=who,
        role=who,
        object=Name("the object", "/object/") if has_object else None,
        subject=Name("the subject", "/subject/") if has_object else None,
        leaf_index=None,
        is_signed=False,
    )


def test_every_type_has_a_sentence_with_its_own_details() -> None:
    assert len(DOCUMENTED) > 250
    for name in DOCUMENTED:
        event_type = declared(name)
        assert event_type.sentence, f"{name} is declared without a sentence"
        assert not event_type.sentence.endswith(".")
        full = listed(event_type, counters=dict.fromkeys(event_type.counters, 3), has_object=True)
        said = " · ".join([full.sentence.text, *full.notes])
        assert not ODD.search(said), said
        expected = ["Ann", *(counted(3, counter.replace("_", " ")) for counter in event_type.counters)]
        expected += ["the object", "the subject"] if full.object else []
        assert not [words for words in expected if words not in said], (name, said)
        bare = listed(event_type, counters={}, has_object=False)
        said = " · ".join([bare.sentence.text, *bare.notes])
        assert not ODD.search(said), said
        assert "Ann" in said, name


def test_every_type_is_put_into_a_group() -> None:
    assert [name for name in DOCUMENTED if not groups.is_assigned(name)] == []


def test_each_group_has_types_and_each_type_is_in_one() -> None:
    found = {group: {name for name in AuditFilter.types_of(group) if name in DOCUMENTED} for group in EventGroup.values}
    assert all(found.values())
    assert sum(map(len, found.values())) == len(DOCUMENTED)


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("session.viewed", EventGroup.READING),
        ("session.attached", EventGroup.SESSIONS),
        ("log.viewed", EventGroup.LOG),
        ("access.denied", EventGroup.RIGHTS),
        ("access.copy_built", EventGroup.ERASURE),
        ("memory_version.row_updated", EventGroup.MEMORIES),
        ("tea.poured", EventGroup.SETTINGS),
    ],
)
def test_the_group_of_a_type(name: str, group: EventGroup) -> None:
    assert group_of(name) == group


class TestFilling:
    VALUES: ClassVar = {"actor": [Name("Ann")], "object": [Name("session 1", "/1/"), Name(" of "), Name("cust", "/c/")]}

    @pytest.mark.parametrize(
        ("template", "said"),
        [
            ("{actor} read {object}", "Ann read session 1 of cust"),
            ("{actor} read {items} of {object}", "Ann read items of session 1 of cust"),
            ("{actor} viewed the log[ about {subject}]", "Ann viewed the log"),
            ("{actor} waited[: {object}][ for {minutes}]", "Ann waited: session 1 of cust"),
            ("{object} expired", "session 1 of cust expired"),
        ],
    )
    def test_a_part_without_its_value_is_left_out(self, template: str, said: str) -> None:
        assert sentences.filled(template, self.VALUES).text == said

    def test_the_words_before_the_first_name_lead_to_the_event(self) -> None:
        sentence = sentences.filled("{actor} read {object}", self.VALUES)
        assert sentence.lead == "Ann read "
        assert [part.url for part in sentence.rest] == ["/1/", "", "/c/"]

    def test_the_whole_sentence_leads_there_where_it_begins_with_a_name(self) -> None:
        sentence = sentences.filled("{object} expired", self.VALUES)
        assert (sentence.lead, sentence.rest) == ("session 1 of cust expired", ())

    def test_a_name_that_looks_like_a_slot_stays_a_name(self) -> None:
        assert sentences.filled("{actor} left[ {object}]", {"actor": [Name("{object}[x]")]}).text == "{object}[x] left"


def test_a_sentence_may_only_use_what_the_type_has() -> None:
    with pytest.raises(ValueError, match="no value for items"):
        types.declare("test.unsaid", "Only tests declare this.", sentence="{actor} saw {items}")
    assert types.known("test.unsaid") is None


@pytest.mark.django_db
class TestList:
    def test_a_row_is_a_sentence(self, compliance: Client) -> None:
        session, subject = make_session(), make_subject("cust_48213")
        audit.record_alone(
            SESSION_VIEWED,
            by=person("support"),
            target=session,
            subject=subject,
            counters={"items": 1_056},
            reason_code="customer_case",
        )
        (row,) = [text for text in texts(compliance.get(address())) if "session.viewed" in text]
        assert f"support read 1,056 items of session {str(session.pk)[:8]} of cust_48213" in row
        assert "customer support" in row

    def test_an_auditor_reads_the_same_without_names_of_subjects(self, auditor: Client) -> None:
        session, subject = make_session(), make_subject("cust_48213")
        audit.record_alone(SESSION_VIEWED, target=session, subject=subject, counters={"items": 1})
        (row,) = [text for text in texts(auditor.get(address())) if "session.viewed" in text]
        assert f"read 1 item of session {str(session.pk)[:8]} of subject {str(subject.pk)[:8]}" in row

    def test_jobs_and_agents_are_called_so(self, auditor: Client) -> None:
        audit.record_alone(SESSIONS_LISTED, by=audit.Actor("job", "discover"), counters={"sessions": 2})
        assert any(
            "background job discover viewed a list of 2 sessions" in row
            for row in texts(auditor.get(address(jobs="with")))
        )

    def test_the_filter_offers_groups_and_keeps_a_single_type_from_the_address(self, auditor: Client) -> None:
        offered = [value for value, _ in AuditFilter(auditor.get(address()).wsgi_request.GET, User()).offered_types()]
        assert len(offered) == 13
        assert not [value for value in offered if "." in value]
        page = auditor.get(address(type="session.viewed"))
        assert '<option value="session.viewed" selected>' in page.text
