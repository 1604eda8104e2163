"""Changes between approval and erasure, and databases that differ from the ledger: nobody else's data is erased."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils.timezone import now

from memadmin.accounts.approvals.services import ChangedSinceAsked, ShownChanged
from memadmin.erasure import locators, services, work
from memadmin.erasure.batches import outcomes
from memadmin.erasure.batches import services as batches
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.models import RequestBatch, SubjectRequest, SuppressionEntry
from memadmin.erasure.preview import Preview, preview_erasure
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.suppression import entering
from memadmin.erasure.suppression.ledger import Ledger, session_digests, subject_digests
from memadmin.retention.models import LegalHold
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memadmin.runs.services import InvalidRunState, cancel_run, resume_run
from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectAlias, SubjectKind
from sessions_app.services.sessions import attach_sessions
from sessions_app.services.subjects import add_alias, merge_subjects, undo_merge
from tests.agents import add_items
from tests.approvals import shown
from tests.erasure.batches import approved_batch, awaiting_batch, csv_of, let_a_day_pass, make_subjects, work_off_batch
from tests.erasure.builders import approved, awaiting, make_request, work_off
from tests.erasure.faults import items_of, with_sessions, work_to_the_end
from tests.people import signed_in
from tests.retention.builders import make_hold, released

State = SubjectRequest.State


@pytest.fixture
def ada(kept_main_store: SessionStore, officer: User) -> Subject:
    return with_sessions("ada-1", by=officer)


def test_subjects_merged_after_the_approval_are_not_erased(ada: Subject, officer: User, second: User) -> None:
    bob = with_sessions("bob-1", by=officer)
    request = approved(ada, by=officer, second=second)
    merge_subjects(bob, ada, by=officer)
    run = work_off(request)
    assert (run.state, items_of("ada-1"), items_of("bob-1")) == (Run.State.STOPPED, 50, 50)
    assert "Subjects were merged" in run.reason


def test_an_undone_merge_after_the_approval_stops_the_erasure(ada: Subject, officer: User, second: User) -> None:
    bob = with_sessions("bob-1", by=officer)
    merge_subjects(bob, ada, by=officer)
    request = approved(ada, by=officer, second=second)
    bob.refresh_from_db()
    undo_merge(bob, by=officer)
    run = work_off(request)
    assert (run.state, items_of("ada-1"), items_of("bob-1")) == (Run.State.STOPPED, 50, 50)


def widen(how: str, ada: Subject, bob: Subject, by: User) -> None:
    """Puts data of another person into the scope of a case, as support staff can."""
    if how == "merge":
        merge_subjects(bob, ada, by=by)
    elif how == "session":
        attach_sessions(SessionRecord.objects.filter(subject=bob)[:1], ada, by=by)
    else:
        add_alias(ada, kind=SubjectKind.USER, key="ada-2", by=by)


WAYS = ("merge", "session", "id")


@pytest.mark.parametrize("how", WAYS)
def test_an_approval_is_of_what_its_page_showed(ada: Subject, officer: User, second: User, how: str) -> None:
    bob = with_sessions("bob-1", by=officer)
    request = awaiting(ada, by=officer)
    read = shown(request)
    widen(how, ada, bob, by=officer)
    with pytest.raises(ShownChanged):
        services.approve_request(request, by=second, typed="ada-1", shown=read)
    page = signed_in(second).get(request.get_absolute_url()).content.decode()
    assert "This has changed since the approval was requested." in page
    assert "Approve erasure" not in page
    with pytest.raises(ChangedSinceAsked):
        services.approve_request(request, by=second, typed="ada-1", shown=shown(request))
    services.reject_request(request, by=second)
    with pytest.raises(services.ExtentChanged):
        services.request_approval(request, by=officer)
    services.make_preview(request, by=officer)
    request = services.request_approval(request, by=officer)
    assert not Run.objects.exists()
    services.approve_request(request, by=second, typed="ada-1", shown=shown(request))


def test_count_made_anew_makes_the_approval_void(ada: Subject, officer: User, second: User) -> None:
    request = awaiting(ada, by=officer)
    read, before = shown(request), request.approval
    services.make_preview(request, by=officer)
    with pytest.raises(services.WrongState):
        services.approve_request(request, by=second, typed="ada-1", shown=read)
    request = services.request_approval(request, by=officer)
    assert before
    before.refresh_from_db()
    assert (before.decision, request.approval == before) == ("void", False)
    with pytest.raises(ShownChanged):
        services.approve_request(request, by=second, typed="ada-1", shown=read)


def test_changed_count_after_the_approval_stops_it(ada: Subject, officer: User, second: User) -> None:
    """As by whoever can write the table: the receipt would state what nobody approved."""
    request = approved(ada, by=officer, second=second)
    SubjectRequest.objects.filter(pk=request.pk).update(preview={**request.preview, "holders": []})
    assert (work_off(request).state, items_of("ada-1")) == (Run.State.STOPPED, 50)


@pytest.mark.parametrize("how", WAYS)
def test_what_widens_a_case_after_the_approval_stops_it(ada: Subject, officer: User, second: User, how: str) -> None:
    bob = with_sessions("bob-1", by=officer)
    request = approved(ada, by=officer, second=second)
    widen(how, ada, bob, by=officer)
    run = work_off(request)
    assert (run.state, items_of("ada-1"), items_of("bob-1")) == (Run.State.STOPPED, 50, 50)
    assert "Nothing was erased. Cancel this request and open another." in run.reason
    services.cancel_request(request, note="widened", by=officer)


@pytest.mark.parametrize("how", WAYS)
def test_an_approval_of_a_batch_is_of_what_its_page_showed(ada: Subject, officer: User, second: User, how: str) -> None:
    bob = with_sessions("bob-1", by=officer)
    batch = awaiting_batch(csv_of("ada-1"), by=officer)
    read = shown(batch)
    widen(how, ada, bob, by=officer)
    with pytest.raises(ShownChanged):
        batches.approve(batch, by=second, typed="erase 1", shown=read)
    page = signed_in(second).get(batch.get_absolute_url()).content.decode()
    assert "This has changed since the approval was requested." in page
    assert "Approve erasure" not in page
    with pytest.raises(ChangedSinceAsked):
        batches.approve(batch, by=second, typed="erase 1", shown=shown(batch))
    batches.reject(batch, by=second)
    with pytest.raises(services.ExtentChanged):
        batches.request_approval(batch, by=officer)
    batch = batches.count_again(batch, by=officer)
    assert batch.preview_run
    carry_on(batch.preview_run)
    batch = batches.request_approval(batch, by=officer)
    batches.approve(batch, by=second, typed="erase 1", shown=shown(batch))


@pytest.mark.parametrize("how", WAYS)
def test_what_widens_a_line_after_the_approval_leaves_it_out(
    ada: Subject, officer: User, second: User, how: str
) -> None:
    """The others go on, and the outcome says which line is left out, and why."""
    bob = with_sessions("bob-1", by=officer)
    make_subjects(["eve-1"])
    batch = approved_batch(csv_of("ada-1", "eve-1"), by=officer, second=second)
    widen(how, ada, bob, by=officer)
    work_off_batch(batch)
    assert (items_of("ada-1"), items_of("bob-1")) == (50, 50)
    assert outcomes.counts(batch) == {LineOutcome.LEFT_OUT: 1, LineOutcome.SCANNING: 1}
    client = signed_in(officer)
    page = client.get(batch.get_absolute_url()).content.decode()
    assert "Subjects, IDs or sessions changed after the count: left out." in page
    let_a_day_pass(batch)
    work_off_batch(batch)
    assert batch.state == RequestBatch.State.COMPLETE_WITH_EXCEPTIONS


def test_what_agents_add_to_a_batch_after_the_approval_is_erased(ada: Subject, officer: User, second: User) -> None:
    batch = approved_batch(csv_of("ada-1"), by=officer, second=second)
    add_items("ada-1:new", "And another session")
    SessionRecord.objects.filter(session_id="ada-1:new").update(subject=ada, subject_source="client")
    work_off_batch(batch)
    assert (outcomes.counts(batch), items_of("ada-1")) == ({LineOutcome.SCANNING: 1}, 0)


def test_changed_count_of_a_batch_after_the_approval_stops_it(ada: Subject, officer: User, second: User) -> None:
    batch = approved_batch(csv_of("ada-1"), by=officer, second=second)
    RequestBatch.objects.filter(pk=batch.pk).update(preview={**batch.preview, "places": {}})
    run = work_off_batch(batch)
    assert (run.state, items_of("ada-1")) == (Run.State.STOPPED, 50)
    assert "Nothing was erased. Cancel this batch." in run.reason


def test_the_time_to_cancel_a_batch_is_not_cut_short(ada: Subject, officer: User, second: User) -> None:
    batch = awaiting_batch(csv_of("ada-1"), by=officer)
    batch = batches.approve(batch, by=second, typed="erase 1", shown=shown(batch))
    assert batch.run
    resume_run(batch.run, by=officer)
    run = work_off_batch(batch)
    assert (run.reason, items_of("ada-1")) == ("The time to cancel is not over.", 50)
    assert batches.cancel(batch, by=officer).is_closed


def test_what_agents_add_after_the_approval_is_erased(ada: Subject, officer: User, second: User) -> None:
    request = approved(ada, by=officer, second=second)
    known = SessionRecord.objects.filter(subject=ada)[0]
    add_items(known.session_id, "One more thing")
    add_items("ada-1:new", "And another session")
    SessionRecord.objects.filter(session_id="ada-1:new").update(subject=ada, subject_source="client")
    work_off(request)
    assert (request.state, items_of("ada-1")) == (State.SCANNING, 0)


def test_a_request_without_a_preview_is_not_approved(ada: Subject, officer: User, second: User) -> None:
    request = awaiting(ada, by=officer)
    SubjectRequest.objects.filter(pk=request.pk).update(previewed_at=None)
    with pytest.raises(services.PreviewNeeded):
        services.approve_request(request, by=second, typed="ada-1", shown=shown(request))
    SubjectRequest.objects.filter(pk=request.pk).update(previewed_at=now() - timedelta(days=400))
    with pytest.raises(services.PreviewNeeded):
        services.approve_request(request, by=second, typed="ada-1", shown=shown(request))
    assert not Run.objects.exists()


def test_an_erasure_in_the_ledger_is_not_cancelled(ada: Subject, ledger: Ledger, officer: User, second: User) -> None:
    request = approved(ada, by=officer, second=second)
    ledger.append(request.id, subjects=subject_digests("user", "ada-1"), sessions=[], after=0)
    assert request.run is not None
    lines = ledger.path.read_text()
    for text in (lines, "not readable\n"):
        ledger.path.write_text(text)
        with pytest.raises(services.AlreadyStarted):
            services.cancel_request(request, note="", by=officer)
        with pytest.raises(InvalidRunState):
            cancel_run(request.run, by=officer)
    ledger.path.write_text(lines)
    request.refresh_from_db()
    assert not request.is_closed
    assert work_off(request).state != Run.State.CANCELLED
    assert items_of("ada-1") == 0


def test_a_replay_leaves_a_subject_that_has_another_id(ada: Subject, ledger: Ledger, officer: User) -> None:
    add_alias(ada, kind=SubjectKind.USER, key="somebody-else", by=officer)
    ledger.append(uuid4(), subjects=subject_digests("user", "ada-1"), sessions=[], after=0)
    with pytest.raises(CommandError, match="Separate them first"):
        call_command("replay_suppressions", stdout=StringIO())
    assert items_of("ada-1") == 50
    assert entering.reason_not_to_serve()
    assert not SuppressionEntry.objects.exists()


def test_a_replay_leaves_a_session_of_somebody_else(ada: Subject, ledger: Ledger, officer: User) -> None:
    with_sessions("bob-1", by=officer)
    sessions = session_digests("main", "bob-1:0")
    ledger.append(uuid4(), subjects=subject_digests("user", "ada-1"), sessions=sessions, after=0)
    with pytest.raises(CommandError, match="Detach it first"):
        call_command("replay_suppressions", stdout=StringIO())
    assert items_of("bob-1") == 50
    assert entering.reason_not_to_serve()


def test_a_worker_does_not_begin_on_a_restored_database(
    ada: Subject, ledger: Ledger, officer: User, second: User
) -> None:
    ledger.append(uuid4(), subjects=subject_digests("user", "bob-1"), sessions=[], after=0)
    run = work_off(approved(ada, by=officer, second=second))
    assert (run.state, items_of("ada-1")) == (Run.State.WAITING, 50)
    assert "restored from a backup" in run.reason
    assert len(ledger.entries()) == 1


def test_a_ledger_that_has_lost_entries_is_noticed(ada: Subject, ledger: Ledger, officer: User, second: User) -> None:
    work_off(approved(ada, by=officer, second=second))
    assert not entering.reason_not_to_serve()
    ledger.path.write_text("")
    entering.check_again()
    assert "has lost 1 of its entries" in entering.reason_not_to_serve()
    bob = with_sessions("bob-1", by=officer)
    run = work_off(approved(bob, by=officer, second=second))
    assert (run.state, items_of("bob-1")) == (Run.State.WAITING, 50)
    assert "has lost 1 of its entries" in run.reason


def test_a_replay_carries_on_with_an_erasure_that_was_paused_then(
    ada: Subject, ledger: Ledger, officer: User, second: User
) -> None:
    request = approved(ada, by=officer, second=second)
    assert request.run is not None
    Run.objects.filter(pk=request.run.pk).update(state=Run.State.STOPPED, reason="A hold.")
    ledger.append(request.id, subjects=subject_digests("user", "ada-1"), sessions=[], after=0)
    with suppress(CommandError):  # its receipt waits for the log
        call_command("replay_suppressions", stdout=StringIO())
    assert items_of("ada-1") == 0


def test_a_hold_that_is_placed_while_it_is_counted_stops_it(
    ada: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = approved(ada, by=officer, second=second)

    def count_and_hold(scope: SubjectScope) -> Preview:
        counted = preview_erasure(scope)
        make_hold(ada, by=officer)
        return counted

    with monkeypatch.context() as patching:
        patching.setattr(work, "preview_erasure", count_and_hold)
        run = work_off(request)
    ada.refresh_from_db()
    assert (run.state, items_of("ada-1"), ada.erased_at, request.is_started) == (Run.State.STOPPED, 50, None, False)
    released(LegalHold.objects.get(), by=officer, second=second)
    resume_run(run, by=officer)
    work_off(request)
    assert (request.state, items_of("ada-1")) == (SubjectRequest.State.SCANNING, 0)


def test_a_request_that_joins_a_running_erasure_keeps_what_is_looked_for(
    ada: Subject, officer: User, second: User
) -> None:
    request = approved(ada, by=officer, second=second)
    work_off(request)
    keys = locators.unseal_keys(request.locators)
    assert keys == [("user", "ada-1")]
    make_request(ada, by=officer, known_as=["Ada Byron"])
    request.refresh_from_db()
    assert locators.unseal_keys(request.locators) == keys
    assert locators.unseal(request.locators) == ["Ada Byron", "ada-1"]


def test_without_a_signing_key_it_waits_for_one_and_says_so(
    ada: Subject, officer: User, second: User, settings: LazySettings
) -> None:
    """Everything is erased by then; only the receipt is missing, and the case is not complete without it."""
    key, kept = settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT
    request = approved(ada, by=officer, second=second)
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    run = work_off(request)
    sentence = "A receipt must be signed. Set MEMADMIN_SIGNING_KEY."
    assert (run.state, run.reason, request.state, request.receipt) == ("waiting", sentence, State.RUNNING, "")
    assert sentence in signed_in(officer).get(request.get_absolute_url()).content.decode()
    assert not SubjectAlias.objects.filter(subject=ada).exists()
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = key, kept
    Run.objects.filter(pk=run.pk).update(retry_at=None)
    work_to_the_end(request)
    assert (request.state, bool(request.receipt)) == (State.COMPLETE, True)


def test_a_clock_that_steps_back_delays_and_starts_nothing_early(
    ada: Subject, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two days: before the start, when only the time to cancel counts, and between the scans."""
    request = awaiting(ada, by=officer)
    request = services.approve_request(
        request, by=second, typed="ada-1", shown=shown(request), window=timedelta(hours=4)
    )

    def carry_on_with_clock(**late: float) -> Run:
        Run.objects.filter(subject_request=request).update(retry_at=None)
        monkeypatch.setattr(work, "now", lambda: now() + timedelta(**late))
        return work_off(request)

    assert carry_on_with_clock(days=-2).reason == "The time to cancel is not over."
    assert (request.state, request.is_started) == (State.APPROVED, False)
    carry_on_with_clock(hours=5)
    assert (request.state, len(request.scans)) == (State.SCANNING, 1)
    run = carry_on_with_clock(days=-2)
    assert run.reason == "Erased. The second scan looks for what agents wrote afterwards."
    assert (request.state, len(request.scans), run.attempts) == (State.SCANNING, 1, 0)
    carry_on_with_clock(days=2)
    assert (request.state, len(request.scans)) == (State.COMPLETE, 2)
