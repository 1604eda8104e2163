"""Erasing what stands beside the log: details and names go, every event stays, and the log verifies."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import ProgrammingError, connection, transaction
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memadmin import audit
from memadmin.audit.audit_events import NAME_ERASED
from memadmin.audit.log import erasing, ids
from memadmin.audit.models import AuditActor, AuditDetail, AuditEvent
from memadmin.audit.transparency import anchors, canonical, log_export, verification, verifier
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.audit.transparency.verifier import notes_in
from sessions_app.models import SubjectAlias
from tests.audit.events import as_owner, write_events
from tests.audit.log_pages import NOTED, event, note, words_of
from tests.builders import make_subject
from tests.people import person, signed_in

WORDS = "Customer 70933 called about a refund"


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def compliance(officer: User) -> Client:
    return signed_in(officer)


def with_rows() -> AuditEvent:
    """A verb with words of its own, and the row that it changed with the values before and after."""
    with transaction.atomic():
        verb = audit.record(NOTED, details={"reason": WORDS})
        SubjectAlias.objects.create(subject=make_subject("cust_1"), kind="user", key="customer-70933@example.org")
    return event(verb)


def erase(client: Client, what: str, of: AuditEvent, **sent: str) -> Any:
    return client.post(reverse(f"audit:erase-{what}", args=[of.id]), {"reason": "subject_request"} | sent)


def page_of(client: Client, shown: AuditEvent) -> str:
    return words_of(client.get(shown.get_absolute_url()))


@pytest.mark.django_db
class TestDetails:
    def test_go_with_those_of_the_rows(self, officer: User) -> None:
        verb, other = with_rows(), note(details={"reason": "another matter"})
        count = AuditDetail.objects.count()
        gone = erasing.erase_details(verb, by=officer, reason="subject_request")
        assert gone >= 2
        assert AuditDetail.objects.count() == count - gone
        assert AuditDetail.objects.filter(event__id=other.id).exists()
        kept = " ".join(AuditDetail.objects.values_list("details", flat=True))
        assert "customer" not in kept.lower()

    def test_leave_an_event_that_names_what_was_erased_and_no_words(self, officer: User) -> None:
        verb = with_rows()
        gone = erasing.erase_details(verb, by=officer, reason="mistake")
        told = AuditEvent.objects.get(type="details.erased")
        assert (told.object_kind, told.object_ref, told.reason_code) == ("audit.auditevent", verb.id, "mistake")
        assert told.counters == {"events": gone}
        assert verb.id in told.shown
        assert len(told.shown) == gone
        assert told.commitment is None

    def test_are_erased_once(self, officer: User) -> None:
        verb = with_rows()
        erasing.erase_details(verb, by=officer, reason="mistake")
        with pytest.raises(erasing.NothingLeft, match="Nothing was changed"):
            erasing.erase_details(verb, by=officer, reason="mistake")
        assert AuditEvent.objects.filter(type="details.erased").count() == 1

    def test_leave_nothing_to_guess_from(self, officer: User) -> None:
        verb = note(details={"reason": WORDS})
        kept = AuditDetail.objects.get(event__id=verb.id)
        assert hashlib.sha256(bytes(kept.salt) + kept.details.encode()).digest() == bytes(verb.commitment or b"")
        erasing.erase_details(verb, by=officer, reason="subject_request")
        guesses = [kept.details, WORDS, "cust_1"]
        assert bytes(verb.commitment or b"") not in [hashlib.sha256(guess.encode()).digest() for guess in guesses]
        assert not AuditDetail.objects.filter(salt=kept.salt).exists()

    def test_of_more_events_than_one_names(self, officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(erasing, "MOST_SHOWN", 1)
        verb = with_rows()
        gone = erasing.erase_details(verb, by=officer, reason="mistake")
        assert AuditEvent.objects.filter(type="details.erased").count() == gone
        assert not erasing.details_within(verb).exists()


@pytest.mark.django_db
class TestNames:
    def left(self) -> User:
        clerk = person("support")
        clerk.first_name = "Clerk-70933"
        clerk.save()
        note(by=clerk)
        clerk.is_active = False
        clerk.save()
        return clerk

    def test_go_and_the_events_stay(self, officer: User) -> None:
        clerk = self.left()
        actor = AuditActor.objects.get(user_id=clerk.pk)
        theirs = AuditEvent.objects.filter(actor_ref=actor.ref)
        count = theirs.count()
        erasing.erase_name(actor.ref, by=officer, reason="subject_request")
        assert not AuditActor.objects.filter(ref=actor.ref).exists()
        assert theirs.count() == count
        assert "70933" not in " ".join(AuditActor.objects.values_list("label", flat=True))
        about = AuditEvent.objects.filter(object_ref=ids.ref_of(clerk)).values("id")
        assert not AuditDetail.objects.filter(event_id__in=about).exists(), "values before and after hold the name"

    def test_leave_an_event_that_leads_nowhere_either(self, officer: User) -> None:
        actor = AuditActor.objects.get(user_id=self.left().pk)
        erasing.erase_name(actor.ref, by=officer, reason="not_needed")
        told = AuditEvent.objects.get(type="name.erased")
        assert (told.object_kind, told.object_ref, told.reason_code) == ("audit.auditactor", actor.ref, "not_needed")

    def test_of_who_can_still_sign_in_stay(self, officer: User) -> None:
        note(by=officer)
        actor = AuditActor.objects.get(user_id=officer.pk)
        with pytest.raises(erasing.CannotErase, match="This account is active"):
            erasing.erase_name(actor.ref, by=officer, reason="not_needed")
        assert AuditActor.objects.filter(ref=actor.ref).exists()
        assert not AuditEvent.objects.filter(type="name.erased").exists()

    def test_of_jobs_and_roles_stay(self, officer: User) -> None:
        role = AuditActor.objects.filter(kind="database").first()
        assert role
        with pytest.raises(erasing.CannotErase, match="Only the name of a person"):
            erasing.erase_name(role.ref, by=officer, reason="not_needed")

    def test_are_erased_once(self, officer: User) -> None:
        actor = AuditActor.objects.get(user_id=self.left().pk)
        erasing.erase_name(actor.ref, by=officer, reason="not_needed")
        with pytest.raises(erasing.NothingLeft):
            erasing.erase_name(actor.ref, by=officer, reason="not_needed")


@pytest.mark.django_db
class TestTheDatabase:
    """Nothing goes without an event that says so, whoever calls."""

    @pytest.mark.parametrize("function", ["memadmin_erase_details", "memadmin_erase_name"])
    def test_erases_nothing_that_no_event_tells_of(self, officer: User, function: str) -> None:
        verb = with_rows()
        before = AuditDetail.objects.count(), AuditActor.objects.count()
        for told in (verb.id, ids.uuid7()):
            assert erasing.erased_by(function, told) == 0
        assert (AuditDetail.objects.count(), AuditActor.objects.count()) == before

    def test_erases_of_a_name_only_a_persons(self, officer: User) -> None:
        role = AuditActor.objects.filter(kind="database").first()
        assert role
        told = audit.record(NAME_ERASED, by=officer, target=role, reason_code="mistake")
        assert erasing.erased_by("memadmin_erase_name", told) == 0

    def test_still_refuses_to_change_an_event(self, officer: User) -> None:
        verb = with_rows()
        erasing.erase_details(verb, by=officer, reason="mistake")
        with pytest.raises(ProgrammingError, match="insert-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE audit_event SET commitment = NULL")


@pytest.fixture
def log(empty_log: None, settings: Settings, tmp_path: Path) -> Path:
    """Signed and anchored; gives the anchor's file."""
    anchor: Path = tmp_path / "anchor.jsonl"
    settings.ANCHOR_PATH = anchor
    write_events(5)
    with_rows()
    clerk = person("support")
    note(by=clerk, details={"reason": WORDS})
    User.objects.filter(pk=clerk.pk).update(is_active=False)
    Sequencer().finish()
    anchors.publish()
    return anchor


def verdict_of(anchor: Path) -> tuple[str, str]:
    """What the verifier says of the database, and of an export."""
    lines = list(log_export.as_json_lines(with_details=True))
    from_export = verifier.verify_export(lines, anchors=notes_in(anchor.read_text()))
    return verification.verify(wait=lambda seconds: None).verdict, from_export.verdict


@pytest.mark.django_db(transaction=True)
class TestTheVerifier:
    def test_finds_the_log_as_it_was(self, log: Path) -> None:
        officer = person("compliance")
        assert verdict_of(log) == ("ok", "unsigned")
        leaves = {shown.id: canonical.leaf_of(shown) for shown in AuditEvent.objects.all()}
        for shown in AuditEvent.objects.exclude(commitment=None):
            if erasing.details_within(shown).exists():
                erasing.erase_details(shown, by=officer, reason="subject_request")
        actor = AuditActor.objects.get(kind="person", label="support")
        erasing.erase_name(actor.ref, by=officer, reason="subject_request")
        assert not AuditDetail.objects.exists()
        assert leaves.items() <= {shown.id: canonical.leaf_of(shown) for shown in AuditEvent.objects.all()}.items()
        assert verdict_of(log) == ("ok", "unsigned")
        Sequencer().finish()
        anchors.publish()
        assert verdict_of(log) == ("ok", "ok")

    def test_finds_erasures_among_many_waiting_events(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(verifier, "MOST_FINDINGS", 1)
        officer = person("compliance")
        shown = AuditEvent.objects.exclude(commitment=None).order_by("number")[0]
        assert erasing.erase_details(shown, by=officer, reason="subject_request")
        assert verification.verify(wait=lambda seconds: None).verdict == "ok"

    def test_finds_details_that_went_with_an_account(self, log: Path) -> None:
        User.objects.get(username="support").delete()
        Sequencer().finish()
        anchors.publish()
        assert verdict_of(log) == ("ok", "ok")

    def test_finds_an_event_that_was_changed_instead(self, log: Path) -> None:
        """The broken variant: to forget details by taking the commitment out of the event."""
        as_owner("DELETE FROM audit_detail", "UPDATE audit_event SET commitment = NULL")
        assert verdict_of(log) == ("broken", "broken")


@pytest.mark.django_db
class TestThePage:
    def test_offers_it_to_compliance_alone(self, compliance: Client) -> None:
        verb = note(details={"reason": WORDS})
        auditor = signed_in(person("auditor"))
        assert "Erase details" in page_of(compliance, verb)
        assert "Erase details" not in page_of(auditor, verb)
        assert erase(auditor, "details", verb).status_code == 403
        assert AuditDetail.objects.filter(event__id=verb.id).exists()

    def test_shows_the_date_instead_of_the_details(self, compliance: Client) -> None:
        verb = note(details={"reason": WORDS})
        assert WORDS in page_of(compliance, verb)
        assert erase(compliance, "details", verb).status_code == 302
        text = page_of(compliance, verb)
        assert WORDS not in text
        told = AuditEvent.objects.get(type="details.erased")
        assert re.search(rf"Erased {told.at:%-d %B %Y, %H:%M} UTC *: erasure request", text)
        assert "Erase details" not in text

    def test_shows_the_date_of_a_row_that_went_along(self, compliance: Client) -> None:
        verb = with_rows()
        row = AuditEvent.objects.filter(cause=verb.id, commitment__isnull=False).first()
        assert row
        erase(compliance, "details", verb)
        assert re.search(r"Erased \d+ \w+ \d{4}, \d\d:\d\d UTC", page_of(compliance, row))

    def test_shows_when_a_name_was_erased(self, compliance: Client) -> None:
        clerk = person("support")
        theirs = note(by=clerk)
        User.objects.filter(pk=clerk.pk).update(is_active=False)
        assert erase(compliance, "name", theirs, reason="not_needed").status_code == 302
        assert re.search(r"erased .* \d+ \w+ \d{4}, \d\d:\d\d UTC *: no longer needed", page_of(compliance, theirs))

    def test_says_why_a_name_stays(self, compliance: Client) -> None:
        theirs = note(by=person("support"))
        assert "This account is active" in page_of(compliance, theirs)
        refused = erase(compliance, "name", theirs)
        assert refused.status_code == 409
        assert "This account is active" in words_of(refused)

    def test_says_that_somebody_was_faster(self, compliance: Client, officer: User) -> None:
        verb = note(details={"reason": WORDS})
        erasing.erase_details(verb, by=officer, reason="mistake")
        late = erase(compliance, "details", verb)
        assert late.status_code == 409
        assert "already erased" in words_of(late)

    @pytest.mark.parametrize("reason", ["", "because"])
    def test_asks_for_a_reason(self, compliance: Client, reason: str) -> None:
        verb = note(details={"reason": WORDS})
        assert erase(compliance, "details", verb, reason=reason).status_code == 422
        assert AuditDetail.objects.filter(event__id=verb.id).exists()

    @pytest.mark.parametrize("what", ["details", "name"])
    def test_asks_for_a_fresh_proof(self, compliance: Client, what: str) -> None:
        verb = note(by=person("support"), details={"reason": WORDS})
        User.objects.filter(username="support").update(is_active=False)
        session = compliance.session
        session["confirmed_at"] -= 301
        session.save()
        asked = erase(compliance, what, verb)
        assert asked.status_code == 422
        assert AuditDetail.objects.filter(event__id=verb.id).exists()
        assert AuditActor.objects.filter(ref=verb.actor_ref).exists()
