"""Preview of an erasure: what each step would erase, counted by the queries of the run."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.counting import counted
from memadmin.erasure.exceptions import Left, OutOfReach
from memadmin.erasure.extents import extents_of
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.models.steps import holder_name
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps import STEPS, step_named, steps_with_rows
from memadmin.erasure.steps.base import Counted
from sessions_app.models import SessionFinding, Subject

DOWNLOADS = ("session.downloaded", "item.downloaded", "memory.exported", "access.copy_fetched")
"""Types of events of files that left the console."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One step at one place, with its numbers."""

    name: str
    place: str
    counted: Counted

    @property
    def holder(self) -> str:
        return holder_name(self.name, self.place)

    @property
    def title(self) -> str:
        return self.place or step_named(self.name).title

    @property
    def what_happens(self) -> str:
        return step_named(self.name).what_happens

    @property
    def detail(self) -> str:
        """Further counts: "7 sessions, 1 encrypted"."""
        return in_words(self.counted.details)

    @property
    def problems(self) -> list[str]:
        """Sentences about what could not be counted, and about what cannot be erased."""
        problem, exceptions = self.counted.problem, self.counted.exceptions
        return [*([problem] if problem else []), *(Left(code).label for code, count in exceptions.items() if count)]

    @property
    def is_empty(self) -> bool:
        """True if it was counted and has no data of the subject."""
        return not self.counted.rows and not self.counted.problem


@dataclass(frozen=True, slots=True)
class Preview:
    """Rows that an erasure would erase, by holder, and copies that it does not reach."""

    holders: list[Holder]
    out_of_reach: list[dict[str, Any]]
    """Codes of `OutOfReach` with their place, count and last day."""
    covers: dict[str, Any] = field(default_factory=dict)
    """See `covered`: an erasure is about this and nothing else."""

    @property
    def rows(self) -> int:
        return sum(holder.counted.rows for holder in self.holders)

    @property
    def held(self) -> int:
        return sum(holder.counted.held for holder in self.holders)

    @property
    def to_erase(self) -> str:
        """Rows without those on hold: "1,118 rows in 6 holders"."""
        holders = sum(holder.counted.rows > holder.counted.held for holder in self.holders)
        return f"{counted(self.rows - self.held, 'rows')} in {counted(holders, 'holders')}"

    @property
    def is_incomplete(self) -> bool:
        """Whether something could not be counted."""
        return any(holder.counted.problem for holder in self.holders)

    @property
    def has_exceptions(self) -> bool:
        """True if something stays: rows on hold, and what cannot be erased."""
        return any(holder.counted.held or any(holder.counted.exceptions.values()) for holder in self.holders)

    @property
    def filled(self) -> list[Holder]:
        """Holders with data of the subject, and those that could not be counted."""
        return [holder for holder in self.holders if not holder.is_empty]

    @property
    def empty(self) -> str:
        """Titles of the other holders."""
        return ", ".join(holder.title for holder in self.holders if holder.is_empty)

    def as_json(self) -> dict[str, Any]:
        return {
            "holders": [{"name": h.name, "place": h.place, **asdict(h.counted)} for h in self.holders],
            "out_of_reach": self.out_of_reach,
            "covers": self.covers,
        }

    @classmethod
    def of_json(cls, saved: dict[str, Any]) -> Preview:
        """A saved preview; steps that this version does not have are left out."""
        known = {step.name for step in STEPS}
        holders = [
            Holder(row["name"], row["place"], Counted(**{k: v for k, v in row.items() if k not in ("name", "place")}))
            for row in saved.get("holders", ())
            if row["name"] in known
        ]
        return cls(holders, list(saved.get("out_of_reach", ())), saved.get("covers", {}))


def in_words(details: Mapping[str, int]) -> str:
    """Further counts of a holder: "7 sessions, 1 encrypted"."""
    return ", ".join(counted(count, word.replace("_", " ")) for word, count in details.items() if count)


def preview_erasure(scope: SubjectScope) -> Preview:
    """Counts what an erasure would erase now, and changes nothing."""
    covers = covered(scope.subject)
    return Preview(list(holders(scope)), out_of_reach(scope), covers)


def holders(scope: SubjectScope, *, without: Container[str] = ()) -> Iterator[Holder]:
    """Each step at each of its places, counted when it is asked for. `without` are places that are not asked."""
    with_rows = steps_with_rows(scope)
    for step in STEPS:
        for place in step.places(scope):
            if place not in without:
                numbers = step.count(scope, place) if step.name in with_rows else Counted(0)
                yield Holder(step.name, place, numbers)


def covered(subject: Subject, at: datetime | None = None) -> dict[str, Any]:
    """Digest of what an approval of this subject's erasure covers as of a moment, by default now; with the moment.

    One query.
    """
    at = at or now()
    return {"digest": extents_of([subject.pk], at)[subject.pk], "at": at.isoformat()}


def covered_now(request: SubjectRequest) -> dict[str, Any] | None:
    """The same as of the moment of the case's preview; None without one."""
    covers = request.preview.get("covers")
    return covered(request.subject, datetime.fromisoformat(covers["at"])) if covers else None


def is_as_counted(request: SubjectRequest) -> bool:
    """True if subjects, IDs and sessions are those of the preview. One query."""
    covers = covered_now(request)
    return covers is not None and covers == request.preview["covers"]


def out_of_reach(scope: SubjectScope) -> list[dict[str, Any]]:
    """Copies that no step reaches. Two queries."""
    until = (now() + timedelta(days=settings.BACKUP_DAYS)).date().isoformat()
    rows = [out_of_reach_row(OutOfReach.BACKUPS, until=until)]
    compacted = SessionFinding.objects.filter(record_id__in=scope.records().values("id"), kind="compaction").count()
    if compacted:
        rows.append(out_of_reach_row(OutOfReach.COMPACTION, count=compacted))
    return [
        *rows,
        *downloads(scope),
        out_of_reach_row(OutOfReach.SAVED_RUN_STATES),
        out_of_reach_row(OutOfReach.LOGS),
    ]


def downloads(scope: SubjectScope) -> list[dict[str, Any]]:
    """Files with content of this person alone that the audit log says were downloaded (GDPR article 19). One query."""
    about = Q(object_ref__in=scope.records().values("id")) | Q(subject_ref__in=scope.group)
    count = AuditEvent.objects.filter(about, type__in=DOWNLOADS).count()
    return [out_of_reach_row(OutOfReach.DOWNLOADS, count=count)] if count else []


def out_of_reach_row(code: OutOfReach, *, place: str = "", count: int = 0, until: str = "") -> dict[str, Any]:
    """A copy that no step reaches, as previews keep it; `until` is the last day on which it is there."""
    return {"code": code.value, "place": place, "count": count, "until": until}


def replace_out_of_reach(request: SubjectRequest, code: OutOfReach, rows: list[dict[str, Any]]) -> None:
    """Replaces the rows of one code in the preview of a case, which the caller saves."""
    others = [row for row in request.preview.get("out_of_reach", []) if row["code"] != code]
    request.preview = {**request.preview, "out_of_reach": [*others, *rows]}
