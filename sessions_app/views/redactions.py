"""List of redactions: those that wait for a second person, those in progress, and ended ones by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.utils.timezone import now

from memadmin.accounts.same_person import is_same_person
from memadmin.home.saved_views import has_saved_views
from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run
from memadmin.runs.view_models import RunView
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memadmin.web.widgets import select
from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord
from sessions_app.models.querysets import RedactionQuerySet
from sessions_app.redaction import services

READ = "sessions_app.read_content"

REDACTIONS = ListPage("sessions/redactions.html", salt="redactions")

MOST_UNFINISHED = 100

MOST_APPROVERS = 50

NAMED_APPROVERS = 4

REFUSED, DONE = "refused", "done"


class EndedRedactions(FilterForm):
    """Filters of ended redactions. There are thousands at most, so more than one column sorts them."""

    table = ListTable(
        (
            ListColumn("redaction", "Redaction", is_fixed=True),
            ListColumn("state", "State"),
            ListColumn("reason", "Reason", ("reason", "requested_at", "id"), classes="d-none d-lg-table-cell"),
            ListColumn(
                "places",
                "Places",
                ("shown_places", "requested_at", "id"),
                classes="num d-none d-md-table-cell",
                begins_descending=True,
            ),
            ListColumn("by", "Requested by", classes="d-none d-md-table-cell"),
            ListColumn("approved", "Approved by", classes="d-none d-lg-table-cell"),
            ListColumn("ended", "Ended", classes="d-none d-md-table-cell", is_extra=True),
            ListColumn(
                "requested",
                "Requested",
                ("requested_at", "id"),
                classes="text-end d-none d-md-table-cell",
                begins_descending=True,
            ),
        ),
        sort="-requested",
    )

    state = forms.ChoiceField(
        required=False,
        widget=select("State"),
        choices=[("", "Done and refused"), (DONE, "Done"), (REFUSED, "Refused")],
        error_messages={"invalid_choice": "“%(value)s” is not a state of a redaction."},
    )

    def apply(self) -> RedactionQuerySet:
        """The ended redactions that match; none when a filter is wrong."""
        of_state = {DONE: Redaction.objects.carried_out, REFUSED: Redaction.objects.refused}
        ended: RedactionQuerySet = self.ordered(of_state.get(self.active.get("state", ""), Redaction.objects.ended)())
        return ended if self.is_valid() else ended.none()

    def spelled_out(self, name: str, value: Any) -> str:
        return "done" if value == DONE else "refused"


@dataclass(frozen=True, slots=True)
class ListedRedaction:
    """A redaction in the list, for one viewer."""

    redaction: Redaction
    run: RunView
    record: SessionRecord | None
    """Session of a redaction in one session; None if it was erased, too."""
    approvers: Sequence[User] = ()
    """People who may approve it, the viewer first; only of one that waits."""

    @property
    def reason(self) -> str:
        return str(dict(RedactReason.choices).get(self.redaction.reason, self.redaction.reason))

    @property
    def named_approvers(self) -> list[str]:
        return [each.username for each in self.approvers[:NAMED_APPROVERS]]

    @property
    def further_approvers(self) -> int:
        return max(0, len(self.approvers) - NAMED_APPROVERS)

    @property
    def is_refused(self) -> bool:
        redaction = self.redaction
        was_asked = redaction.ended_at is not None and redaction.approval is not None
        return was_asked and not (redaction.approval and redaction.approval.is_approved)

    @property
    def state(self) -> tuple[str, str, str]:
        """Colour, symbol and words of the state."""
        if self.redaction.is_awaiting:
            return "yellow", "user-check", "awaiting second person"
        if self.is_refused:
            is_declined = self.run.run.state == Run.State.CANCELLED
            return ("secondary", "ban", "refused") if is_declined else ("secondary", "hourglass-off", "expired")
        if self.run.run.state == Run.State.COMPLETE:
            return self.run.colour, self.run.symbol, "done"
        return self.run.colour, self.run.symbol, self.run.state


@operator_page(READ, services.REDACT)
@has_saved_views("sessions:redactions", services.REDACT, lambda query, _: EndedRedactions(query))
def redaction_list(request: OperatorRequest) -> HttpResponse:
    """All redactions by state. Without their texts, so that viewing the list is no event."""
    filters = EndedRedactions(request.GET)
    unfinished = list(Redaction.objects.unfinished().newest_first().with_people()[:MOST_UNFINISHED])
    page = REDACTIONS.page(request, filters.apply().with_people())
    records = sessions_of([*unfinished, *page.rows])
    waiting = [each for each in unfinished if each.is_awaiting]
    may_approve = approvers() if waiting else []

    def listed(redaction: Redaction) -> ListedRedaction:
        return ListedRedaction(
            redaction,
            # Without the description, which costs queries for each.
            RunView(redaction.run, kind_named(redaction.run.kind), description="", url="", may_control=False),
            records.get(redaction.record_id),
            approvers_of(redaction, may_approve, viewer=request.user) if redaction.is_awaiting else (),
        )

    context = {
        "filters": filters,
        "waiting": [(each, request.user in each.approvers) for each in map(listed, waiting)],
        "in_progress": [listed(each) for each in unfinished if not each.is_awaiting],
        "ended": [listed(each) for each in page.rows],
        "now": now(),
    }
    return REDACTIONS.render(request, context, page, status=400 if filters.problems else 200)


def sessions_of(redactions: Sequence[Redaction]) -> dict[Any, SessionRecord]:
    """Sessions that are not erased, by id. One query, or none."""
    ids = [each.record_id for each in redactions if each.record_id]
    return SessionRecord.objects.on_record().select_related("store").in_bulk(ids) if ids else {}


def approvers() -> list[User]:
    """Active people with the permission, with their addresses. Two queries."""
    people = User.objects.with_perm(services.REDACT).defer("password").prefetch_related("emailaddress_set")
    return list(people.order_by("username")[:MOST_APPROVERS])


def approvers_of(redaction: Redaction, people: Sequence[User], *, viewer: User) -> list[User]:
    """Those who may approve, the viewer first; none if the requester's account is deleted. No query."""
    asked_by = redaction.approval.asked_by if redaction.approval else None
    may = [each for each in people if asked_by and not is_same_person(each, asked_by)]
    return sorted(may, key=lambda each: each != viewer)
