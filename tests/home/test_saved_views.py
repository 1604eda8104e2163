"""Saved views of every list: saved, opened, renamed, deleted and the default, each for one person."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from memadmin.home.models import SavedView
from memadmin.home.saved_views import LISTS, MOST_VIEWS, ListWithViews
from sessions_app.models import Subject
from tests.builders import make_store, make_subject
from tests.people import person, signed_in

NAMES = [
    "audit-list",
    "erasure-requests",
    "memories-list",
    "people-list",
    "retention-holds",
    "reviews-list",
    "runs-list",
    "sessions-list",
    "sessions-redactions",
    "sessions-stores",
    "sessions-subjects",
    "sweeps-list",
]
every_list = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def ada(db: None) -> User:
    ada = person("support", "compliance", "administrator", "reviewer")
    ada.is_superuser = True
    ada.save()
    return ada


@pytest.fixture
def desk(ada: User) -> Client:
    # Loads the addresses, with which the lists become known.
    reverse("views:save")
    return signed_in(ada)


def saved(owner: User, name: str = "Mine", of: str = "sessions-stores", **columns: object) -> SavedView:
    return SavedView.objects.create(owner=owner, list_name=of, name=name, **columns)


def a_choice(of: ListWithViews, owner: User) -> str:
    """A query string that changes the list: another order, or the filter that the queue has."""
    form = of.filters(QueryDict(), owner)
    return f"sort={form.sort_options()[0][0]}&columns={form.table.columns[0].name}" if form.table else "risk=any"


def test_every_list_has_them(desk: Client) -> None:
    assert sorted(LISTS) == NAMES


class TestEveryList:
    @every_list
    def test_a_view_is_saved_and_opens_with_one_click(self, desk: Client, ada: User, name: str) -> None:
        of = LISTS[name]
        make_store()
        query = a_choice(of, ada)
        answer = desk.post(reverse("views:save"), {"list": name, "name": "Odd ones", "query": f"{query}&nonsense=1"})
        view = SavedView.objects.get(owner=ada)
        assert answer.headers["Location"] == f"{of.address}?{view.query}"
        assert "nonsense" not in view.query
        text = desk.get(f"{of.address}?view=all").text
        link = re.search(r'<a class="btn btn-sm"\s+href="([^"]*)"\s*>Odd ones', text)
        assert link is not None
        shown = desk.get(link[1].replace("&amp;", "&"))
        assert shown.status_code == 200
        assert re.search(r'aria-current="true">Odd ones', shown.text)

    @every_list
    def test_the_default_opens_the_list_and_all_of_it_stays_reachable(self, desk: Client, ada: User, name: str) -> None:
        of = LISTS[name]
        view = saved(ada, of=name, query=a_choice(of, ada))
        make_store()
        assert desk.get(of.address).status_code == 200
        desk.post(reverse("views:default", args=[view.pk]), {"default": "1"})
        assert desk.get(of.address).headers["Location"] == f"{of.address}?{view.query}"
        assert desk.get(f"{of.address}?view=all").status_code == 200
        desk.post(reverse("views:default", args=[view.pk]), {"default": "0"})
        assert desk.get(of.address).status_code == 200

    @every_list
    def test_what_no_longer_exists_gets_the_sentence_of_every_bad_filter(
        self, desk: Client, ada: User, name: str
    ) -> None:
        make_store()
        saved(ada, of=name, query="sort=gone" if LISTS[name].filters(QueryDict(), ada).table else "risk=gone")
        answer = desk.get(f"{LISTS[name].address}?{SavedView.objects.get().query}")
        assert answer.status_code in (400, 422)
        assert "gone" in answer.text

    @every_list
    def test_it_is_for_those_who_may_see_the_list(self, outsider: Client, name: str) -> None:
        reverse("views:save")
        view = saved(User.objects.get(username="outsider"), of=name, is_default=True, query="sort=x")
        assert outsider.post(reverse("views:save"), {"list": name, "name": "x"}).status_code == 403
        assert outsider.get(LISTS[name].address).status_code == 403
        assert outsider.get(f"{LISTS[name].address}?{view.query}").status_code == 403


class TestViews:
    def test_they_are_ones_own(self, desk: Client, ada: User) -> None:
        theirs = saved(person("administrator"), "Theirs", is_default=True, query="state=down")
        make_store()
        assert "Theirs" not in desk.get("/stores/").text
        for verb in ("rename", "default", "delete"):
            assert desk.post(reverse(f"views:{verb}", args=[theirs.pk]), {"name": "x"}).status_code == 404
        theirs.refresh_from_db()
        assert theirs.name == "Theirs"

    def test_filters_of_one_person_are_left_out(self, desk: Client, ada: User) -> None:
        subject = make_subject("customer_1")
        query = f"subject={subject.pk}&ticket=T-90460&days=7"
        page = desk.get(f"/subjects/?view=all&{query}")
        assert page.status_code == 200
        desk.post(reverse("views:save"), {"list": "sessions-list", "name": "Week", "query": query})
        assert SavedView.objects.get().query == "days=7"
        assert Subject.objects.filter(pk=subject.pk).exists()

    @pytest.mark.parametrize(
        ("name", "query", "sentence"),
        [
            ("", "", "A view needs a name."),
            ("n" * 61, "", "A name has at most 60 characters."),
            ("Odd", "sort=gone", "This list cannot be sorted by “gone”."),
            ("Odd", "name=" + "ä" * 60 + "&columns=" + ",".join(["store"] * 300), ""),
        ],
    )
    def test_refusals_are_sentences(self, desk: Client, name: str, query: str, sentence: str) -> None:
        make_store()
        answer = desk.post(
            reverse("views:save"), {"list": "sessions-stores", "name": name, "query": query}, follow=True
        )
        assert sentence in answer.text
        assert SavedView.objects.count() == (0 if sentence else 1)

    def test_the_same_name_replaces_and_there_are_at_most_twenty(self, desk: Client, ada: User) -> None:
        for number in range(MOST_VIEWS):
            saved(ada, f"view {number}")
        make_store()
        post = {"list": "sessions-stores", "query": "sort=-store"}
        answer = desk.post(reverse("views:save"), post | {"name": "one more"}, follow=True)
        assert "You have 20 views of this list already." in answer.text
        desk.post(reverse("views:save"), post | {"name": "view 3"})
        assert SavedView.objects.get(name="view 3").query == "sort=-store"

    def test_renamed_and_deleted(self, desk: Client, ada: User) -> None:
        view, _other = saved(ada, "First"), saved(ada, "Other")
        make_store()
        desk.post(reverse("views:rename", args=[view.pk]), {"name": "Second"})
        view.refresh_from_db()
        assert view.name == "Second"
        answer = desk.post(reverse("views:rename", args=[view.pk]), {"name": "Other"}, follow=True)
        assert "Another view of this list is named “Other”." in answer.text
        desk.post(reverse("views:delete", args=[view.pk]))
        assert SavedView.objects.get().name == "Other"

    def test_one_default_at_a_time(self, desk: Client, ada: User) -> None:
        first, second = saved(ada, "First"), saved(ada, "Second", query="sort=-store")
        for view in (first, second):
            desk.post(reverse("views:default", args=[view.pk]), {"default": "1"})
        assert list(SavedView.objects.filter(is_default=True)) == [second]

    def test_an_unknown_list_is_refused(self, desk: Client) -> None:
        answer = desk.post(reverse("views:save"), {"list": "gone", "name": "x"}, follow=True)
        assert "This list does not exist. Nothing was saved." in answer.text
        assert not SavedView.objects.exists()

    def test_markup_in_a_name_stays_text(self, desk: Client, ada: User) -> None:
        saved(ada, "<script>alert(1)</script>")
        make_store()
        assert "<script>alert(1)" not in desk.get("/stores/?view=all").text
