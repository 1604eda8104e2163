"""What pages of sessions and subjects show of memories."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Q

from memadmin.counting import COUNT_CAP
from memories_app.forms import FeedbackForm
from memories_app.health import this_week
from memories_app.models import LearningStop, Memory, Signal
from memories_app.queue import age, standing
from memories_app.services.retiring import learned_from
from sessions_app.extensions import Panel, beside_item, beside_overview, beside_subject, beside_timeline, on_overview
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, Subject

READ, REVIEW = "memories_app.read_memory", "memories_app.review_memory"

REMARKS_SHOWN = 5


@beside_item
def feedback_panel(user: User, record: SessionRecord, item_id: str) -> Panel:
    """What operators said about an item, newest first, and the form to say more. One query."""
    given = Signal.objects.filter(record_id=record.pk, item_id=item_id, kind=Signal.Kind.FEEDBACK)
    masker = Masker()
    remarks = [
        (signal, masker.text(signal.text))
        for signal in given.select_related("given_by").order_by("-created_at", "-pk")[:REMARKS_SHOWN]
    ]
    shown = {"record": record, "item_id": item_id, "remarks": remarks, "form": FeedbackForm()}
    return Panel("memories/_feedback.html", shown)


@beside_timeline
def learned_panel(user: User, record: SessionRecord) -> Panel | None:
    """How much stands of what was learned here; nothing where that is nothing. One query."""
    if not user.has_perm(READ):
        return None
    count = learned_from(record.pk).order_by()[: COUNT_CAP + 1].count()
    return Panel("memories/_learned_here.html", {"record": record, "count": count}) if count else None


@beside_subject
def subject_panel(user: User, subject: Subject) -> Panel | None:
    """How many memories agents have of a subject and how many wait, and whether anything is learned. Three queries."""
    if not user.has_perm(READ):
        return None
    ids = list(subject.group_ids())
    counts = Memory.objects.filter(subject__in=ids).aggregate(
        approved=Count("pk", filter=Q(status=Memory.Status.APPROVED)),
        waiting=Count("pk", filter=Q(status__in=Memory.AWAITING)),
    )
    is_stopped = LearningStop.objects.filter(subject__in=ids).exists()
    return Panel("memories/_of_subject.html", {"subject": subject, "is_stopped": is_stopped, **counts})


@on_overview
def queue_tile(user: User) -> Panel | None:
    """How much waits for reviewers, and how long. Three queries."""
    if not user.has_perm(REVIEW):
        return None
    return Panel("memories/_queue_tile.html", {"standing": standing(), "within": age(settings.REVIEW_WITHIN)})


@beside_overview
def week_panel(user: User) -> Panel | None:
    """What was proposed and decided in a week. Two queries."""
    return Panel("memories/_this_week.html", {"week": this_week()}) if user.has_perm(REVIEW) else None
