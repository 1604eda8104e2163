"""View models of requests: state, due date, progress line, and the rows of the list."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Q, Sum
from django.utils.timezone import localdate, now

from memadmin.counting import counted
from memadmin.erasure.models import ErasureStep, RequestBatch, SubjectRequest
from memadmin.erasure.permissions import APPROVE
from memadmin.erasure.preview import Preview
from memadmin.erasure.scan.progress import KEY, Progress
from memadmin.erasure.services import has_preview
from memadmin.runs.models import Run
from memadmin.runs.templatetags.runs import length_of_time
from memadmin.web.templatetags.memadmin import day_and_minute

Kind, State = SubjectRequest.Kind, SubjectRequest.State

LOOKS: Mapping[str, tuple[str, str]] = {
    State.RECEIVED: ("blue", "inbox"),
    RequestBatch.State.UPLOADED: ("blue", "inbox"),
    State.CHECKED: ("blue", "id-badge-2"),
    State.AWAITING: ("yellow", "user-check"),
    State.APPROVED: ("blue", "clock"),
    State.RUNNING: ("blue", "loader-2"),
    State.SCANNING: ("blue", "radar-2"),
    State.COMPLETE: ("green", "check"),
    State.COMPLETE_WITH_EXCEPTIONS: ("orange", "alert-triangle"),
    State.FAILED: ("red", "alert-octagon"),
    State.REFUSED: ("secondary", "ban"),
    State.CANCELLED: ("secondary", "ban"),
}
"""Colour and symbol of each state of a request, and of a batch: those of one name mean the same."""

RUN_LOOKS = {
    Run.State.PAUSED: ("yellow", "player-pause", "paused"),
    Run.State.STOPPED: ("red", "alert-octagon", "stopped"),
    Run.State.FAILED: ("red", "alert-octagon", "failed"),
}
"""Colour, symbol and word of an erasure whose run needs a person."""

BUILT = (Run.State.COMPLETE, Run.State.COMPLETE_WITH_EXCEPTIONS)
"""States of a run that has built a copy."""

SOON = timedelta(days=5)
"""A due date that is nearer is marked."""

SCANS = 2
"""Scans of an erasure, at least: at once, and a day later."""

TITLES = {Kind.ERASURE: "Erasure of", Kind.ACCESS: "Access request of", Kind.RESTRICTION: "Restriction for"}


def day(on: date | None) -> str:
    """A day: "21 Nov", with its year if that is not this one."""
    if on is None:
        return ""
    year = "" if on.year == localdate().year else f" {on.year}"
    return f"{on.day} {on:%b}{year}"


def scan_of(run: Run | None) -> Progress | None:
    """The scan that a run is doing; None if it does none now."""
    return Progress(state=run.cursor[KEY]) if run and KEY in run.cursor else None


def read_so_far(read: Progress) -> str:
    """Progress of a scan: "12 places with 3,204,551 rows read."."""
    return f"{counted(read.places, 'places')} with {counted(read.rows(), 'rows')} read."


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of an erasure's steps."""

    steps: int = 0
    finished: int = 0
    erased: int = 0


def counts_of(cases: Collection[SubjectRequest]) -> Mapping[int, Counts]:
    """The numbers of the steps of these requests. One query."""
    finished = Count("pk", filter=Q(state__in=ErasureStep.FINISHED))
    rows = (
        ErasureStep.objects.filter(request__in=[case.pk for case in cases])
        .order_by()
        .values_list("request")
        .annotate(steps=Count("pk"), finished=finished, rows=Sum("erased"))
    )
    return {pk: Counts(*numbers) for pk, *numbers in rows}


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of the progress line."""

    title: str
    note: str
    look: str
    """`past`, `now`, `exception`, or empty for a later one."""


def progress_line(parts: Sequence[tuple[str, str, bool]]) -> list[Stage]:
    """Stages by their title, note, and whether they are past."""
    reached = next((index for index, (*_, is_past) in enumerate(parts) if not is_past), len(parts))
    return [
        Stage(title, note, "past" if index < reached else "now" if index == reached else "")
        for index, (title, note, _) in enumerate(parts)
    ]


class ProgressView:
    """State, due date, second person and time to cancel, which requests and batches show alike."""

    viewer: User

    @property
    def shown(self) -> SubjectRequest | RequestBatch:
        raise NotImplementedError

    @property
    def run(self) -> Run | None:
        return self.shown.run

    @property
    def run_look(self) -> tuple[str, str, str] | None:
        """Colour, symbol and word if the run needs a person."""
        return RUN_LOOKS.get(Run.State(self.run.state)) if self.run and not self.shown.is_closed else None

    @property
    def colour(self) -> str:
        return (self.run_look or LOOKS[self.shown.state])[0]

    @property
    def symbol(self) -> str:
        return (self.run_look or LOOKS[self.shown.state])[1]

    @property
    def state(self) -> str:
        return self.run_look[2] if self.run_look else self.shown.get_state_display()

    @property
    def days_left(self) -> int:
        return (self.shown.due_on - localdate()).days

    @property
    def due(self) -> str:
        """The time that is left, or since when it is closed."""
        if self.shown.closed_at:
            return f"closed {day(localdate(self.shown.closed_at))}"
        if self.days_left < 0:
            return f"{counted(-self.days_left, 'days')} overdue"
        return f"{counted(self.days_left, 'days')} left" if self.days_left else "due today"

    @property
    def due_colour(self) -> str:
        if self.shown.is_closed or self.days_left > SOON.days:
            return ""
        return "yellow" if self.days_left >= 0 else "red"

    @property
    def is_preview_fresh(self) -> bool:
        """True if approval can be requested with this preview."""
        return has_preview(self.shown)

    @property
    def second_person(self) -> str:
        """Name of the person who approved, or who is waited for."""
        decision = self.shown.decision
        if decision and decision.is_approved:
            return decision.decided_by.username if decision.decided_by else "a deleted account"
        if decision is None or self.shown.state != State.AWAITING:
            return ""
        return (
            "waiting"
            if decision.asked_by in (None, self.viewer) or not self.viewer.has_perm(APPROVE)
            else "waiting for you"
        )

    @property
    def time_to_cancel(self) -> str:
        shown = self.shown
        if shown.starts_at is None:
            return "over" if shown.is_started else length_in_words(settings.CANCEL_WINDOW)
        is_over = shown.is_started or shown.starts_at <= now()
        return f"{'over' if is_over else 'until'} {day_and_minute(shown.starts_at)}"

    @property
    def end(self) -> str:
        """When it was closed, or must be."""
        return day(localdate(self.shown.closed_at)) if self.shown.closed_at else f"by {day(self.shown.due_on)}"


@dataclass(frozen=True, slots=True)
class CaseView(ProgressView):
    """One request for one viewer."""

    case: SubjectRequest
    viewer: User
    counts: Counts

    @property
    def shown(self) -> SubjectRequest:
        return self.case

    @property
    def label(self) -> str:
        """The subject's ID; empty when it was erased."""
        return self.case.subject.label

    @property
    def title(self) -> str:
        return TITLES[Kind(self.case.kind)]

    @property
    def is_erasure(self) -> bool:
        return self.case.kind == Kind.ERASURE

    @property
    def closed_against_due(self) -> str:
        """Time between the end of a request and its due date: "9 days before due"."""
        closed = self.case.closed_at
        days = (self.case.due_on - localdate(closed)).days if closed else 0
        return f"{counted(abs(days), 'days')} {'before' if days > 0 else 'after'} due" if days else "on the due date"

    # --- the list -----------------------------------------------------------------------------------------------------

    @property
    def preview(self) -> Preview:
        return Preview.of_json(self.case.preview)

    @property
    def progress(self) -> str:
        """One line about how far the request is."""
        case = self.case
        if case.state == State.RECEIVED:
            return "identity not checked"
        if not self.is_erasure and not case.is_closed:
            return "copy is ready" if self._is_copy_ready else self._run_reason or "to be answered"
        if case.state in (State.CHECKED, State.AWAITING):
            return self.size if case.previewed_at else "not counted yet"
        if case.state == State.APPROVED:
            return f"starts {day_and_minute(case.starts_at)}" if case.starts_at else ""
        if case.state in (State.RUNNING, State.SCANNING) and self._run_reason:
            return self._run_reason
        if case.state == State.RUNNING:
            return f"{self.counts.finished} of {counted(self.counts.steps, 'steps')}"
        if case.state == State.SCANNING:
            return self.scanned
        if case.state == State.REFUSED:
            return SubjectRequest.Refusal(case.refusal).label
        if case.state == State.CANCELLED:
            return "before anything was erased"
        return counted(self.counts.erased, "rows") + " erased" if self.is_erasure else "answered"

    @property
    def _run_reason(self) -> str:
        """Why the run does not go on; empty if it does."""
        return self.run.reason if self.run else ""

    @property
    def _is_copy_ready(self) -> bool:
        """Whether the copy of an access request was built."""
        return self.case.kind == Kind.ACCESS and self.run is not None and self.run.state in BUILT

    @property
    def size(self) -> str:
        """Size of the preview: "1,204 rows in 7 holders"."""
        holders = sum(bool(holder.counted.rows) for holder in self.preview.holders)
        return f"{counted(self.preview.rows, 'rows')} in {counted(holders, 'holders')}"

    @property
    def scan_so_far(self) -> str:
        """Progress of a scan that is under way; empty while there is none."""
        read = scan_of(self.run)
        return f"Scan {len(self.case.scans) + 1}: {read_so_far(read)}" if read else ""

    @property
    def has_both_scans(self) -> bool:
        return len(self.case.scans) >= SCANS

    @property
    def scanned(self) -> str:
        """Scans that found nothing, of those that were made and are due: "1 of 2 clean"."""
        scans = self.case.scans
        return f"{sum(not scan['found'] for scan in scans)} of {max(len(scans), SCANS)} clean" if scans else ""

    # --- progress line ------------------------------------------------------------------------------------------------

    @property
    def stages(self) -> list[Stage]:
        """The progress line: past parts, the current one, and those to come."""
        stages = self._erasure_stages() if self.is_erasure else self._other_stages()
        case = self.case
        if case.is_closed and case.state != State.COMPLETE:
            # What was not reached is not shown: it will not be.
            past = [Stage(title, note, "past") for title, note, is_past in stages[:-1] if is_past]
            return [*past, self._exceptional_end()]
        return progress_line(stages)

    def _exceptional_end(self) -> Stage:
        if self.case.state != State.COMPLETE_WITH_EXCEPTIONS:
            return Stage(State(self.case.state).label.capitalize(), self.end, "exception")
        exceptions = counted(len(self.run.exceptions), "exceptions") if self.run else ""
        return Stage("Complete", exceptions, "exception")

    def _first_stages(self) -> list[tuple[str, str, bool]]:
        case = self.case
        checked = case.identity_checked_at
        return [
            ("Received", day(case.received_on), True),
            ("Identity checked", day(localdate(checked)) if checked else "", checked is not None),
        ]

    def _other_stages(self) -> list[tuple[str, str, bool]]:
        case, copy = self.case, list[tuple[str, str, bool]]()
        if case.kind == Kind.ACCESS:
            notes = {State.RUNNING: "being built", State.AWAITING: "awaiting a second person"}
            copy = [("Copy built", notes.get(State(case.state), ""), self._is_copy_ready)]
            if self._is_copy_ready and self.run and self.run.ended_at:
                copy = [("Copy built", day(localdate(self.run.ended_at)), True)]
        return [*self._first_stages(), *copy, ("Complete", self.end, case.is_closed)]

    def _erasure_stages(self) -> list[tuple[str, str, bool]]:
        case = self.case
        is_scanned = len(case.scans) > 0 and case.state != State.RUNNING
        return [
            *self._first_stages(),
            ("Preview", day_and_minute(case.previewed_at) if case.previewed_at else "", self._is_preview_done),
            ("Second person", self.second_person, case.run_id is not None),
            ("Cancel window", self.time_to_cancel, case.is_started),
            ("Running", self._running, is_scanned or (case.is_closed and case.is_started)),
            ("Scanning", self.scanned or "at once, then a day later", case.is_closed and bool(case.scans)),
            ("Complete", self.end, case.is_closed),
        ]

    @property
    def _is_preview_done(self) -> bool:
        case = self.case
        if case.is_closed and not case.is_started:
            return case.previewed_at is not None
        return self.is_preview_fresh or case.state not in (State.RECEIVED, State.CHECKED)

    @property
    def _running(self) -> str:
        case = self.case
        if case.state == State.RUNNING:
            return f"{self.counts.finished} of {counted(self.counts.steps, 'steps')}"
        if case.started_at and case.scans:
            return length_of_time(datetime.fromisoformat(case.scans[0]["at"]) - case.started_at)
        return ""


def length_in_words(length: timedelta) -> str:
    """A length in its largest whole unit: "4 h", "30 min"."""
    minutes = int(length.total_seconds()) // 60
    return f"{minutes} min" if minutes % 60 else f"{minutes // 60} h"


def views_of(cases: Collection[SubjectRequest], viewer: User) -> list[CaseView]:
    """The requests for this viewer. One query."""
    counts = counts_of(cases)
    return [CaseView(case, viewer, counts.get(case.pk, Counts())) for case in cases]
