"""The review queue, decisions, recalls and feedback on the home page."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.urls import reverse
from django.utils.timezone import now

from memadmin.counting import COUNT_CAP, capped, count_up_to, counted, noun_for
from memadmin.home.charts import Chart, Series, day_labels, long_day_labels
from memadmin.home.day_counts import DAYS_SHOWN, series_of
from memadmin.home.parts import HomeParts, Waiting, on_home, time_since
from memories_app.models import Memory, Signal
from memories_app.review.counting_days import APPROVED, BY_RULE, DECISIONS, PROPOSALS, RECALLS, REJECTED, WAITS
from memories_app.review.proposal_expiry import WARNED_BEFORE
from memories_app.review.queue import age, narrowed, queue_status
from memories_app.review.rules import samples_to_see
from sessions_app.models import SessionRecord

READ, REVIEW = "memories_app.read_memory", "memories_app.review_memory"

HOURS = ((0, 4), (4, 12), (12, 24), (24, 48), (48, 72), (72, None))
"""Columns of the ages of proposals, in hours: from, and up to but without."""

FEEDBACK_IS_NEWS = timedelta(days=7)

MOST_FEEDBACK = 3


@on_home("Review queue", REVIEW)
def queue(user: User) -> HomeParts:
    """Proposals that need this reviewer, by the figures of the daily mail. At most seven queries, each to a cap."""
    status, address = queue_status(), reverse("reviews:list")
    waiting = Memory.objects.awaiting_review().not_snoozed()
    entries = []
    if status.late:
        entries.append(
            Waiting(
                f"{proposals(status.late)} past the review target of {status.target}",
                f"{address}?show=late",
                "Review",
                "alert-triangle",
                age=f"oldest {status.oldest}",
                colour="red",
            )
        )
    elif status.waiting:
        # Those past the target are of the same queue.
        entries.append(
            Waiting(
                f"{proposals(status.waiting)} to review", address, "Review", "checklist", age=f"oldest {status.oldest}"
            )
        )
    if status.ending:
        title = f"{proposals(status.ending)} will expire unreviewed within {WARNED_BEFORE.days} days"
        entries.append(Waiting(title, f"{address}?show=ending", "Review", "hourglass", colour="yellow"))
    for show, (title, action, symbol, facts) in SHOWN.items():
        if count := count_up_to(narrowed(waiting, "show", show, user)):
            words = title.format(count=capped(count), proposals=proposals(count))
            colour = "yellow" if show in ("again",) else ""
            entries.append(Waiting(words, f"{address}?show={show}", action, symbol, facts, colour=colour))  # type: ignore[arg-type]
    if count := count_up_to(samples_to_see()):
        title = f"{capped(count)} {noun_for(count, 'approvals')} by rules to check"
        entries.append(Waiting(title, f"{address}?show=sampled", "Check", "sparkles"))
    return HomeParts(waiting=entries)


SHOWN = {
    "contradicts": ("{proposals} on the same topic as another memory", "Compare", "arrows-diff", ""),
    "again": (
        "{proposals} to be re-validated",
        "Re-validate",
        "refresh-alert",
        "Agents do not recall them until then.",
    ),
    "mine": ("{proposals} claimed by you", "Continue", "clock", ""),
}
"""Filters of the queue with an entry each: title, action, symbol and facts."""


def proposals(count: int) -> str:
    return f"{capped(count)} {noun_for(count, 'proposals')}"


@on_home("Reviews per day", REVIEW, roles=("reviewer",), waits=False)
def reviews(user: User) -> HomeParts:
    """Proposals, decisions, waiting times and recalls per day, and the ages in the queue. Two queries: one of counts of
    the job, one over the oldest proposals to a cap.
    """
    counts = series_of(PROPOSALS, DECISIONS, WAITS, RECALLS)
    proposed, decisions, waits = counts[PROPOSALS].total, counts[DECISIONS], counts[WAITS].total
    decided, days = decisions.total, counts[PROPOSALS].days
    approved, by_rule, rejected = (sum(decisions.of(part)[-2:]) for part in (APPROVED, BY_RULE, REJECTED))
    changes = [
        f"{sum(proposed[-2:]):,} proposed",
        f"{sum(decided[-2:]):,} decided: {approved + by_rule:,} approved, {rejected:,} rejected",
    ]
    if by_rule:
        changes.append(f"{by_rule:,} of the approvals by rule")
    if waits[-1]:
        changes.append(f"median wait today {age(timedelta(minutes=waits[-1]))}")
    note, labels, row_labels = f"last {DAYS_SHOWN} days", day_labels(days), long_day_labels(days)
    return HomeParts(
        changes=changes,
        charts=[
            Chart(
                "decisions-per-day",
                "Proposals and decisions per day",
                f"Proposals and decisions per day: today {proposed[-1]:,} proposed and {decided[-1]:,} decided.",
                "Day",
                labels,
                [Series("Proposed", "s1", proposed), Series("Decided", "s2", decided)],
                note=note,
                form="line",
                row_labels=row_labels,
            ),
            ages(),
            Chart(
                "wait-per-day",
                "Review pace: median wait",
                f"Median wait of decided proposals by day. The target is {age(settings.REVIEW_WITHIN)}.",
                "Day",
                labels,
                [Series("Hours waited", "s1", [round(minutes / 60, 1) for minutes in waits])],
                note=f"in hours, {note}",
                row_labels=row_labels,
                empty="No person has decided about a proposal in this time.",
            ),
            Chart(
                "recalls-per-day",
                "Recalls per day",
                f"Recalls per day: {counted(sum(counts[RECALLS].total), 'recalls')} in {DAYS_SHOWN} days.",
                "Day",
                labels,
                [Series("Recalls", "s1", counts[RECALLS].total)],
                note=note,
                row_labels=row_labels,
                empty="No run has recalled memories in this time.",
            ),
        ],
    )


def ages() -> Chart:
    """Waiting proposals by age, the oldest up to a cap. One query."""
    at, columns = now(), {}
    target = at - settings.REVIEW_WITHIN
    for place, (first, last) in enumerate(HOURS):
        is_there = Q(awaiting_since__lte=at - timedelta(hours=first))
        if last is not None:
            is_there &= Q(awaiting_since__gt=at - timedelta(hours=last))
        columns[f"within_{place}"] = Count("pk", filter=is_there & Q(awaiting_since__gte=target))
        columns[f"past_{place}"] = Count("pk", filter=is_there & Q(awaiting_since__lt=target))
    oldest_first = Memory.objects.awaiting_review().not_snoozed()[: COUNT_CAP + 1]
    numbers = oldest_first.aggregate(**columns)
    within, past = ([numbers[f"{name}_{place}"] for place in range(len(HOURS))] for name in ("within", "past"))
    total = sum(within) + sum(past)
    of_target = f"({age(settings.REVIEW_WITHIN)})"
    return Chart(
        "age-of-queue",
        "Age of the queue",
        f"Waiting proposals by age: {sum(within):,} within the target, {sum(past):,} past it.",
        "Hours",
        [f"{first} to {last}" if last else f"{first}+" for first, last in HOURS],
        [Series("Within target", "s1", within), Series(f"Past target {of_target}", "s-red", past)],
        note=f"the oldest {COUNT_CAP:,}, by hours" if total > COUNT_CAP else f"{counted(total, 'proposals')}, by hours",
        empty="No proposals are waiting.",
    )


@on_home("Feedback", READ, roles=("support",))
def negative_feedback(user: User) -> HomeParts:
    """Answers with negative feedback of the last days, the newest first, without its words. Two queries."""
    if not user.has_perm("sessions_app.read_content"):
        return HomeParts()
    negative = Signal.objects.filter(kind=Signal.Kind.FEEDBACK, value=-1, created_at__gt=now() - FEEDBACK_IS_NEWS)
    newest = list(negative.exclude(record_id=None).order_by("-created_at", "-pk")[:MOST_FEEDBACK])
    records = SessionRecord.objects.on_record().in_bulk([signal.record_id for signal in newest])
    return HomeParts(
        waiting=[
            Waiting(
                "An answer has negative feedback",
                f"{record.get_absolute_url()}?item={signal.item_id}" if signal.item_id else record.get_absolute_url(),
                "Open session",
                "thumb-down",
                facts=record.ticket,
                age=time_since(signal.created_at),
            )
            for signal in newest
            if (record := records.get(signal.record_id))
        ]
    )
