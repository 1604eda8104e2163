"""Database roles and their rights: the rules, which `plan` applies and `check_deploy` compares.

The application owns nothing. A migrator owns the tables, and neither the web server nor the worker can become it; so
what the audit log refuses is refused to an intruder in one of them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.apps import apps
from django.db.models import Model
from psycopg import sql

from memadmin.deploy.steps import fetch

READ = ("SELECT",)
ADD = ("SELECT", "INSERT")
CHANGE = ("SELECT", "INSERT", "UPDATE")
CLEAR = ("SELECT", "DELETE")
EVERYTHING = ("SELECT", "INSERT", "UPDATE", "DELETE")

KINDS = ("migrator", "web", "worker", "auditor", "agents")
APPLICATION = ("web", "worker")

EVENT_COLUMNS = (
    "id",
    "type",
    "actor_kind",
    "actor_ref",
    "object_kind",
    "object_ref",
    "subject_ref",
    "shown",
    "outcome",
    "reason_code",
    "counters",
    "commitment",
    "request_id",
    "job_id",
)
"""Columns of an event that the application sets. The database sets number, time, role and cause."""

FENCE_COLUMNS = ("id", "store_id", "session_id", "erased_at", "is_forgotten")
"""Columns that keep an erased session erased; the web server must not change them."""

PROPOSAL_COLUMNS = (
    "id",
    "subject_id",
    "kind",
    "key",
    "statement",
    "data",
    "agents",
    "provenance",
    "source",
    "confidence",
    "valid_from",
    "valid_until",
    "replaces_id",
    "base_version",
    "extractor",
)
"""Columns that an agent sets for a memory that it proposes. The database and reviewers set the rest."""

RECALL_COLUMNS = (
    "id",
    "subject_id",
    "kind",
    "key",
    "statement",
    "data",
    "agents",
    "status",
    "provenance",
    "source",
    "confidence",
    "valid_from",
    "valid_until",
    "version",
    "is_verified",
    "decided_at",
    "embedding",
    "embedder",
    "embedded_hash",
    "content_hash",
    "words",
)
"""Columns that an agent may read of the memories that the row policies show it."""

OF_AGENTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "memories_app_memory": {"SELECT": RECALL_COLUMNS, "INSERT": PROPOSAL_COLUMNS},
    "memories_app_evidence": {
        "INSERT": ("id", "memory_id", "record_id", "session_id", "item_id", "speaker", "quote", "said_at", "signal_id")
    },
    "memories_app_signal": {
        "INSERT": (
            *("id", "subject_id", "record_id", "session_id", "item_id", "kind", "value", "text", "agent", "memory_id"),
        )
    },
    "memories_app_recall": {
        "INSERT": (
            *("id", "subject_id", "record_id", "session_id", "agent", "embedder", "token_budget", "token_count"),
        )
    },
    "memories_app_recalledmemory": {"INSERT": ("id", "recall_id", "memory_id", "version", "place", "score")},
}
"""Rights of agents on our tables, under the row policies on them: read approved memories, and add."""

OF_WORKER: Mapping[str, Sequence[str]] = {
    # People by name and address, for events and mail; a new column is closed until it is listed here.
    "auth_user": (
        *("id", "username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser"),
        *("date_joined", "last_login"),
    ),
    "django_session": ("expire_date",),
}
"""Columns of tables for signing in that the worker may read: neither password hashes nor sessions."""

INSERT_ONLY = ("audit_event", "audit_leaf", "audit_node", "audit_checkpoint", "audit_anchor")

SEQUENCED = ("audit_leaf", "audit_node", "audit_checkpoint", "audit_anchor", "audit_verdict")

OWNERS_ALONE = ("memadmin_secret",)
"""Keys that prove who acts: with them, a role could name any person in the log."""

BY_MIGRATIONS = ("django_migrations", "django_content_type", "auth_permission")
"""Tables that only migrations write to."""

SIGNING_IN = (
    "account_emailconfirmation",
    "memadmin_cache",
    "mfa_authenticator",
    "socialaccount_socialaccount",
    "socialaccount_socialapp",
    "socialaccount_socialtoken",
    "usersessions_usersession",
)
"""Tables for signing in: no background job needs them."""

RIGHTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "web": {
        # Of these two more is given by columns.
        "audit_event": READ,
        "sessions_app_sessionrecord": READ,
        "audit_detail": ADD,
        **dict.fromkeys(("audit_actor", "audit_pending", *SEQUENCED), READ),
        **dict.fromkeys(BY_MIGRATIONS, READ),
        **dict.fromkeys(OWNERS_ALONE, ()),
        # Always empty: links that confirm an address are signed, and tokens of a provider are not kept.
        **dict.fromkeys(("account_emailconfirmation", "socialaccount_socialtoken"), CLEAR),
        # The provider is in the environment; one in this table could let anybody sign in.
        "socialaccount_socialapp": READ,
        "accounts_approval": CHANGE,
        "accounts_contentgrant": CHANGE,
        "accounts_rolerequest": CHANGE,
        # Written by a trigger alone; only an erasure takes a text out.
        "memories_app_memoryversion": ("SELECT", "UPDATE"),
        # Triggers leave what a receipt states to the worker.
        "erasure_erasurestep": ("SELECT", "UPDATE"),
        "erasure_processingrecord": CHANGE,
        "erasure_subjectrequest": CHANGE,
        "erasure_suppressionentry": READ,
        "runs_run": CHANGE,
        "accounts_grantedsession": CHANGE,
        "home_countedday": READ,
        "home_daycount": READ,
        "home_readnotification": ("SELECT", "INSERT", "DELETE"),
        "home_savedview": ("SELECT", "INSERT", "UPDATE", "DELETE"),
        "procrastinate_events": ADD,
        "procrastinate_jobs": CHANGE,
        "procrastinate_periodic_defers": READ,
        "procrastinate_workers": READ,
        "retention_holdlock": (),
        "retention_legalhold": CHANGE,
        # Changes lock the row of their policy.
        "retention_retentionpolicy": CHANGE,
        "retention_policyversion": CHANGE,
        "retention_sweepalert": READ,
        "retention_sweepresult": READ,
        "retention_swepttable": READ,
        "retention_unfinishedexpiry": READ,
        # Tombstones: only the worker and the migrator write them.
        "sessions_app_erasedkey": READ,
        "sessions_app_fenceoutbox": READ,
        "sessions_app_subject": CHANGE,
        "sessions_app_tombstonelock": (),
        "sessions_app_unlockrequest": CHANGE,
    },
    "worker": {
        "audit_event": READ,
        "audit_detail": ADD,
        "audit_actor": READ,
        "audit_pending": CLEAR,
        **dict.fromkeys(SEQUENCED, ADD),
        **dict.fromkeys(BY_MIGRATIONS, READ),
        **dict.fromkeys(OWNERS_ALONE, ()),
        **dict.fromkeys(SIGNING_IN, ()),
        # An erasure deletes the entries about a person.
        "django_admin_log": CLEAR,
        **dict.fromkeys(
            (
                *("auth_user_groups", "auth_user_user_permissions", "auth_group"),
                *("auth_group_permissions", "account_emailaddress"),
            ),
            READ,
        ),
        # More of these two is given by columns.
        "auth_user": (),
        "django_session": ("DELETE",),
        "memories_app_memoryversion": ("SELECT", "UPDATE", "DELETE"),
        "erasure_processingrecord": READ,
        # Changed by triggers with the rights of their owner.
        "retention_holdlock": (),
        "retention_legalhold": READ,
        "retention_retentionpolicy": READ,
        "retention_policyversion": READ,
        "sessions_app_erasedkey": CHANGE,
        "sessions_app_tombstonelock": (),
    },
}
"""Rights of the application where they are fewer than to read and change every row."""

AGENTS_TABLES: Mapping[str, Sequence[str]] = {
    # Commands put triggers on these tables, and erase from them.
    "migrator": ("SELECT", "UPDATE", "DELETE", "TRIGGER"),
    "web": READ,
    "worker": EVERYTHING,
    "agents": EVERYTHING,
}
RAW_EDITS = ("SELECT", "UPDATE", "DELETE")
"""Further rights of the web server on the agents' tables, where users may edit their rows by hand."""

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "web": {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "60s"},
    "worker": {"statement_timeout": "15min"},
    "auditor": {"statement_timeout": "10min", "default_transaction_read_only": "on"},
}
"""Settings with which each role begins a connection."""


SETTINGS_NOW = """
SELECT r.rolname, s.setdatabase <> 0, split_part(one, '=', 1), substr(one, strpos(one, '=') + 1)
FROM pg_db_role_setting AS s JOIN pg_roles AS r ON r.oid = s.setrole CROSS JOIN unnest(s.setconfig) AS one
WHERE r.rolname = ANY (%s)
  AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
ORDER BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class RoleSetting:
    """A setting with which a role begins a connection."""

    role: str
    is_here_only: bool
    """In this database, not in all."""
    name: str
    value: str


def settings_of(names: Sequence[str]) -> list[RoleSetting]:
    """Settings of these roles that apply in this database. One query."""
    return [RoleSetting(*row) for row in fetch(SETTINGS_NOW, [list(names)])]


@dataclass(frozen=True, slots=True)
class Roles:
    """Role names; all have one prefix, because roles belong to the whole server."""

    prefix: str = "memadmin"

    def __getitem__(self, kind: str) -> str:
        return f"{self.prefix}_{kind}"

    @property
    def names(self) -> dict[str, str]:
        return {kind: self[kind] for kind in KINDS}

    def identifier(self, kind: str) -> sql.Identifier:
        return sql.Identifier(self[kind])


def rights_of(kind: str, table: str) -> Sequence[str]:
    """Rights of a role on a whole table of ours, without those on columns."""
    if kind == "auditor":
        return READ if table.startswith("audit_") else ()
    if kind not in APPLICATION:
        return ()
    # A table of the log without a rule here was forgotten: it can only be read.
    return RIGHTS[kind].get(table, READ if table.startswith("audit_") else EVERYTHING)


def columns_of(kind: str, table: str, columns: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Further rights on a table that has these columns, each with the columns for which it is given."""
    if kind == "agents":
        return OF_AGENTS.get(table, {})
    if kind in APPLICATION and table == "audit_event":
        return {"INSERT": EVENT_COLUMNS}
    if kind == "worker" and table in OF_WORKER:
        return {"SELECT": sorted(set(columns) & set(OF_WORKER[table]))}
    if kind == "worker" and table == "retention_legalhold":
        # An erasure takes it out of a released hold; a trigger refuses anything else.
        return {"UPDATE": ["session_id"]}
    if kind == "web" and table == "sessions_app_sessionrecord":
        return {"UPDATE": sorted(set(columns) - set(FENCE_COLUMNS))}
    return {}


BY_COLUMNS = ("audit_event", "retention_legalhold", "sessions_app_sessionrecord", *OF_AGENTS, *OF_WORKER)


def our_tables() -> list[str]:
    """Names of our tables that exist."""
    wanted = {model._meta.db_table for model in apps.get_models(include_auto_created=True) if is_ours(model)}
    return [
        name
        for (name,) in fetch(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relname = ANY (%s)"
            " AND relnamespace = current_schema()::regnamespace ORDER BY relname",
            [[*wanted, "django_migrations", "memadmin_cache", "memadmin_secret"]],
        )
    ]


def is_ours(model: type[Model]) -> bool:
    """True for our tables. The agents' tables are models, too, and are not ours."""
    meta = model._meta
    return not meta.proxy and (meta.managed or meta.app_label == "procrastinate")
