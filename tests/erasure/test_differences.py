"""Differences between preview, count at the start, and erasure: shown if they are real, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from memadmin.audit.log.actors import acting, person
from memadmin.erasure.holder_view_models import steps_view
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.scope import scope_of
from memadmin.erasure.steps import step_named
from memadmin.erasure.steps.beside import AuditDetails
from memories_app.models import Signal
from sessions_app.models import SessionRecord, Subject
from tests.agents import attach_main_store
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import with_sessions
from tests.memories.builders import approved as approved_memory


@pytest.fixture
def ada(agent_tables: None, officer: User) -> Subject:
    """A person with data in several places, each of which adds details to the log when it is erased."""
    attach_main_store()
    subject = with_sessions("ada-1", by=officer)
    approved_memory("Prefers tea.", subject=subject)
    Signal.objects.create(subject=subject, kind="preference", text="tea")
    return subject


def differences(request: SubjectRequest) -> dict[str, list[str]]:
    """The differences that the page of the request shows, by holder."""
    return {view.step.holder: view.differences for view in steps_view(request).steps if view.differences}


def details_of(subject: Subject) -> int:
    """Number of details in the audit log that are about this person."""
    step = step_named("audit_details")
    assert isinstance(step, AuditDetails)
    return step.rows(scope_of(subject)).count()


def add_details(subject: Subject, *, by: User) -> None:
    """A change of a governed row by a person, which adds details."""
    with acting(person(by)):
        SessionRecord.objects.filter(subject=subject, session_id="ada-1:0").update(labels=["closed"])


def test_an_erasure_that_nobody_disturbs_erases_what_was_counted(ada: Subject, officer: User, second: User) -> None:
    request = approved(ada, by=officer, second=second)
    before = details_of(ada)
    work_off(request)
    step = ErasureStep.objects.get(request=request, name="audit_details")
    assert (step.erased, step.expected) == (step.expected, before), "details that were there at the start"
    assert not details_of(ada), "nor did those stay that the erasure has added"
    assert differences(request) == {}


def test_details_that_somebody_adds_during_the_erasure_are_a_difference(
    ada: Subject, officer: User, second: User, after_chunk: Callable[[int, Callable[[], object]], None]
) -> None:
    request = approved(ada, by=officer, second=second)
    after_chunk(2, lambda: add_details(ada, by=officer))
    work_off(request)
    assert not details_of(ada)
    assert differences(request) == {"audit_details": ["1 more than counted"]}


def test_what_is_added_after_the_preview_is_a_difference(ada: Subject, officer: User, second: User) -> None:
    request = approved(ada, by=officer, second=second)
    Signal.objects.bulk_create(Signal(subject=ada, kind="preference", text="coffee") for _ in range(4))
    work_off(request)
    assert differences(request)["signals"] == ["counted 5 at the start, 1 in the preview"]
