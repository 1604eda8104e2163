"""What a filter of the log shows, taken away."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memadmin import audit
from memadmin.audit.models import AuditActor, AuditCheckpoint, AuditEvent
from memadmin.audit.pages import exporting
from memadmin.audit.transparency.canonical import body_of, leaf_of
from memadmin.audit.transparency.notes import Checkpoint, Note
from memadmin.audit.transparency.tree import includes
from tests.audit.log_pages import (
    NOTED,
    SESSION_SEEN,
    address,
    insert_notes,
    insert_row,
    note,
    seen,
    sign_log,
)
from tests.builders import make_session, make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db


def download(client: Client, name: str, **query: Any) -> str:
    answer = client.get(reverse(f"audit:{name}") + f"?{urlencode(query)}")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


def lines(client: Client, **query: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in download(client, "export-jsonl", **query).splitlines()]


def table(client: Client, **query: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(download(client, "export-csv", **query), newline="")))


class TestEqual:
    def test_an_export_has_what_the_filter_shows_and_no_more(
        self, auditor: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exporting, "BATCH", 7)
        helper, subject = person("support"), make_subject()
        for number in range(20):
            note(by=helper if number % 2 else None, subject=subject if number % 3 else None, shown=[subject])
            audit.record_alone(SESSION_SEEN, target=make_session(), subject=subject)
        insert_row("test.row_updated", subject.pk)
        actor = AuditActor.objects.get(label="support").ref
        for query in (
            {"type": "note.taken"},
            {"type": "reads", "subject": subject.pk},
            {"subject": subject.pk, "type": "changes"},
            {"actor": actor},
            {"type": "outside", "subject": subject.pk},
            {"until": "2025-01-01"},
        ):
            page = auditor.get(address(**query))
            # Looking and taking away are events about the person, too.
            expected = [str(event.id) for event in page.context["page"].rows if not event.type.startswith("log.")]
            found = [line["event"] for line in lines(auditor, **query)]
            assert [event["id"] for event in found if not event["type"].startswith("log.")] == expected, query
            rows = table(auditor, **query)
            assert [row["id"] for row in rows if not row["event"].startswith("log.")] == expected, query

    def test_rows_that_the_page_folds_are_lines_of_their_own(self, auditor: Client) -> None:
        subject = make_subject()
        verb = audit.record_alone(NOTED, subject=subject)
        insert_row("test.row_updated", subject.pk, cause=verb)
        assert seen(auditor.get(address(subject=subject.pk))) == ["note.taken"]
        rows = [row for row in table(auditor, subject=subject.pk) if row["event"].startswith(("note.", "test."))]
        assert [(row["event"], row["part of"]) for row in rows] == [
            ("test.row_updated", str(verb)),
            ("note.taken", ""),
        ]

    def test_all_of_a_long_log_comes_in_batches_of_the_same_cost(self, auditor: Client) -> None:
        insert_notes(2_600)
        with CaptureQueriesContext(connection) as queries:
            assert len(table(auditor, type="note.taken")) == 2_600
        assert "OFFSET" not in str(queries.captured_queries)
        pages = [query["sql"] for query in queries if "LIMIT 501" in query["sql"]]
        assert len(pages) == 6

    @pytest.mark.parametrize("name", ["export-jsonl", "export-csv"])
    def test_a_wrong_filter_gives_a_page_and_no_file(self, auditor: Client, name: str) -> None:
        answer = auditor.get(reverse(f"audit:{name}") + "?since=yesterday")
        assert answer.status_code == 400
        assert "“Since” is not a date" in answer.text
        assert not AuditEvent.objects.filter(type="log.exported").exists()


class TestJsonLines:
    def test_every_signed_line_leads_to_a_signed_root(self, auditor: Client) -> None:
        insert_notes(300)
        sign_log()
        insert_notes(7)
        sign_log()
        note()
        found = lines(auditor, type="note.taken")
        assert len(found) == 308
        assert "path" not in found[0]
        events = {str(event.id): event for event in AuditEvent.objects.all()}
        for line in found[1:]:
            event = events[line["event"]["id"]]
            assert line["event"] == body_of(event)
            checkpoint = Checkpoint.parse(Note.parse(line["checkpoint"]).text)
            path = [bytes.fromhex(sibling) for sibling in line["path"]]
            assert includes(checkpoint.root, checkpoint.size, line["index"], leaf_of(event), path)
        assert AuditCheckpoint.objects.count() == 2

    def test_proofs_of_neighbours_cost_no_query_each(self, auditor: Client) -> None:
        def queries_for(count: int) -> int:
            insert_notes(count)
            sign_log()
            with CaptureQueriesContext(connection) as queries:
                assert len(lines(auditor, type="note.taken")) >= count
            return len(queries)

        queries_for(20)
        assert queries_for(400) - queries_for(20) < 100

    def test_nothing_of_the_details_is_in_it(self, auditor: Client) -> None:
        note(details={"reason": "Said on the phone"})
        assert "phone" not in download(auditor, "export-jsonl")


class TestTable:
    def test_a_line_says_what_the_row_says(self, compliance: Client) -> None:
        session, subject = make_session(), make_subject("cust_48213")
        helper = person("support")
        audit.record_alone(SESSION_SEEN, by=helper, target=session, subject=subject, counters={"items": 56})
        sign_log()
        (row,) = table(compliance, type="test.session_viewed")
        assert row["index"].isdigit()
        assert (row["event"], row["actor kind"], row["actor"]) == ("test.session_viewed", "person", "support")
        assert (row["object"], row["object id"]) == (f"session {str(session.pk)[:8]}", str(session.pk))
        assert (row["subject"], row["counters"], row["outcome"]) == ("cust_48213", "56 items", "succeeded")
        assert row["at (UTC)"].endswith("Z")

    def test_an_auditor_learns_no_name_of_a_subject(self, auditor: Client) -> None:
        audit.record_alone(SESSION_SEEN, target=make_session(), subject=make_subject("cust_48213"))
        assert "cust_48213" not in download(auditor, "export-csv")

    @pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\ufeff=1"])
    def test_a_name_that_begins_like_a_formula_is_text(self, compliance: Client, name: str) -> None:
        audit.record_alone(NOTED, by=audit.Actor("agent", name), subject=make_subject(name))
        (row,) = table(compliance, type="note.taken")
        for column in ("actor", "subject"):
            assert row[column].startswith("'")
            assert row[column].strip("'\t \ufeff") == name.strip("\t \ufeff")

    def test_who_was_erased_stays_nameless(self, auditor: Client) -> None:
        note(by=person("support"))
        AuditActor.objects.filter(label="support").delete()
        (row,) = table(auditor, type="note.taken")
        assert row["actor"].startswith("erased ")


class TestRecorded:
    @pytest.mark.parametrize(("name", "extension"), [("export-jsonl", "jsonl"), ("export-csv", "csv")])
    def test_the_event_is_written_before_the_first_byte(self, auditor: Client, name: str, extension: str) -> None:
        subject = make_subject()
        answer = auditor.get(reverse(f"audit:{name}") + f"?subject={subject.pk}")
        # Nothing was read of the answer yet.
        (export,) = AuditEvent.objects.filter(type="log.exported")
        assert (export.reason_code, export.subject_ref) == (extension, subject.pk)
        assert str(export.id) in b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]

    @pytest.mark.parametrize("name", ["export-jsonl", "export-csv"])
    def test_without_its_event_nothing_leaves(self, auditor: Client, name: str) -> None:
        note()
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE audit_event ADD CONSTRAINT is_full CHECK (false) NOT VALID")
        answer = auditor.get(reverse(f"audit:{name}"))
        assert answer.status_code == 503
        assert b"note.taken" not in answer.content

    @pytest.mark.parametrize("name", ["export-jsonl", "export-csv"])
    def test_it_is_a_file_that_no_browser_keeps_or_guesses_at(self, auditor: Client, name: str) -> None:
        answer = auditor.get(reverse(f"audit:{name}"))
        assert answer["Content-Disposition"].startswith('attachment; filename="audit-log-')
        assert "no-store" in answer["Cache-Control"]
        assert answer["X-Content-Type-Options"] == "nosniff"

    @pytest.mark.parametrize("role", ["support", "reviewer", "administrator"])
    @pytest.mark.parametrize("name", ["export-jsonl", "export-csv"])
    def test_other_roles_may_not(self, role: str, name: str) -> None:
        assert signed_in(person(role)).get(reverse(f"audit:{name}")).status_code == 403


def test_an_unknown_subject_gives_an_empty_table_with_a_head(auditor: Client) -> None:
    # But for the event of the export itself, which is about whoever it was asked for.
    rows = table(auditor, subject=uuid4())
    assert [row["event"] for row in rows] == ["log.exported"]


class TestVerifiable:
    """With the stand-alone verifier, as somebody downloads it, and nothing else of memadmin."""

    @pytest.fixture
    def program(self, auditor: Client, tmp_path: Path) -> Path:
        answer = auditor.get(reverse("audit:verifier"))
        assert answer["Content-Disposition"] == 'attachment; filename="verifier.py"'
        program = tmp_path / "verifier.py"
        program.write_bytes(b"".join(answer.streaming_content))  # type: ignore[attr-defined]
        return program

    def said_of(self, program: Path, content: str) -> subprocess.CompletedProcess[str]:
        file = program.with_name("export.jsonl")
        file.write_text(content)
        return subprocess.run(
            [sys.executable, "-I", program, file], cwd=program.parent, capture_output=True, text=True, check=False
        )

    def test_what_a_filter_shows_is_proved_and_a_changed_letter_is_found(self, auditor: Client, program: Path) -> None:
        insert_notes(300)
        sign_log()
        content = download(auditor, "export-jsonl", type="note.taken")
        assert self.said_of(program, content).returncode == 0
        changed = self.said_of(program, content.replace('"outcome":"succeeded"', '"outcome":"denied"', 1))
        assert changed.returncode == 1, changed.stdout + changed.stderr

    def test_the_whole_log_is_verified_and_a_line_that_is_missing_is_found(
        self, auditor: Client, program: Path
    ) -> None:
        insert_notes(20)
        sign_log()
        content = download(auditor, "export-log")
        # The download is an event as well, after the last checkpoint.
        verified = self.said_of(program, content)
        assert verified.returncode == 3
        assert verified.stdout.startswith(f"UNSIGNED: 1 of {AuditEvent.objects.count()} events have ")
        without_one = [line for line in content.splitlines(keepends=True) if not line.startswith('{"index":7,')]
        assert self.said_of(program, "".join(without_one)).returncode == 1
        (export,) = AuditEvent.objects.filter(reason_code="whole")
        assert export.type == "log.exported"

    def test_a_proof_is_verified(self, auditor: Client, program: Path) -> None:
        noted = note()
        sign_log()
        answer = auditor.get(reverse("audit:proof", args=[noted.id]))
        assert self.said_of(program, answer.text).returncode == 0
