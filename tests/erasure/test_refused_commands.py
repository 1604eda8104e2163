"""Commands about erasures, and of the log, that are refused: they leave nothing."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.retention.holds.services import place_hold
from tests.builders import make_subject
from tests.people import person

REQUESTED = ("--requested-by", "compliance", "--reason", "consent")


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    return person("compliance", "reviewer")


def changed_by(*arguments: str) -> tuple[str, list[str]]:
    """Why the command is refused, and what it left."""
    before = set(AuditEvent.objects.values_list("pk", flat=True))
    with pytest.raises(CommandError) as refused:
        call_command(*arguments, stdout=io.StringIO(), stderr=io.StringIO())
    left = AuditEvent.objects.exclude(pk__in=before).exclude(outcome="denied").values_list("type", flat=True)
    return str(refused.value), sorted(left)


@pytest.mark.django_db
class TestEraseSubject:
    def test_with_one_person_twice(self, officer: User) -> None:
        make_subject("ada-1")
        said, left = changed_by("erase_subject", "ada-1", *REQUESTED, "--approved-by", "compliance")
        assert (list(SubjectRequest.objects.all()), left) == ([], []), said

    def test_about_the_requester(self, officer: User, second: User) -> None:
        make_subject("compliance")
        said, left = changed_by("erase_subject", "compliance", *REQUESTED, "--approved-by", "compliance-reviewer")
        assert "Nothing was changed" in said
        assert (list(SubjectRequest.objects.all()), left) == ([], [])

    def test_about_the_second_person(self, officer: User, second: User) -> None:
        make_subject("compliance-reviewer")
        said, left = changed_by(
            "erase_subject", "compliance-reviewer", *REQUESTED, "--approved-by", "compliance-reviewer"
        )
        assert "Nothing was changed" in said
        assert (list(SubjectRequest.objects.all()), left) == ([], [])

    def test_of_a_held_subject(self, officer: User, second: User) -> None:
        held = make_subject("held-1")
        place_hold(held, reason="dispute", owner=officer, review_on=(now() + timedelta(days=9)).date(), by=officer)
        said, left = changed_by("erase_subject", "held-1", *REQUESTED, "--approved-by", "compliance-reviewer")
        assert (list(SubjectRequest.objects.all()), left) == ([], []), said


@pytest.mark.django_db
def test_receipt_that_cannot_be_written_is_refused_before_anything_is_erased(
    officer: User, second: User, tmp_path: Path
) -> None:
    make_subject("ada-1")
    given = ("erase_subject", "ada-1", *REQUESTED, "--approved-by", "compliance-reviewer", "--receipt")
    for file in (tmp_path / "none" / "r.json", tmp_path):
        said, left = changed_by(*given, str(file))
        assert "cannot be written. Nothing was changed." in said
        assert (list(SubjectRequest.objects.all()), left) == ([], [])


@pytest.mark.django_db
class TestEraseBatch:
    def test_with_one_person_twice(self, officer: User, tmp_path: Path) -> None:
        make_subject("ada-1")
        (tmp_path / "b.csv").write_text("key,kind,note\nada-1,user,")
        said, left = changed_by("erase_batch", str(tmp_path / "b.csv"), *REQUESTED, "--approved-by", "compliance")
        assert (list(RequestBatch.objects.all()), left) == ([], []), said

    def test_without_a_line_that_is_part_of_it(self, officer: User, second: User, tmp_path: Path) -> None:
        (tmp_path / "b.csv").write_text("key,kind,note\nnobody,user,")
        said, left = changed_by(
            "erase_batch", str(tmp_path / "b.csv"), *REQUESTED, "--approved-by", "compliance-reviewer"
        )
        assert (list(RequestBatch.objects.all()), left) == ([], []), said


@pytest.mark.django_db
def test_export_that_was_not_written_is_not_recorded_as_one(officer: User) -> None:
    said, left = changed_by("export_audit", "/nowhere/x.jsonl")
    assert left == [], said
