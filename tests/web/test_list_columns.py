"""Order and columns of every list: the links, the menu, pages in each order, and refused names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import QueryDict
from django.test import Client
from django.utils.timezone import now

from memadmin.accounts.people.forms import PeopleFilters
from memadmin.audit.pages.forms import AuditFilter
from memadmin.erasure.forms import RequestFilters
from memadmin.retention.holds.forms import HoldFilters
from memadmin.retention.sweep.filters import LedgerFilter
from memadmin.runs.forms import FinishedRuns
from memadmin.runs.models import Run
from memadmin.web.filters import FilterForm
from memadmin.web.paging import BadCursor, page_by_key
from memories_app.pages.filters import MemoryFilter
from sessions_app.filters import SessionFilter, StoreFilter, SubjectFilter
from sessions_app.models import Redaction, SessionRecord
from sessions_app.views.redactions import EndedRedactions
from tests.agents import add_items, attach_main_store
from tests.builders import make_store, make_subject
from tests.erasure.builders import make_request
from tests.memories.builders import proposed
from tests.people import person, signed_in
from tests.retention.builders import make_hold

Rows: TypeAlias = "QuerySet[Any]"

LISTS: dict[str, Callable[[QueryDict, User], tuple[FilterForm, Rows]]] = {
    "/sessions/": lambda query, _: (found := SessionFilter(query), found.queryset()),
    "/subjects/": lambda query, _: (found := SubjectFilter(query), found.queryset()),
    "/stores/": lambda query, _: (found := StoreFilter(query), found.queryset()),
    "/memories/": lambda query, _: (found := MemoryFilter(query, is_masked=False), found.memories()),
    "/audit/": lambda query, user: (found := AuditFilter(query, user), found.branches()[0]),
    "/requests/": lambda query, user: (found := RequestFilters(query), found.apply(user)),
    "/holds/": lambda query, _: (found := HoldFilters(query), found.apply()),
    "/runs/": lambda query, _: (found := FinishedRuns(query), found.apply()),
    "/retention/runs/": lambda query, _: (found := LedgerFilter(query), found.queryset()),
    "/redactions/": lambda query, _: (found := EndedRedactions(query), found.apply()),
    "/people/": lambda query, _: (found := PeopleFilters(query), found.apply()),
}

WITHOUT_TABLE = "/holds/"
"""A list whose rows are not cells below a head."""

every_list = pytest.mark.parametrize("address", LISTS)


@pytest.fixture(scope="module")
def seven_of_everything(committed_world: None) -> None:
    """Seven rows of each list, of which several are alike, and somebody with every right."""
    attach_main_store()
    reader = person("support", "compliance", "administrator", "reviewer")
    User.objects.update(is_superuser=True, is_staff=True)
    moment = now()
    for number in range(7):
        subject = make_subject(f"customer_{number}")
        add_items(f"session-{number}", "Good morning")
        session = SessionRecord.objects.get(session_id=f"session-{number}")
        make_store(f"store-{number}", sessions_table="nowhere")
        proposed(f"Likes tea number {number}", subject=subject)
        make_request(subject, by=reader)
        make_hold(session, by=reader)
        Run.objects.create(kind="retention", state="complete", done=number % 2, started_at=moment, ended_at=moment)
        redaction = Run.objects.create(kind="redaction", state="complete", started_at=moment, ended_at=moment)
        Redaction.objects.create(
            record_id=session.pk,
            reason="mistake",
            shown_places=number % 2,
            run=redaction,
            requested_at=moment,
            expires_at=moment,
            ended_at=moment,
        )
        User.objects.create_user(f"colleague-{number}", date_joined=moment)
    SessionRecord.objects.update(last_activity_at=moment)


@pytest.fixture
def reader(seven_of_everything: None, db: None) -> Client:
    """Signed in with every right."""
    return signed_in(User.objects.get(is_superuser=True))


def pages_of(rows: Rows, size: int) -> Iterator[list[object]]:
    """Keys of the rows of each page, forwards."""
    cursor = ""
    while True:
        page = page_by_key(rows, cursor=cursor, size=size, salt="list")
        yield [row.pk for row in page.rows]
        if not page.older:
            return
        cursor = page.older


@every_list
def test_pages_in_each_order_have_each_row_once(reader: Client, address: str) -> None:
    user = User.objects.get(is_superuser=True)
    form, _ = LISTS[address](QueryDict(), user)
    assert form.sort_options()
    for sort, _ in form.sort_options():
        form, rows = LISTS[address](QueryDict(f"sort={sort}"), user)
        assert not form.problems
        assert form.sorted_by == sort
        paged = [key for page in pages_of(rows, 3) for key in page]
        assert paged == [row.pk for row in rows]
        assert len(paged) == len(set(paged)) >= 7


@every_list
def test_each_order_is_marked_in_the_head_and_in_the_menu(reader: Client, address: str) -> None:
    form, _ = LISTS[address](QueryDict(), User.objects.get(is_superuser=True))
    everything = [column.name for column, _ in form.column_options()]
    for sort, _ in form.sort_options():
        text = reader.get(address, {"sort": sort, "columns": everything}).text
        direction = "descending" if sort.startswith("-") else "ascending"
        assert re.findall(r'aria-sort="(\w+)"', text) == ([direction] if address != WITHOUT_TABLE else [])
        assert f'<option value="{sort}" selected>' in re.sub(r"\s+", " ", text)


@every_list
def test_the_chosen_columns_are_shown_and_no_others(reader: Client, address: str) -> None:
    form, _ = LISTS[address](QueryDict(), User.objects.get(is_superuser=True))
    everything = [column.name for column, _ in form.column_options()]
    fixed = [column.name for column, _ in form.column_options() if column.is_fixed]
    for chosen in (fixed, everything):
        text = reader.get(address, {"columns": chosen}).text
        row = re.search(r"<(?:tr|div)[^>]*data-row.*?(?:</tr>|placed)", text, re.DOTALL)
        assert row is not None or (address == WITHOUT_TABLE and chosen == fixed)
        if row and address != WITHOUT_TABLE:
            assert len(re.findall("<td", row[0])) - row[0].count("data-select") == len(chosen)


@every_list
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("sort=secret", "This list cannot be sorted by “secret”."),
        ("sort=--run", "This list cannot be sorted by “--run”."),
        ("columns=secret", "“secret” is not a column of this list."),
    ],
)
def test_an_unknown_order_or_column_is_refused_with_a_sentence(
    reader: Client, address: str, query: str, sentence: str
) -> None:
    answer = reader.get(f"{address}?{query}")
    assert answer.status_code in (400, 422)
    assert sentence in answer.text
    assert "data-row" not in answer.text or address in ("/runs/", "/holds/")


@every_list
def test_order_and_columns_stay_with_filters_and_pages(reader: Client, address: str) -> None:
    form, _ = LISTS[address](QueryDict(), User.objects.get(is_superuser=True))
    sort = next(value for value, _ in form.sort_options() if value != form.table.sort)  # type: ignore[union-attr]
    columns = [column.name for column, _ in form.column_options()]
    query = QueryDict(f"sort={sort}&columns={columns[0]}&columns={columns[1]}")
    form, _ = LISTS[address](query, User.objects.get(is_superuser=True))
    assert form.query_string() == f"sort={sort}&columns={columns[0]},{columns[1]}"
    text = reader.get(address, query.dict() | {"columns": f"{columns[0]},{columns[1]}"}).text
    if "filters" in text and address not in ("/subjects/", "/retention/runs/"):
        assert f'<input type="hidden" name="sort" value="{sort}"' in text


def test_a_cursor_of_one_order_is_refused_in_another(reader: Client) -> None:
    rows = SubjectFilter(QueryDict()).queryset()
    cursor = page_by_key(rows, cursor="", size=3, salt="list").older
    assert page_by_key(rows, cursor=cursor, size=3, salt="list").rows
    with pytest.raises(BadCursor):
        page_by_key(SubjectFilter(QueryDict("sort=seen")).queryset(), cursor=cursor, size=3, salt="list")


@every_list
def test_pages_are_newer_and_older_only_in_the_order_of_the_list(reader: Client, address: str) -> None:
    form, _ = LISTS[address](QueryDict(), User.objects.get(is_superuser=True))
    assert not form.chosen_order
    sort, words = next((value, words) for value, words in form.sort_options() if value != form.table.sort)  # type: ignore[union-attr]
    pager = reader.get(address, {"sort": sort}).text.split('aria-label="Pages"')[1].split("</nav>")[0]
    assert f"sorted by {words}" in " ".join(pager.split())
    assert "Previous" in pager
    assert "Next" in pager
    assert "Newer" not in pager
    assert "Older" not in pager


def test_a_title_sorts_the_other_way_on_the_second_click(reader: Client) -> None:
    link = re.search(r'href="/requests/\?([^"]*)">State', reader.get("/requests/").text)
    assert link is not None
    assert link[1] == "sort=state"
    again = re.search(r'href="/requests/\?([^"]*)">State', reader.get("/requests/?sort=state").text)
    assert again is not None
    assert again[1] == "sort=-state"


def test_a_search_in_messages_keeps_its_own_order(reader: Client) -> None:
    form = SessionFilter(QueryDict("sort=activity"))
    assert form.sorted_by == "activity"
    form.cleaned_data["search"] = object()
    assert form.sorted_by == "-activity"
    assert not form.sort_options()
