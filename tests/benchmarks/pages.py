"""The pages that have a target, and the bare query that each of them cannot do without."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.benchmarks.measure import Browser, Contender, WrongAnswer
from tests.benchmarks.servers import WebServer

RECORDS = "SELECT session_id, last_activity_at, id FROM sessions_app_sessionrecord WHERE erased_at IS NULL"
NEWEST = "ORDER BY last_activity_at DESC, id DESC LIMIT 50"
NEWEST_FEW = "ORDER BY last_activity_at DESC, id DESC LIMIT 8"

# The first text of a user and a count that stops, for each session of a page.
PREVIEWS = """
SELECT page.*, counted.items, said.message_data
FROM ({page}) AS page
CROSS JOIN LATERAL (
  SELECT count(*) AS items FROM (SELECT FROM agent_messages m WHERE m.session_id = page.session_id LIMIT 1001) AS few
) AS counted
LEFT JOIN LATERAL (
  SELECT m.message_data FROM agent_messages m
  WHERE m.session_id = page.session_id AND m.message_data LIKE '%%"role":"user"%%'
  ORDER BY m.created_at, m.id LIMIT 1
) AS said ON true
"""

ITEMS = "SELECT id, created_at, message_data FROM agent_messages WHERE session_id = %s"
IN_ORDER = "ORDER BY created_at, id LIMIT 100"

SAYING = """
SELECT id, session_id, message_data FROM agent_messages
WHERE memadmin_item_words(message_data) @@ websearch_to_tsquery('simple', %s)
ORDER BY id DESC LIMIT 50
"""


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    at_most_lists: float | None
    """How many times the median of the session list it may take."""
    at_most_growth: float
    """The median at full size over the median at a tenth of it."""
    admin_at_least: float | None
    """How many times longer the plain admin's page should take at least."""
    query: str


PAGES = {
    "list": Page("session list, giants on it", None, 1.3, 2, PREVIEWS.format(page=f"{RECORDS} {NEWEST}")),
    "deep": Page(
        "session list, deep page",
        None,
        1.3,
        4,
        PREVIEWS.format(page=f"{RECORDS} AND (last_activity_at, id) < (%s, %s::uuid) {NEWEST}"),
    ),
    "subject": Page(
        "sessions of one subject",
        None,
        1.3,
        4,
        PREVIEWS.format(page=f"{RECORDS} AND subject_id = %s::uuid {NEWEST}"),
    ),
    "ticket": Page("sessions of one ticket", None, 1.3, 4, PREVIEWS.format(page=f"{RECORDS} AND ticket = %s {NEWEST}")),
    "overview": Page("overview", 2, 1.3, None, PREVIEWS.format(page=f"{RECORDS} {NEWEST_FEW}")),
    "head": Page("timeline, head of the longest session", 3, 1.2, None, f"{ITEMS} {IN_ORDER}"),
    "middle": Page(
        "timeline, middle of it", 3, 1.2, None, f"{ITEMS} AND (created_at, id) > (%s::timestamp, %s) {IN_ORDER}"
    ),
    "tail": Page("timeline, tail of it", 3, 1.2, None, f"{ITEMS} ORDER BY created_at DESC, id DESC LIMIT 100"),
    "forty": Page("timeline, session of 40 items", None, 1.2, 2, f"{ITEMS} {IN_ORDER}"),
    "rare": Page("search, rare word, 50 sessions", 3, 1.5, None, SAYING),
    "common": Page("search, common word, 50 sessions", 3, 1.5, None, SAYING),
}


@dataclass(frozen=True, slots=True)
class Place:
    """One address of a page, with the same thing for the bare query and for the plain admin."""

    path: str
    parameters: Sequence[Any]
    rows: int
    """How many sessions or items it has to show."""
    admin_path: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """A web server, and somebody who is signed in there."""

    server: WebServer
    browser: Browser


@dataclass(frozen=True, slots=True)
class Arena:
    """One size of the data, and whoever can be asked about it."""

    places: Mapping[str, Sequence[Place]]
    console: Site
    connection: psycopg.Connection
    admin: Site | None = None

    def contenders(self, key: str) -> dict[str, Contender]:
        """Who can show a page: the console, the bare query, and the plain admin where it has such a page.

        Raises WrongAnswer when a page does not show what it should.
        """
        places, query = self.places[key], PAGES[key].query
        for each in places:
            check(each, self.console.browser.get(each.path))

        def place(number: int) -> Place:
            return places[number % len(places)]

        def ask_console(number: int) -> None:
            self.console.browser.get(place(number).path)

        def ask_database(number: int) -> None:
            self.connection.execute(query, place(number).parameters, prepare=True).fetchall()

        contenders = {
            "console": Contender(ask_console, self.console.server.cpu_seconds),
            "raw": Contender(ask_database),
        }
        if self.admin and places[0].admin_path:
            admin = self.admin

            def ask_admin(number: int) -> None:
                admin.browser.get(place(number).admin_path)

            contenders["admin"] = Contender(ask_admin, admin.server.cpu_seconds)
        return contenders


ROW = re.compile(rb'id="(?:session|item)-([0-9a-f-]+)"')


TIMELINE = re.compile("/sessions/[0-9a-f-]{36}/")

LONGEST_RUN = 20
"""Items: a page of a timeline ends between runs, so it has a few more or fewer."""


def check(place: Place, body: bytes) -> None:
    """An empty page is quickly made, so its rows are counted. Raises WrongAnswer."""
    shown = len(set(ROW.findall(body)))
    if abs(shown - place.rows) > (LONGEST_RUN if TIMELINE.match(place.path) else 0):
        raise WrongAnswer(f"{place.path} shows {shown} rows, and not {place.rows}")
