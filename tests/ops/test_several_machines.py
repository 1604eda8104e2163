"""Two web servers on one database, each with its own data folder: any request may go to any, and one may die."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.people import invitations, services
from sessions_app.models import SessionRecord
from tests.agents import add_items, attach_main_store, run_sql
from tests.erasure.copies import built_copy
from tests.erasure.faults import with_sessions
from tests.ops.hosts import SHARED, Browser, Machine, address_of, let_in_by_password, machines
from tests.people import person
from tests.standby import running_standby

pytestmark = [pytest.mark.release, pytest.mark.django_db(transaction=True)]

GOOD = "f7Hq2pLw9x"
LIMIT = 3


@pytest.fixture
def officer(agent_tables: None) -> Iterator[User]:
    attach_main_store()
    yield let_in_by_password(person("compliance", "support", "administrator"))
    # Unlike the cache of this process, which is emptied after each test.
    run_sql("DELETE FROM memadmin_cache")


@pytest.fixture
def web(officer: User, tmp_path: Path) -> Iterator[list[Machine]]:
    with machines(tmp_path, web=2, MEMADMIN_READ_LIMIT=str(LIMIT), MEMADMIN_READ_NOTICE=str(LIMIT)) as running:
        yield running


@pytest.fixture
def staff(web: list[Machine], officer: User) -> Browser:
    """Signed in: the form from one machine, sent to the other."""
    browser = Browser([machine.port for machine in web])
    assert browser.sign_in(officer.username, officer.username).status_code == 302
    assert browser.get("/sessions/").status_code == 200
    return browser


def test_each_request_may_go_to_another_machine(
    staff: Browser, web: list[Machine], officer: User, settings: Any, tmp_path: Path
) -> None:
    for number in range(LIMIT + 1):
        add_items(f"s{number}", f"I am lighthouse keeper {number}.")
    records = list(SessionRecord.objects.order_by("session_id"))

    # A form of one, its message on the other; a search made by one, its results on the other.
    assert staff.post(reverse("sessions:label"), {"session": records[0].pk, "label": "urgent"}).status_code == 302
    assert "Label “urgent” added" in staff.get("/sessions/").text
    results = staff.post(reverse("sessions:search"), {"q": "lighthouse keeper"}).headers["location"]
    assert "lighthouse keeper" in staff.get(results).text
    assert records[2].get_absolute_url() in staff.get(f"{results}messages/").text

    # The reading limit counts what was read on both.
    for record in records[:LIMIT]:
        assert staff.get(record.get_absolute_url()).status_code == 200
    for _ in web:
        assert staff.get(records[LIMIT].get_absolute_url()).status_code == 429
        assert staff.get(records[0].get_absolute_url()).status_code == 200

    # A file that a worker wrote; the link to it works once, on whichever.
    settings.ACCESS_COPY_FOLDER = tmp_path / "machine-0" / SHARED
    copy = built_copy(with_sessions("ada", by=officer), by=officer)
    link = staff.post(reverse("erasure:copy-link", args=[copy.request.id]), {}).headers["location"]
    assert ZipFile(io.BytesIO(staff.get(link).content)).namelist()
    for _ in web:
        assert staff.get(link).status_code == 410

    # An invitation: opened on one, accepted on the other, used up on both.
    clerk, _ = services.add_person(
        username="clerk", name="", email="clerk@example.com", roles=[], by=officer, why=audit.Why("staff")
    )
    token, _ = services.invite(clerk, by=officer, is_mailed=False, why=audit.Why("staff"))
    invited = Browser(staff.ports)
    assert invited.get(invitations.path_of(token)).status_code == 200
    password = {"password": GOOD, "repeated": GOOD}
    assert invited.post(invitations.path_of(token), password).status_code == 200
    for _ in web:
        assert invited.get(invitations.path_of(token)).status_code != 200
    assert invited.sign_in("clerk", GOOD).status_code == 302

    # Failed attempts count together: after five the right password is refused, too.
    in_turns = [Browser(staff.ports), Browser(staff.ports[::-1])]
    for turn in range(5):
        assert in_turns[turn % 2].sign_in(officer.username, "wrong").status_code == 422
    for each in in_turns:
        assert each.sign_in(officer.username, officer.username).status_code != 302
    assert set(staff.asked) == set(staff.ports)

    # One dies: who was signed in still is, and a sign-out holds everywhere.
    web[0].kill()
    before = len(staff.asked)
    for _ in range(3):
        assert "lighthouse keeper" in staff.get("/sessions/").text
    assert set(staff.asked[before:]) == {web[1].port}
    assert staff.post("/accounts/logout/", {}).status_code == 302
    assert staff.get("/sessions/").status_code == 302


def test_the_processes_of_two_machines_read_from_a_replica(officer: User, tmp_path: Path) -> None:
    with running_standby() as standby:
        address = address_of(standby.socket_dir)
        with machines(tmp_path, web=2, MEMADMIN_REPLICA_URL=address) as web:
            browser = Browser([machine.port for machine in web])
            assert browser.sign_in(officer.username, officer.username).status_code == 302
            add_items("s1", "I am a lighthouse keeper.")
            record = SessionRecord.objects.get()
            for label in ("urgent", "late", "other", "last"):
                browser.post(reverse("sessions:label"), {"session": record.pk, "label": label})
                page = browser.get(f"/sessions/?label={label}")
                assert "lighthouse keeper" in page.text
            # Their pools keep what they opened.
            connected = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'memadmin'"
            assert standby.run(connected) >= 1
            standby.stop()
            for _ in web:
                assert "lighthouse keeper" in browser.get("/sessions/").text
