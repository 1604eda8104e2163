"""View models of batches: state, progress line, places of the preview, outcome strip and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.counting import counted
from memadmin.erasure.batches.outcomes import ERASED, RETRIED, UNFINISHED, LineOutcome, number_of
from memadmin.erasure.batches.previews import OURS
from memadmin.erasure.batches.sealed import LineText, unseal
from memadmin.erasure.models import BatchLine, RequestBatch
from memadmin.erasure.view_models import ProgressView, Stage, progress_line, read_so_far, scan_of
from memadmin.runs.models import Run
from memadmin.web.templatetags.memadmin import day_and_minute
from sessions_app.models import Subject

State, Problem = RequestBatch.State, BatchLine.Problem

OUTCOME_LOOKS = {
    LineOutcome.COMPLETE: ("green", "check", "s-green"),
    LineOutcome.SCANNING: ("blue", "radar-2", "s2"),
    LineOutcome.TO_SCAN: ("blue", "radar-2", "s2"),
    LineOutcome.WAITING: ("yellow", "clock-pause", "s-gold"),
    LineOutcome.EXCEPTIONS: ("orange", "alert-triangle", "s-orange"),
    LineOutcome.HELD: ("purple", "gavel", "s-purple"),
    LineOutcome.FAILED: ("red", "alert-octagon", "s-red"),
    LineOutcome.CANCELLED: ("secondary", "ban", "s4"),
    LineOutcome.LEFT_OUT: ("orange", "ban", "s-orange"),
    LineOutcome.OTHER_CASE: ("secondary", "file-text-shield", "s4"),
    LineOutcome.RUNNING: ("blue", "loader-2", "s1"),
    LineOutcome.TO_DO: ("secondary", "circle-dashed", "s3"),
}
"""Colour and symbol of each outcome, and its class in the strip."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """One row of the preview: a store, or memadmin itself, which has no name."""

    name: str
    problem: str
    """Why it could not be counted."""
    sessions: int
    rows: int
    held: int


@dataclass(frozen=True, slots=True)
class StripPart:
    """One outcome in the strip, with its class: its left edge and width in percent."""

    label: str
    css: str
    count: int
    start: str
    width: str


@dataclass(frozen=True)
class BatchView(ProgressView):
    """One batch for one viewer. `lines`, `accepted` and `held` are numbers of its lines."""

    batch: RequestBatch
    viewer: User
    lines: int
    accepted: int
    held: int
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def shown(self) -> RequestBatch:
        return self.batch

    @property
    def broken(self) -> int:
        return self.lines - self.accepted - self.held

    @property
    def found(self) -> int:
        """Lines that are accepted or on hold."""
        return self.accepted + self.held

    @property
    def title(self) -> str:
        return f"erasure of {counted(self.accepted, 'subjects')}"

    @property
    def state(self) -> str:
        return "scanning" if self.is_scanning and not self.run_look else super().state

    @property
    def is_scanning(self) -> bool:
        """True if everything is erased, and only second scans are to come."""
        unfinished = number_of(self.counts, UNFINISHED)
        return self.batch.state == State.RUNNING and 0 < unfinished == self.counts[LineOutcome.SCANNING]

    # --- preview ------------------------------------------------------------------------------------------------------

    @property
    def places(self) -> list[PlaceRow]:
        """The stores by name, then what memadmin holds itself."""
        problems, totals = self.batch.preview.get("problems", {}), self.batch.preview.get("places", {})
        return [
            PlaceRow(name, problems.get(name, ""), *totals.get(name, (0, 0, 0)))
            for name in sorted({*problems, *totals}, key=lambda name: (name == OURS, name))
        ]

    @property
    def rows(self) -> int:
        return sum(place.rows for place in self.places)

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
    def handled(self) -> int:
        """Subjects whose case was begun."""
        return self.accepted - self.counts[LineOutcome.TO_DO] - self.counts[LineOutcome.RUNNING]

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
            if count := self.counts[outcome]:
                css, width = OUTCOME_LOOKS[outcome][2], count * 100 / max(self.accepted, 1)
                found.append(StripPart(outcome.label, css, count, f"{start:.3f}%", f"{width:.3f}%"))
                start += width
        return found

    @property
    def scan_so_far(self) -> str:
        """Progress of the scan for its cases; empty while there is none."""
        read = scan_of(self.batch.run)
        if read is None:
            return ""
        return f"Scan for {counted(len(read.state['cases']), 'subjects')}: {read_so_far(read)}"

    @property
    def to_retry(self) -> int:
        return number_of(self.counts, RETRIED)

    # --- progress line ------------------------------------------------------------------------------------------------

    @property
    def stages(self) -> list[Stage]:
        """The progress line: past parts, the current one, and those to come."""
        batch = self.batch
        is_erased = batch.is_closed or self.is_scanning
        stages = [
            ("Uploaded", day_and_minute(batch.uploaded_at), True),
            ("Checked", f"{self.found:,} of {counted(self.lines, 'lines')}", self.accepted > 0),
            ("Preview", self._preview, self.is_preview_fresh or batch.state != State.UPLOADED),
            ("Second person", self.second_person, batch.run_id is not None),
            ("Cancel window", self.time_to_cancel, batch.is_started),
            ("Running", f"{self.handled:,} of {self.accepted:,}" if batch.is_started else "", is_erased),
            ("Scanning", "at once, then a day later", batch.is_closed),
            ("Complete", self.end, batch.is_closed),
        ]
        if batch.is_closed and batch.state != State.COMPLETE:
            past = [Stage(title, note, "past") for title, note, is_past in stages[:-1] if is_past and batch.is_started]
            past = past or [Stage(title, note, "past") for title, note, is_past in stages[:2] if is_past]
            return [*past, Stage(State(batch.state).label.capitalize(), self.end, "exception")]
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
    outcome: LineOutcome = LineOutcome.TO_DO

    @property
    def text(self) -> LineText:
        return unseal(self.line.sealed)

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
        return OUTCOME_LOOKS[self.outcome][0]

    @property
    def symbol(self) -> str:
        return OUTCOME_LOOKS[self.outcome][1]

    @property
    def state(self) -> str:
        if self.outcome == LineOutcome.LEFT_OUT:
            return "left out"  # The note says why.
        return "erased" if self.outcome in (LineOutcome.SCANNING, LineOutcome.TO_SCAN) else self.outcome.label

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
            return str(self.line.problem and self.sentence)
        run = request.run
        if self.outcome in (LineOutcome.HELD, LineOutcome.FAILED, LineOutcome.WAITING) and run:
            return run.reason
        if self.outcome == LineOutcome.EXCEPTIONS and run:
            return counted(len(run.exceptions), "exceptions")
        return "receipt signed" if request.receipt else ""


def line_views(lines: Collection[BatchLine]) -> list[LineView]:
    """The lines with what the page shows of them. One query."""
    labels = Subject.objects.labels({line.subject_id for line in lines if line.subject_id})
    return [
        LineView(
            line,
            labels.get(line.subject_id, "") if line.subject_id else "",
            LineOutcome(getattr(line, "outcome", LineOutcome.TO_DO)),
        )
        for line in lines
    ]


def rows_per_second(rows: int, run: Run | None) -> float | None:
    seconds = timedelta(milliseconds=run.worked_ms).total_seconds() if run else 0
    return rows / seconds if seconds >= 1 and rows else None
