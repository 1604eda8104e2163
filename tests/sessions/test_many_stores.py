"""Overview, list of stores and filters with very many stores: no store is asked, and no page costs more."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from sessions_app.models import SessionStore
from sessions_app.services import health_checks
from sessions_app.services.health_checks import check_stores
from tests.builders import make_session
from tests.sessions.stores import link, stores

__all__ = ["stores"]

pytestmark = pytest.mark.usefixtures("stores")

STORES, OVERVIEW, SESSIONS = (reverse(f"sessions:{name}") for name in ("stores", "overview", "list"))


def add_stores(first: int, last: int, **columns: Any) -> list[SessionStore]:
    """Attached stores, healthy when they were last checked: every second a file that does not exist (any more)."""
    columns = {"attached_at": now(), "checked_at": now(), "state": "ok", **columns}
    return SessionStore.objects.bulk_create(
        SessionStore(name=f"store-{number:03}", kind=kind, options={"path": f"/nowhere/{number}"}, **columns)
        for number in range(first, last + 1)
        for kind in ["sqlite" if number % 2 else "sqlalchemy"]
    )


def names_on(page: Any) -> list[str]:
    assert page.status_code == 200
    shown = page.context["home"].cards[0].shown if "home" in page.context else page.context
    return [checked.store.name for checked in shown["checked_stores"]]


def test_ten_twenty_and_two_hundred_stores_cost_the_same(administrator: Client, operator: Client) -> None:
    pages = [(administrator, OVERVIEW), (operator, OVERVIEW), (operator, STORES), (operator, SESSIONS)]
    pages.append((operator, f"{STORES}?state=ok&name=store"))

    def queries() -> list[int]:
        counts = []
        for client, address in pages:
            assert client.get(address).status_code == 200
            with CaptureQueriesContext(connection) as asked:
                client.get(address)
            counts.append(len(asked))
        return counts

    for store in add_stores(1, 10)[:3]:
        make_session(store=store)
    few = queries()
    add_stores(11, 20)
    assert queries() == few
    add_stores(21, 200)
    assert queries() == few


def test_each_of_many_stores_is_on_one_page_and_found_by_name_and_state(operator: Client) -> None:
    add_stores(1, 110)
    add_stores(111, 112, state="down", last_check={"problems": [{"code": "x", "sentence": "It is away."}]})
    add_stores(113, 113, state="", checked_at=None)

    seen, address = [], STORES
    while address:
        page = operator.get(address)
        seen += names_on(page)
        onward = re.search(r'href="([^"]*)"\s+rel="next"', page.text)
        address = onward[1].replace("&amp;", "&") if onward else ""

    assert seen == [f"store-{number:03}" for number in range(1, 114)]
    assert "not checked yet" in page.text
    assert link(page, "110 healthy") == f"{STORES}?state=ok"
    away = operator.get(link(page, "2 unreachable"))
    assert names_on(away) == ["store-111", "store-112"]
    assert away.text.count("It is away.") == 2
    assert names_on(operator.get(link(page, "1 not checked yet"))) == ["store-113"]
    assert names_on(operator.get(STORES, {"name": "RE-07"})) == [f"store-07{digit}" for digit in range(10)]
    assert "No store matches" in operator.get(STORES, {"name": "nowhere"}).text
    assert operator.get(STORES, {"state": "odd"}).status_code == 400
    assert operator.get(STORES, {"cursor": "forged"}).status_code == 400


def test_the_overview_shows_stores_with_problems_first(administrator: Client) -> None:
    add_stores(1, 20)
    add_stores(21, 21, state="degraded")
    add_stores(22, 22, state="down")
    add_stores(23, 23, state="", checked_at=None)
    page = administrator.get(OVERVIEW)
    assert names_on(page)[:4] == ["store-022", "store-021", "store-023", "store-001"]
    assert len(names_on(page)) == 8
    assert link(page, "20 healthy") == f"{STORES}?state=ok"


def test_an_old_result_is_marked_with_its_age(operator: Client) -> None:
    add_stores(1, 1, checked_at=now() - timedelta(minutes=9))
    assert "ink-yellow" not in operator.get(STORES).text
    SessionStore.objects.update(checked_at=now() - timedelta(hours=3))
    for address in (STORES, OVERVIEW):
        text = operator.get(address).text
        assert "ink-yellow" in text


def test_the_filter_of_sessions_offers_some_stores_and_takes_each(operator: Client) -> None:
    last = add_stores(1, 120)[-1]
    make_session("of the last", store=last)
    page = operator.get(SESSIONS)
    assert len(re.findall(r'<option value="store-\d+"', page.text)) == 50
    assert link(page, "Other stores") == STORES
    page = operator.get(SESSIONS, {"store": last.name})
    assert [session.record.session_id for session in page.context["sessions"]] == ["of the last"]
    assert f'<option value="{last.name}" selected>' in page.text
    for unknown in ("store-999", "\0", "x" * 100):
        assert operator.get(SESSIONS, {"store": unknown}).status_code == 400


class TestJob:
    def test_it_saves_the_state_of_each_store_whatever_the_others_do(self, operator: Client, tmp_path: Path) -> None:
        add_stores(1, 3)
        SessionStore.objects.create(name="odd", kind="of another version", attached_at=now())
        SessionStore.objects.create(name="files", kind="json_file", options={"path": str(tmp_path)}, attached_at=now())
        assert check_stores() == 5
        states = dict(SessionStore.objects.values_list("name", "state"))
        assert states == {"store-001": "down", "store-002": "down", "store-003": "down", "odd": "down", "files": "ok"}
        assert "There is no file" in operator.get(STORES).text

    def test_the_longest_unchecked_are_first_if_the_time_is_short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(health_checks, "STORES_AT_ONCE", 2)
        add_stores(1, 1, checked_at=now() - timedelta(minutes=1))
        add_stores(2, 2, checked_at=now() - timedelta(minutes=3))
        add_stores(3, 3, checked_at=None)
        add_stores(4, 4, checked_at=now() - timedelta(minutes=2))
        before = now()
        assert check_stores(seconds=0) == 2
        checked = SessionStore.objects.filter(checked_at__gt=before)
        assert [store.name for store in checked.by_name()] == ["store-002", "store-003"]
        assert check_stores() == 4


def test_an_outsider_checks_no_store(outsider: Client) -> None:
    add_stores(1, 1)
    assert outsider.post(reverse("sessions:store-check", args=["store-001"])).status_code == 403
