"""Requests of people on the home page."""

from __future__ import annotations

from datetime import date, timedelta

from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.utils.timezone import localdate

from memadmin.counting import COUNT_CAP, count_up_to, counted
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.reminders import owner_of, parked
from memadmin.erasure.view_models import SOON, day
from memadmin.home.charts import Chart, Series
from memadmin.home.parts import HomeParts, Waiting, on_home, time_since, yesterday

MOST_SHOWN = 3
"""Entries of one kind; the list has all."""

DAYS_LEFT = (("overdue", -10_000, -1), ("0 to 3", 0, 3), ("4 to 14", 4, 14), ("15 to 30", 15, 30), ("31+", 31, 10_000))
"""Columns of the chart: days left, from and to."""

BY_A_PERSON = ("received", "checked", "awaiting")
"""States in which a request waits for a person."""


@on_home("Due dates of requests", HANDLE)
def requests_due(user: User) -> HomeParts:
    """Requests and batches that are overdue or due soon, and runs that have stopped. Four queries at most."""
    today = localdate()
    entries = [
        Waiting(
            f"{about} is {'overdue' if about.due_on < today else f'due on {day(about.due_on)}'}",
            about.get_absolute_url(),
            "View request",
            "file-text-shield",
            facts=f"{kind_of(about)}, {about.get_state_display()}.",
            age=due(about.due_on),
            colour="red" if about.due_on < today else "yellow",
        )
        for waiting in (SubjectRequest.objects.to_answer(), RequestBatch.objects.open())
        for about in waiting.filter(due_on__lte=today + SOON)[:MOST_SHOWN]
    ]
    for run in parked()[:MOST_SHOWN]:
        about = owner_of(run)
        entries.append(
            Waiting(
                f"{about} stands still and needs a decision",
                about.get_absolute_url(),
                "View request",
                "alert-octagon",
                facts=run.reason,
                age=time_since(run.ended_at or run.chunk_at or run.requested_at),
                colour="red",
            )
        )
    return HomeParts(waiting=entries)


def kind_of(about: SubjectRequest | RequestBatch) -> str:
    return about.get_kind_display().capitalize() if isinstance(about, SubjectRequest) else "Batch"


def due(on: date) -> str:
    """The time left: "due in 2 days", "due today", "3 days overdue"."""
    left = (on - localdate()).days
    if left == 0:
        return "due today"
    return f"due in {counted(left, 'days')}" if left > 0 else f"{counted(-left, 'days')} overdue"


@on_home("Open requests", VIEW, roles=("compliance",))
def open_requests(user: User) -> HomeParts:
    """Open requests by days left, and the news since yesterday. Three queries, one over the open requests."""
    today = localdate()
    columns = {
        f"{name}_{place}": Count(
            "pk",
            filter=Q(due_on__gte=bound(today, first), due_on__lte=bound(today, last)) & is_by_person,
        )
        for name, is_by_person in (("person", Q(state__in=BY_A_PERSON)), ("work", ~Q(state__in=BY_A_PERSON)))
        for place, (_, first, last) in enumerate(DAYS_LEFT)
    }
    numbers = SubjectRequest.objects.open().order_by().aggregate(**columns)
    person, work = ([numbers[f"{name}_{place}"] for place in range(len(DAYS_LEFT))] for name in ("person", "work"))
    open_count = sum(person) + sum(work)
    begin = yesterday()
    # Numbers grow with time, and have the index.
    newest = SubjectRequest.objects.order_by("-number").values("pk")[: COUNT_CAP + 1]
    received = SubjectRequest.objects.filter(pk__in=newest, opened_at__gte=begin).count()
    closed = count_up_to(SubjectRequest.objects.filter(closed_at__gte=begin))
    return HomeParts(
        changes=[f"{counted(received, 'requests')} received, {closed:,} closed"],
        charts=[
            Chart(
                "requests-by-days-left",
                "Open requests by due date",
                f"Open requests by days left: {open_count:,} open, {person[0] + work[0]:,} overdue,"
                f" {person[1] + work[1]:,} due within 3 days.",
                "Days left",
                [label for label, _, _ in DAYS_LEFT],
                [Series("Waits for a person", "s-gold", person), Series("In progress", "s1", work)],
                note=f"{open_count:,} open, by days left",
                empty="No request is open.",
            )
        ],
    )


def bound(today: date, days: int) -> date:
    return today + timedelta(days=days)
