"""The data map against what exists: every column and every argument of a job is classified, and names its eraser."""

from __future__ import annotations

import pytest
from django.db import connection
from procrastinate.contrib.django import app

from memadmin.deploy.checks import operation
from memadmin.erasure.data_map import checking
from memadmin.erasure.data_map.erasers import STEPS, Eraser
from memadmin.erasure.data_map.places import (
    FILE,
    ClassificationError,
    DataClass,
    Location,
    Place,
    places,
    read_places,
)
from memadmin.erasure.steps import STEPS as ERASURE_STEPS
from sessions_app.stores import kinds
from tests.agents import attach_main_store, run_sql

WITHOUT_ERASER = {
    "PostgreSQL: planner statistics",
    "SQLite: session_clear_generations",
    "agno: evaluations and metrics",
    "accounts_contentgrant",
    "retention_legalhold",
    "retention_policyversion",
    "runs_run",
    "runs_runlog",
    "sessions_app_sessionstore",
}
"""Places that hold personal data, or ids of ours, that nothing erases yet. A new one needs a step, not a line here."""

ENTRY = """
[[memadmin.shelf]]
columns = ["title"]
what = ["content"]
of = ["subjects"]
erased_by = ["memories"]
kept_for = "a year"
"""


def instructions(*, everywhere: bool = True) -> str:
    return checking.compare(places(), everywhere=everywhere).instructions


@pytest.mark.django_db
def test_every_column_and_every_argument_of_a_job_is_classified() -> None:
    assert instructions() == "", instructions()


@pytest.mark.usefixtures("agent_tables")
def test_every_column_of_the_agents_tables_is_classified() -> None:
    attach_main_store()
    assert {"agent_sessions", "agent_messages"} <= set(checking.existing_columns(everywhere=True))
    assert instructions() == "", instructions()


@pytest.mark.django_db
def test_new_table_is_told_with_what_to_add() -> None:
    run_sql("CREATE TABLE shelf (id bigint, title text)")
    assert '[[memadmin.shelf]]\ncolumns = ["id", "title"]' in instructions()


@pytest.mark.django_db
def test_table_in_another_schema_is_told() -> None:
    run_sql("CREATE SCHEMA ai; CREATE TABLE ai.shelf (title text)")
    assert '[[memadmin.shelf]]\ncolumns = ["title"]' in instructions()


@pytest.mark.django_db
def test_new_column_is_told_with_what_to_add_everywhere() -> None:
    run_sql("ALTER TABLE sessions_app_subject ADD COLUMN nickname text")
    entry = '[[memadmin.sessions_app_subject]]\ncolumns = ["nickname"]'
    assert entry in instructions()
    assert entry in instructions(everywhere=False)
    (finding,) = operation.data_map()
    assert "sessions_app_subject has nickname" in finding.hint


@pytest.mark.django_db
def test_tables_of_others_are_no_finding_of_a_deployment() -> None:
    run_sql("CREATE TABLE shelf (id bigint, title text)")
    assert instructions(everywhere=False) == ""
    assert not list(operation.data_map())


@pytest.mark.django_db
def test_new_job_is_told_with_its_arguments() -> None:
    task = app.task(name="tests.greet")(lambda context, name, *, loud=False: None)
    try:
        assert '[[jobs."tests.greet"]]\ncolumns = ["context", "name", "loud"]' not in instructions()
        assert '[[jobs."tests.greet"]]\ncolumns = ["name", "loud"]' in instructions()
    finally:
        del app.tasks[task.name]
    assert instructions() == ""


@pytest.mark.django_db
def test_column_that_is_gone_is_told() -> None:
    entry = Place(Location.MEMADMIN, "shelf", ("title",), DataClass.NONE)
    found = checking.compare([*places(), entry], everywhere=True)
    assert found.gone == ["memadmin.shelf: title"]
    assert "memadmin.shelf: title" in found.instructions


@pytest.mark.django_db
def test_columns_are_seen_that_the_role_may_not_read() -> None:
    """Of information_schema the web server would see only what it may use."""
    run_sql("CREATE ROLE nobody_in_particular; SET LOCAL ROLE nobody_in_particular")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM information_schema.columns WHERE table_name = 'memadmin_secret'")
        assert cursor.fetchone() == (0,)
    assert "inner_key" in checking.existing_columns(everywhere=False)["memadmin_secret"]


def test_every_kind_of_store_has_places() -> None:
    names = [place.name.lower() for place in places() if place.location is Location.AGENTS]
    words = {
        "sqlalchemy": "agent_messages",
        "remote_sql": "agent_messages",
        "sqlite": "agent_messages",
        "advanced_sqlite": "sqlite: message_structure",
        "redis": "redis:",
        "json_file": "json file:",
        "openai_conversations": "openai:",
        "mongodb": "mongodb:",
        "dapr": "dapr:",
        "agno": "agno:",
        "phidata": "phidata:",
    }
    assert set(words) == set(kinds.kinds())
    for kind, word in words.items():
        assert any(name.startswith(word) for name in names), kind


def test_only_known_places_are_without_an_eraser() -> None:
    assert {place.name for place in places() if place.has_no_eraser} == WITHOUT_ERASER


def test_steps_are_named_by_a_place() -> None:
    named = {eraser for place in places() for eraser in place.erasers}
    assert set(STEPS) <= named


def test_the_steps_of_an_erasure_are_erasers() -> None:
    assert {step.name for step in ERASURE_STEPS} == set(STEPS)


def test_data_of_subjects_is_never_left_to_the_deletion_of_an_account() -> None:
    for place in places():
        if place.is_personal and place.persons == ("subjects",):
            assert not set(place.erasers) <= {Eraser.ACCOUNT, Eraser.NAME_IN_LOG}, place


def test_entry_is_read() -> None:
    (place,) = read_places(ENTRY)
    assert (place.location, place.name, place.columns) == (Location.MEMADMIN, "shelf", ("title",))
    assert (place.is_personal, place.erased_by, place.kept_for) == (True, "erasure of memories", "a year")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('what = ["content"]', "", "says in `what`"),
        ('what = ["content"]', 'class = "none"', "the class none has no"),
        ('what = ["content"]', 'class = "secret"\nwhat = ["content"]', "says in `what`"),
        ('of = ["subjects"]', "", "say in `of`"),
        ('erased_by = ["memories"]', "", "say in `of`"),
        ('kept_for = "a year"', "", "say in `of`"),
        ('["memories"]', '["magic"]', "'magic' is not a valid Eraser"),
        ('["memories"]', '["nothing_yet"]', "say in `note`"),
        ('["memories"]', '["out_of_reach"]', "say in `note`"),
        ('["title"]', "[]", "name its columns"),
        ('["title"]', '["title", "title"]', "classified twice"),
        ("kept_for", "kept", "unknown key kept"),
        ("memadmin.shelf", "attic.shelf", "'attic' is not a valid Location"),
    ],
)
def test_incomplete_entry_is_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(ClassificationError, match=problem):
        list(read_places(ENTRY.replace(old, new, 1)))


def test_file_has_no_line_that_is_too_long_to_review() -> None:
    text = FILE.read_text()
    assert max(len(line) for line in text.splitlines()) < 250
