"""Policies as code: a file is written, read, compared and proposed."""

from __future__ import annotations

import tomllib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies.as_code import FileError, changes_by, drafts_from, exported, literal
from memadmin.retention.policies.drafts import NAMES
from memadmin.retention.policies.services import propose_change
from memadmin.retention.targets.base import all_targets
from tests.builders import make_store
from tests.people import person
from tests.retention.policies import approve_change, in_force

pytestmark = pytest.mark.django_db

ALL: dict[str, Any] = {
    **{"store": "main", "session_pattern": "t-*", "agent": 'the "bot"', "label": "vip\\", "subject_kind": "user"},
    **{"is_encrypted": False, "minimum_count": 13, "minimum_unit": "months", "minimum_reference": "§ 147 AO"},
    "note": "first\nsecond",
}

CLOSED = """
[[policy]]
name = "Closed tickets"
target = "sessions"
label = "closed"
action = "delete"
length = "90 days"
"""


@pytest.fixture
def officer() -> User:
    return person("compliance")


def imported(tmp_path: Path, text: str, **options: object) -> str:
    """Output of the import of a file with this text."""
    file = tmp_path / "policies.toml"
    file.write_text(text)
    out = StringIO()
    call_command("retention_policies", "import", str(file), stdout=out, **{"reason": "quarterly", **options})
    return out.getvalue()


def versions() -> list[tuple[str, int, bool]]:
    """Name, number and whether it awaits approval, of all versions but that of the default policy."""
    return [
        (version.policy.name, version.number, version.awaits_approval)
        for version in PolicyVersion.objects.filter(policy__is_default=False)
        .with_names()
        .order_by("policy__name", "number")
    ]


def test_what_is_exported_changes_nothing_when_it_is_imported(tmp_path: Path) -> None:
    make_store("main")
    in_force("Everything", **ALL)
    in_force("Law", days=None, action="keep", minimum_count=1, minimum_unit="years", minimum_reference="law")
    in_force("Old facts", target="memories", clock="recalled", action="revalidate", kind="fact")
    before = versions()
    file = tmp_path / "all.toml"
    call_command("retention_policies", "export", str(file))
    assert changes_by(drafts_from(file.read_text()), end_others=True) == []
    assert "are those of the file" in imported(tmp_path, file.read_text(), end_others=True, reason="")
    assert versions() == before


def test_a_policy_about_a_store_that_was_removed_can_still_be_imported() -> None:
    in_force("Gone", store="gone")
    assert changes_by(drafts_from(exported())) == []


@given(st.text())
def test_every_text_is_written_so_that_it_is_read_again(text: str) -> None:
    assert tomllib.loads(f"key = {literal(text)}") == {"key": text}


def test_a_new_policy_waits_for_a_second_person(tmp_path: Path, officer: User) -> None:
    out = imported(tmp_path, CLOSED, by=officer.username)
    assert "Closed tickets (new)" in out
    assert "+ After: 90 days" in out
    assert "waits for a second person; 0 rows would go now" in out
    version = PolicyVersion.objects.get(policy__name="Closed tickets")
    assert (version.awaits_approval, version.approval and version.approval.asked_by, version.reason) == (
        True,
        officer,
        "quarterly",
    )
    assert not PolicyVersion.objects.in_force().filter(pk=version.pk).exists()


def test_a_longer_time_is_in_force_at_once_and_a_shorter_one_waits(tmp_path: Path) -> None:
    in_force("Closed tickets", days=90, label="closed")
    assert "in force." in imported(tmp_path, CLOSED.replace("90", "100"))
    out = imported(tmp_path, CLOSED)
    assert "  - After: 100 days\n  + After: 90 days\n" in out
    assert versions() == [("Closed tickets", 1, False), ("Closed tickets", 2, False), ("Closed tickets", 3, True)]


def test_another_note_is_a_change(tmp_path: Path) -> None:
    in_force("Closed tickets", days=90, label="closed", note="before")
    assert "  - Note: before\nClosed tickets: in force." in imported(tmp_path, CLOSED)


def test_the_same_file_again_proposes_nothing_more(tmp_path: Path) -> None:
    imported(tmp_path, CLOSED)
    assert "proposed already" in imported(tmp_path, CLOSED, reason="")
    assert versions() == [("Closed tickets", 1, True)]
    with pytest.raises(CommandError, match='Policy "Closed tickets": A change of Closed tickets is open'):
        imported(tmp_path, CLOSED.replace("90", "30"))


def test_a_dry_run_shows_the_differences_alone(tmp_path: Path) -> None:
    in_force("Closed tickets", days=100, label="closed")
    assert "+ After: 90 days" in imported(tmp_path, CLOSED, dry_run=True, reason="")
    assert versions() == [("Closed tickets", 1, False)]


def test_policies_that_are_not_in_the_file_end_only_on_request(tmp_path: Path, officer: User) -> None:
    in_force("Closed tickets", days=90, label="closed")
    in_force("Other", label="other")
    assert "are those of the file" in imported(tmp_path, CLOSED)
    assert "Other: waits for a second person" in imported(tmp_path, CLOSED, end_others=True)
    assert "proposed already" in imported(tmp_path, CLOSED, end_others=True)
    ending = PolicyVersion.objects.get(policy__name="Other", number=2)
    assert (ending.is_end, ending.awaits_approval) == (True, True)
    # The default policy, which is not in the file either, stays.
    assert RetentionPolicy.objects.get(is_default=True).versions.count() == 1


def test_one_mistake_and_nothing_is_changed(tmp_path: Path, officer: User) -> None:
    blocked = in_force("Blocked", days=90, label="blocked").policy
    sooner = {"target": "sessions", "clock": "created", "action": "delete", "length_count": 1, "length_unit": "days"}
    propose_change(blocked, sooner, reason="", by=officer)
    before = versions()
    with pytest.raises(CommandError, match="open already") as refused:
        imported(tmp_path, CLOSED + CLOSED.replace("Closed tickets", "Blocked"))
    assert str(refused.value).endswith("\nNothing was changed.")
    assert versions() == before


def test_a_change_needs_a_reason_and_who_proposes_a_role(tmp_path: Path) -> None:
    person("support")
    with pytest.raises(CommandError, match="need a --reason"):
        imported(tmp_path, CLOSED, reason=" ")
    for name, sentence in (("support", "no role that allows"), ("nobody", "no active user")):
        with pytest.raises(CommandError, match=sentence):
            imported(tmp_path, CLOSED, by=name)
    assert versions() == []


def test_who_proposed_by_the_command_cannot_approve(tmp_path: Path, officer: User) -> None:
    imported(tmp_path, CLOSED, by=officer.username)
    with pytest.raises(Exception, match="requested this yourself"):
        approve_change(PolicyVersion.objects.awaiting().get(), by=officer)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[policy]\n", "This is no TOML: "),
        ("a = " + "[" * 5000, "This is no TOML: "),
        ("", "There is no table [[policy]] in it."),
        ("[policy]\nname = 'x'", "Policies are tables [[policy]], with two brackets."),
        ("policy = 7", "Policies are tables [[policy]], with two brackets."),
        (f"version = 1\n{CLOSED}", '"version" is unknown: a file has tables [[policy]] alone.'),
        (CLOSED + CLOSED, 'Policy "Closed tickets": there are two of this name.'),
        (CLOSED.replace("label", "labels"), 'Policy "Closed tickets": There is no field "labels".'),
        (CLOSED.replace("90 days", "0 days"), 'Policy "Closed tickets": The length is between 1 and 36,600 days.'),
        ("[[policy]]\naction = 'keep'", "Policy 1: A policy needs a name."),
        (f"[[policy]]\nname = '{'x' * 81}'", "Policy 1: The name has more than 80 characters."),
        ("[[policy]]\nname = 'Everything else'\nlabel = 'x'", 'Policy "Everything else": The default policy is about'),
        (CLOSED.replace('"closed"', "{is = 1}"), 'Policy "Closed tickets": The label is a text.'),
        (CLOSED.replace('"closed"', "2027-01-01"), 'Policy "Closed tickets": The label is a text.'),
    ],
)
def test_each_mistake_is_one_sentence_with_the_policy(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(FileError) as refused:
        drafts_from(text)
    assert any(mistake.startswith(sentence) for mistake in refused.value.mistakes), refused.value.mistakes
    with pytest.raises(CommandError, match=r"policies\.toml: "):
        imported(tmp_path, text)


def test_the_documentation_names_every_target_and_its_example_can_be_imported() -> None:
    text = Path(settings.CHECKOUT_DIR, "docs", "retention-as-code.md").read_text()
    example = text.partition("```toml\n")[2].partition("```")[0]
    assert [draft.name for draft in drafts_from(example)] == ["Closed tickets", "Payment disputes"]
    assert all(f"`{target.name}`" in text for target in all_targets())
    assert all(f"`{name}`" in text for name in NAMES)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"#" * (1024**2 + 1)])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "policies.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError, match=r"policies\.toml: It .*\nNothing was changed."):
        call_command("retention_policies", "import", str(file))
