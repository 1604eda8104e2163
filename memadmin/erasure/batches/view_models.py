"""View models of batches: state, progress line, places of the preview, outcome strip and lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.erasure.batches import services
from memadmin.erasure.batches.outcomes import CLOSED, ERASED, RETRIED, LineOutcome
from memadmin.erasure.batches.previews import OURS
from memadmin.erasure.models import BatchLine, RequestBatch
from memadmin.erasure.view_models import ProgressView, Stage, counted, day, progress_line
from memadmin.runs.models import Run
from memadmin.web.templatetags.memadmin import day_and_minute
from sessions_app.models import Subject

State, Problem = RequestBatch.State, BatchLine.Problem

LOOKS: Mapping[str, tuple[str, str]] = {
    State.UPLOADED: ("blue", "inbox"),
    State.AWAITING: ("yellow", "user-check"),
    State.APPROVED: ("blue", "clock"),
    State.RUNNING: ("blue", "loader-2"),
    State.COMPLETE: ("green", "check"),
    State.COMPLETE_WITH_EXCEPTIONS: ("orange", "alert-triangle"),
    State.CANCELLED: ("secondary", "ban"),
}
"""Colour and symbol of each state."""

OUTCOME_LOOKS = {
    LineOutcome.COMPLETE: ("green", "check", "s-green"),
    LineOutcome.SCANNING: ("blue", "radar-2", "s2"),
    LineOutcome.WAITING: ("yellow", "clock-pause", "s-gold"),
    LineOutcome.EXCEPTIONS: ("orange", "alert-triangle", "s-orange"),
    LineOutcome.HELD: ("purple", "gavel", "s-purple"),
    LineOutcome.FAILED: ("red", "alert-octagon", "s-red"),
    LineOutcome.CANCELLED: ("secondary", "ban", "s4"),
    LineOutcome.OTHER_CASE: ("secondary", "file-text-shield", "s4"),
    LineOutcome.RUNNING: ("blue", "loader-2", "s1"),
    LineOutcome.TO_DO: ("secondary", "circle-dashed", "s3"),
}
"""Colour and symbol of each outcome, and its class in the strip."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One row of the preview."""

    name: str
    sessions: int | None
    rows: int | None
    held: int | None
    what: str
    problem: str = ""


def place_of(name: str, totals: list[int]) -> PlaceRow:
    """A store with its sessions, rows and held rows."""
    sessions, rows, held = totals
    return PlaceRow(name, sessions, rows, held, "whole sessions")


@dataclass(frozen=True, slots=True)
class StripPart:
    """One outcome in the strip: its width and left edge in percent."""

    outcome: LineOutcome
    count: int
    start: str
    width: str

    @property
    def label(self) -> str:
        return self.outcome.label

    @property
    def css(self) -> str:
        return OUTCOME_LOOKS[self.outcome][2]


@dataclass(frozen=True)
class BatchView(ProgressView):
    """One batch for one viewer. `lines`, `accepted` and `held` are numbers of its lines."""

    batch: RequestBatch
    viewer: User
    lines: int
    accepted: int
    held: int
    counts: Mapping[str, int] = field(default_factory=dict)

    looks = LOOKS

    @property
    def shown(self) -> RequestBatch:
        return self.batch

    @property
    def is_second_person(self) -> bool:
        return services.is_second_person(self.batch, self.viewer)

    @property
    def broken(self) -> int:
        return self.lines - self.accepted - self.held

    @property
    def found(self) -> int:
        """Lines that are accepted or on hold."""
        return self.accepted + self.held

    @property
    def title(self) -> str:
        return f"erasure of {counted(self.accepted, 'subject')}"

    @property
    def state(self) -> str:
        return "scanning" if self.is_scanning and not self.run_look else super().state

    @property
    def is_scanning(self) -> bool:
        """True if everything is erased, and only second scans are to come."""
        unfinished = self.accepted - sum(self.counts.get(outcome, 0) for outcome in CLOSED)
        return self.batch.state == State.RUNNING and 0 < unfinished == self.counts.get(LineOutcome.SCANNING, 0)

    # --- preview ------------------------------------------------------------------------------------------------------

    @property
    def places(self) -> list[PlaceRow]:
        preview = self.batch.preview
        problems, totals = preview.get("problems", {}), preview.get("places", {})
        stores = [
            PlaceRow(name, None, None, None, "", f"{problems[name]} The run waits for it.")
            if name in problems
            else place_of(name, totals[name])
            for name in sorted({*problems, *totals} - {OURS})
        ]
        if OURS in totals:
            _, rows, held = totals[OURS]
            stores.append(
                PlaceRow("memadmin", None, rows, held, "memories and what was learned, recalls, exports, ids")
            )
        return stores

    @property
    def rows(self) -> int:
        return sum(place.rows or 0 for place in self.places)

    @property
    def not_counted(self) -> list[str]:
        return [place.name for place in self.places if place.problem]

    @property
    def backups_until(self) -> date:
        """When the last backup with the data is gone, if it was erased today."""
        return (now() + timedelta(days=settings.BACKUP_DAYS)).date()

    @property
    def is_counting(self) -> bool:
        run = self.batch.preview_run
        return self.batch.previewed_at is None and run is not None and not run.is_finished

    @property
    def why_not_counted(self) -> str:
        """Why the count has failed; empty otherwise."""
        run = self.batch.preview_run
        return run.reason if run and run.state == Run.State.FAILED else ""

    # --- outcome ------------------------------------------------------------------------------------------------------

    @property
    def erased(self) -> int:
        return sum(self.counts.get(outcome, 0) for outcome in ERASED)

    @property
    def handled(self) -> int:
        """Subjects whose case was begun."""
        return self.accepted - self.counts.get(LineOutcome.TO_DO, 0) - self.counts.get(LineOutcome.RUNNING, 0)

    @property
    def percent(self) -> int:
        """Progress: 100 only when the batch is closed."""
        if self.batch.is_closed:
            return 100
        return min(99, self.handled * 100 // self.accepted) if self.accepted else 0

    @property
    def parts(self) -> list[StripPart]:
        found, start = [], 0.0
        for outcome in LineOutcome:
            count = self.counts.get(outcome, 0)
            if not count:
                continue
            width = count * 100 / max(self.accepted, 1)
            found.append(StripPart(outcome, count, f"{start:.3f}%", f"{width:.3f}%"))
            start += width
        return found

    @property
    def to_retry(self) -> int:
        return sum(self.counts.get(outcome, 0) for outcome in RETRIED)

    # --- progress line ------------------------------------------------------------------------------------------------

    @property
    def stages(self) -> list[Stage]:
        """The progress line: past parts, the current one, and those to come."""
        batch = self.batch
        is_erased = batch.is_closed or self.is_scanning
        stages = [
            ("Uploaded", day_and_minute(batch.uploaded_at), True),
            ("Checked", f"{self.found:,} of {counted(self.lines, 'line')}", self.accepted > 0),
            ("Preview", self._preview, self.is_preview_fresh or batch.state != State.UPLOADED),
            ("Second person", self.second_person, batch.approved_at is not None),
            ("Cancel window", self.time_to_cancel, batch.is_started),
            ("Running", f"{self.handled:,} of {self.accepted:,}" if batch.is_started else "", is_erased),
            ("Scanning", "at once, then a day later", batch.is_closed),
            (
                "Complete",
                day(batch.closed_at.date()) if batch.closed_at else f"by {day(batch.due_on)}",
                batch.is_closed,
            ),
        ]
        if batch.is_closed and batch.state != State.COMPLETE:
            past = [Stage(title, note, "past") for title, note, is_past in stages[:-1] if is_past and batch.is_started]
            past = past or [Stage(title, note, "past") for title, note, is_past in stages[:2] if is_past]
            label = State(batch.state).label.capitalize()
            return [*past, Stage(label, stages[-1][1], "exception")]
        return progress_line(stages)

    @property
    def _preview(self) -> str:
        if self.batch.previewed_at:
            return day_and_minute(self.batch.previewed_at)
        return "counting" if self.is_counting else ""


@dataclass(frozen=True, slots=True)
class LineView:
    """One line for the page: broken, or with its outcome."""

    line: BatchLine
    label: str = ""
    """The subject's ID, where the text of the line is destroyed."""
    outcome: LineOutcome | None = None

    @property
    def text(self) -> Any:
        return services.text_of(self.line)

    @property
    def key(self) -> str:
        return self.text.key or self.label

    @property
    def sentence(self) -> str:
        """The problem, with what it names."""
        text, other = self.text, self.line.other
        problem = Problem(self.line.problem)
        if problem == Problem.UNKNOWN and text.other_key:
            return f"Unknown subject. Did you mean {text.other_key}?"
        if problem == Problem.DUPLICATE and other:
            return f"Duplicate of line {other:,}."
        if problem == Problem.OPEN and other:
            return f"Erasure DSR-{other:04} is open; this line would join it."
        if problem == Problem.MERGED and text.other_key:
            return f"Merged into {text.other_key}; erase the merged subject by its own request."
        if problem == Problem.HELD and other:
            return f"On hold H-{other}: left out."
        return str(problem.label)

    @property
    def is_correctable(self) -> bool:
        return self.line.problem in BatchLine.CORRECTABLE

    # --- outcome ------------------------------------------------------------------------------------------------------

    @property
    def colour(self) -> str:
        return OUTCOME_LOOKS[self.outcome][0] if self.outcome else ""

    @property
    def symbol(self) -> str:
        return OUTCOME_LOOKS[self.outcome][1] if self.outcome else ""

    @property
    def state(self) -> str:
        return "erased" if self.outcome == LineOutcome.SCANNING else self.outcome.label if self.outcome else ""

    @property
    def rows(self) -> str:
        erased = getattr(self.line, "rows_erased", 0)
        expected = getattr(self.line, "rows_expected", 0)
        if self.outcome in ERASED or expected <= erased:
            return f"{erased:,}"
        return f"{erased:,} of {expected:,}"

    @property
    def note(self) -> str:
        request = self.line.request
        if request is None:
            return ""
        run = request.run
        if self.outcome in (LineOutcome.HELD, LineOutcome.FAILED, LineOutcome.WAITING) and run:
            return run.reason
        if self.outcome == LineOutcome.EXCEPTIONS and run:
            return counted(len(run.exceptions), "exception")
        return "receipt signed" if request.receipt else ""


def line_views(lines: Collection[BatchLine]) -> list[LineView]:
    """The lines with what the page shows of them. One query."""
    subjects = {line.subject_id for line in lines if line.subject_id}
    labels: dict[UUID, str] = Subject.objects.labels(subjects)
    return [
        LineView(
            line,
            labels.get(line.subject_id, "") if line.subject_id else "",
            LineOutcome(line.outcome) if hasattr(line, "outcome") else None,
        )
        for line in lines
    ]


def rows_per_second(rows: int, run: Run | None) -> float | None:
    seconds = timedelta(milliseconds=run.worked_ms).total_seconds() if run else 0
    return rows / seconds if seconds >= 1 and rows else None
