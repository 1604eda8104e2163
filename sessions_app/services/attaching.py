"""Attaching and detaching of stores: runs the steps that `registry` plans to install or remove registry and fence."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from django.db import Error, connection, transaction

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import SessionStore
from sessions_app.registry import AttachRefused, AttachStep, has_fence, own_health, plan_attachment, plan_removal
from sessions_app.services.discovery import discover
from sessions_app.services.health_checks import save_health
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlalchemy.postgres import BUSY

logger = logging.getLogger(__name__)

ATTEMPTS = 60
PAUSE_SECONDS = 0.5


def attach_store(store: SessionStore, *, report: Callable[[str], None] = lambda purpose: None) -> Sequence[AttachStep]:
    """Attaches a store: installs registry and fence, registers existing sessions, and returns the steps that had to
    run.

    A store without triggers is polled for its sessions, now and from now on by a job. If it stops responding meanwhile
    it stays attached, and `discovered_at` empty. Saves its health, too. Runs outside transactions. Raises
    AttachRefused, or StoreUnavailable if the tables do not exist.
    """
    steps = plan_attachment(store)
    _run(steps, store, report)
    if steps:
        audit.record_alone(audit_events.STORE_ATTACHED, target=store, counters={"steps": len(steps)})
    store.refresh_from_db(fields=["attached_at"])
    if not has_fence(store):
        try:
            discover(store)
        except StoreUnavailable:
            logger.warning("store %s is attached and not responding; its sessions are found once it responds", store.pk)
    # Without a comparison with all others: the plan has made one.
    save_health(store, own_health(store))
    return steps


def detach_store(store: SessionStore, *, report: Callable[[str], None] = lambda purpose: None) -> Sequence[AttachStep]:
    """Removes everything of ours from a store's tables. Registry rows stay, those of erased sessions too."""
    steps = remove_triggers(store, report=report)
    if not steps:
        return steps  # The main store may have no row yet.
    audit.record_alone(audit_events.STORE_DETACHED, target=store, counters={"steps": len(steps)})
    store.refresh_from_db(fields=["attached_at"])
    return steps


def remove_triggers(
    store: SessionStore, *, report: Callable[[str], None] = lambda purpose: None
) -> Sequence[AttachStep]:
    """Like `detach_store`, without an event: of an attachment that did not come about."""
    steps = plan_removal(store)
    _run(steps, store, report)
    return steps


def _run(steps: Sequence[AttachStep], store: SessionStore, report: Callable[[str], None]) -> None:
    for step in steps:
        report(step.purpose)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                _run_once(step)
                break
            except Error as problem:
                cause = problem.__cause__
                if not isinstance(cause, BUSY):
                    raise AttachRefused(
                        f"{step.purpose}: PostgreSQL refused it ({problem}).".replace("\n", " ")
                    ) from problem
                if attempt == ATTEMPTS:
                    raise AttachRefused(
                        f"{step.purpose}: the tables of {store} were in use by agents, or by upkeep such as VACUUM,"
                        f" in {ATTEMPTS} attempts. Nothing was damaged; run the command again."
                    ) from problem
                time.sleep(PAUSE_SECONDS)


def _run_once(step: AttachStep) -> None:
    if step.in_transaction:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            for statement in step.statements:
                cursor.execute(statement)
    else:
        with connection.cursor() as cursor:
            for statement in step.statements:
                cursor.execute(statement)
