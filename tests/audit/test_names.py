"""Names of people beside the log: events commit to them, and the verifier names what was done to one since.

Each attack is done by whoever owns the tables. What the application does to names gives no finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse

from memadmin import audit
from memadmin.audit.audit_events import NAME_ERASED
from memadmin.audit.log import erasing
from memadmin.audit.models import AuditActor, AuditDetail, AuditEvent
from memadmin.audit.transparency import log_export, verification, verifier
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.audit.transparency.verifier import Report
from memadmin.migrating import sql_text
from tests.agents import run_sql, second_connection, value_of
from tests.audit.events import record_events
from tests.audit.log_pages import words_of
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.people import person, signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_log")]

ONE, OTHER = "(SELECT id FROM auth_user WHERE username = 'anna')", "(SELECT id FROM auth_user WHERE username = 'berta')"
EXCHANGE = """
UPDATE audit_actor SET {columns} FROM audit_actor AS other
WHERE audit_actor.user_id IN ({one}, {other}) AND other.user_id IN ({one}, {other}) AND other.ref <> audit_actor.ref
"""
FREE = "ALTER TABLE audit_actor DROP CONSTRAINT audit_actor_of_user"

ATTACKS: dict[str, tuple[list[str], list[str]]] = {
    "two labels exchanged": (
        [EXCHANGE.format(columns="label = other.label", one=ONE, other=OTHER)],
        ["renamed_actor", "renamed_actor"],
    ),
    "two labels exchanged with their salts": (
        [EXCHANGE.format(columns="label = other.label, salt = other.salt", one=ONE, other=OTHER)],
        ["renamed_actor", "renamed_actor"],
    ),
    "two rows exchanged": (
        [
            FREE,
            EXCHANGE.format(
                columns="label = other.label, salt = other.salt, user_id = other.user_id", one=ONE, other=OTHER
            ),
        ],
        ["renamed_actor", "renamed_actor"],
    ),
    "one label changed": ([f"UPDATE audit_actor SET label = 'carla' WHERE user_id = {ONE}"], ["renamed_actor"]),
    "the account changed": ([f"UPDATE audit_actor SET user_id = 9000000 WHERE user_id = {ONE}"], ["renamed_actor"]),
    "the salt changed": (
        [f"UPDATE audit_actor SET salt = sha256('x') WHERE user_id = {ONE}"],
        ["renamed_actor"],
    ),
    "the salt removed": (
        [
            "ALTER TABLE audit_actor DROP CONSTRAINT audit_actor_is_bound",
            f"UPDATE audit_actor SET salt = NULL WHERE user_id = {ONE}",
        ],
        ["renamed_actor"],
    ),
    "a second row with the same account": (
        [
            FREE,
            "INSERT INTO audit_actor (kind, label, user_id, salt)"
            f" SELECT kind, label, user_id, salt FROM audit_actor WHERE user_id = {ONE}",
        ],
        ["renamed_actor", "renamed_actor"],
    ),
    "a row for an account that has none": (
        ["INSERT INTO audit_actor (kind, label, user_id, salt) VALUES ('person', 'carla', 9000000, sha256('x'))"],
        ["renamed_actor"],
    ),
    "a row deleted": ([f"DELETE FROM audit_actor WHERE user_id = {ONE}"], ["deleted_actor"]),
    "a row made anew": (
        [f"UPDATE audit_actor SET ref = gen_random_uuid() WHERE user_id = {ONE}"],
        ["renamed_actor", "deleted_actor"],
    ),
    "an erased name given to somebody else": (
        [f"UPDATE audit_actor SET ref = (SELECT ref FROM gone), label = 'berta' WHERE user_id = {ONE}"],
        ["renamed_actor", "deleted_actor"],
    ),
}


def verify() -> Report:
    return verification.verify(wait=lambda seconds: None)


def found_in(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


@pytest.fixture
def people() -> tuple[User, User]:
    """Two who have acted, and one whose account is deleted; their log is signed."""
    anna, berta, gone = (User.objects.create(username=name) for name in ("anna", "berta", "dora"))
    for user in (anna, berta, gone):
        record_events(1, by=user)
    run_sql(f"CREATE TABLE gone AS SELECT ref FROM audit_actor WHERE user_id = {gone.pk}")
    gone.delete()
    Sequencer().finish()
    return anna, berta


@pytest.fixture(autouse=True)
def no_table_of_ours() -> Iterator[None]:
    yield
    run_sql("DROP TABLE IF EXISTS gone")


@contextmanager
def attacked(*statements: str) -> Iterator[None]:
    """The table of actors is what it was before, afterwards."""
    run_sql("CREATE TABLE kept AS TABLE audit_actor")
    try:
        run_sql(";".join(statements))
        yield
    finally:
        for statement in (
            "DELETE FROM audit_actor",
            "INSERT INTO audit_actor SELECT * FROM kept",
            "DROP TABLE kept",
            "ALTER TABLE audit_actor DROP CONSTRAINT IF EXISTS audit_actor_of_user",
            "ALTER TABLE audit_actor ADD CONSTRAINT audit_actor_of_user UNIQUE (kind, user_id)",
            "ALTER TABLE audit_actor DROP CONSTRAINT IF EXISTS audit_actor_is_bound",
            "ALTER TABLE audit_actor ADD CONSTRAINT audit_actor_is_bound CHECK (user_id IS NULL OR salt IS NOT NULL)",
        ):
            run_sql(statement)


def test_a_name_that_was_changed_inserted_or_deleted_is_named(people: tuple[User, User]) -> None:
    """The broken variant is a log without events of names: it had no finding for any of these."""
    assert (verify().verdict, verify().findings) == ("unanchored", [])
    wrong = []
    for attack, (statements, expected) in ATTACKS.items():
        with attacked(*statements):
            report = verify()
        if found_in(report) != expected:
            wrong.append((attack, report.findings))
        assert "anna" not in str(report.findings), "a stored finding names nobody"
    assert wrong == []
    assert verify().findings == []


def test_what_the_application_does_to_names_is_no_finding(people: tuple[User, User]) -> None:
    anna, berta = people
    User.objects.filter(pk=anna.pk).update(first_name="Anna", last_name="Alt")
    record_events(2, by=User.objects.get(pk=anna.pk))
    record_events(1, by=User.objects.get(pk=anna.pk))
    ref = AuditActor.objects.get(user_id=anna.pk, label="Anna Alt").ref
    assert AuditEvent.objects.filter(type="actor.named", object_ref=ref).count() == 2, "one for each name"
    assert verify().findings == [], "as long as these events wait"
    Sequencer().finish()
    assert verify().findings == []
    User.objects.filter(pk=anna.pk).update(is_active=False)
    erasing.erase_name(ref, by=person("compliance"), reason="subject_request")
    gone = AuditActor.objects.get(user_id=berta.pk).ref
    berta.delete()
    forgotten = AuditEvent.objects.get(type="actor.forgotten", object_ref=gone)
    assert forgotten.commitment is None
    for _ in range(2):
        assert verify().findings == []
        Sequencer().finish()
    # Whoever is active again gets another id, and so another event.
    record_events(1, by=User.objects.get(pk=anna.pk))
    Sequencer().finish()
    assert verify().findings == []
    lines = list(log_export.as_json_lines(with_details=True))
    assert verifier.verify_export(lines).findings == [], "what a name's event commits to is not among the details"
    assert "Alt" not in "".join(line for line in lines if "actor.named" in line)


def test_names_are_compared_when_many_events_wait(people: tuple[User, User], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MOST_FINDINGS", 1)
    record_events(3)
    people[0].first_name = "Anna"
    record_events(1, by=people[0])
    assert verify().findings == []


def test_the_name_of_a_deleted_account_shows_when_it_was_erased(people: tuple[User, User]) -> None:
    ref = value_of("SELECT ref FROM gone")
    event = AuditEvent.objects.get(type="test.tried", actor_ref=ref)
    erased = erasing.name_erasure(event.actor_ref)
    assert erased
    assert erased.event.type == "actor.forgotten"
    page = words_of(signed_in(person("compliance")).get(event.get_absolute_url()))
    assert f"{erased.at:%-d %B %Y, %H:%M} UTC" in page


def test_the_page_of_a_name_shows_no_records(people: tuple[User, User]) -> None:
    named = AuditEvent.objects.filter(type="actor.named").latest("number")
    page = words_of(signed_in(person("compliance")).get(named.get_absolute_url()))
    assert "audit log recorded the name of" in page
    assert "further record" not in page
    assert "further record" not in words_of(signed_in(person("auditor")).get(reverse("audit:list")))


def test_names_are_no_changes_from_outside(people: tuple[User, User]) -> None:
    assert not AuditEvent.objects.outside().filter(type__startswith="actor.").exists()


def test_naming_somebody_leaves_the_actor_of_a_connection_alone(people: tuple[User, User]) -> None:
    """The event is the log's own: whoever names somebody gets no proof of being the log, or anybody else."""
    with second_connection() as other:
        for before in ("", "person:somebody", "system:audit log"):
            other.execute("SELECT set_config('memadmin.recorder', %s, true)", [before])
            other.execute("SELECT memadmin_actor('person', %s, %s)", [f"Anna{before}", people[0].pk])
            assert other.execute("SELECT current_setting('memadmin.recorder', true)").fetchone() == (before,)
            named = other.execute(
                "SELECT actor_kind, actor_ref = role_ref, cause FROM audit_event ORDER BY number DESC LIMIT 1"
            ).fetchone()
            assert named == ("system", False, None)


def test_an_event_of_a_name_by_anybody_else_changes_nothing(people: tuple[User, User]) -> None:
    """A role that may add events could otherwise make the verifier doubt every name, or excuse what is missing."""
    ref = AuditActor.objects.get(user_id=people[0].pk).ref
    for type_ in ("actor.named", "actor.forgotten"):
        run_sql(
            "INSERT INTO audit_event (type, actor_kind, actor_ref, object_kind, object_ref, shown)"
            f" SELECT '{type_}', actor_kind, actor_ref, object_kind, object_ref, ARRAY[object_ref]"
            f" FROM audit_event WHERE type = 'actor.named' AND object_ref = '{ref}'"
        )
    Sequencer().finish()
    assert verify().findings == []
    with attacked(f"DELETE FROM audit_actor WHERE ref = '{ref}'"):
        assert found_in(verify()) == ["deleted_actor"]


def test_two_who_name_the_same_person_at_once_add_one_event(people: tuple[User, User]) -> None:
    """New, and with a changed name; the second waits for the first, and finds what it wrote."""
    account, refs = 9_000_000, []
    for label in ("somebody", "somebody else"):
        call = f"SELECT memadmin_actor('person', '{label}', {account})"
        with second_connection() as first, somebody_else() as start:
            refs += first.execute(call).fetchall()
            other = start(lambda call=call: value_of(call))
            wait_until_blocked(other, by=first)
            first.commit()
            refs.append((other.result(),))
    assert len(set(refs)) == 1
    assert AuditEvent.objects.filter(type="actor.named", object_ref=refs[0][0]).count() == 2
    assert verify().findings == []


def test_names_from_before_are_bound_by_the_migration(people: tuple[User, User]) -> None:
    """And the verifier says since when, as it cannot know what happened before."""
    with attacked("ALTER TABLE audit_actor DROP CONSTRAINT audit_actor_is_bound", "UPDATE audit_actor SET salt = NULL"):
        with transaction.atomic():
            run_sql(sql_text("audit", "bind_names.sql"))
        Sequencer().finish()
        report = verify()
        assert report.findings == []
        bound = AuditEvent.objects.filter(type="actor.named", reason_code="older_name")
        since = f"{bound.latest('at').at:%Y-%m-%dT%H:%M}"
        assert bound.count() == 2
        assert any(note.startswith(f"The names of 2 people are bound by events since {since}") for note in report.notes)
        run_sql(EXCHANGE.format(columns="label = other.label", one=ONE, other=OTHER))
        assert found_in(verify()) == ["renamed_actor", "renamed_actor"]


def test_details_that_are_recorded_after_the_erasure_of_a_name_stay(people: tuple[User, User]) -> None:
    """Another transaction commits between the event and the deletion. Its details are younger than what explains them:
    in the broken variant they went, too, and the verifier reported them as removed."""
    anna = people[0]
    ref = AuditActor.objects.get(user_id=anna.pk).ref
    with transaction.atomic():
        told = audit.record(NAME_ERASED, target=AuditActor.objects.get(ref=ref), reason_code="mistake")
    run_sql(f"UPDATE auth_user SET email = 'new@example.org' WHERE id = {anna.pk}")
    assert erasing.erased_by("memadmin_erase_name", told) == 1
    kept = AuditDetail.objects.filter(event__type="user.row_updated").get()
    assert "new@example.org" in kept.details
    Sequencer().finish()
    assert verify().findings == []
