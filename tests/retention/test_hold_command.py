"""`hold`: the verbs of legal holds for scripts."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from memadmin.retention.models import LegalHold
from tests.builders import make_session, make_subject
from tests.people import person

pytestmark = pytest.mark.django_db


def hold(*arguments: str) -> str:
    out = StringIO()
    call_command("hold", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def officer() -> User:
    return person("compliance")


def test_from_placing_to_the_release_by_a_second_person(officer: User) -> None:
    person("compliance", "reviewer")
    subject, record = make_subject("cust_1"), make_session("chat_7")
    assert "No hold is in force." in hold("list")
    by = ["--by", "compliance", "--reason", "Claim"]
    hold("place", "--subject", "cust_1", *by)
    hold("place", "--session", "chat_7", "--review-on", "2030-01-31", *by)
    hold("place", "--label", "dispute", *by)
    listed = json.loads(hold("list", "--json"))["holds"]
    assert [(row["hold"], row["covers"]) for row in listed] == [
        ("H-3", "label dispute"),
        ("H-2", f"session {record.pk}"),
        ("H-1", f"subject {subject.pk}"),
    ]
    assert listed[1]["review_on"] == "2030-01-31"
    assert "release requested" in hold("request-release", "3", *by)
    with pytest.raises(CommandError, match="Another person has to decide"):
        hold("release", "3", "--by", "compliance")
    assert "H-3  released" in hold("release", "3", "--by", "compliance-reviewer")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["place", "--reason", "x", "--by", "compliance"], "Give one of --subject, --session and --label"),
        (["place", "--subject", "a", "--label", "b", "--reason", "x", "--by", "compliance"], "Give one of"),
        (["place", "--label", "a", "--by", "compliance"], "and a --reason"),
        (
            ["place", "--subject", "nobody", "--reason", "x", "--by", "compliance"],
            "There is no subject with the user ID",
        ),
        (["place", "--label", "a", "--reason", "x", "--by", "support"], "has no role that allows this"),
        (["place", "--label", "a", "--reason", "x"], "Give a person with --by."),
        (["place", "--label", "a", "--reason", "x", "--by", "nobody"], "There is no active user nobody."),
        (["release", "7", "--by", "compliance"], "There is no hold H-7."),
        (["release", "--by", "compliance"], "Give the number of a hold."),
        (["request-release", "7", "--by", "compliance"], "A release needs a --reason."),
    ],
)
def test_wrong_input_gets_a_sentence(arguments: list[str], sentence: str, officer: User) -> None:
    person("support")
    with pytest.raises(CommandError, match=sentence):
        hold(*arguments)
    assert not LegalHold.objects.exists()
