"""Help inside the product: areas, terms, and who may do what."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.template import Context, Template
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from memadmin.accounts.roles import ROLES
from memadmin.web import navigation
from memadmin.web.help.rights import rights_of
from memadmin.web.help.texts import UnknownTerm, area_at, area_from, areas, glossary, term_named, terms_by_name
from memadmin.web.help.tours import tours
from tests.people import person, signed_in

USED = re.compile(r'\{%\s*term\s+"([^"]*)"')
"""The name of a term in a template."""

OURS = {"session record", "subject", "finding", "fence", "gate", "claim", "checkpoint"}
"""Words that nobody knows from elsewhere: each is explained on some page."""

WITHOUT_HELP = ("healthz", "readyz", "metrics", "policy-report/", "palette/", "notifications/", "help/")
"""Addresses of machines, parts of every page, and the help itself."""


def terms_in_templates() -> dict[str, list[str]]:
    """By template: the terms that it explains."""
    folder = settings.ASSETS_DIR / "templates"
    found = {path.relative_to(folder).as_posix(): USED.findall(path.read_text()) for path in folder.rglob("*.html")}
    return {path: names for path, names in found.items() if names}


def routes(resolver: URLResolver, start: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = start + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        elif isinstance(pattern, URLPattern):
            yield route


class Ids(HTMLParser):
    """The ids of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.update(value or "" for name, value in attrs if name == "id")


def test_every_page_of_the_console_belongs_to_an_area() -> None:
    there = [f"/{route}" for route in routes(get_resolver()) if not route.startswith(WITHOUT_HELP)]
    without = [
        address for address in there if address != "/" and (area_at(address) or areas()["overview"]).key == "overview"
    ]
    assert len(there) > 100
    assert without == [], "add the address to an area in memadmin/web/help/areas.toml"


def test_every_address_of_an_area_exists() -> None:
    there = [f"/{route}" for route in routes(get_resolver())]
    for area in areas().values():
        for path in area.paths:
            assert any(address.startswith(path) for address in there), f"{area.key} explains {path}"


def test_every_place_of_the_sidebar_has_an_area_of_its_own() -> None:
    places = [place for section in navigation.SECTIONS.values() for place in section]
    found = [area_at(place.url) for place in places]
    assert None not in found
    assert len({area.key for area in found if area}) == len(places)


def test_keys_and_addresses_of_areas_are_given_once() -> None:
    paths = [path for area in areas().values() for path in area.paths]
    assert len(set(paths)) == len(paths)
    slugs = [term.slug for group in glossary() for term in group.terms]
    assert len(set(slugs)) == len(slugs)


def test_symbols_of_areas_are_drawn() -> None:
    drawn = set(re.findall(r'<symbol id="([a-z0-9-]+)"', (settings.ASSETS_DIR / "static" / "icons.svg").read_text()))
    assert {area.symbol for area in areas().values()} <= drawn


@pytest.mark.django_db
def test_every_page_of_the_help_is_there_for_everybody_who_is_signed_in(outsider: Client) -> None:
    assert "Glossary" in outsider.get("/help/").text
    for area in areas().values():
        page = outsider.get(area.url)
        assert page.status_code == 200
        assert f'<h1 class="page-title">{area.title}</h1>' in page.text
        assert "Permissions" in page.text
    assert outsider.get("/help/no-such-area/").status_code == 404


def test_nobody_reads_the_help_without_signing_in(db: None, client: Client) -> None:
    assert client.get("/help/")["Location"].startswith("/accounts/login/")
    assert client.get("/help/stores/")["Location"].startswith("/accounts/login/")


def test_every_term_of_a_template_is_in_the_glossary() -> None:
    used = terms_in_templates()
    assert len(used) >= 10
    for path, names in used.items():
        assert {name.lower() for name in names} <= set(terms_by_name()), path


def test_words_of_our_own_are_explained_on_a_page() -> None:
    assert {name.lower() for names in terms_in_templates().values() for name in names} >= OURS


def test_unknown_term_is_an_error() -> None:
    with pytest.raises(UnknownTerm, match=r"“Tea” is not in glossary\.toml\."):
        Template('{% load memadmin %}{% term "Tea" %}').render(Context())


def test_area_with_an_unknown_term_or_key_is_an_error() -> None:
    stores = {"key": "tea", "title": "Tea", "symbol": "x", "paths": ["/tea/"], "summary": "", "about": ""}
    with pytest.raises(UnknownTerm):
        area_from(stores | {"terms": ["Tea"]})
    with pytest.raises(TypeError, match="colour"):
        area_from(stores | {"terms": [], "colour": "green"})


def test_term_is_a_button_with_an_explanation_and_a_link() -> None:
    shown = Template('{% load memadmin %}{% term "Fence" "the fence" %}').render(Context())
    assert '<span class="term">the fence<button' in shown
    assert 'popovertarget="about-fence"' in shown
    assert 'id="about-fence" popover>' in shown
    assert term_named("fence").text in shown
    assert 'href="/help/#term-fence"' in shown


def test_word_beside_a_heading_is_not_repeated() -> None:
    assert (
        Template('{% load memadmin %}{% term "Fence" "" %}').render(Context()).startswith('<span class="term"><button')
    )


def test_link_of_a_term_leads_to_its_place(outsider: Client) -> None:
    ids = Ids()
    ids.feed(outsider.get("/help/").text)
    assert {term.url.partition("#")[2] for group in glossary() for term in group.terms} <= set(ids.found)


def test_terms_for_developers_are_left_to_the_documentation(outsider: Client) -> None:
    with pytest.raises(UnknownTerm):
        term_named("Part")
    assert "request.user" not in outsider.get("/help/").text


@pytest.mark.parametrize(
    "address",
    [
        "/sessions/",
        "/subjects/",
        "/reviews/",
        "/memories/",
        "/memories/recall/",
        "/memories/distillers/",
        "/audit/",
        "/stores/",
        "/runs/",
        "/accounts/grants/",
        "/accounts/purpose/",
        "/help/",
        "/help/sessions/",
    ],
)
def test_no_id_is_on_a_page_twice(compliance: Client, address: str) -> None:
    ids = Ids()
    ids.feed(compliance.get(address).text)
    assert [id_ for id_, count in ids.found.items() if count > 1] == []


@pytest.mark.parametrize(
    ("address", "help_address"),
    [
        ("/sessions/", "/help/sessions/"),
        ("/search/", "/help/sessions/"),
        ("/memories/recall/", "/help/recall/"),
        ("/accounts/grants/", "/help/access/"),
        ("/", "/help/overview/"),
        ("/help/", "/help/"),
        ("/no/such/page/", "/help/"),
    ],
)
def test_help_in_the_top_bar_is_that_of_the_area(operator: Client, address: str, help_address: str) -> None:
    links = re.findall(r'href="([^"]*)"\s+aria-label="Help"', operator.get(address).text)
    assert links == [help_address]


def test_django_admin_has_help_in_its_top_bar(administrator: Client) -> None:
    assert 'href="/help/raw-edits/"' in administrator.get("/admin/").text


def test_page_of_an_area_opens_it_for_those_who_may(operator: Client, auditor: Client) -> None:
    assert 'href="/sessions/">Open the page</a>' in operator.get("/help/sessions/").text
    assert "Open the page" not in auditor.get("/help/sessions/").text


@pytest.mark.django_db
def test_every_permission_of_a_role_is_explained_in_an_area() -> None:
    explained = {permission for area in areas().values() for permission in area.permissions}
    known = {
        f"{app}.{codename}" for app, codename in Permission.objects.values_list("content_type__app_label", "codename")
    }
    assert {permission for permissions in ROLES.values() for permission in permissions} - explained == set()
    assert explained - known == set()


@pytest.mark.django_db
def test_who_may_is_what_the_roles_say() -> None:
    for area in areas().values():
        for permission, right in zip(area.permissions, rights_of(area.permissions), strict=True):
            assert right.roles == sorted(role for role, permissions in ROLES.items() if permission in permissions)
            assert not right.label.startswith("Can ")


def test_who_may_follows_the_permissions(outsider: Client) -> None:
    (before,) = rights_of(["runs.control_run"])
    assert before.label == "Pause, resume, cancel and limit background runs"
    assert before.roles == ["administrator", "compliance"]
    group = Group.objects.create(name="night watch")
    group.permissions.add(Permission.objects.get(codename="control_run"))
    assert "administrator, compliance, night watch" in outsider.get("/help/runs/").text
    Permission.objects.get(codename="control_run").group_set.clear()
    assert "no role; assigned to individual users" in outsider.get("/help/runs/").text


def test_who_may_takes_one_query(db: None, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        rights_of([permission for area in areas().values() for permission in area.permissions])


@pytest.mark.django_db
def test_each_role_has_a_tour_whose_pages_it_may_open() -> None:
    assert {tour.role for tour in tours()} == set(ROLES)
    for tour in tours():
        client = signed_in(person(tour.role))
        page = client.get("/help/tour/").text
        assert page.count("your role<") == 1
        assert page.index("your role<") < page.index("In the demo"), "the own role comes first"
        for step in tour.steps:
            assert client.get(step.url).status_code == 200, (tour.role, step.title)
            assert f'aria-label="Open the page: {step.title}"' in page


@pytest.mark.django_db
def test_a_tour_leads_nobody_to_pages_they_may_not_open() -> None:
    page = signed_in(person("auditor")).get("/help/tour/").text
    assert "Carry out an erasure request" in page
    assert 'aria-label="Open the page: Carry out an erasure request"' not in page
