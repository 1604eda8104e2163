"""Deployment checks: roles, grants, triggers, the log, the worker, stores, settings, backups.

`findings` looks as the web server would, whose environment and role it is given; each check is a function that yields
what is wrong, in sentences that say what to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from django.core.exceptions import ImproperlyConfigured
from django.db import Error

from memadmin.deploy.checks import enforcement, operation, replica, rights
from memadmin.deploy.checks.finding import CheckFinding
from memadmin.web.health import reasons_not_to_serve
from sessions_app.stores.base import StoreUnavailable

Check = Callable[[], Iterator[CheckFinding]]

OF_SETTINGS: tuple[Check, ...] = (
    operation.sign_in,
    operation.transport,
    operation.subject_keys,
    operation.django,
)

OF_DATABASE: tuple[Check, ...] = (
    rights.own_roles,
    rights.grants,
    rights.ways_round,
    rights.role_settings,
    rights.agents,
    enforcement.functions,
    enforcement.triggers,
    enforcement.holds,
    enforcement.tombstones,
    operation.log,
    operation.worker,
    operation.pooler,
    operation.retention,
    operation.stores,
    operation.search_index,
    operation.vectors,
    operation.backups,
    operation.statements_in_logs,
    replica.primary,
    replica.replica,
    operation.data_map,
)


def findings(*, until: float | None = None) -> list[CheckFinding]:
    """All findings, errors first. From the time `until` on (of `time.monotonic`) no further check begins: a finding
    names those that did not run.
    """
    if reasons := reasons_not_to_serve():
        found = [CheckFinding("error", "database", reason) for reason in reasons]
        checks = OF_SETTINGS
    else:
        found, checks = [], OF_DATABASE + OF_SETTINGS
    left_out = []
    for check in checks:
        if until is None or time.monotonic() < until:
            found += answered(check)
        else:
            left_out.append(name_of(check))
    if left_out:
        hint = f"There was no time left for these checks: {', '.join(left_out)}. Run `memadmin check_deploy`."
        found.append(CheckFinding("warning", "not-checked", hint))
    return sorted(found, key=lambda finding: finding.level)


def answered(check: Check) -> list[CheckFinding]:
    """A check that fails is a finding, too."""
    try:
        return list(check())
    except (Error, StoreUnavailable, ImproperlyConfigured) as problem:
        reason = str(problem).splitlines()[0].rstrip(".")
        return [CheckFinding("error", name_of(check), f"This check failed: {reason}.")]


def name_of(check: Check) -> str:
    return check.__name__.replace("_", "-")
