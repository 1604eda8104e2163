"""One event of the log."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memadmin import audit
from memadmin.audit.models import AuditActor, AuditCheckpoint, AuditDetail, AuditEvent, AuditLeaf
from memadmin.audit.pages.views.event import steps_of
from memadmin.audit.transparency import anchors
from memadmin.audit.transparency.canonical import leaf_of
from memadmin.audit.transparency.notes import Checkpoint, Note
from memadmin.audit.transparency.proofs import proof_of
from memadmin.audit.transparency.tree import includes, node_hash
from tests.audit.log_pages import (
    NOTED,
    SESSION_SEEN,
    SUBJECT_CHANGED,
    event,
    insert_notes,
    insert_row,
    link,
    note,
    sign_log,
    words_of,
)
from tests.builders import make_session, make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db


def opened(client: Client, which: AuditEvent) -> Any:
    page = client.get(which.get_absolute_url())
    assert page.status_code == 200
    return page


class TestEvent:
    def test_it_says_everything_that_is_recorded(self, compliance: Client) -> None:
        session, subject = make_session(), make_subject("cust_48213")
        seen = event(
            audit.record_alone(
                SESSION_SEEN, by=person("support"), target=session, subject=subject, counters={"items": 56}
            )
        )
        page = opened(compliance, seen)
        role = AuditActor.objects.get(ref=seen.role_ref).label
        for words in (
            "test.session_viewed",
            "Only tests view this.",
            "support",
            role,
            str(session.pk),
            "cust_48213",
            str(subject.pk),
            "56 items",
            str(seen.id),
            f"{seen.at:%B %Y, %H:%M:%S}",
        ):
            assert words in words_of(page)
        assert link(page, f"session {str(session.pk)[:8]}") == session.get_absolute_url()

    def test_an_auditor_learns_no_name_of_a_subject(self, auditor: Client) -> None:
        subject = make_subject("cust_48213")
        changed = event(audit.record_alone(SUBJECT_CHANGED, target=subject, shown=[subject]))
        page = opened(auditor, changed)
        assert "cust_48213" not in page.text
        assert subject.get_absolute_url() not in page.text

    def test_what_was_shown_in_one_go_is_listed_up_to_a_limit(self, compliance: Client) -> None:
        sessions = [make_session() for _ in range(3)]
        page = opened(compliance, note(shown=[*sessions, *(uuid4() for _ in range(60))]))
        assert "63 further records" in words_of(page)
        assert "and 13 more" in words_of(page)
        listed = opened(compliance, note(shown=sessions)).text
        assert all(session.get_absolute_url() in listed for session in sessions)

    def test_a_row_leads_to_its_verb_and_the_verb_to_its_rows(self, auditor: Client) -> None:
        subject = make_subject()
        verb = event(audit.record_alone(SUBJECT_CHANGED, target=subject))
        row = insert_row("test.row_updated", subject.pk, cause=verb.id)
        assert link(opened(auditor, verb), "test.row_updated") == row.get_absolute_url()
        assert link(opened(auditor, row), "test.subject_merged") == verb.get_absolute_url()

    def test_what_raw_sql_changed_is_named_so(self, auditor: Client) -> None:
        row = insert_row("test.row_updated", make_subject().pk)
        role = AuditActor.objects.get(ref=row.role_ref).label
        assert f"Changed outside the console by database role {role}" in words_of(opened(auditor, row))

    def test_what_the_same_actor_did_before_and_after_is_near(self, auditor: Client) -> None:
        by, other = person("support"), person("reviewer")
        first = note(by=by)
        note(by=other)
        middle, last = note(by=by), note(by=by)
        page = opened(auditor, middle)
        around = page.text[page.text.index("around-title") :]
        assert first.get_absolute_url() in around
        assert last.get_absolute_url() in around
        assert len(re.findall(r"just (before|after)", around)) == 2
        assert "just before" not in opened(auditor, first).text

    def test_it_tells_how_far_it_is_signed(self, auditor: Client) -> None:
        noted = note()
        assert "unsequenced" in words_of(opened(auditor, noted))
        sign_log()
        words = words_of(opened(auditor, noted))
        assert "checkpoint of" in words
        assert not re.search("unsigned|waiting to be signed", words, re.IGNORECASE)

    def test_opening_it_is_an_event(self, auditor: Client) -> None:
        subject = make_subject()
        noted = note(subject=subject)
        opened(auditor, noted)
        (view,) = AuditEvent.objects.filter(type="event.viewed")
        assert (view.object_kind, view.object_ref, view.subject_ref) == ("audit.auditevent", noted.id, subject.pk)

    def test_without_that_event_nothing_is_shown(self, auditor: Client) -> None:
        noted = note(details={"reason": "Said on the phone"})
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE audit_event ADD CONSTRAINT is_full CHECK (false) NOT VALID")
        page = auditor.get(noted.get_absolute_url())
        assert page.status_code == 503
        assert "phone" not in page.text

    def test_one_row_and_many_cost_the_same(self, compliance: Client) -> None:
        def queries_for(rows: int, shown: int) -> int:
            subject = make_subject()
            verb = event(
                audit.record_alone(SUBJECT_CHANGED, target=subject, shown=[make_session() for _ in range(shown)])
            )
            for _ in range(rows):
                insert_row("test.row_updated", subject.pk, cause=verb.id)
            with CaptureQueriesContext(connection) as queries:
                opened(compliance, verb)
            return len(queries)

        queries_for(1, 1)
        assert queries_for(2, 2) == queries_for(60, 40)


class TestProof:
    @pytest.fixture
    def signed(self, db: None) -> AuditEvent:
        insert_notes(11)
        noted = note()
        insert_notes(8)
        sign_log()
        return noted

    def test_its_steps_lead_from_the_leaf_to_the_root_that_was_signed(
        self, auditor: Client, signed: AuditEvent
    ) -> None:
        page = opened(auditor, signed)
        assert "matches the signed root" in words_of(page)
        assert page.context["steps"]
        hash_ = leaf_of(signed)
        for step in page.context["steps"]:
            sibling = bytes.fromhex(step.hash)
            hash_ = node_hash(sibling, hash_) if step.side == "left" else node_hash(hash_, sibling)
        assert page.context["root"] == hash_.hex() == AuditCheckpoint.objects.latest("size").root.hex()
        for step in page.context["steps"]:
            assert step.hash in page.text

    def test_every_place_of_a_tree_has_its_steps(self, auditor: Client) -> None:
        insert_notes(13)
        sign_log()
        root = AuditCheckpoint.objects.latest("size").root
        for noted in AuditEvent.objects.filter(type="note.taken"):
            hash_ = leaf_of(noted)
            for step in steps_of(proof_of(noted)):
                sibling = bytes.fromhex(step.hash)
                hash_ = node_hash(sibling, hash_) if step.side == "left" else node_hash(hash_, sibling)
            assert hash_ == bytes(root)

    def test_it_says_in_words_what_that_means(self, auditor: Client, signed: AuditEvent) -> None:
        size = AuditCheckpoint.objects.latest("size").size
        index = AuditLeaf.objects.get(event_number=signed.number).index
        words = words_of(opened(auditor, signed))
        assert f"This event is number {index + 1} of the {size} covered by one signature." in words
        assert "Any later change would produce a different root" in words

    def test_an_event_that_was_changed_leads_elsewhere(self, auditor: Client, signed: AuditEvent) -> None:
        with connection.cursor() as cursor:
            # As the owner of the tables could.
            cursor.execute("ALTER TABLE audit_event DISABLE TRIGGER USER")
            cursor.execute("UPDATE audit_event SET outcome = 'denied' WHERE number = %s", [signed.number])
            cursor.execute("ALTER TABLE audit_event ENABLE TRIGGER USER")
        words = words_of(opened(auditor, signed))
        assert "does not match" in words
        assert "the event or the tree was changed" in words
        assert "matches the signed root" not in words

    def test_one_that_is_too_new_says_what_it_waits_for(self, auditor: Client) -> None:
        page = opened(auditor, note())
        assert "this takes a few seconds" in words_of(page)
        assert "proof.json" not in page.text

    def test_it_is_anchored_where_a_place_outside_knows_its_checkpoint(
        self, auditor: Client, signed: AuditEvent, settings: Any, tmp_path: Path
    ) -> None:
        words = words_of(opened(auditor, signed))
        assert "Not anchored the database owner could rewrite this event" in words
        settings.ANCHOR_PATH = tmp_path / "anchors"
        (made,) = anchors.publish()
        words = words_of(opened(auditor, signed))
        assert f"Anchored {made.sink}" in words
        assert "signed anchored" in words

    def test_the_command_on_the_page_is_whole(self, auditor: Client, signed: AuditEvent, tmp_path: Path) -> None:
        """It is run as it stands there, with what the page links to."""
        page = opened(auditor, signed)
        (command,) = re.findall(r'id="check-command"[^>]*>([^<]*)</pre>', page.text)
        for address in (link(page, "proof file"), link(page, "the verifier")):
            answer: Any = auditor.get(address)
            name = re.findall('filename="(.*)"', answer["Content-Disposition"])[0]
            (tmp_path / name).write_bytes(b"".join(answer))
        python = Path(sys.executable)
        ran = subprocess.run(
            ["/bin/sh", "-c", unescape(command)],
            cwd=tmp_path,
            env={"PATH": f"{python.parent}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout.startswith("UNANCHORED")

    def test_the_file_proves_it_without_the_rest(self, auditor: Client, signed: AuditEvent) -> None:
        answer = auditor.get(reverse("audit:proof", args=[signed.id]))
        assert answer["Content-Disposition"] == f'attachment; filename="event-{signed.id}.json"'
        assert "no-store" in answer["Cache-Control"]
        proof = answer.json()
        assert proof["event"]["id"] == str(signed.id)
        checkpoint = Checkpoint.parse(Note.parse(proof["checkpoint"]).text)
        path = [bytes.fromhex(sibling) for sibling in proof["path"]]
        assert includes(checkpoint.root, checkpoint.size, proof["index"], leaf_of(signed), path)
        (taken,) = AuditEvent.objects.filter(type="event.proof_exported")
        assert taken.object_ref == signed.id

    def test_the_file_of_one_that_is_too_new_leads_back_and_says_why(self, auditor: Client) -> None:
        noted = note()
        page = auditor.get(reverse("audit:proof", args=[noted.id]), follow=True)
        assert page.redirect_chain == [(noted.get_absolute_url(), 302)]
        assert "has no index in the log yet" in page.text

    @pytest.mark.parametrize("role", ["support", "reviewer", "administrator"])
    def test_other_roles_get_no_file(self, role: str, signed: AuditEvent) -> None:
        assert signed_in(person(role)).get(reverse("audit:proof", args=[signed.id])).status_code == 403

    def test_there_is_no_file_of_an_unknown_event(self, auditor: Client) -> None:
        assert auditor.get(reverse("audit:proof", args=[uuid4()])).status_code == 404


class TestDetails:
    def test_a_reason_is_shown_and_checked_against_the_event(self, auditor: Client) -> None:
        page = opened(auditor, note(details={"reason": "Customer on the line <b>", "asked_twice": True}))
        assert "Customer on the line &lt;b&gt;" in page.text
        assert "Asked twice true" in words_of(page)
        assert "matches" in words_of(page)

    def test_details_that_were_changed_are_found_out(self, auditor: Client) -> None:
        noted = note(details={"reason": "one"})
        AuditDetail.objects.update(details='{"reason":"another"}')
        assert "does not match: the details changed after the event" in words_of(opened(auditor, noted))

    @pytest.mark.parametrize("broken", ["", "{", "[1]", '"x"'])
    def test_details_that_are_none_are_shown_as_text(self, auditor: Client, broken: str) -> None:
        noted = note(details={"reason": "one"})
        AuditDetail.objects.update(details=broken)
        assert "does not match" in words_of(opened(auditor, noted))

    def test_erased_details_are_said_to_be_erased(self, auditor: Client) -> None:
        noted = note(details={"reason": "Customer on the line"})
        AuditDetail.objects.all().delete()
        words = words_of(opened(auditor, noted))
        assert "Erased." in words
        assert bytes(noted.commitment or b"").hex() in words
        assert "Customer" not in words

    def test_an_event_without_details_has_no_such_part(self, auditor: Client) -> None:
        assert "kept beside the event" not in opened(auditor, note()).text

    @pytest.mark.parametrize(("role", "sees"), [("auditor", False), ("compliance", True)])
    def test_values_of_a_subject_are_for_those_who_may_see_subjects(self, role: str, sees: bool) -> None:
        details = {"rows": [{"key": "1", "before": {"key": "cust_48213"}, "after": {"key": "cust_7"}}]}
        changed = event(audit.record_alone(SUBJECT_CHANGED, target=make_subject(), details=details))
        page = opened(signed_in(person(role)), changed)
        assert ("cust_48213" in page.text) is sees
        assert ("compliance staff can see them" in page.text) is not sees


class TestAccess:
    @pytest.mark.parametrize("role", ["support", "reviewer", "administrator"])
    def test_other_roles_may_not_open_it(self, role: str) -> None:
        assert signed_in(person(role)).get(note().get_absolute_url()).status_code == 403

    def test_an_unknown_event_is_not_found(self, auditor: Client) -> None:
        assert auditor.get(reverse("audit:event", args=[uuid4()])).status_code == 404

    def test_the_wrong_method_is_refused(self, auditor: Client) -> None:
        assert auditor.post(note().get_absolute_url()).status_code == 405

    def test_the_browser_keeps_no_copy(self, auditor: Client) -> None:
        assert "no-store" in opened(auditor, note())["Cache-Control"]


def test_a_type_that_is_not_declared_any_more_has_no_meaning_and_a_page(auditor: Client) -> None:
    old = insert_row("tea.row_updated", uuid4())
    assert NOTED.meaning not in opened(auditor, old).text
