"""View models of an erasure: its steps, copies out of reach, exceptions and scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from memadmin.counting import counted
from memadmin.erasure.exceptions import Left, OutOfReach
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.preview import Preview, in_words
from memadmin.erasure.scan import erasable
from memadmin.erasure.steps import STEPS
from memadmin.erasure.steps.base import Counted

StepState = ErasureStep.State

TITLES = {step.name: step.title for step in STEPS}

REACH_SYMBOLS: Mapping[str, str] = {
    OutOfReach.BACKUPS: "archive",
    OutOfReach.SAVED_RUN_STATES: "player-pause",
    OutOfReach.COMPACTION: "cloud",
    OutOfReach.PROVIDER: "cloud",
    OutOfReach.LOGS: "server",
    OutOfReach.DOWNLOADS: "download",
    OutOfReach.NOT_SEARCHED: "eye-off",
    OutOfReach.SHORT_IDS: "eye-off",
}

REACH_NOUNS: Mapping[str, str] = {
    OutOfReach.COMPACTION: "sessions",
    OutOfReach.NOT_VACUUMED: "tables",
    OutOfReach.DOWNLOADS: "downloads",
}
"""Nouns for the numbers of copies out of reach; "copies" where none is named."""

ANYWHERE = "anywhere"
"""Place of a copy in a receipt, if it has none."""

STEP_LOOKS = {
    StepState.TO_DO: ("secondary", "clock"),
    StepState.RUNNING: ("blue", "loader-2"),
    StepState.WAITING: ("yellow", "clock-pause"),
    StepState.DONE: ("green", "check"),
    StepState.LEFT_OUT: ("orange", "alert-triangle"),
}
"""Colour and symbol of each state of a step."""


def holder_title(holder: str) -> str:
    """The store of a holder such as `sessions/main`, or what `memories` is about."""
    name, _, place = holder.partition("/")
    return place or TITLES.get(name, name)


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of an erasure: what was expected of it, and what it did."""

    step: ErasureStep
    detail: str
    previewed: int | None = None
    """Rows of the preview that was approved; None if it has no number for this step."""

    @property
    def title(self) -> str:
        return holder_title(self.step.holder)

    @property
    def colour(self) -> str:
        return STEP_LOOKS[StepState(self.step.state)][0]

    @property
    def symbol(self) -> str:
        return STEP_LOOKS[StepState(self.step.state)][1]

    @property
    def is_finished(self) -> bool:
        return self.step.state in ErasureStep.FINISHED

    @property
    def is_waiting(self) -> bool:
        return self.step.state == StepState.WAITING

    @property
    def is_empty(self) -> bool:
        """True if there was nothing to erase, and nothing is to be said."""
        step = self.step
        numbers = step.expected or step.erased or step.held or step.exceptions or self.previewed
        return not (numbers or step.reason or self.is_waiting)

    @property
    def percent(self) -> int | None:
        """Progress against the rows of the preview; None before the step has begun."""
        if self.step.state == StepState.DONE:
            return 100
        done = self.step.erased + self.step.held
        return min(99, done * 100 // self.step.expected) if self.step.expected and done else None

    @property
    def differences(self) -> list[str]:
        """Differences between the approved preview and the count at the start, and between that count and the finished
        step: "counted 5 at the start, 3 in the preview", "3 more than counted".
        """
        step, found = self.step, []
        if self.previewed is not None and self.previewed != step.expected:
            found.append(f"counted {step.expected:,} at the start, {self.previewed:,} in the preview")
        more = step.erased + step.held + sum(step.exceptions.values()) - step.expected
        if more and self.is_finished:
            found.append(f"{abs(more):,} {'more' if more > 0 else 'fewer'} than counted")
        return found


@dataclass(frozen=True, slots=True)
class StepsView:
    """The steps of an erasure, in their order."""

    steps: Sequence[StepView]
    empty: str
    """Titles of steps that found nothing."""
    total: int
    finished: int

    @property
    def current(self) -> StepView | None:
        """The step that is being worked on."""
        return next((step for step in self.steps if step.step.state == StepState.RUNNING), None)

    @property
    def waiting(self) -> list[StepView]:
        return [step for step in self.steps if step.is_waiting]

    @property
    def erased(self) -> int:
        return sum(step.step.erased for step in self.steps)

    @property
    def held(self) -> int:
        return sum(step.step.held for step in self.steps)

    @property
    def handled(self) -> int:
        """Rows that are erased or kept."""
        return self.erased + self.held

    @property
    def expected(self) -> int:
        return sum(step.step.expected for step in self.steps)

    @property
    def holders(self) -> int:
        """Number of holders from which something was erased."""
        return sum(step.step.erased > 0 for step in self.steps)


def steps_view(case: SubjectRequest) -> StepsView:
    """The steps of a request, with details and numbers from its preview. One query."""
    holders = {holder.holder: holder.counted for holder in Preview.of_json(case.preview).holders}
    views = []
    for step in ErasureStep.objects.filter(request=case):
        # A store that was connected after the preview had no rows in it.
        numbers = holders.get(step.holder, Counted(0))
        previewed = numbers.rows if holders and not numbers.problem else None
        views.append(StepView(step, in_words(numbers.details), previewed))
    return StepsView(
        steps=[view for view in views if not view.is_empty],
        empty=", ".join(view.title for view in views if view.is_empty),
        total=len(views),
        finished=sum(view.is_finished for view in views),
    )


@dataclass(frozen=True, slots=True)
class ReachLine:
    """A copy that is out of reach."""

    sentence: str
    symbol: str
    place: str
    count: str
    """The number with its noun; empty if it is not known."""
    until: date | None


def out_of_reach_lines(rows: Sequence[Mapping[str, Any]]) -> list[ReachLine]:
    """Lines for rows of a preview, one for each sentence and day; codes of another version are shown as they are."""
    sentences: dict[str, str] = {code.value: code.label for code in OutOfReach}
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        alike.setdefault((row["code"], row.get("until") or ""), []).append(row)
    lines = []
    for (code, until), group in alike.items():
        count = sum(row.get("count", 0) for row in group)
        lines.append(
            ReachLine(
                sentence=sentences.get(code, code),
                symbol=REACH_SYMBOLS.get(code, "archive"),
                place=", ".join(row["place"] for row in group if row["place"] not in ("", ANYWHERE)),
                count=counted(count, REACH_NOUNS.get(code, "copies")) if count else "",
                until=date.fromisoformat(until) if until else None,
            )
        )
    return lines


@dataclass(frozen=True, slots=True)
class StayingLine:
    """Data that stays after an erasure, with the reason."""

    sentence: str
    place: str
    count: int


def exception_lines(rows: Sequence[Mapping[str, Any]]) -> list[StayingLine]:
    sentences = dict(Left.choices)
    return [
        StayingLine(sentences.get(row["code"], row["code"]), holder_title(row["place"]), row["count"]) for row in rows
    ]


@dataclass(frozen=True, slots=True)
class ScanLine:
    """One scan for what is left of the subject."""

    at: datetime
    rows: int
    found: int
    erased_again: int
    """Rows among those found that another round of the steps could erase."""


def scan_lines(case: SubjectRequest) -> list[ScanLine]:
    return [
        ScanLine(datetime.fromisoformat(scan["at"]), scan["rows"], scan["found"], erasable(scan.get("places", ())))
        for scan in case.scans
    ]
