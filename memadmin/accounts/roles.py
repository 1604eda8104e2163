"""Roles: Django groups, each with the permissions for its work. The complete current table.

`raw_edit` is in none of them. It is granted to a single user for as long as needed. A feature with a new permission
adds it here and, for existing databases, with `give` in a migration of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

READ = ["sessions_app.read_content", "sessions_app.view_subject", "accounts.request_grant"]

REVIEW = [
    "memories_app.read_memory",
    "memories_app.review_memory",
    "memories_app.retire_memory",
    "memories_app.view_approvalrule",
]

LOG = ["audit.view_auditevent", "audit.export_log", "audit.verify_log"]

DATA_MAP = ["erasure.view_data_map"]

PEOPLE = ["accounts.view_people"]

SUPPORT = [
    *READ,
    "sessions_app.attach_session",
    "sessions_app.merge_subject",
    "sessions_app.reveal_personal_data",
    "sessions_app.view_sessionstore",
    "memories_app.read_memory",
    "memories_app.stop_learning",
]

UNGUARDED = frozenset([*LOG, *DATA_MAP, *PEOPLE])
"""Permissions that one administrator gives alone: they show no content and decide nothing. Any other takes two."""

RUNS = ["runs.view_run", "runs.control_run"]

HOLDS = ["retention.view_hold", "retention.place_hold", "retention.release_hold"]

POLICIES = ["retention.view_policy", "retention.change_policy", "retention.approve_policy"]

REQUESTS = ["erasure.view_request", "erasure.handle_request", "erasure.approve_request"]

ROLES: dict[str, list[str]] = {
    "support": SUPPORT,
    "reviewer": [*READ, *REVIEW],
    "compliance": [
        *dict.fromkeys([*SUPPORT, *REVIEW]),
        "memories_app.add_approvalrule",
        "memories_app.change_approvalrule",
        "memories_app.erase_version",
        *LOG,
        "audit.erase_beside_log",
        "accounts.decide_grant",
        "sessions_app.mark_sensitive",
        "sessions_app.redact_content",
        "sessions_app.reopen_subject",
        *RUNS,
        *HOLDS,
        *POLICIES,
        *REQUESTS,
        *DATA_MAP,
        "erasure.change_processing_record",
    ],
    "auditor": [*LOG, *DATA_MAP, *PEOPLE],
    "administrator": [
        "auth.add_user",
        "auth.change_user",
        "auth.view_user",
        "auth.view_group",
        "sessions_app.add_sessionstore",
        "sessions_app.change_sessionstore",
        "sessions_app.view_sessionstore",
        "sessions_app.add_sessionidpattern",
        "sessions_app.change_sessionidpattern",
        "sessions_app.delete_sessionidpattern",
        "sessions_app.view_sessionidpattern",
        "sessions_app.change_sessionrecord",
        "sessions_app.view_sessionrecord",
        "sessions_app.add_subject",
        "sessions_app.change_subject",
        "sessions_app.view_subject",
        "sessions_app.add_subjectalias",
        "sessions_app.change_subjectalias",
        "sessions_app.delete_subjectalias",
        "sessions_app.view_subjectalias",
        *RUNS,
        *PEOPLE,
        "accounts.view_system",
    ],
}


def give(roles: Mapping[str, Sequence[str]]) -> migrations.RunPython:
    """Migration operation that adds permissions to roles, and creates missing roles.

    Other permissions of a role stay. Does nothing backwards: the groups have members by then.
    """
    labels = {permission.split(".")[0] for permissions in roles.values() for permission in permissions}

    def run(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        # Django creates permissions after all migrations; on an empty database they are needed before that.
        for label in labels:
            app = apps.get_app_config(label)
            app.models_module = True  # type: ignore[assignment]  # only checked for presence
            create_permissions(app, apps=apps, using=schema_editor.connection.alias, verbosity=0)
            app.models_module = None
        grant_permissions(roles, apps.get_model("auth", "Group"), apps.get_model("auth", "Permission"))

    return migrations.RunPython(run, migrations.RunPython.noop)


def grant_permissions(roles: Mapping[str, Sequence[str]], Group: Any, Permission: Any) -> None:
    for name, permissions in roles.items():
        role, _ = Group.objects.get_or_create(name=name)
        for permission in permissions:
            app_label, codename = permission.split(".")
            role.permissions.add(Permission.objects.get(content_type__app_label=app_label, codename=codename))
