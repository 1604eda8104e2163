"""What the head of the log says of its health."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import strip_tags
from django.utils.timezone import now
from procrastinate.contrib.django.models import ProcrastinateJob

from memadmin.audit.jobs import verify_log
from memadmin.audit.models import AuditActor, AuditAnchor, AuditCheckpoint, AuditEvent, AuditVerdict
from memadmin.audit.transparency import anchors, sequencer
from memadmin.web.templatetags.memadmin import ago
from tests.audit.log_pages import address, insert_notes, note, sign_log, words_of
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

NOT_ANCHORED = "Not anchored: the database owner could rewrite this log."


@pytest.fixture
def auditor(db: None) -> Client:
    return signed_in(person("auditor"))


def head(client: Client) -> str:
    words = words_of(client.get(address()))
    return words[words.index("Health of the log") : words.index("Any event")]


def colour(client: Client) -> str:
    text = client.get(address()).text
    return text[: text.index('aria-labelledby="health-title"')].rsplit('class="alert alert-', 1)[1].split('"')[0]


def test_a_log_that_nobody_verified_says_so(auditor: Client) -> None:
    assert "The log has not been verified yet." in head(auditor)


def test_a_log_that_is_whole_says_how_much_was_checked_and_when(auditor: Client) -> None:
    AuditVerdict.objects.create(verdict="ok", size=1_284_113)
    assert "The log is intact. 1,284,113 events match the signed tree, verified just now" in head(auditor)


def test_a_log_that_was_changed_names_what_was_found(auditor: Client) -> None:
    findings: list[Any] = [{"kind": "edited_body", "event": "x", "detail": "Event 7 <b>was</b> edited."}]
    findings += [{"kind": f"finding_{number}", "detail": ""} for number in range(9)]
    AuditVerdict.objects.create(verdict="ok", size=1)
    AuditVerdict.objects.create(verdict="broken", size=7, findings=findings)
    assert "The log was changed." in head(auditor)
    assert "edited body: Event 7 <b>was</b> edited." in head(auditor)
    assert "<b>was</b>" not in auditor.get(address()).text
    assert "and 5 more" in head(auditor)
    assert colour(auditor) == "danger"


@pytest.mark.parametrize(
    ("verdict", "sentence", "level"),
    [
        ("unsigned", "Part of the log is not signed.", "warning"),
        ("epoch", "The log was restored from an older state.", "info"),
    ],
)
def test_a_log_that_is_neither_intact_nor_broken(
    verdict: str, sentence: str, level: str, auditor: Client, settings: Any, tmp_path: Path
) -> None:
    settings.ANCHOR_PATH = tmp_path / "anchors"
    # Also the events of the migrations, which no worker has signed.
    note()
    sign_log()
    anchors.publish()
    findings = [{"kind": verdict, "event": None, "detail": "As it was found."}]
    AuditVerdict.objects.create(verdict=verdict, size=7, findings=findings)
    assert f"{sentence} The verification just now found no other" in head(auditor)
    assert f"{verdict}: As it was found." in head(auditor)
    assert "intact" not in head(auditor)
    assert colour(auditor) == level


def test_without_an_anchor_it_says_who_could_rewrite_it(auditor: Client) -> None:
    AuditVerdict.objects.create(verdict="ok", size=1)
    assert NOT_ANCHORED in head(auditor)
    assert colour(auditor) == "warning"


def test_with_an_anchor_it_says_where_and_when(auditor: Client, settings: Any, tmp_path: Path) -> None:
    settings.ANCHOR_PATH = tmp_path / "anchors"
    note()
    sign_log()
    AuditVerdict.objects.create(verdict="ok", size=1)
    (made,) = anchors.publish()
    assert made.outcome == anchors.ANCHORED
    assert f"Anchored just now to {made.sink}." in head(auditor)
    assert NOT_ANCHORED not in head(auditor)
    assert colour(auditor) == "success"


def test_an_anchor_that_knows_another_log_is_an_alarm(auditor: Client, settings: Any, tmp_path: Path) -> None:
    settings.ANCHOR_PATH = tmp_path / "anchors"
    (place,) = anchors.configured()
    AuditAnchor.objects.create(checkpoint_size=1, sink=place.name, outcome="refused", receipt="It knows another root.")
    assert "It knows another root." in head(auditor)
    assert colour(auditor) == "danger"


def test_a_backlog_is_said(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "oldest_unsequenced", lambda: timedelta(seconds=12))
    assert "Events have waited 12 s for an index in the log" in head(auditor)


def test_what_waits_for_the_next_checkpoint_is_counted(auditor: Client) -> None:
    sign_log()
    size = AuditCheckpoint.objects.latest("size").size
    insert_notes(3)
    # The three, and the event that the log is looked at.
    assert "4 newer events will be covered by a signed checkpoint within a minute" in head(auditor)
    assert f"of {size:,} event" in head(auditor)


def test_health_costs_the_same_for_one_event_and_many(auditor: Client) -> None:
    def queries_for(count: int) -> int:
        insert_notes(count)
        sign_log()
        with CaptureQueriesContext(connection) as queries:
            auditor.get(address(type="note.taken"))
        return len(queries)

    queries_for(1)
    assert queries_for(1) == queries_for(700)


def test_a_part_of_the_page_asks_for_no_health(auditor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memadmin.audit.pages.views.log.health", None)
    assert auditor.get(address(), headers={"HX-Request": "true"}).status_code == 200


class TestVerifyNow:
    def test_a_worker_is_asked_and_the_page_says_what_it_found(self, auditor: Client) -> None:
        insert_notes(3)
        page = auditor.post(reverse("audit:verify"), follow=True)
        assert page.redirect_chain == [(reverse("audit:list"), 302)]
        assert "Verification started." in page.text
        (asked,) = AuditEvent.objects.filter(type="log.verification_requested")
        assert AuditActor.objects.get(ref=asked.actor_ref).label == "auditor"
        assert ProcrastinateJob.objects.filter(task_name="memadmin.audit.jobs.verify_log").count() == 1

    def test_a_second_asker_waits_for_the_first(self, auditor: Client) -> None:
        auditor.post(reverse("audit:verify"))
        page = auditor.post(reverse("audit:verify"), follow=True)
        assert "A verification is already waiting for a worker." in page.text
        assert AuditEvent.objects.filter(type="log.verification_requested").count() == 1

    @pytest.mark.parametrize("role", ["support", "reviewer", "administrator"])
    def test_other_roles_may_not(self, role: str) -> None:
        client = signed_in(person(role))
        assert client.post(reverse("audit:verify")).status_code == 403

    def test_looking_is_not_asking(self, auditor: Client) -> None:
        assert auditor.get(reverse("audit:verify")).status_code == 405


class TestByItself:
    """An old verdict is renewed by a worker, without the page waiting for it."""

    def waiting(self) -> int:
        return ProcrastinateJob.objects.filter(task_name="memadmin.audit.jobs.verify_old_log", status="todo").count()

    @pytest.fixture
    def old(self) -> AuditVerdict:
        return AuditVerdict.objects.create(verdict="ok", size=1, at=now() - timedelta(hours=25))

    def test_a_page_queues_one_verification_and_says_so(self, auditor: Client, old: AuditVerdict) -> None:
        # 25 hours ago is yesterday, or the day before in the first hour of a day.
        assert f"verified {strip_tags(ago(old.at))}" in head(auditor)
        for _ in range(2):
            assert "A verification waits for a worker" in head(auditor)
        assert self.waiting() == 1
        assert 'hx-get="/audit/health/"' in auditor.get(address()).text
        assert not AuditEvent.objects.filter(type="log.verification_requested").exists()

    def test_a_recent_verdict_is_left_alone(self, auditor: Client) -> None:
        AuditVerdict.objects.create(verdict="ok", size=1, at=now() - timedelta(hours=23))
        assert "waits for a worker" not in head(auditor)
        assert self.waiting() == 0

    def test_while_it_runs_the_head_asks_again_and_then_no_more(self, auditor: Client, old: AuditVerdict) -> None:
        auditor.get(address())
        ProcrastinateJob.objects.filter(task_name="memadmin.audit.jobs.verify_old_log").update(status="doing")
        health = auditor.get(reverse("audit:health")).text
        assert "It is being verified now" in health
        assert 'hx-trigger="every 5s"' in health
        ProcrastinateJob.objects.filter(task_name="memadmin.audit.jobs.verify_old_log").delete()
        AuditVerdict.objects.create(verdict="ok", size=7)
        health = auditor.get(reverse("audit:health")).text
        assert "7 events match" in " ".join(health.split())
        assert "hx-get" not in health

    def test_one_that_was_asked_for_is_shown_too(self, auditor: Client) -> None:
        AuditVerdict.objects.create(verdict="ok", size=1)
        auditor.post(reverse("audit:verify"))
        assert "A verification waits for a worker" in head(auditor)
        assert self.waiting() == 0


@pytest.mark.django_db(transaction=True)
def test_the_job_leaves_its_verdict_on_the_page() -> None:
    insert_notes(5)
    sign_log()
    verify_log()
    client = signed_in(person("auditor"))
    assert "The log is intact." in head(client)
