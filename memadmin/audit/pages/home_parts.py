"""The audit log on the home page: events per day, the last verification, and what is wrong with the log."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import now

from memadmin.audit.models import AuditVerdict
from memadmin.audit.pages.counting_days import ACTIONS, DENIED, EVENTS, READS, ROWS
from memadmin.audit.pages.health import BROKEN, SHOWN_FINDINGS, AuditHealth, health, sentence
from memadmin.audit.transparency.status import latest_verdict
from memadmin.audit.transparency.verified_tree import STOPPED
from memadmin.counting import counted
from memadmin.home.charts import Chart, Series, day_labels, long_day_labels
from memadmin.home.day_counts import DAYS_SHOWN, series_of
from memadmin.home.parts import Card, HomeParts, Waiting, on_home, time_since

VIEW = "audit.view_auditevent"

ALARMING = (STOPPED, "refused")
"""Codes of problems that say that somebody may have changed the log."""

VERIFIED_WITHIN = timedelta(days=7)
"""An older verification is due again."""


@on_home("Audit log", VIEW, roles=("auditor",))
def audit_log(user: User) -> HomeParts:
    """About thirteen queries of few rows each, however long the log is; the counts are those of the job."""
    state = health()
    counts = series_of(EVENTS)[EVENTS]
    reads, actions, denied = (sum(counts.of(part)[-2:]) for part in (READS, ACTIONS, DENIED))
    chart = Chart(
        "events-per-day",
        "Audit events per day by kind",
        f"Audit events per day by kind: {counted(sum(counts.total), 'events')} in {DAYS_SHOWN} days,"
        f" {sum(counts.of(DENIED)):,} of them denied or failed.",
        "Day",
        day_labels(counts.days),
        [
            Series("Reads", "s1", counts.of(READS)),
            Series("Actions", "s2", counts.of(ACTIONS)),
            Series("Changed rows", "s3", counts.of(ROWS)),
            Series("Denied or failed", "s-red", counts.of(DENIED)),
        ],
        note=f"last {DAYS_SHOWN} days",
        row_labels=long_day_labels(counts.days),
    )
    return HomeParts(
        waiting=problems_of(state),
        changes=[counted(reads, "reads"), counted(actions, "actions"), f"{denied:,} denied or failed"],
        charts=[chart],
        cards=[Card("audit/_verification_card.html", {"health": state})],
    )


@on_home("State of the audit log", VIEW, roles=("compliance",))
def broken_log(user: User) -> HomeParts:
    """Whether the log was changed, for compliance. One query."""
    verdict = latest_verdict()
    return HomeParts(waiting=[changed(verdict)] if verdict and verdict.verdict == BROKEN else [])


def changed(verdict: AuditVerdict) -> Waiting:
    """An entry about a verification that found changes."""
    facts = "; ".join(sentence(finding) for finding in verdict.findings[:SHOWN_FINDINGS])
    at = time_since(verdict.at)
    return Waiting("The audit log was changed", reverse("audit:list"), "View log", "alert-octagon", facts, at, "red")


def problems_of(state: AuditHealth) -> list[Waiting]:
    """Entries about a log that was changed, does not verify, or was not verified for long."""
    address, verdict, entries = reverse("audit:list"), state.verdict, list[Waiting]()
    checked = time_since(verdict.at) if verdict else ""
    if verdict and state.is_broken:
        entries.append(changed(verdict))
    elif state.is_unsigned:
        facts = "Check that a worker with the signing key is running."
        title = "Part of the audit log is not signed"
        entries.append(Waiting(title, address, "View log", "alert-triangle", facts, checked, "orange"))
    entries += [
        Waiting(problem.sentence, address, "View log", "anchor", colour="red" if problem.code in ALARMING else "orange")
        for problem in state.status.problems
    ]
    if verdict is None or verdict.at < now() - VERIFIED_WITHIN:
        title = "The audit log was not verified yet" if verdict is None else "A verification of the audit log is due"
        facts = f"Every {VERIFIED_WITHIN.days} days. It reads no content."
        entries.append(Waiting(title, address, "Verify log", "list-check", facts, checked))
    return entries
