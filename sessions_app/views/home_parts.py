"""Sessions and stores on the home page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.counting import capped, count_up_to, counted, noun_for
from memadmin.home.charts import NOTHING_COUNTED, Chart, Series, day_labels, long_day_labels
from memadmin.home.day_counts import DAYS_SHOWN, DaySeries, series_of
from memadmin.home.parts import Card, HomeParts, Waiting, on_home
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import last_health
from sessions_app.services.counting_days import ITEMS, SESSIONS
from sessions_app.views.stores import CheckedStore, states_of_stores

STORES_SHOWN = 8
"""Number of stores on the card, those with problems first."""

MOST_UNREACHABLE = 3

COLOURS = ("s1", "s2", "s3")
"""Classes of the series for the stores with the most sessions; all others are one series."""


@on_home("Sessions", "sessions_app.read_content", roles=("support", "compliance"))
def sessions_to_look_at(user: User) -> HomeParts:
    """Sessions without a subject, and those with findings. Two queries, each to a cap."""
    on_record = SessionRecord.objects.on_record()
    entries = []
    if count := count_up_to(on_record.with_findings()):
        entries.append(
            Waiting(
                f"{sessions(count)} with findings",
                f"{reverse('sessions:list')}?state=findings",
                "View findings",
                "alert-triangle",
                facts="Such as a failed tool call, or an approval that is pending.",
                colour="orange",
            )
        )
    if count := count_up_to(on_record.without_subject()):
        entries.append(
            Waiting(
                f"{sessions(count)} without a subject",
                f"{reverse('sessions:list')}?without_subject=1",
                "Attach",
                "user-question",
                facts="The erasure of a subject does not include these sessions.",
            )
        )
    return HomeParts(waiting=entries)


def sessions(count: int) -> str:
    return f"{capped(count)} {noun_for(count, 'sessions')}"


@on_home("Unreachable stores", "sessions_app.view_sessionstore")
def unreachable_stores(user: User) -> HomeParts:
    """Stores that did not answer their last check. One query."""
    down = list(SessionStore.objects.filter(state=SessionStore.State.DOWN).order_by("name")[: MOST_UNREACHABLE + 1])
    entries = [
        Waiting(
            f"Store {store.name} is unreachable",
            reverse("sessions:store", args=[store.name]),
            "View store",
            "plug-connected-x",
            facts=problem_of(store),
            colour="red",
        )
        for store in down[:MOST_UNREACHABLE]
    ]
    if len(down) > MOST_UNREACHABLE:
        entries.append(
            Waiting(
                "More stores are unreachable",
                f"{reverse('sessions:stores')}?state=down",
                "View stores",
                "plug-connected-x",
                colour="red",
            )
        )
    return HomeParts(waiting=entries)


def problem_of(store: SessionStore) -> str:
    """The first problem of the last check, as a sentence."""
    health = last_health(store)
    return health.problems[0].sentence if health and health.problems else ""


@on_home(
    "Sessions and items per day", "sessions_app.view_sessionstore", roles=("support", "administrator"), waits=False
)
def sessions_and_items(user: User) -> HomeParts:
    """Charts by store, and the stores with their states. Four queries; the counts are those of the job."""
    counts = series_of(SESSIONS, ITEMS)
    names = {str(store.pk): store.name for store in SessionStore.objects.only("pk", "name")}
    begun, stored = counts[SESSIONS], counts[ITEMS]
    recent_sessions, recent_items = sum(begun.total[-2:]), sum(stored.total[-2:])
    stores = SessionStore.objects.worst_first()[:STORES_SHOWN]
    return HomeParts(
        changes=[f"{counted(recent_sessions, 'sessions')}, {counted(recent_items, 'items')}"],
        charts=[
            by_store("sessions-per-day", "New sessions per day by store", "sessions", begun, names),
            by_store(
                "items-per-day",
                "Items per day by store",
                "items",
                stored,
                names,
                empty="No items have been counted yet. They are counted when a session has been quiet for a moment.",
            ),
        ],
        cards=[
            Card(
                "sessions/_stores_card.html",
                {"checked_stores": [CheckedStore(each) for each in stores], "states": states_of_stores()},
            )
        ],
    )


def by_store(
    chart_id: str, title: str, nouns: str, counts: DaySeries, names: Mapping[str, str], empty: str = NOTHING_COUNTED
) -> Chart:
    """A chart with a series for each of the largest stores, and one for all others together."""
    largest: Sequence[str] = counts.largest_parts
    shown, others = largest[: len(COLOURS)], largest[len(COLOURS) :]
    series = [
        Series(names.get(part, "removed store"), colour, counts.of(part))
        for part, colour in zip(shown, COLOURS, strict=False)
    ]
    if others:
        series.append(Series(f"{len(others)} more", "s-other", counts.of(*others)))
    most = f"Most are in {series[0].label}." if series else ""
    return Chart(
        chart_id,
        title,
        f"{title}: {counted(sum(counts.total), nouns)} in {DAYS_SHOWN} days, {counts.total[-1]:,} today. {most}",
        "Day",
        day_labels(counts.days),
        series,
        note=f"last {DAYS_SHOWN} days",
        row_labels=long_day_labels(counts.days),
        empty=empty,
    )
